"""Subjects that come back after days: their chains are joined, and the chains of other subjects are not."""

import random
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
from machine_kit import keeping

from memci import EphemeralStorage
from memci.memory import Rules, TieredMemory
from memci.memory.inspect import overview
from memci.testing.memory.pages import told

DAY = 86_400.0
SUBJECTS: dict[str, list[list[str]]] = {}
for line in (Path(__file__).with_name("subjects.txt")).read_text(encoding="utf-8").splitlines():
    if line.startswith("# "):
        found = SUBJECTS.setdefault(line[2:], [])
    else:
        found.append(line.split(" | "))


def talk(seed):
    """Return (subject, exchanges) of each session: six subjects, each twice, days between."""
    chance = random.Random(seed)
    names = chance.sample(sorted(SUBJECTS), 6)
    order = [name for name in names for _ in range(2)]
    chance.shuffle(order)
    seen = Counter()
    for name in order:
        seen[name] += 1
        yield name, SUBJECTS[name][:4] if seen[name] == 1 else SUBJECTS[name][4:]


class Misleading:
    """An embedder whose vectors say nothing of what texts mean."""

    name, dimension, semantic = "misleading", 8, True

    def __call__(self, texts):
        made = np.array([np.random.default_rng(len(text)).normal(size=8) for text in texts], np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


def lived(seed, embedder=None):
    """Return the (session, subject) of each page, and the episodes."""
    rules = Rules(capacity=4, batch=4)
    memory = TieredMemory(EphemeralStorage(), owner="o", rules=rules, embedder=embedder, clock=lambda: 1e9)
    session, index = {}, 0
    for number, (name, exchanges) in enumerate(talk(seed)):
        for minute, (question, answer) in enumerate(exchanges):
            index += 1
            session[index] = number, name
            page = told(index, question, answer, at=number * 2 * DAY + 60 * minute)
            keeping(memory.session.storage)(page)
            memory.admit(page)
        memory.maintain(number * 2 * DAY + 3600)
    return session, overview(memory).episodes


def test_an_embedder_makes_no_episode_worse():
    """Without a threshold in the rules, episodes are the same with any vectors."""
    without, with_one = (lived(0, embedder)[1] for embedder in (None, Misleading()))

    assert [each.pages for each in with_one] == [each.pages for each in without]


def test_a_subject_that_comes_back_joins_its_episode():
    """Of the pairs of sessions about one subject at least half are joined, and four of five joined pairs are right."""
    right = wrong = missed = 0
    for seed in range(4):
        session, episodes = lived(seed)
        subjects = Counter(name for _, name in session.values())
        assert max(len(each.pages) for each in episodes) <= 1.5 * max(subjects.values())
        places = {}
        for each in episodes:
            for _, page in each.pages:
                places.setdefault(session[page], Counter())[each.id] += 1
        main = {key: counts.most_common(1)[0][0] for key, counts in places.items()}
        for one, two in combinations(main, 2):
            same, joined = one[1] == two[1], main[one] == main[two]
            right, wrong, missed = right + (same and joined), wrong + (joined and not same), missed + (same > joined)

    assert right / (right + missed) >= 0.5, (right, wrong, missed)
    assert right / (right + wrong) >= 0.8, (right, wrong, missed)
