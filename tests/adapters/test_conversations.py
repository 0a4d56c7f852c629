"""Conversations: what all adapters share, with a framework that keeps messages as tuples."""

from threading import Event, Thread

import pytest

from memci import Context, EphemeralStorage
from memci.adapters.conversations import Conversations
from memci.errors import InvalidSetting


def dump(message):
    yield {"role": message[0], "content": message[1]}


def load(items):
    return [(item["role"], item["content"]) for item in items]


def talk(count, of="a"):
    return [each for number in range(count) for each in (("user", f"{of}{number} ?"), ("assistant", f"{of}{number} !"))]


@pytest.fixture
def store():
    return EphemeralStorage()


@pytest.fixture
def conversations(store):
    conversations = Conversations(store, dump=dump, load=load, window=2_000)
    yield conversations
    conversations.close()


def test_what_stands_as_it_came_is_the_frameworks_own(conversations):
    """Its objects come back; what memci writes is made new, and the prompt leads the notice."""
    given = [("user", f"question {number} " + "word " * 40) for number in range(40)]
    view = conversations.view("alice", given, system="Be brief.")
    assert view.system.startswith("Be brief.\n\n# Earlier parts")
    assert view.messages[0] is given[0], "the first page stands in front"
    assert "<memci:contents" in view.messages[1][1]
    shown = [each for each in view.messages[-5:] if "] " not in each[1] and " from " not in each[1]]
    assert shown == given[-len(shown) :]
    assert all(one is other for one, other in zip(shown, given[-len(shown) :], strict=True))
    assert conversations.messages("alice") == given


def test_a_list_may_hold_everything_or_the_newest_only(conversations):
    """Both give the same view; nothing is stored twice."""
    for number in range(4):
        conversations.view("whole", talk(4)[: 2 * number + 1])
        conversations.view("newest", talk(4)[2 * number : 2 * number + 1])
        conversations.add("whole", talk(4)[: 2 * number + 2])
        conversations.add("newest", talk(4)[2 * number : 2 * number + 2])
    assert conversations.messages("whole") == conversations.messages("newest") == talk(4)


def test_an_edited_list_goes_on_in_a_fork_and_back_again(store, conversations):
    """Each version of the past is kept, found again, also by a new process, and shares what it shares."""
    first, edited = talk(3), [*talk(2), *talk(1, "b")]
    conversations.add("alice", first)
    conversations.add("alice", edited)
    assert conversations.context("alice").id == "alice~1"
    conversations.add("alice", [*first, ("user", "on")])
    assert conversations.context("alice").id == "alice"
    conversations.close()

    again = Conversations(store, dump=dump, load=load, window=2_000)
    again.add("alice", [*edited, ("user", "further")])
    assert again.messages("alice") == [*edited, ("user", "further")]
    again.add("alice", talk(2, "c"))
    assert again.messages("alice") == [*edited, ("user", "further"), *talk(2, "c")]
    again.close()
    assert [(each.id, each.parent) for each in Context.list(store)] == [("alice", None), ("alice~1", "alice")]


@pytest.mark.parametrize(
    "edit",
    [
        lambda told: [("user", "else ?")],
        lambda told: [("user", "else ?"), *told[1:]],
        lambda told: [*told[2:], ("user", "on")],
        lambda told: [*told[:2], ("user", "else ?")],
    ],
)
def test_a_list_that_was_edited_is_shown_as_it_is(conversations, edit):
    """The framework keeps the conversation: its first message was edited, alone or not, or its first turn left."""
    for number in range(3):
        conversations.view("alice", talk(3)[: 2 * number + 1])
        conversations.add("alice", talk(3)[: 2 * number + 2])
    for _ in range(2):
        assert conversations.view("alice", edit(talk(3))).messages == edit(talk(3))
    assert conversations.context("alice").id == "alice~1"


def test_a_list_that_the_framework_cleared_has_nothing_of_the_one_before(conversations):
    """The framework keeps the conversation, and all of its messages were removed: a summary stands in their place."""
    conversations.view("alice", talk(3)[:5], whole=True)
    conversations.add("alice", talk(3))
    cleared = [("user", "A summary."), ("assistant", "Good."), ("user", "On.")]
    for more in ([], [("assistant", "Yes."), ("user", "Further.")]):
        assert conversations.view("alice", cleared + more, whole=True).messages == cleared + more


def test_a_whole_list_may_be_shorter_than_what_is_stored(conversations):
    conversations.add("alice", talk(3), whole=True)
    for length in (4, 1, 0, 5):
        conversations.add("alice", talk(3)[:length], whole=True)
        assert conversations.messages("alice") == talk(3)[:length]


def test_a_first_message_is_edited_though_only_one_answer_follows_it(conversations):
    """The answer stands where it stood; one text alone would be no sign."""
    conversations.view("alice", [("user", "Where?")])
    conversations.add("alice", [("assistant", "Oslo.")])
    edited = [("user", "When?"), ("assistant", "Oslo."), ("user", "And then?")]
    assert conversations.view("alice", edited).messages == edited


def test_a_list_that_goes_on_losing_its_beginning_is_trimmed(conversations):
    """Then its lost messages stay in the conversation, all but those of the first time."""
    for number in range(6):
        conversations.view("alice", talk(6)[max(0, 2 * number - 4) : 2 * number + 1])
        conversations.add("alice", talk(6)[max(0, 2 * number - 4) : 2 * number + 2])
    assert conversations.messages("alice") == talk(6)[2:]
    conversations.erase("alice")
    assert conversations.view("alice", talk(1, "b")[:1]).messages == talk(1, "b")[:1]


def test_a_question_that_was_never_answered_leaves_a_list_that_has_not_all(conversations):
    """The framework drops the question of a run that failed; its list begins behind what memci has."""
    conversations.add("alice", talk(1, "x"))
    for number in range(2):
        conversations.view("alice", talk(2)[: 2 * number + 1])
        conversations.add("alice", talk(2)[: 2 * number + 2])
    conversations.view("alice", [*talk(2), ("user", "failed ?")])
    view = conversations.view("alice", [*talk(2), ("user", "next ?")])
    assert view.messages == [*talk(1, "x"), *talk(2), ("user", "next ?")]


def test_an_edit_brings_nothing_back_that_an_earlier_one_took_away(conversations):
    """An earlier version, whose end fits, holds more than the list: the edit continues the last one."""
    conversations.view("alice", talk(3)[:5], whole=True)
    conversations.add("alice", talk(3))
    without = talk(3)[2:]
    for last in ("on", "or this", "or that"):
        asked = [*without, ("user", last)]
        assert conversations.view("alice", asked, whole=True).messages == asked
        conversations.add("alice", [("assistant", "Yes.")])


def test_a_list_goes_back_to_where_it_was_before_it_was_cleared(conversations):
    """The framework travels in time: what came between is not in its list."""
    conversations.view("alice", talk(2)[:3], whole=True)
    conversations.add("alice", talk(2))
    for cleared in ("b", "c"):
        conversations.view("alice", talk(1, cleared)[:1], whole=True)
        conversations.view("alice", talk(2, cleared)[:3], whole=True)
    back = [*talk(1), ("user", "other ?")]
    assert conversations.view("alice", back, whole=True).messages == back


def test_a_request_that_was_too_long_is_made_once_more(conversations):
    """It is shorter then; a second refusal, and any other error, is raised."""
    asked = [("user", f"question {number} " + "word " * 60) for number in range(20)]
    lengths = []

    def call():
        lengths.append(len(str(conversations.view("alice", asked).messages)))
        if len(lengths) < refusals:
            raise ValueError("maximum context length is 1500 tokens, however you requested 1700 tokens")
        return "answer"

    refusals = 2
    assert conversations.ask("alice", call) == "answer"
    assert lengths[1] < lengths[0]
    refusals = 9
    with pytest.raises(ValueError, match="1700"):
        conversations.ask("alice", call)
    assert len(lengths) == 4
    with pytest.raises(ZeroDivisionError):
        conversations.ask("alice", lambda: 1 / 0)


def test_an_edit_may_go_back_behind_an_earlier_one(conversations):
    """The fork of the later edit has no state of its own there; the conversation that it came from has."""
    conversations.view("alice", talk(4)[:7], whole=True)
    conversations.add("alice", talk(4))
    for turns in (3, 2, 1, 2):
        edited = [*talk(turns), ("user", f"other {turns} ?")]
        assert conversations.view("alice", edited, whole=True).messages == edited
        conversations.add("alice", [("assistant", "Yes.")])


def test_a_cleared_list_may_begin_as_it_did_before(conversations):
    """The user greets again; the same greeting that has no answer yet is asked again."""
    for _ in range(2):
        for _ in range(2):
            assert conversations.view("alice", [("user", "Hi")], whole=True).messages == [("user", "Hi")]
        conversations.add("alice", [("assistant", "Hello.")])


def test_a_lost_question_may_have_the_words_of_the_first_one(conversations):
    """The framework dropped it; its list is not the end of what is stored."""
    told = [("user", "Go on"), ("assistant", "One."), ("user", "And?"), ("assistant", "Two.")]
    conversations.add("alice", told)
    conversations.view("alice", [*told, ("user", "Go on")], whole=True)
    asked = [*told, ("user", "Then?")]
    assert conversations.view("alice", asked, whole=True).messages == asked


def test_of_messages_that_say_the_same_each_is_itself(store):
    """Two answers "Done." have thoughts of their own, which only the framework can read."""

    def signed(message):
        yield {"role": message[0], "content": message[1], **({"own": message[2]} if len(message) > 2 else {})}

    conversations = Conversations(store, dump=signed, load=load, window=2_000)
    told = [each for at in range(3) for each in (("user", f"{at} ?"), ("assistant", "Done.", f"thought {at}"))]
    shown = conversations.view("alice", [*told, ("user", "on")]).messages
    assert shown == [*told, ("user", "on")]
    moved = [(*each, "mark")[:3] for each in told]
    assert conversations.view("alice", [*moved, ("user", "on")]).messages == [*moved, ("user", "on")]
    conversations.close()


def test_a_new_prompt_takes_the_place_of_the_old_one(conversations):
    """A framework may say something else each time."""
    conversations.view("alice", talk(1), system="Be brief.")
    view = conversations.view("alice", talk(1), system="Be kind.")
    assert view.system.startswith("Be kind.")
    with pytest.raises(InvalidSetting, match="system"):
        Conversations(EphemeralStorage(), dump=dump, load=load, system="Be brief.")


def test_each_conversation_has_its_owner_and_answers(store):
    """The owner follows from the name; the tools answer in the conversation that asks."""
    both = Conversations(store, dump=dump, load=load, window=2_000, owner=lambda name: name.split("/")[0])
    both.add("ann/1", [("user", "the password is zebra")])
    both.add("bob/1", [("user", "nothing to see")])
    assert both.context("ann/1").owner == "ann"
    assert "page #1 is shown in full" in both.answer("ann/1", "recall_page", {"index": 1})
    assert "no page 7" in both.answer("bob/1", "recall_page", '{"index": 7}')
    both.close()


def test_one_conversation_does_not_wait_for_another(store):
    """While one list is read, another conversation is stored and shown; the same one waits its turn."""
    reads, goes_on = Event(), Event()

    def slow(message):
        if message[1] == "slow":
            reads.set()
            goes_on.wait(30)
        return dump(message)

    both = Conversations(store, dump=slow, load=load, window=2_000)
    first = Thread(target=both.add, args=("alice", [("user", "slow")]))
    second = Thread(target=both.add, args=("alice", [("user", "next")]))
    other = Thread(target=both.add, args=("bob", [("user", "quick")]))
    first.start()
    assert reads.wait(30)
    second.start()
    other.start()
    other.join(30)
    assert both.messages("bob") == [("user", "quick")]
    assert second.is_alive()
    goes_on.set()
    first.join(30)
    second.join(30)
    assert both.messages("alice") == [("user", "slow"), ("user", "next")]
    both.close()


def test_the_least_used_conversation_is_closed(conversations, monkeypatch):
    """A server of many conversations keeps few of them open."""
    monkeypatch.setattr("memci.adapters.conversations.OPEN", 2)
    contexts = []
    for name in "abca":
        conversations.add(name, [("user", f"{name} {len(contexts)}")])
        contexts.append(conversations.context(name))
    assert contexts[0] is not contexts[3]
    assert conversations.messages("a") == [("user", "a 0"), ("user", "a 3")]


def test_two_workers_take_turns_on_one_conversation(tmp_path):
    """Each of them reads what the other one has stored, and goes on."""
    workers = [Conversations(tmp_path / "agent.db", dump=dump, load=load, window=2_000) for _ in range(2)]
    for number in range(6):
        worker, so_far = workers[number % 2], talk(6)[: 2 * number + 1]
        assert worker.view("ann", so_far).messages == so_far
        worker.add("ann", talk(6)[: 2 * number + 2])
    for worker in workers:
        assert worker.messages("ann") == talk(6)
        assert "shown in full" in worker.answer("ann", "recall_page", {"index": 1})
        worker.close()


def test_what_an_edit_took_away_is_not_found_until_it_comes_back(store):
    """Conversations of one owner share a memory; it knows the version that goes on."""
    conversations = Conversations(store, dump=dump, load=load, window=2_000, owner="ann")
    secret = [*talk(1, "x"), ("user", "My locker code is ZEBRA-4711.")]
    rest = [("assistant", "Noted."), *talk(3), *[("user", f"question {at} " + "word " * 60) for at in range(30)]]

    def found(items):
        conversations.add("ann/1", items)
        context = conversations.context("ann/1")
        context.flush()
        return "ZEBRA-4711" in conversations.answer("ann/1", "search_memory", {"query": "locker code"})

    for edited in ([*secret[:2], ("user", "My locker code is [redacted].")], talk(2, "y")[:3]):
        assert found([*secret, *rest])
        assert not found([*edited, *rest])
        assert found([*secret, *rest])
    conversations.close()
