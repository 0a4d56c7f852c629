"""What other memories got wrong (P01 to P24, X04, X05) stays right here, as far as it can be seen in what is stored."""

import contextlib
from dataclasses import replace

import pytest
from machine_kit import check, connection, die, items, keeping, pages, rows, tiers
from tiers_kit import SMALL, fill

from memci.errors import StorageFull
from memci.memory import TieredMemory
from memci.memory.backend import Scope
from memci.memory.owner import VISITS
from memci.memory.tiers.rules import Rules
from memci.testing.memory.pages import found, saying, told


class Counting:
    """An embedder by words that counts what it is asked for."""

    name, dimension, semantic = "counting", 64, True

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts):
        import numpy as np

        self.texts += texts
        made = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(made, texts, strict=True):
            for word in text.casefold().split():
                row[sum(word.encode()) % self.dimension] += 1
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)


def failing(error):
    """Return a function that raises *error*."""

    def fail(*_args):
        raise error

    return fail


@pytest.fixture
def memory(storage):
    return TieredMemory(storage, owner="anna", rules=SMALL, clock=lambda: 1e6)


def test_page_is_in_one_episode(memory):
    """Each page of a batch is in the one episode of its topic, not in all of the batch (P01)."""
    for index in range(1, 13):
        topic = ("flight plane airport Oslo seat", "dog vet medicine paw ill")[index % 2]
        fill(memory, 1, start=index, topic=topic)

    found_in = [row for row in pages(memory) if row[4] is not None]

    check(memory)
    assert len(found_in) == len({row[3] for row in found_in}) == 10
    evidence = rows(memory, "SELECT e.page FROM memory_evidence AS e JOIN memory_item AS i ON i.id = e.item "
                            "WHERE i.kind = 'episode'")  # fmt: skip
    assert len(evidence) == 10
    (hits, *_) = [memory.search("quokka04", k=7).pages]
    assert len({(page.context, page.index, page.entry) for page in hits}) == len(hits)


def test_batch_is_handed_over_as_one(memory):
    """The queue is handed over in batches, oldest first, once it is full, not page by page (P02)."""
    fill(memory, 3)
    assert set(tiers(memory).values()) == {"short"}

    fill(memory, 1, start=4)

    assert list(tiers(memory).values()) == ["mid", "mid", "short", "short"]
    assert memory.maintain(3e5) == 0


@pytest.mark.parametrize("step", ["topic_of", "words_of", "embedder"])
def test_batch_that_fails_loses_nothing(storage, step, monkeypatch):
    """Whatever fails between the tiers, the batch is in the queue as before, and goes on later (P03, P04)."""

    def fails(*_):
        raise RuntimeError("the model is away")

    rules = Rules(capacity=4, batch=2)
    embedder = Counting()
    if step == "embedder":
        embedder.__class__ = type("Failing", (Counting,), {"__call__": fails})
    memory = TieredMemory(storage, owner="anna", rules=rules, embedder=embedder)
    fill(memory, 4, maintain=False)

    with contextlib.suppress(RuntimeError), monkeypatch.context() as broken:
        if step != "embedder":
            broken.setattr(f"memci.memory.consolidation.episode_building.{step}", fails)
        memory.maintain(1.0)

    check(memory)
    assert len(tiers(memory)) == 4
    assert all(saying(memory, f"quokka{index:02}") for index in range(1, 5))
    again = TieredMemory(storage, owner="anna", rules=rules)
    again.maintain(2.0)
    check(again)
    assert list(tiers(again).values()) == ["mid", "mid", "short", "short"]


@pytest.mark.parametrize("order", ["heat", "lfu"])
def test_newest_episode_is_not_evicted_as_it_enters(storage, order):
    """However often the others were read, an episode that just came stays; the coldest of the others goes (P05)."""
    rules = Rules(capacity=1, batch=1, episodes=2, order=order, threshold=9, gap_seconds=0.5)
    memory = TieredMemory(storage, owner="anna", rules=rules, clock=lambda: 1e6)
    fill(memory, 2)
    for _ in range(5):
        memory.search("quokka01")
    for _ in range(9):
        memory.search("quokka02")
    memory.maintain(5e5)

    fill(memory, 1, start=3)

    check(memory)
    assert list(tiers(memory).values()) == ["evicted", "mid", "mid"]


def test_evicted_page_is_found_and_says_so(storage):
    """What an evicted episode held is found by its words as before, and says that it is in none any more (P09)."""
    memory = TieredMemory(
        storage, owner="anna", rules=Rules(capacity=1, batch=1, episodes=1, threshold=9, gap_seconds=0.5)
    )
    fill(memory, 4)
    memory.maintain(9e5)
    memory.maintain(9e5)

    hits = {index: memory.search(f"quokka{index:02}").pages[0] for index in range(1, 5)}

    check(memory)
    assert {index: hit.index for index, hit in hits.items()} == {1: 1, 2: 2, 3: 3, 4: 4}
    assert sorted(hit.tier for hit in hits.values()) == ["evicted", "evicted", "evicted", "mid"]
    assert all((hit.episode is None) == (hit.tier == "evicted") for hit in hits.values())


def test_eviction_goes_on_and_on(storage):
    """Many rounds of eviction leave what must be true of the tiers, and no error (P21)."""
    memory = TieredMemory(
        storage, owner="anna", rules=Rules(capacity=2, batch=1, episodes=2, threshold=9, gap_seconds=0.5)
    )
    fill(memory, 25)
    memory.maintain(9e5)

    check(memory)
    assert len(items(memory, "episode")) == 2
    assert sorted(tiers(memory).values()).count("evicted") == 22


def test_episode_keeps_its_first_pages_when_others_join(memory):
    """Pages that join an episode push out none: all are there, counted once, and found (P21, P22, X04)."""
    fill(memory, 11, topic="flight plane airport Oslo seat")

    check(memory)
    ((key, episode),) = items(memory, "episode").items()
    assert [row[1] for row in pages(memory) if row[4] == key] == list(range(1, 9))
    assert episode["warmth"]["length"] == 8
    assert all(saying(memory, f"quokka{index:02}") for index in range(1, 12))


@pytest.mark.parametrize("threshold", [None, 0.6])
def test_episode_follows_the_pages_that_join(storage, threshold):
    """Summary and keywords of an episode follow the pages that join it, and its vector where one is compared (P11)."""
    rules = Rules(capacity=4, batch=2, episodes=3, threshold=threshold)
    memory = TieredMemory(storage, owner="anna", rules=rules, clock=lambda: 1e6)
    fill(memory, 4, topic="flight plane airport Oslo seat")
    ((key, before),) = items(memory, "episode").items()
    ((vector,),) = rows(memory, "SELECT vector FROM memory_item WHERE id = ?", key)

    fill(memory, 6, start=5, topic="flight plane airport Bergen fjord")

    after = items(memory, "episode")[key]
    assert after["summary"] != before["summary"]
    assert "quokka08" in after["summary"] or "bergen" in after["keywords"]
    ((now,),) = rows(memory, "SELECT vector FROM memory_item WHERE id = ?", key)
    assert (vector is None) == (now is None) == (threshold is None)
    assert threshold is None or now != vector


def test_chain_when_a_page_of_it_goes(memory):
    """Pages that go on from one another are in one chain, across batches too; where one goes, the others stay in it."""
    fill(memory, 9, topic="flight plane airport Oslo seat")
    before = {row[1]: row[5] for row in pages(memory)}
    check(memory)
    assert len({before[index] for index in range(1, 7)}) == 1

    memory.erase(Scope("alice", (3,)))

    check(memory)
    assert {row[1]: row[5] for row in pages(memory)} == {index: before[index] for index in before if index != 3}


def test_chain_does_not_survive_its_last_page_in_another(storage):
    """After the last page of a chain is gone, a new one is no successor of itself, nor of it (P09, P19)."""
    memory = TieredMemory(storage, owner="anna", rules=Rules(capacity=1, batch=1), clock=lambda: 1e6)
    fill(memory, 1)
    memory.erase(Scope("alice", (1,)))

    fill(memory, 2, start=2)

    check(memory)


def test_fields_that_an_earlier_version_stored_are_left_out(memory):
    """What was derived is read, and works on, whatever else an earlier version stored of it."""
    for index in range(1, 13):
        fill(memory, 1, start=index, topic="I live in Oslo and got married yesterday!")
    before = memory.session.tiers()
    with memory.session.store.change() as connection:
        connection.execute("UPDATE memory_item SET body = json_set(body, '$.good', 5, '$.of_before', 'x')")
        connection.execute("UPDATE memory_owner SET revision = revision + 1")

    after = memory.session.tiers()

    assert after is not before
    assert min(map(len, (after.episodes, after.chains, after.days, after.facts))) > 0
    assert (len(after), after.chains, after.days) == (len(before), before.chains, before.days)
    check(memory)


def test_ids_are_not_used_twice(memory):
    """An id that a page or an episode had is not given to another one: nothing that names it can mean another (P19)."""
    fill(memory, 6)
    gone = {row[3] for row in pages(memory)}
    memory.erase(Scope("alice", range(4, 7)))

    fill(memory, 3, start=7)

    fresh = {row[3] for row in pages(memory) if row[1] >= 7}
    assert fresh.isdisjoint(gone)


def test_owner_that_comes_again_is_another(storage):
    """A handle on an owner that was erased and fed again by others shows what is there now, nothing of before (P19)."""
    memory, other = (TieredMemory(storage, owner=name, rules=SMALL) for name in ("anna", "bob"))
    fill(memory, 5, topic="zeppelin")
    assert found(memory, "zeppelin")
    memory.erase(Scope())
    fill(other, 5, topic="submarine")

    assert not memory.search("zeppelin")
    assert not memory.search("submarine")
    fill(memory, 2, start=8, topic="mine")
    assert sorted(found(memory, "mine")) == [("alice", 8), ("alice", 9)]
    assert {index for _, index in found(other, "submarine")} == {1, 2, 3, 4, 5}
    check(memory)
    check(other)


def test_search_rewrites_only_what_it_found(memory):
    """A search writes nothing; many together a row for each episode that they found, and no file grows (P08)."""
    fill(memory, 3, maintain=False)
    counted = connection(memory).total_changes()
    memory.search("quokka01")
    assert connection(memory).total_changes() == counted

    fill(memory, 60, start=4)
    memory.search("quokka01")
    counted, size = connection(memory).total_changes(), connection(memory).pragma("page_count")
    for _ in range(VISITS - 2):
        memory.search("quokka01", k=1)
    assert connection(memory).total_changes() == counted
    memory.search("quokka01", k=1)

    assert 0 < connection(memory).total_changes() - counted <= 2 * 4
    assert connection(memory).pragma("page_count") - size <= 2


def visits(memory):
    """Return how often the episodes that are stored were visited, in all."""
    return sum(each["warmth"]["visits"] for each in items(memory, "episode").values())


@pytest.mark.parametrize("end", ["change", "maintain", "close", "another owner"])
def test_visits_are_written_with_what_comes_next(memory, storage, end):
    """What was visited waits for the next change of the owner, maintenance or close, and counts once."""
    fill(memory, 8)
    before = visits(memory)
    for _ in range(3):
        assert memory.search("quokka01", k=1).pages
    assert visits(memory) == before

    if end == "another owner":  # the owner leaves RAM, and is read again
        memory.session.store.owners.clear()
        memory.search("quokka01", k=1)
        before += 1
    if end == "change":
        memory.observe(told(20, "The ferry.", "Yes."))
    elif end == "close":
        memory.close()
    else:
        memory.maintain(3e5)

    assert visits(memory) == before + 3
    memory.maintain(3e5)
    assert visits(memory) == before + 3


def test_visits_that_cannot_be_written_wait(memory, monkeypatch):
    """A change that fails loses no visit; where as many wait as may and can't be written, a search still answers."""
    fill(memory, 8)
    before = visits(memory)
    memory.search("quokka01", k=1)
    with monkeypatch.context() as full:
        full.setattr(type(memory.session.owner.items), "rewrite", failing(StorageFull("no room")))
        with pytest.raises(StorageFull):
            memory.maintain(3e5)
        memory.search("quokka01", k=1)
        assert memory.session.tiers().episodes
        for _ in range(VISITS):
            assert memory.search("quokka01", k=1).pages
    memory.maintain(3e5)

    assert before < visits(memory) < before + VISITS


def test_page_is_embedded_once_and_a_question_once(storage):
    """A page is embedded when it is handed over, once; a search embeds its question and no page (P14, X05)."""
    embedder = Counting()
    memory = TieredMemory(storage, owner="anna", rules=SMALL, embedder=embedder)
    fill(memory, 9)
    memory.maintain(9e5)
    own = [text for text in embedder.texts if "quokka" in text]
    assert own
    assert len(own) == len(set(own)), "no text of a page is embedded twice"

    embedder.texts.clear()
    for _ in range(3):
        memory.search("what of quokka03?")

    assert embedder.texts == ["what of quokka03?"] * 3


def test_vectors_of_another_model_are_never_compared(storage):
    """With another embedder, what the first one made counts for nothing, and words find everything meanwhile (P14)."""
    first = TieredMemory(storage, owner="anna", rules=SMALL, embedder=Counting())
    fill(first, 9)
    other = Counting()
    other.name, other.dimension = "other", 32
    memory = TieredMemory(storage, owner="anna", rules=SMALL, embedder=other)

    hits = memory.search("quokka03").pages
    assert hits[0].index == 3
    assert {hit.source for hit in hits} == {"words"}
    fill(memory, 4, start=10)
    check(memory)
    assert all(saying(memory, f"quokka{index:02}") for index in range(1, 14))


def test_heat_is_reckoned_from_what_is_stored(memory):
    """A search visits the episodes that it gives, no others; heat is visits, length and recency (P12, X04)."""
    from memci.memory.tiers.heat import Warmth, heat

    fill(memory, 4, topic="flight plane airport Oslo seat", now=2e5)
    fill(memory, 4, topic="dog vet medicine paw ill", context="ben", now=2e5)
    before = {key: Warmth(**each["warmth"]) for key, each in items(memory, "episode").items()}

    (hit, *_) = memory.search("quokka01", k=1).pages
    memory.close()
    after = {key: Warmth(**each["warmth"]) for key, each in items(memory, "episode").items()}

    assert len(before) > 1
    for key, warmth in after.items():
        assert warmth == (before[key].visited(1e6) if key == hit.episode else before[key])
        assert warmth.lifetime(2e6) == pytest.approx(heat(warmth.visits, warmth.length, warmth.last_visit, 2e6))
        assert warmth.lifetime(1e9) < warmth.lifetime(2e6) <= warmth.visits + warmth.length + 1
        assert warmth.lifetime(0.0) <= warmth.visits + warmth.length + 1, "a visit in the future is one just now"


def test_restart_changes_no_score(storage):
    """What tools answered to two contexts in turn is as fresh after a restart: a search scores it the same."""
    memory = TieredMemory(storage, owner="anna", clock=lambda: 1e9)
    assert not memory.search("flight").pages
    for turn in range(12):
        context = ("alice", "ben")[turn % 2]
        page = told(turn // 2 + 1, f"Which flight {turn}?", context=context)
        answer = {"role": "tool", "tool_call_id": "1", "name": "flights", "content": f"flight {turn} leaves at noon"}
        page = replace(page, entries=(*page.entries, (2, answer)))
        keeping(storage)(page)
        memory.observe(page)

    before = memory.search("When does a flight leave?", k=20).pages
    die(storage)
    after = TieredMemory(storage, owner="anna", clock=lambda: 1e9).search("When does a flight leave?", k=20).pages

    assert len(before) >= 12
    assert after == before
