"""A hypothesis machine that lives through the memories of two owners with two contexts each, beside a plain model.

    append, search, hand over, undo, die    ──▶  every planted word is found
    erase a page, an entry, a context            where it was said, by its owner
    at the end                              ──▶  a memory made again from the raw pages finds the same

Every turn plants a word that nothing else says. As a module, `python machine_lives.py 500` lives longer lives.
This module knows nothing of how a memory finds things.
"""

import os
import sys
from collections import Counter
from dataclasses import replace
from itertools import count as counting

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from machine_chats import chat
from machine_kit import check, die, items, tiers

from memci import EphemeralStorage
from memci.history.erase import erase
from memci.memory import TieredMemory
from memci.memory.repository.page_source import record_of
from memci.memory.repository.sqlite import SQLiteMemory
from memci.memory.tiers.heat import Warmth
from memci.memory.tiers.rules import Rules
from memci.rows import PageState
from memci.storage.protocol import Sidecar

RULES = Rules(capacity=2, batch=1, episodes=2, threshold=1.2, promoted=2.0, accesses=3)
OWNERS = {"a1": "anna", "a2": "anna", "b1": "bert", "b2": "bert"}
TOPICS = (
    "a flight to Oslo, an aisle seat, the airport and the plane",
    "the dog is ill, the vet and the medicine for its paw",
    "订一张去奥斯陆的机票，我住在上海",
    "the violin, its strings and the concert on Sunday",
    "I like tea. I live in Bergen. My sister plays chess.",
)
contexts = st.sampled_from(sorted(OWNERS))
reached: Counter[str] = Counter()
"""what lives met: a machine that never gets there proves nothing"""


def planted(number):
    """Return word *number*: letters only, all of one length, none like another for a stemmer."""
    letters = ""
    for _ in range(5):
        number, letter = divmod(number, 20)
        letters += "bcdfghjklmnpqrstvwxz"[letter]
    return f"qu{letters}k"


class Lives(RuleBasedStateMachine):
    """Lives through everything that can happen to the pages of four contexts."""

    def __init__(self):
        super().__init__()
        self.storage = EphemeralStorage()
        self.words = counting()
        self.now = 1.7e9
        self.open = {}
        self.memories = {}
        self.said = {name: {} for name in OWNERS}
        """page to (word of the question, word of the answer); None: that entry was erased"""
        self.last = dict.fromkeys(OWNERS)
        self.gone = []
        """(owner, word) of what must not be found any more"""

    # -- what happens

    @rule(name=contexts, topic=st.sampled_from(TOPICS), turns=st.integers(1, 9), dated=st.booleans())
    def append(self, name, topic, turns, dated):
        """Say something, a few turns of it."""
        context = self._context(name)
        for _ in range(turns):
            self.now += 700
            question, answer = planted(next(self.words)), planted(next(self.words))
            at = None if not dated else _iso(self.now)
            receipt = context.append_turn(
                {"role": "user", "content": f"{topic} {question} " + "and so on " * 20},
                {"role": "assistant", "content": f"Yes: {answer}. " + "so it is " * 15},
                at=at,
            )
            self.said[name][receipt.page] = (question, answer)
            self.last[name] = receipt.page

    @rule(name=contexts)
    def hand_over(self, name):
        """Tell the memory everything, and let it do what is due."""
        self.now += 3_600
        self._context(name).flush()
        memory = self._memory(name)
        assert memory.maintain(self.now) == 0, "what is done is not due any more"
        check(memory)
        known = {index for context, index in tiers(memory) if context == name}
        closed = {index for index in self.said[name] if index != self.storage.load(name)[0].open_page}
        assert known == closed, "the memory knows each closed page that is left, and no other"
        assert memory.acknowledged(name) >= max(closed, default=0), "what is there was acknowledged"
        reached.update(tiers(memory).values())
        reached["hand-over"] += 1

    @precondition(lambda self: any(self.said.values()))
    @rule(data=st.data(), topical=st.booleans(), written=st.booleans())
    def search(self, data, topical, written):
        """Search for what was said, in the context or in the memory itself: those that are found are visited."""
        name = data.draw(st.sampled_from(sorted(each for each in self.said if self.said[each])))
        page = data.draw(st.sampled_from(sorted(self.said[name])))
        words = [word for word in self.said[name][page] if word]
        self.now += 60
        self._context(name).flush()
        memory = self._memory(name)
        before = {key: each.warmth for key, each in memory.session.tiers().episodes.items()}
        query = data.draw(st.sampled_from(TOPICS)) if topical or not words else words[0]
        hits = memory.search(query, k=4).pages
        after = {key: each.warmth for key, each in memory.session.tiers().episodes.items()}
        if written:
            memory.session.owner.write_visits()
            stored = {key: Warmth(**each["warmth"]) for key, each in items(memory, "episode").items()}
            assert stored == after, "what was visited is written"
        found = {hit.episode for hit in hits} - {None}
        assert found <= before.keys(), "an episode that is told is there"
        for key, warmth in after.items():
            assert warmth == (before[key].visited(self.now) if key in found else before[key]), (
                "what is found is visited"
            )
            formula = (
                warmth.visits
                + warmth.length
                + 2.718281828459045 ** (-max(0.0, self.now + 5e6 - warmth.last_visit) / 1e7)
            )
            assert abs(warmth.lifetime(self.now + 5e6) - formula) < 1e-6, "heat is computed from what is stored"
        self._own(name, hits)
        if not topical and words:
            self._finds(name, page, words[0])
        reached["search"] += 1

    @precondition(lambda self: any(self.last.values()))
    @rule(name=contexts)
    def undo(self, name):
        """Take the newest turn back."""
        if self.last[name] is None or self.last[name] not in self.said[name]:
            return
        self._context(name).undo()
        self._drop(name, self.last[name])
        self.last[name] = None
        reached["undo"] += 1

    @precondition(lambda self: any(self.said.values()))
    @rule(data=st.data(), entry=st.sampled_from([None, None, 0, 1]))
    def erase(self, data, entry):
        """Erase a page, or its question or answer."""
        name = data.draw(st.sampled_from(sorted(each for each in self.said if self.said[each])))
        page = data.draw(st.sampled_from(sorted(self.said[name])))
        words = self.said[name][page]
        if entry is not None and (words[entry] is None or words[1 - entry] is None):
            return
        receipt = self._context(name).erase(page, None if entry is None else entry + 1)
        assert receipt.memory == "done"
        if entry is None:
            self._drop(name, page)
        else:
            self.gone.append((OWNERS[name], words[entry]))
            left = list(words)
            left[entry] = None
            self.said[name][page] = tuple(left)
        if page == self.last[name]:
            self.last[name] = None
        reached["erase" if entry is None else "erase entry"] += 1

    @rule(name=contexts)
    def erase_context(self, name):
        """Erase a context whole; another one may take its name."""
        if self.storage.load(name) is None:
            return
        self.open.pop(name, None)
        assert erase(self.storage, context=name).memory == "done"
        for page in list(self.said[name]):
            self._drop(name, page)
        self.last[name] = None
        assert self._memory(name).acknowledged(name) == 0, "it is as if it had never been heard of"
        reached["erase context"] += 1

    @rule(name=st.none() | contexts)
    def die(self, name):
        """Drop one context without closing it, or the whole process."""
        if name is not None:
            self.open.pop(name, None)
            return
        self.open.clear()
        self.memories.clear()
        die(self.storage)
        reached["death"] += 1

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def search_for_what_is_gone(self, data):
        """Search for what was taken back or erased, and for what another owner said."""
        owner, word = data.draw(st.sampled_from(self.gone))
        self._finds_not(owner, word)

    # -- what must be true at the end

    def teardown(self):
        """See that every word is found where it was said, by its owner alone, and that a memory made again agrees."""
        for name in OWNERS:
            if self.storage.load(name) is not None:
                self.hand_over(name)
        for name, pages in self.said.items():
            opened = self.storage.load(name) and self.storage.load(name)[0].open_page
            for page, words in pages.items():
                if page != opened:
                    for word in filter(None, words):
                        self._finds(name, page, word)
        for owner, word in self.gone[-6:]:
            self._finds_not(owner, word)
        for owner in sorted(set(OWNERS.values())):
            foreign = [
                word
                for name, pages in self.said.items()
                if OWNERS[name] != owner
                for w in pages.values()
                for word in w
                if word
            ]
            for word in foreign[-4:]:
                self._finds_not(owner, word)
            self._agrees(owner)

    def _agrees(self, owner):
        """Compare the memory of *owner* with one that is made again from the raw pages."""
        memory = self._memory_of(owner)
        remade = TieredMemory(self.storage, owner=owner, rules=RULES, clock=lambda: self.now)
        remade.close()
        remade.session = replace(remade.session, store=SQLiteMemory(Sidecar(":memory:"), lasting=False))
        order = [row[0] for row in memory.session.store.read_rows(
            "SELECT c.name FROM memory_context AS c JOIN memory_owner AS o ON o.nr = c.owner WHERE o.name = ? "
            "ORDER BY c.nr", owner)]  # fmt: skip
        for name in order:
            record = self.storage.load(name)[0]
            for row in self.storage.pages(name):
                if row.state not in (PageState.UNDONE, PageState.ERASED) and row.index != record.open_page:
                    page = record_of(self.storage, name, row, record.head)
                    remade.observe(page)
                    if row.state is PageState.UNLOADED:
                        remade.admit(page)
        queries = [*TOPICS, "what of the airport?", "who is ill?"]
        for query in queries:
            assert _scored(memory, query) == _scored(remade, query), f"a memory made again finds the same: {query}"
        assert tiers(remade).keys() == tiers(memory).keys(), "and knows the same pages"

    # -- inside

    def _context(self, name):
        if name not in self.open:
            memory = self._memory(name)
            exists = self.storage.load(name) is not None
            given = {"window": None, "nonce": None} if exists else {}
            self.open[name] = chat(self.storage, id=name, owner=OWNERS[name], memory=memory, **given)
        return self.open[name]

    def _memory(self, name):
        return self._memory_of(OWNERS[name])

    def _memory_of(self, owner):
        if owner not in self.memories:
            self.memories[owner] = TieredMemory(self.storage, owner=owner, rules=RULES, clock=lambda: self.now)
        return self.memories[owner]

    def _drop(self, name, page):
        self.gone += [(OWNERS[name], word) for word in self.said[name].pop(page) if word]

    def _finds(self, name, page, word):
        if page == self.storage.load(name)[0].open_page:
            return
        hits = self._memory(name).search(word, k=3).pages
        assert hits, f"{word} of {name} #{page} is found"
        said = [(hit.context, hit.index) for hit in hits if any(word in piece.text for piece in hit.pieces)]
        assert said == [(name, page)], f"{word} is found where it was said, once"
        place = next(at for at, hit in enumerate(hits) if any(word in piece.text for piece in hit.pieces))
        newer = [hit.later and (hit.later.context, hit.later.index) for hit in hits]
        before = {(hit.context, hit.index) for hit in hits[:place]}
        assert before <= set(newer), "and before all others, but for what was said later about the same thing"

    def _finds_not(self, owner, word):
        hits = self._memory_of(owner).search(word, k=5).pages
        assert not any(word in piece.text for hit in hits for piece in hit.pieces), f"{word} is not {owner}'s to find"

    def _own(self, name, hits):
        for hit in hits:
            assert OWNERS[hit.context] == OWNERS[name], "what is found is the owner's"


def _scored(memory, query):
    return sorted(
        (hit.context, hit.index, hit.entry, round(hit.score, 4))
        for hit in memory.search(query, k=60).pages
        if hit.score > 0.1
    )


def _iso(at):
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).isoformat()


def steps(examples, length=40):
    """Return how long, and how many, lives are."""
    return settings(
        max_examples=examples,
        stateful_step_count=length,
        deadline=None,
        database=None,
        derandomize=not os.environ.get("MEMCI_EXAMPLES"),
        print_blob=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if os.environ.get("MEMCI_EXAMPLES") else [Phase.generate],
    )


if __name__ == "__main__":
    import memci.context.memory_client

    memci.context.memory_client.BATCH = 10**9
    run_state_machine_as_test(Lives, settings=steps(int(sys.argv[1]) if len(sys.argv) > 1 else 200, 60))
