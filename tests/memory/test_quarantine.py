"""Quarantine: what came of a page that is not to be trusted goes, and nothing comes of it any more."""

from machine_kit import check, items, keeping, rows, tiers
from model_kit import DAY, SMALL, Clock, drained, modelled, obliging, page, tell
from secret_kit import SECRET, WIDE, derived, lived, mixing

from memci.memory import TieredMemory
from memci.memory.backend import Scope
from memci.memory.tiers.rules import Rules
from memci.testing.memory.pages import saying


def test_canary_of_a_poisoned_page_is_nowhere_after_quarantine(storage):
    """S8: of one poisoned page among many, after rounds of consolidation, quarantine leaves nothing derived."""
    clock = Clock()
    memory, _ = modelled(storage, mixing, clock=clock, rules=WIDE)
    lived(memory, clock, count=24, secrets=(17,))
    for index in range(25, 37):
        tell(memory, page(index))
        memory.search(f"violins {SECRET}", k=20)
        drained(memory, clock)
    assert len(derived(memory, SECRET)) >= 5

    gone = memory.quarantine("alice", 17)

    assert gone.derived > 3
    assert gone.pages == 0
    assert derived(memory, SECRET) == []
    check(memory)
    for index in range(37, 49):
        tell(memory, page(index))
        memory.search(f"violins {SECRET}", k=20)
        drained(memory, clock)
    assert derived(memory, SECRET) == []
    check(memory)


def test_quarantined_page_is_found_by_words_and_is_in_no_tier(storage):
    """A quarantined page can be found, says that it is in no tier, and stays so whatever is told of it again."""
    clock = Clock()
    memory, chat = modelled(storage, clock=clock)
    lived(memory, clock)
    memory.quarantine("alice", 5)
    clock.now += DAY
    drained(memory, clock)
    before = len(chat.calls)

    new = page(5, f"{SECRET} aardvark")
    keeping(storage)(new)
    memory.admit(new)
    memory.maintain()
    drained(memory, clock)

    hit = next(each for each in memory.search(SECRET).pages if each.index == 5)
    assert (hit.index, hit.tier, hit.episode) == (5, "observed", None)
    assert tiers(memory)["alice", 5] == "observed"
    assert saying(memory, "aardvark") == [("alice", 5)]
    assert derived(memory, SECRET) == []
    assert not any(SECRET in str(asked.messages) for asked in chat.calls[before:])
    assert memory.summaries("alice", [5]) == {}


def test_next_page_is_no_successor_of_a_quarantined_one(storage):
    """A page that goes on from a quarantined one begins a chain of its own."""
    memory, _ = modelled(storage, rules=Rules(capacity=2, batch=1))
    tell(memory, page(1), page(2), maintain=False)
    drained(memory)
    assert tiers(memory) == {("alice", 1): "mid", ("alice", 2): "short"}

    memory.quarantine("alice", 1)
    tell(memory, page(3))
    drained(memory)

    assert tiers(memory)["alice", 2] == "mid"
    check(memory)


def test_quarantine_needs_no_model(storage):
    """Without a model what was extracted of a page goes as well; another page is told of as before."""
    memory = TieredMemory(storage, owner="anna", rules=SMALL, clock=Clock())
    for index in range(1, 13):
        tell(memory, page(index, f"I live in {SECRET} with quokka{index:02}" if index == 4 else f"I have {index} dogs"))
    memory.search(f"dogs {SECRET}", k=20)
    memory.maintain()
    assert derived(memory, SECRET)

    memory.quarantine("alice", 4)
    for index in range(13, 20):
        tell(memory, page(index))

    assert derived(memory, SECRET) == []
    assert saying(memory, SECRET) == [("alice", 4)]
    assert items(memory, "fact")
    check(memory)


def test_quarantined_page_in_the_queue_is_not_handed_over(storage):
    """A page that is quarantined before anything was derived from it never enters an episode, an event or a day."""
    memory, _ = modelled(storage)
    tell(memory, *(page(index, f"violins {SECRET if index == 2 else index}") for index in range(1, 4)), maintain=False)

    memory.quarantine("alice", 2)
    assert memory.work().waiting == 2
    memory.erase(Scope("alice", (1,)))
    assert memory.work().waiting == 1
    tell(memory, *(page(index) for index in range(4, 12)))
    drained(memory)

    assert derived(memory, SECRET) == []
    assert memory.summaries("alice", [3])
    assert memory.work().set_aside == 0
    check(memory)
    assert memory.quarantine("alice", 99) == memory.quarantine("nobody", 1)


def test_quarantine_wins_over_a_call_that_is_under_way(storage):
    """What is quarantined while a model is asked about it is not written."""
    clock = Clock()
    done = []

    def answer(asked):
        if SECRET in asked.text and asked.step == wanted and not done:
            done.append(memory.quarantine("alice", 2))
        return obliging(asked)

    for wanted in ("page", "topics", "analysis"):
        done.clear()
        memory, _ = modelled(storage, answer, clock=clock, owner=wanted)
        tell(memory, *(page(index, f"violins {SECRET if index == 2 else index}") for index in range(1, 8)))
        drained(memory, clock)
        assert done, wanted
        assert [kind for kind, body in rows(memory, "SELECT kind, body FROM memory_item") if SECRET in body] == [], (
            wanted
        )
