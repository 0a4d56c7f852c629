"""A model makes better what the memory knows: in the background, each job once, and never at the cost of anything."""

import pytest
from machine_kit import check, items, rows, tiers
from model_kit import DAY, NOON, SMALL, Clock, drained, modelled, obliging, page, steps, tell, waiting

from memci.errors import AnswerRejected, CeilingReached, InvalidSetting, ModelRefused, ModelUnavailable
from memci.memory import TieredMemory
from memci.memory.backend import JobRunner
from memci.memory.tiers.rules import Rules


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

    assert isinstance(memory, JobRunner)
    assert [each.has_model for each in (memory, plain, reading)] == [True, False, False]
    assert not plain.run_job()
    assert not reading.run_job()
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
    memory.maintain()
    memory.summaries("alice", [1, 2])

    assert chat.calls == []
    assert memory.work().waiting > 29


def test_page_is_described_once(storage):
    """A page that closes is described by one call, and its lines are there for the Contents Page afterwards."""
    memory, chat = modelled(storage)
    tell(memory, page(1, "I have moved the booking OI5L9G to May 27, " + "since my sister marries " * 20))
    assert memory.summaries("alice", [1]) == {}

    assert memory.run_job() is False

    (summary,) = memory.summaries("alice", [1, 2]).values()
    assert summary.title == "About I have moved the booking OI5L9G · May 27"
    assert summary.lines[0].startswith("Told of I have moved")
    assert len(summary.lines) == 2
    memory.admit(page(1, "I have moved the booking OI5L9G to May 27, " + "since my sister marries " * 20))
    assert memory.run_job() is False
    assert steps(chat) == ["page"]
    assert memory.summaries("somebody", [1]) == {}


def test_all_roads_are_gone(storage):
    """Everything that a model does better is done: notes, topics, episodes, facts, graph, events, days, strategy."""
    clock = Clock()
    memory, chat = modelled(storage, clock=clock)
    for index in range(1, 13):
        tell(memory, page(index))
        while memory.run_job():
            pass
    tell(memory, *(page(index, at=NOON + DAY + 60 * index) for index in range(13, 19)))
    memory.search("violins quokka03")
    drained(memory, clock)

    check(memory)
    assert set(steps(chat)) == {
        "page", "topics", "analysis", "concepts", "day", "conversation", "strategy",
    }  # fmt: skip
    assert memory.work().waiting == memory.work().set_aside == 0
    episodes = items(memory, "episode").values()
    assert any("On topic of violins" in episode["summary"] for episode in episodes)
    assert "Knows of topic of violins quokka01" in {fact["text"] for fact in items(memory, "fact").values()}
    assert any(chain["points"][0].startswith("On topic") for chain in items(memory, "chain").values())
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
        memory.run_job()
    drained(memory)

    found = rows(memory, "SELECT page, title, chain FROM memory_page WHERE tier = 2 ORDER BY id")
    assert [row[:2] for row in found] == [(1, "About wombat alone"), (2, "About tiger alone")]
    assert found[0][2] == found[1][2], "the model said that it goes on, where no word does"


def test_page_that_is_described_late_has_its_note_all_the_same(storage):
    """A page that was handed over before the model came to it is described, and its title is the model's then."""
    memory, _ = modelled(storage)
    tell(memory, *(page(index) for index in range(1, 10)))
    assert list(tiers(memory).values()).count("mid") > 0

    drained(memory)

    titles = [row[0] for row in rows(memory, "SELECT title FROM memory_page WHERE tier = 2")]
    assert titles
    assert all(title.startswith("About topic") for title in titles)


def test_hand_over_does_not_wait_for_ever(storage):
    """While the model is away the queue grows to twice its capacity; then it is handed over without the model."""
    memory, _ = modelled(storage, failing("page", ModelUnavailable("page", "away")))

    for index in range(1, 20):
        tell(memory, page(index))
        memory.run_job()

    assert list(tiers(memory).values()).count("short") < 2 * SMALL.capacity
    assert list(tiers(memory).values()).count("mid") > 0
    check(memory)


REFUSED = ModelRefused("x", "no")


@pytest.mark.parametrize(
    ("step", "error"),
    [(step, REFUSED) for step in ("page", "topics", "analysis", "day", "conversation", "strategy")]
    + [(step, error) for step in ("page", "analysis") for error in (AnswerRejected("x", "bad"), RuntimeError("a bug"))],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_step_that_always_fails_is_set_aside(storage, step, error):
    """After five tries a job is set aside and its step done without the model; all others are done, nothing is lost."""
    clock = Clock()
    memory, chat = modelled(storage, failing(step, error), clock=clock)
    tell(memory, *(page(index) for index in range(1, 5)), maintain=False)
    tell(memory, *(page(index, at=NOON + DAY + 60 * index) for index in range(5, 11)), maintain=False)

    drained(memory, clock)

    check(memory)
    kinds = {row[0] for row in rows(memory, "SELECT kind FROM memory_job WHERE due IS NULL")}
    assert kinds <= {step}
    assert waiting(memory) == []
    assert steps(chat).count(step) % 5 == 0
    assert list(tiers(memory).values()).count("short") < SMALL.capacity
    assert rows(memory, "SELECT count(*) FROM memory_page WHERE tier = 2 AND marks & 1 = 0") == [(0,)]
    assert items(memory, "event" if step != "page" else "day")


def test_step_that_fails_for_a_while_is_done_later(storage):
    """A job that failed is tried again after its pause, and is done then; nothing was changed by its failures."""
    clock = Clock()
    memory, chat = modelled(storage, failing("page", ModelRefused("page", "no"), times=3), clock=clock)
    tell(memory, page(1))
    assert memory.run_job() is False
    clock.now += 29
    assert memory.run_job() is False
    assert len(chat.calls) == 1

    clock.now += 2
    assert memory.run_job() is False
    clock.now += 61
    memory.run_job()
    clock.now += 121
    memory.run_job()

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
        memory.run_job()
        clock.now += 1.0

    assert 3 <= len(chat.calls) <= 6
    assert memory.work().set_aside == 0
    clock.now += 2 * DAY
    drained(memory, clock)
    assert set(memory.summaries("alice", [1, 2, 3])) == {1, 2, 3}


KINDS = ("note", "episode", "chain", "fact", "profile", "event", "day", "relation")


def state(memory):
    """Return all that a memory knows, without ids and what it cost."""
    found = {kind: sorted(map(str, items(memory, kind).values())) for kind in KINDS}
    return found, rows(memory, "SELECT page, tier, marks, title, keywords FROM memory_page ORDER BY id")


def test_job_that_is_done_twice_changes_nothing_the_second_time(storage):
    """All jobs brought back after they were done, as after a kill before they were taken out, change nothing."""
    clock = Clock()
    memory, _ = modelled(storage, clock=clock)
    tell(memory, *(page(index) for index in range(1, 7)), maintain=False)
    tell(memory, *(page(index, at=NOON + DAY + 60 * index) for index in range(7, 14)), maintain=False)
    memory.maintain()
    with memory.session.store.change() as connection:
        connection.execute("CREATE TEMP TABLE kept AS SELECT * FROM memory_job WHERE 0")
        connection.execute(
            "CREATE TEMP TRIGGER keep AFTER DELETE ON main.memory_job "
            "BEGIN INSERT INTO kept VALUES "
            "(old.id, old.owner, old.kind, old.subject, old.version, 0, 0, old.body); END"
        )
    memory.search("violins")
    drained(memory, clock)
    before = state(memory)
    with memory.session.store.change() as connection:
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
    with memory.session.store.change() as connection:
        connection.execute("UPDATE memory_job SET tries = 5 WHERE kind = 'topics'")
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


def test_step_that_can_be_done_in_no_form_is_let_be(storage, monkeypatch):
    """If a step fails with the model and without it, it is set aside for good, and everything else goes on."""

    def fails(*_):
        raise RuntimeError("a bug")

    clock = Clock()
    monkeypatch.setattr("memci.memory.consolidation.fact_extraction.facts_of", fails)
    rules = Rules(capacity=4, batch=2, promoted=1.0)
    memory, chat = modelled(storage, failing("analysis", RuntimeError("another")), clock=clock, rules=rules)
    tell(memory, *(page(index) for index in range(1, 5)))

    drained(memory, clock)
    asked = steps(chat).count("analysis")
    for index in range(5, 8):
        tell(memory, page(index))
        drained(memory, clock)

    assert asked == 5
    assert steps(chat).count("analysis") == 5
    assert rows(memory, "SELECT kind, tries FROM memory_job") == [("analysis", 6)]
    assert rows(memory, "SELECT count(*) FROM memory_page WHERE marks & 1") == [(0,)]
    assert len(memory.summaries("alice", range(1, 8))) == 7


def test_running_jobs_ends(storage):
    """To improve until nothing is due ends, whatever fails: each job that is due is tried once."""

    def fails(asked):
        raise [ModelRefused(asked.step, "no"), RuntimeError("a bug")][len(asked.text) % 2]

    memory, chat = modelled(storage, fails)
    tell(memory, *(page(index) for index in range(1, 10)))
    due = memory.work().waiting

    count = 1
    while memory.run_job():
        count += 1

    assert count <= due + 5
    assert len(chat.calls) <= due
