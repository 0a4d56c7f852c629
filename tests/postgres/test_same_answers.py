"""The same searches give the same pages and scores on SQLite and Postgres, whatever happened to the pages before."""

import contextlib
import json
import os
import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memci.memory import TieredMemory
from memci.memory.backend import PageRecord, Scope
from memci.storage import PostgresStorage, SQLiteStorage

sys.path.insert(0, str(Path(__file__).parents[1] / "memory"))
from machine_kit import keeping

NOUNS = ("flight", "dog", "violin", "garden", "invoice", "passport", "kitchen", "server", "bicycle", "museum", "recipe")
VERBS = ("booked", "lost", "painted", "repaired", "sold", "found", "cancelled", "planted", "cooked", "visited")
PLACES = ("Oslo", "Lisbon", "上海", "Kyiv", "Marrakesh", "Köln", "Friedrichshafen")
QUERIES = (
    "Who booked a flight to Oslo?",
    "When did Ann visit the museum?",
    "What did Ben lose?",
    "Remind me: which standing wishes do I have for answers?",
    "List in order what I told you about my garden, five items",
    "violn fligt",
    "HAT136",
    "invoice HAT1362 on 2024-05-03",
    "上海",
    "Please write a recipe for me",
)


@contextlib.contextmanager
def opened(folder, url, **settings):
    """Give the same memory on SQLite and on Postgres, as behind a pooler."""
    with (
        contextlib.closing(SQLiteStorage(folder / "agent.db", durability="fast")) as one,
        contextlib.closing(PostgresStorage(url, prepare=False, pool_size=1)) as other,
    ):
        yield [TieredMemory(storage, owner="anna", clock=lambda: 2e9, **settings) for storage in (one, other)]


@pytest.fixture
def both(tmp_path, postgres_url):
    """Two memories: what is done to one is done to the other."""
    with opened(tmp_path, postgres_url) as memories:
        yield memories


def sentence(draw):
    who = draw.choice(("", "", "Ann: ", "Ben: "))
    words = f"{draw.choice(VERBS)} the {draw.choice(NOUNS)} in {draw.choice(PLACES)}"
    more = draw.choice(("", f" with HAT{draw.randrange(1000, 1400)}", " last Tuesday", "?", " for $1,204.50"))
    return f"{who}I {words}{more}." if draw.random() < 0.9 else "From now on, always answer in French, please."


def page(draw, context, index, at):
    entries = [{"role": "user", "content": sentence(draw)}]
    if draw.random() < 0.4:
        call = {"id": f"c{index}", "type": "function", "function": {"name": "search_flights", "arguments": "{}"}}
        entries.append({"role": "assistant", "content": None, "tool_calls": [call]})
        entries.append({"role": "tool", "tool_call_id": f"c{index}", "content": json.dumps(sentence(draw))})
    long = draw.choice((1, 1, 2, 40))
    entries.append({"role": "assistant", "content": " ".join(sentence(draw) for _ in range(long))})
    return PageRecord(context, index, index, tuple(enumerate(entries, 1)), at)


def unscored(page):
    """Return *page* without scores, which floats of another order differ in."""
    return replace(page, score=0, later=None if page.later is None else unscored(page.later))


def compare(one, other, queries, **bounds):
    for query in queries:
        mine, yours = (each.search(query, **bounds) for each in (one, other))
        assert [*map(unscored, mine.pages)] == [*map(unscored, yours.pages)], query
        assert [each.score for each in mine.pages] == pytest.approx([each.score for each in yours.pages], abs=1e-5)
        assert mine.certainty == pytest.approx(yours.certainty, abs=1e-5)
        assert replace(mine, pages=(), certainty=0) == replace(yours, pages=(), certainty=0), query


@pytest.mark.parametrize("seed", range(2))
def test_any_history_gives_the_same_answers(both, seed):
    """Pages of three contexts in turn, observed again, erased, described by a model: each search is the same."""
    draw = random.Random(seed)
    kept = [keeping(each.session.storage) for each in both]
    known, at = {}, 1.7e9
    for step in range(90):
        context = draw.choice(("alice", "ben", "chat"))
        at += draw.choice((30, 600, 90_000))
        act = draw.random()
        if act < 0.75 or not known:
            index = known.get(context, 0) + 1
            known[context] = index
            fresh = page(draw, context, index, at if draw.random() < 0.9 else None)
            for memory, keep in zip(both, kept, strict=True):
                keep(fresh)
                (memory.admit if act < 0.4 else memory.observe)(fresh)
        elif act < 0.85:
            scope = Scope(context, draw.sample(range(1, known.get(context, 1) + 1), 1))
            gone = [memory.erase(scope).pages for memory in both]
            assert gone[0] == gone[1]
        elif act < 0.9:
            for memory in both:
                owner = memory.session.owner
                if ids := sorted(owner.pages.ids_of(context).values()):
                    with owner.change():
                        owner.annotate(1 + step % 2, {ids[step % len(ids)]: ["zeppelin", "flight"]})
        elif act < 0.95:
            assert both[0].maintain() == both[1].maintain()
        else:
            compare(*both, draw.sample(QUERIES, 2), k=7)
    compare(*both, QUERIES, k=10)
    compare(*both, QUERIES, k=5, budget=400, since=1.7e9 + 9e5)
    compare(*both, ["zeppelin"], exclude=[("alice", 1), ("ben", 2)])


def test_several_blocks_give_the_same_answers(both):
    """Passages of more than one block, all by two people: whom a question names is found in each of them."""
    draw = random.Random(5)
    for index in range(1, 9):
        said = [f"{draw.choice(('Ann', 'Ben'))}: the {draw.choice(NOUNS)} {number}" for number in range(300)]
        said[7] = f"Ann: a zeppelin over {PLACES[index % 7]}"
        messages = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(said)]
        fresh = PageRecord("alice", index, index, tuple(enumerate(messages, 1)), 1.7e9 + index)
        for memory in both:
            keeping(memory.session.storage)(fresh)
            memory.observe(fresh)

    compare(*both, ["What did Ann say of a zeppelin?", "What did Ann tell Ben?", "zeppelin Köln", "the engine"], k=12)
    for memory in both:
        memory.erase(Scope("alice", (2, 7)))
    compare(*both, ["What did Ann say of a zeppelin?", "dog 17", "the museum"], k=12)


class Meaning:
    """An embedder that knows meanings, in the eyes of a memory: words by the sums of their letters."""

    name, dimension, semantic = "meaning", 64, True

    def __call__(self, texts):
        made = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(made, texts, strict=True):
            for word in text.casefold().split():
                row[sum(word.encode()) % self.dimension] += 1
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)


def test_meanings_give_the_same_answers(tmp_path, postgres_url):
    """With vectors of passages, too: for who reads them first, after another one has fed more, and after an erasure."""
    draw, meaning = random.Random(9), {"embedder": Meaning()}
    with opened(tmp_path, postgres_url, **meaning) as feeders, opened(tmp_path, postgres_url, **meaning) as readers:
        for index in range(1, 61):
            fresh = page(draw, ("alice", "ben")[index % 2], (index + 1) // 2, 1.7e9 + 600 * index)
            for memory in feeders:
                keeping(memory.session.storage)(fresh)
                memory.admit(fresh)
            if index in (30, 60):
                assert feeders[0].maintain() == feeders[1].maintain()
                assert all(len(each.session.owner.passages.vectors("meaning", 64)[0]) > index for each in feeders)
                compare(*readers, QUERIES, k=10)
        for memory in feeders:
            memory.erase(Scope("alice", (2, 7, 20)))
        compare(*readers, QUERIES, k=10)


FOLDER = Path(os.environ.get("MEMCI_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the real conversations are not here: set MEMCI_DATA to their folder")
def test_a_dialogue_gives_the_same_answers(both):
    """Each question about a very long dialogue finds the same messages with the same scores."""
    talk = json.loads((FOLDER / "locomo_part.json").read_text())[0]
    kept, index = [keeping(each.session.storage) for each in both], 0
    for session in range(1, 36):
        lines = talk["conversation"].get(f"session_{session}", ())
        for start in range(0, len(lines), 4):
            index += 1
            said = [
                {"role": ("user", "assistant")[each["speaker"] == lines[0]["speaker"]], "content": each["text"],
                 "name": each["speaker"]}
                for each in lines[start : start + 4]
            ]  # fmt: skip
            fresh = PageRecord("talk", index, index, tuple(enumerate(said, 1)), 1.68e9 + session * 86_400.0)
            for memory, keep in zip(both, kept, strict=True):
                keep(fresh)
                memory.observe(fresh)
    compare(*both, [each["question"] for each in talk["qa"]][::2], k=10)
