"""A model makes better what the memory knows: in the background, each job once, and never at the cost of anything."""

import contextlib
import sys
import threading
from pathlib import Path

import pytest

from memci import EphemeralStorage, SQLiteStorage
from memci.errors import AnswerRejected, CeilingReached, InvalidSetting, ModelRefused, ModelUnavailable
from memci.memory import TieredMemory
from memci.memory.backend import Improving
from memci.memory.upkeep import Rules
from memci.testing.memory_pages import saying, told

sys.path.insert(0, str(Path(__file__).parent))
from machine_kit import check, items, keeping, rows, tiers
from model_kit import DAY, NOON, SMALL, Clock, drained, modelled, obliging, page, steps, tell, waiting


@pytest.fixture
def storage(tmp_path):
    with contextlib.closing(SQLiteStorage(tmp_path / "agent.db", durability="fast")) as made:
        yield made


def failing(step, error, *, times=10**9, answers=obliging):
    """Return answers that fail at one step, some times."""
    left = [times]

    def answer(asked):
        if asked.step == step and left[0]:
            left[0] -= 1
            raise error
        return answers(asked)

    return answer


def test_memory_with_a_model_says_so(storage):
    """A memory improves if it has a model and may write; else it has nothing to do, and says it."""
    memory, _ = modelled(storage)
    plain = TieredMemory(storage, owner="bert")
    reading = TieredMemory(storage, owner="anna", chat=lambda *_, **__: None, read_only=True)

    assert isinstance(memory, Improving)
    assert [each.improves for each in (memory, plain, reading)] == [True, False, False]
    assert not plain.improve()
    assert not reading.improve()
    with pytest.raises(InvalidSetting):
        TieredMemory(storage, owner="anna", chat="gpt")
    with pytest.raises(InvalidSetting):
        TieredMemory(storage, owner="anna", ceiling=-1)


def test_without_a_model_no_job_waits(storage):
    """Without a model nothing of a model's is left anywhere: no jobs, no notes, nothing spent."""
    memory = TieredMemory(storage, owner="anna", rules=SMALL, clock=Clock())

    tell(memory, *(page(index) for index in range(1, 13)))

    assert rows(memory, "SELECT count(*) FROM memory_job") == [(0,)]
    assert items(memory, "note") == {}
    assert not memory.work().spent
    assert list(tiers(memory).values()).count("mid") > 0


def test_no_call_waits_for_the_model(storage):
    """To observe, admit, search, look after and erase asks the model nothing."""
    memory, chat = modelled(storage)

    tell(memory, *(page(index) for index in range(1, 30)))
    memory.search("violins")
    memory.upkeep()
    memory.summaries("alice", [1, 2])

    assert chat.calls == []
    assert memory.work().waiting > 29


def test_page_is_described_once(storage):
    """A page that closes is described by one call, and its lines are there for the Contents Page afterwards."""
    memory, chat = modelled(storage)
    tell(memory, page(1, "I have moved the booking OI5L9G to May 27, " + "since my sister marries " * 20))
    assert memory.summaries("alice", [1]) == {}

    assert memory.improve() is False

    (summary,) = memory.summaries("alice", [1, 2]).values()
    assert summary.title == "About I have moved the booking OI5L9G · May 27"
    assert summary.lines[0].startswith("Told of I have moved")
    assert len(summary.lines) == 2
    memory.admit(page(1, "I have moved the booking OI5L9G to May 27, " + "since my sister marries " * 20))
    assert memory.improve() is False
    assert steps(chat) == ["page"]
    assert memory.summaries("somebody", [1]) == {}


def test_all_roads_are_gone(storage):
    """Everything that a model does better is done: notes, topics, episodes, facts, graph, events, days, strategy."""
    clock = Clock()
    memory, chat = modelled(storage, clock=clock)
    for index in range(1, 13):
        tell(memory, page(index))
        while memory.improve():
            pass
    tell(memory, *(page(index, at=NOON + DAY + 60 * index) for index in range(13, 19)))
    memory.search("violins quokka03")
    drained(memory, clock)

    check(memory)
    assert set(steps(chat)) == {
        "page", "topics", "episode", "analysis", "concepts", "day", "conversation", "strategy",
    }  # fmt: skip
    assert memory.work().waiting == memory.work().set_aside == 0
    episodes = items(memory, "episode").values()
    assert any("Retold: topic of violins" in episode["summary"] for episode in episodes)
    assert "Knows of topic of violins quokka01" in {fact["text"] for fact in items(memory, "fact").values()}
    assert any(chain["about"].startswith("All about") for chain in items(memory, "chain").values())
    assert any(event["what"].startswith("It happened") for event in items(memory, "event").values())
    (profile,) = items(memory, "profile").values()
    assert profile["strategy"] == "Answer briefly and warmly."
    assert profile["conversations"][0]["summary"].startswith("They spoke of")
    assert profile["text"].startswith("curiosity: high")
    assert {day["date"]: day["summary"][:9] for day in items(memory, "day").values()}["2024-05-04"] == "A day of "
    assert items(memory, "relation")


def test_handed_over_page_has_the_title_of_its_note(storage):
    """Title, keywords and continuity of a page are the model's, where it described the page before the hand-over."""
    memory, _ = modelled(storage)
    for index in range(1, 5):
        tell(memory, page(index, f"{('wombat', 'tiger', 'lion', 'zebra')[index - 1]} alone"))
        memory.improve()
    drained(memory)

    found = rows(memory, "SELECT page, summary, chain FROM memory_page WHERE tier = 2 ORDER BY id")
    assert [row[:2] for row in found] == [(1, "About wombat alone"), (2, "About tiger alone")]
    assert found[0][2] == found[1][2], "the model said that it goes on, where no word does"


def test_page_that_is_described_late_has_its_note_all_the_same(storage):
    """A page that was handed over before the model came to it is described, and its title is the model's then."""
    memory, _ = modelled(storage)
    tell(memory, *(page(index) for index in range(1, 10)))
    assert list(tiers(memory).values()).count("mid") > 0

    drained(memory)

    titles = [row[0] for row in rows(memory, "SELECT summary FROM memory_page WHERE tier = 2")]
    assert titles
    assert all(title.startswith("About topic") for title in titles)


def test_hand_over_does_not_wait_for_ever(storage):
    """While the model is away the queue grows to twice its capacity; then it is handed over without the model."""
    memory, _ = modelled(storage, failing("page", ModelUnavailable("page", "away")))

    for index in range(1, 20):
        tell(memory, page(index))
        memory.improve()

    assert list(tiers(memory).values()).count("short") < 2 * SMALL.capacity
    assert list(tiers(memory).values()).count("mid") > 0
    check(memory)


@pytest.mark.parametrize("step", ["page", "topics", "episode", "analysis", "day", "conversation", "strategy"])
@pytest.mark.parametrize(
    "error",
    [ModelRefused("x", "no"), AnswerRejected("x", "bad"), RuntimeError("a bug")],
    ids=lambda e: type(e).__name__,
)
def test_step_that_always_fails_is_set_aside(storage, step, error):
    """After five tries a job is set aside and its step done without the model; all others are done, nothing is lost."""
    clock = Clock()
    memory, chat = modelled(storage, failing(step, error), clock=clock)
    tell(memory, *(page(index) for index in range(1, 7)), upkeep=False)
    tell(memory, *(page(index, at=NOON + DAY + 60 * index) for index in range(7, 18)), upkeep=False)

    drained(memory, clock)

    check(memory)
    kinds = {row[0] for row in rows(memory, "SELECT kind FROM memory_job WHERE due IS NULL")}
    assert kinds <= {{"topics": "handover"}.get(step, step)}
    assert waiting(memory) == []
    assert steps(chat).count(step) % 5 == 0
    assert list(tiers(memory).values()).count("short") < SMALL.capacity
    assert rows(memory, "SELECT count(*) FROM memory_page WHERE tier = 2 AND analyzed & 1 = 0") == [(0,)]
    assert items(memory, "event" if step != "page" else "day")
    errors = rows(memory, "SELECT error FROM memory_job WHERE due IS NULL")
    assert {each for (each,) in errors} <= {type(error).__name__}


def test_step_that_fails_for_a_while_is_done_later(storage):
    """A job that failed is tried again after its pause, and is done then; nothing was changed by its failures."""
    clock = Clock()
    memory, chat = modelled(storage, failing("page", ModelRefused("page", "no"), times=3), clock=clock)
    tell(memory, page(1))
    assert memory.improve() is False
    clock.now += 29
    assert memory.improve() is False
    assert len(chat.calls) == 1

    clock.now += 2
    assert memory.improve() is False
    clock.now += 61
    memory.improve()
    clock.now += 121
    memory.improve()

    assert len(chat.calls) == 4
    assert memory.summaries("alice", [1])
    assert memory.work().waiting == 0
    assert memory.work().spent["page"].failed == 3


@pytest.mark.parametrize("error", [ModelUnavailable("page", "away"), CeilingReached("page", "spent")])
def test_model_that_is_away_is_left_alone(storage, error):
    """While the model does not answer it is asked once in a while, for any job of the owner, and none fails by it."""
    clock = Clock()
    memory, chat = modelled(storage, failing("page", error, times=8), clock=clock)
    tell(memory, *(page(index) for index in range(1, 4)))

    for _ in range(600):
        memory.improve()
        clock.now += 1.0

    assert 3 <= len(chat.calls) <= 6
    assert memory.work().set_aside == 0
    clock.now += 2 * DAY
    drained(memory, clock)
    assert set(memory.summaries("alice", [1, 2, 3])) == {1, 2, 3}


def test_ceiling_holds_for_a_day(storage):
    """When the tokens of a day are spent no call is made until the next UTC day, by no handle."""
    clock = Clock()
    memory, chat = modelled(storage, clock=clock, ceiling=500)
    tell(memory, *(page(index) for index in range(1, 9)), upkeep=False)
    while memory.improve():
        pass
    made = len(chat.calls)
    other, second = modelled(storage, clock=clock, ceiling=500)

    assert 0 < made < 8
    assert not memory.improve()
    assert not other.improve()
    assert second.calls == []
    assert memory.work().waiting >= 8 - made
    clock.now += DAY
    while other.improve():
        pass
    assert second.calls
    assert sum(each.tokens for each in other.work().spent.values()) > 500


def test_ceiling_ends_with_the_day(storage):
    """What the ceiling held back is due when the next day begins, not later."""
    clock = Clock(NOON + DAY / 2 - 1)
    memory, chat = modelled(storage, clock=clock, ceiling=300)
    tell(memory, *(page(index) for index in range(1, 9)), upkeep=False)
    while memory.improve():
        pass
    for _ in range(5):
        memory.improve()
    made = len(chat.calls)

    clock.now += 1
    memory.improve()

    assert len(chat.calls) == made + 1


def test_ceiling_holds_within_a_job(storage):
    """A job whose answers are rejected asks no more when the tokens are spent, and that is no fault of the job."""
    memory, chat = modelled(storage, lambda asked: {"title": "x" * 800}, ceiling=500)
    tell(memory, page(1))

    assert not memory.improve()

    assert len(chat.calls) == 2
    assert waiting(memory) == [("page", 1, 0)]


def test_what_was_spent_is_kept_by_step(storage):
    """Calls and tokens are counted by step, with failures and rejected answers, and outlive the handle."""
    answers = iter([{"title": ""}, "no JSON", None])

    def answer(asked):
        return next(answers, None) or obliging(asked)

    memory, chat = modelled(storage, answer)
    tell(memory, page(1))
    while memory.improve():
        pass
    memory.close()

    spent = TieredMemory(storage, owner="anna").work().spent

    assert set(spent) == {"page"}
    assert (spent["page"].calls, spent["page"].rejected, spent["page"].failed) == (3, 2, 0)
    assert spent["page"].prompt == chat.ledger.total.prompt
    assert spent["page"].completion == chat.ledger.total.completion
    assert chat.ledger.total.rejected == 2


def test_provider_that_reports_no_usage_is_counted_by_the_texts(storage):
    """Tokens are counted from what was sent and said if the reply tells none, so that a ceiling holds."""
    from dataclasses import replace

    from memci.llm import Usage

    memory, chat = modelled(storage)

    def silent(messages, /, **given):
        return replace(chat(messages, **given), usage=Usage())

    memory = TieredMemory(storage, owner="anna", rules=SMALL, chat=silent, clock=Clock(), counter=len)
    tell(memory, page(1))
    memory.improve()

    spent = memory.work().spent["page"]

    assert spent.prompt > 100
    assert spent.completion > 50


def in_flight(step, act):
    """Return answers, and run *act* once while a call of *step* is under way."""
    done = []

    def answer(asked):
        if asked.step == step and not done:
            done.append(asked)
            act()
        return obliging(asked)

    return answer


@pytest.mark.parametrize(
    "step", ["page", "topics", "episode", "analysis", "concepts", "day", "conversation", "strategy"]
)
def test_erasure_wins_over_a_call_that_is_under_way(tmp_path, step):
    """What is erased while a model is asked about it is not brought back by its answer, in no tier and no byte."""
    from memci.memory.backend import Scope

    path = tmp_path / "agent.db"
    with contextlib.closing(SQLiteStorage(path, durability="fast")) as storage:
        clock = Clock()
        pages = [page(index, f"zanzibarqua violins numbat{index:02}") for index in range(1, 7)]
        pages += [
            page(index, f"zanzibarqua violins numbat{index:02}", at=NOON + DAY + 60 * index) for index in range(7, 18)
        ]

        def erase():
            memory.erase(Scope("alice", range(1, 18)))
            for each in pages:  # as an erasure leaves the store of the pages
                keeping(storage)(told(each.index, "gone", context="alice"))

        memory, chat = modelled(storage, in_flight(step, erase), clock=clock)
        tell(memory, *pages, upkeep=False)
        memory.upkeep()
        memory.search("violins")
        for _ in range(3):
            while memory.improve():
                pass
            memory.search("violins")
            memory.upkeep()

        assert step in steps(chat)
        kept = rows(memory, "SELECT body FROM memory_item UNION ALL SELECT body FROM memory_job")
        assert [body for (body,) in kept if "zanzibar" in body or "numbat" in body] == []
        check(memory)


@pytest.mark.parametrize("step", ["page", "topics", "episode", "analysis", "concepts"])
def test_page_that_is_replaced_under_way_is_told_as_it_is_now(storage, step):
    """If a page says something else while a model is asked about it, the answer is dropped, and it is asked again."""
    clock = Clock()

    def replace():
        new = page(1, "aardvark instead")
        keeping(storage)(new)
        memory.observe(new)

    memory, chat = modelled(storage, in_flight(step, replace), clock=clock)
    tell(memory, *(page(index, f"violins numbat{index:02}") for index in range(1, 8)), upkeep=False)
    memory.upkeep()
    memory.search("violins")
    drained(memory, clock)
    memory.search("violins aardvark")
    drained(memory, clock)

    assert step in steps(chat)
    assert "numbat01" not in str(rows(memory, "SELECT body FROM memory_item"))
    assert memory.summaries("alice", [1])[1].title == "About aardvark instead"
    assert memory.work().set_aside == 0
    check(memory)


def test_episode_that_grows_under_way_is_told_again(storage):
    """If pages join an episode while a model tells it, that answer is dropped: the next one knows all its pages."""
    clock = Clock()

    def grow():
        tell(memory, *(page(index) for index in range(5, 12)))

    memory, chat = modelled(storage, in_flight("episode", grow), clock=clock)
    tell(memory, *(page(index) for index in range(1, 5)))

    drained(memory, clock)

    ((_, episode),) = items(memory, "episode").items()
    check(memory)
    assert episode["told"] >= 4
    assert steps(chat).count("episode") >= 2


def test_search_under_way_does_no_harm(storage):
    """A search that visits an episode while it is told or analysed is counted, and the answer is kept all the same."""

    def visit():
        memory.search("violins quokka01", k=1)

    memory, chat = modelled(storage, in_flight("episode", visit))
    tell(memory, *(page(index) for index in range(1, 5)))
    drained(memory)

    ((_, episode),) = items(memory, "episode").items()

    assert steps(chat).count("episode") == 1
    assert episode["warmth"]["access_count"] == 1
    assert "Retold" in episode["summary"]


def test_profile_that_changes_under_way_is_not_overwritten(storage):
    """If the profile is another one when an analysis comes back, it is asked again with that one."""

    def analyse():
        TieredMemory(storage, owner="anna", rules=Rules(capacity=4, handover=2, promoted=1.0)).upkeep()

    memory, _ = modelled(storage, in_flight("analysis", analyse))
    tell(memory, *(page(index, f"I like violins quokka{index:02} a lot") for index in range(1, 9)))
    drained(memory)

    facts = [fact["text"] for fact in items(memory, "fact").values()]
    assert len(facts) == len(set(facts))
    assert rows(memory, "SELECT count(*) FROM memory_page WHERE tier = 2 AND analyzed & 1 = 0") == [(0,)]
    check(memory)


KINDS = ("note", "episode", "chain", "fact", "profile", "event", "day", "relation")


def state(memory):
    """Return all that a memory knows, without ids and what it cost."""
    found = {kind: sorted(map(str, items(memory, kind).values())) for kind in KINDS}
    return found, rows(memory, "SELECT page, tier, analyzed, summary, keywords FROM memory_page ORDER BY id")


def test_job_that_is_done_twice_changes_nothing_the_second_time(storage):
    """All jobs brought back after they were done, as after a kill before they were taken out, change nothing."""
    clock = Clock()
    memory, _ = modelled(storage, clock=clock)
    tell(memory, *(page(index) for index in range(1, 7)), upkeep=False)
    tell(memory, *(page(index, at=NOON + DAY + 60 * index) for index in range(7, 14)), upkeep=False)
    memory.upkeep()
    with memory._store.change() as connection:
        connection.execute("CREATE TEMP TABLE kept AS SELECT * FROM memory_job WHERE 0")
        connection.execute(
            "CREATE TEMP TRIGGER keep AFTER DELETE ON main.memory_job "
            "BEGIN INSERT INTO kept VALUES "
            "(old.id, old.owner, old.kind, old.subject, old.version, 0, 0, 0, '', old.body); END"
        )
    memory.search("violins")
    drained(memory, clock)
    before = state(memory)
    with memory._store.change() as connection:
        connection.execute("DROP TRIGGER temp.keep")
        connection.execute("INSERT OR IGNORE INTO memory_job SELECT * FROM temp.kept")

    done = drained(memory, clock)

    assert done > 15
    assert state(memory) == before


def test_job_that_ends_its_process_is_done_without_the_model(storage):
    """A job that was claimed five times, and never came back, is done without asking the model; then it is let be."""
    clock = Clock()
    memory, chat = modelled(storage, clock=clock)
    tell(memory, *(page(index) for index in range(1, 5)))
    with memory._store.change() as connection:
        connection.execute("UPDATE memory_job SET tries = 5 WHERE kind = 'handover'")
        connection.execute("UPDATE memory_job SET tries = 6 WHERE kind = 'page' AND subject = 1")

    drained(memory, clock)

    assert "topics" not in steps(chat)
    assert list(tiers(memory).values()).count("mid") == 2
    assert memory.work().set_aside == 2
    assert set(memory.summaries("alice", [1, 2, 3, 4])) == {2, 3, 4}
    tell(memory, *(page(index) for index in range(5, 9)))
    drained(memory, clock)
    assert "topics" in steps(chat), "another batch is another job"
    assert memory.work().set_aside == 1


def test_step_that_can_be_done_in_no_form_is_let_be(storage):
    """If a step fails with the model and without it, it is set aside for good, and everything else goes on."""

    def fails(*_):
        raise RuntimeError("a bug")

    clock = Clock()
    rules = Rules(capacity=4, handover=2, promoted=1.0, facts=fails)
    memory, chat = modelled(storage, failing("analysis", RuntimeError("another")), clock=clock, rules=rules)
    tell(memory, *(page(index) for index in range(1, 5)))

    drained(memory, clock)
    asked = steps(chat).count("analysis")
    for index in range(5, 8):
        tell(memory, page(index))
        drained(memory, clock)

    assert asked == 5
    assert steps(chat).count("analysis") == 5
    assert rows(memory, "SELECT kind, tries, error FROM memory_job") == [("analysis", 6, "RuntimeError")]
    assert rows(memory, "SELECT count(*) FROM memory_page WHERE analyzed & 1") == [(0,)]
    assert len(memory.summaries("alice", range(1, 8))) == 7


def test_improving_ends(storage):
    """To improve until nothing is due ends, whatever fails: each job that is due is tried once."""

    def fails(asked):
        raise [ModelRefused(asked.step, "no"), RuntimeError("a bug")][len(asked.text) % 2]

    memory, chat = modelled(storage, fails)
    tell(memory, *(page(index) for index in range(1, 10)))
    due = memory.work().waiting

    count = 1
    while memory.improve():
        count += 1

    assert count <= due + 5
    assert len(chat.calls) <= due


def test_settle_is_waited_for_before_anything_is_written(storage):
    """What a model said is written when nobody is disturbed by that: only then is anything changed."""
    memory, chat = modelled(storage)
    tell(memory, page(1))
    seen = []

    memory.improve(lambda: seen.append((len(chat.calls), memory.summaries("alice", [1]))))

    assert seen == [(1, {})]
    assert memory.summaries("alice", [1])


def test_memory_is_usable_while_a_model_answers(storage):
    """While a call is under way in another thread, everything else goes on."""
    asked, go_on = threading.Event(), threading.Event()

    def slow(call):
        asked.set()
        assert go_on.wait(10)
        return obliging(call)

    memory, _ = modelled(storage, slow)
    tell(memory, page(1))
    thread = threading.Thread(target=memory.improve)
    thread.start()
    assert asked.wait(10)

    tell(memory, page(2))
    assert saying(memory, "quokka02") == [("alice", 2)]
    assert memory.work().waiting == 2
    go_on.set()
    thread.join(10)

    assert set(memory.summaries("alice", [1, 2])) == {1}


def test_memory_that_is_closed_under_way_loses_nothing(tmp_path):
    """If the memory is closed while a model answers, the job is there for the next one who opens it."""
    from memci.errors import StorageError

    path = tmp_path / "agent.db"
    storage, clock = SQLiteStorage(path, durability="fast"), Clock()
    memory, _ = modelled(storage, in_flight("page", storage.close), clock=clock)
    tell(memory, page(1))
    with pytest.raises(StorageError):
        memory.improve()

    clock.now += 700
    with contextlib.closing(SQLiteStorage(path, durability="fast")) as again:
        memory, _ = modelled(again, clock=clock)
        drained(memory, clock)
        assert memory.summaries("alice", [1])


def test_owners_have_jobs_of_their_own():
    """What waits for one owner is not done, paid or seen by another one."""
    storage = EphemeralStorage()
    anna, chat = modelled(storage)
    bert, other = modelled(storage, owner="bert")
    tell(anna, page(1))

    assert not bert.improve()
    assert bert.work().waiting == 0
    assert other.calls == []
    anna.improve()
    assert len(chat.calls) == 1
    assert bert.summaries("alice", [1]) == {}
