"""Erasing spreads: to answers that quoted it, to forks that share it, to ops that appended it."""

import json
import sys
from pathlib import Path

import pytest

from memci import EphemeralStorage
from memci.errors import Erased, OpConflict, WriteConflict
from memci.history.copying import copy_contexts
from memci.history.erase import erase
from memci.history.row_stream import Unread, readable_entries
from memci.memory.backend import Scope
from memci.memory.forgetting import texts_of

from .erasures import secret, shown, well
from .kit import (
    again,
    call,
    calling,
    opened,
    result,
    seen,
    talked,
    turn,
    where,
)

sys.path.insert(0, str(Path(__file__).parent.parent / "machine"))


@pytest.mark.parametrize("entry", [None, 1, 3])
def test_answers_that_quoted_it_are_erased_too(entry, storage):
    """What the model read of it by recall_page goes along, and what it read of that answer."""
    context = opened(storage, window=20_000)
    context.append_turn(*secret())
    context.append_turn(*turn(2))
    context.archive(keep=0)
    reply = calling(call("r1", "recall_page", {"index": 1, "entry": entry}))
    context.append_turn("What was it?", reply)
    context.append_turn(*context.answers(reply), {"role": "assistant", "content": "I see."})
    quoting = context.pages()
    number = max(page.index for page in quoting)
    context.append_turn(*turn(9))
    context.archive(keep=0)
    reply = calling(call("r2", "recall_page", {"index": number, "entry": None}))
    context.append_turn("And what did I ask?", reply)
    context.append_turn(*context.answers(reply))
    assert "canary1" in json.dumps(context.recall_page(number))
    before = len(list(context.messages()))

    receipt = context.erase(1)

    assert (receipt.pages, receipt.entries) == (1, 7)
    for each in (context, again(storage)):
        assert "canary" not in json.dumps(list(each.messages())) + shown(each)
        assert len(list(each.messages())) == before - 5
        well(each)


def test_answer_to_a_recall_of_no_page_is_in_no_way(storage):
    """A recall of a page that never was quotes nothing: it stays, and what is to be erased goes."""
    context = opened(storage)
    context.append_turn(*secret())
    reply = calling(call("r1", "recall_page", {"index": 99, "entry": None}))
    context.append_turn("What was it?", reply)
    context.append_turn(*context.answers(reply))
    before = len(list(context.messages()))

    receipt = context.erase(1)

    assert receipt.entries == before - 3
    assert [message["role"] for message in context.messages()][-3:] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("frame", "page"),
    [
        ("<memci:recall 00000000>\npage #%s of turn 1", "9" * 5_000),
        ("<memci:recall 11111111>\npage #%s of turn 0", "1"),
        ('<memci:memory 0>\n#%s user: "x"', "9" * 5_000),
    ],
)
def test_forged_answer_is_in_no_way(frame, page):
    """A text of somebody that looks like an answer can't keep an owner from erasing; that of another context stays."""
    context = opened()
    context.append_turn(*secret())
    context.append_turn(frame % page)

    assert context.erase(1).entries == 5


def test_late_answer_that_quoted_it_is_erased_too(storage):
    """An answer to a recall that was appended when its group was over goes like any other."""
    context = opened(storage)
    context.append_turn(*secret())
    context.append_turn(*turn(2))
    context.archive(keep=0)
    reply = calling(call("r1", "recall_page", {"index": 1, "entry": None}))
    context.append_turn("What was it?", reply)
    answers = context.answers(reply)
    context.append_turn("Never mind.", *answers)

    context.erase(1)

    assert "canary" not in json.dumps(list(context.messages())) + shown(context)
    well(context, again(storage))


def test_answer_that_quoted_another_page_stays(storage):
    """Only what quoted the erased goes: another page's answer is not touched."""
    context = talked(3, storage=storage)
    context.archive(keep=0)
    reply = calling(call("r1", "recall_page", {"index": 2, "entry": None}))
    context.append_turn("What was it?", reply)
    context.append_turn(*context.answers(reply))
    told = context.recall_page(4)

    context.erase(3)

    assert context.recall_page(4) == told


def test_forks_lose_it_too(storage):
    """What is erased in one is erased in all that share it, before and after it was forked again; each goes on."""
    context = opened(storage)
    context.append_turn(*turn(1))
    context.append_turn(*secret())
    child = context.fork("child")
    child.append_turn(*turn(3))
    child.archive(keep=0)
    grandchild = child.fork("grandchild")
    grandchild.append_turn(*turn(4))
    before = context.fork("before", at=0)
    untouched = seen(before)
    opened(storage, id="stranger").append_turn(*turn(1))

    receipt = grandchild.erase(2)

    assert (receipt.pages, receipt.entries, receipt.physical) == (3, 5, "done")
    for name in ("alice", "child", "grandchild"):
        each = again(storage, id=name)
        assert "canary" not in shown(each) + json.dumps(list(each.messages()))
        assert where(each)[2] == "erased"
        well(each)
    assert seen(again(storage, id="before")) == untouched
    with pytest.raises(WriteConflict):
        context.render()
    context.refresh()
    context.append_turn(*turn(5))
    grandchild.append_turn(*turn(6))
    well(context, grandchild)


@pytest.mark.parametrize("eraser", ["alice", "child", "grandchild", "sibling"])
def test_owners_that_share_it_lose_it_whoever_erases_it(eraser, storage):
    """Forks that were given to other owners are found by their parents, and parents by their forks."""
    context = opened(storage)
    context.append_turn(*secret())
    child = context.fork("child")
    child.append_turn(*turn(2))
    child.fork("grandchild").append_turn(*turn(3))
    context.fork("sibling")
    for name in ("child", "grandchild", "sibling"):
        again(storage, id=name, owner=f"owner of {name}", change_owner=True)

    receipt = again(storage, id=eraser).erase(1)

    assert (receipt.pages, receipt.entries) == (4, 5)
    for name in ("alice", "child", "grandchild", "sibling"):
        each = again(storage, id=name)
        assert "canary" not in shown(each) + json.dumps(list(each.messages()))
        well(each)


def test_what_a_fork_says_itself_is_its_own_to_erase(storage):
    """A page with the same number in the parent is another page."""
    context = talked(1, storage=storage)
    fork = context.fork("bob")
    context.append_turn(*turn(2))
    fork.append_turn(*secret())

    fork.erase(2)

    assert context.recall_page(2) == list(turn(2))
    assert context.render()
    assert "canary" not in json.dumps(list(again(storage, id="bob").messages()))
    well(context, fork)


def test_page_that_goes_on_behind_a_fork_is_erased_in_its_shared_part(storage):
    """An open page at the fork is continued in both; erasing it in one takes what they share from the other."""
    context = opened(storage)
    context.append_turn("canary-shared")
    fork = context.fork("bob")
    fork.append_turn({"role": "assistant", "content": "canary-of-bob"})
    context.append_turn({"role": "assistant", "content": "of alice"})

    fork.erase(1)

    parent = again(storage)
    assert [each["content"] for each in parent.recall_page(1)] == ["[erased]", "of alice"]
    assert where(again(storage, id="bob"))[1] == "erased"
    well(parent, again(storage, id="bob"))


def test_fork_that_quoted_it_loses_its_answer(storage):
    """An answer in a fork that quoted what it shares is erased with it."""
    context = opened(storage)
    context.append_turn(*secret())
    fork = context.fork("bob")
    fork.append_turn(*turn(2))
    fork.archive(keep=0)
    reply = calling(call("r1", "recall_page", {"index": 1, "entry": None}))
    fork.append_turn("What was it?", reply)
    fork.append_turn(*fork.answers(reply))

    receipt = context.erase(1)

    fork.refresh()
    assert receipt.entries == 6
    assert "canary" not in json.dumps(list(fork.messages())) + shown(fork)
    well(context, fork)


def test_repeated_op_of_what_was_erased_says_so(storage):
    """The op_id of an append that was erased stores nothing again; others are known as before."""
    context = opened(storage)
    context.append_turn(*turn(1), op_id="kept")
    context.append_turn(*secret(), op_id="gone")
    context.append_turn(*turn(3), op_id="partly")
    context.erase(2)
    context.erase(3, 1)

    for each in (context, again(storage)):
        for name, messages in (("gone", secret()), ("partly", turn(3)), ("gone", turn(3))):
            with pytest.raises(Erased):
                each.append_turn(*messages, op_id=name)
        assert each.append_turn(*turn(1), op_id="kept").duplicate
        with pytest.raises(OpConflict):
            each.append_turn(*turn(3), op_id="kept")


def test_op_ids_of_other_contexts_are_not_touched(storage):
    """A stranger's op with the same seqs is known as before."""
    other = opened(storage, id="other")
    other.append_turn(*turn(1), op_id="op")
    context = opened(storage)
    context.append_turn(*secret(), op_id="op")
    fork = context.fork("bob")
    fork.append_turn(*turn(2), op_id="op")

    context.erase(1)

    assert other.append_turn(*turn(1), op_id="op").duplicate
    fork.refresh()
    assert fork.append_turn(*turn(2), op_id="op").duplicate


def quoted_by_another(storage):
    """Return a context of ann's with a password, and another one of hers, whose search quotes it."""
    context = opened(storage, id="first", owner="ann", window=20_000)
    asked = {"role": "user", "name": "Mel: ", "content": "My password is canary1, and I live in Oslo."}
    context.append_turn(asked, {"role": "assistant", "content": "Noted."})
    context.append_turn(*turn(2))
    context.flush()
    second = opened(storage, id="second", owner="ann", window=20_000)
    number = searched(second, "password", "s1")
    assert "another conversation" in json.dumps(second.recall_page(number))
    return context, second


def searched(context, query, name):
    """Let the model search, and append what it is answered; return the page's number."""
    reply = calling(call(name, "search_memory", {"query": query, "since": None, "until": None}))
    receipt = context.append_turn("What do you remember?", reply)
    context.append_turn(*context.answers(reply), {"role": "assistant", "content": "I see."})
    return receipt.page


def canary(context):
    """Tell whether any message or rendering of *context* has the secret."""
    return "canary" in json.dumps(list(context.messages()), ensure_ascii=False) + shown(context)


@pytest.mark.parametrize("entry", [None, 1])
def test_answers_of_searches_that_quoted_it_are_erased_too(entry, storage):
    """What the model found of it by search_memory goes along, and what it recalled of that answer."""
    context = opened(storage, window=20_000)
    context.append_turn("My password is canary1, and I live in Oslo.", {"role": "assistant", "content": "Noted."})
    context.append_turn("I have two dogs.", {"role": "assistant", "content": "Noted."})
    context.archive(keep=0)
    number = searched(context, "password", "s1")
    context.append_turn(*turn(9))
    context.archive(keep=0)
    other = searched(context, "dogs", "s2")
    reply = calling(call("r1", "recall_page", {"index": number, "entry": None}))
    context.append_turn("And what did I ask?", reply)
    context.append_turn(*context.answers(reply))
    assert json.dumps(list(context.messages())).count("canary1") > 2

    context.erase(1, entry)

    for each in (context, again(storage)):
        assert not canary(each)
        # found for its neighbourhood, the message is quoted by this answer as well
        assert "two dogs" not in json.dumps(each.recall_page(other))
        well(each)


def test_answers_of_searches_in_other_conversations_are_erased_too(storage):
    """What another conversation of the same owner found of it goes along; what is somebody else's stays.

    So does an answer about a page of its own with that number.
    """
    context, second = quoted_by_another(storage)
    second.fork("third")
    foreign = again(storage, id="third", owner="bob", change_owner=True)
    own = '<memci:memory 00000000>\n#1 entry 1 user, turn 0: "canary1"'
    foreign.append_turn(other := '<memci:memory 00000000>\nanother conversation, user, turn 0: "canary1"', "x")
    second.append_turn(own)

    receipt = context.erase(1)

    assert receipt.entries == 3
    for each, said in ((second, own), (foreign, other)):
        each.refresh()
        assert [message["content"] for message in each.messages() if "canary1" in str(message)] == [said]


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("query", ["password", "How many passwords did I tell you?"])
def test_answers_of_any_form_are_erased_too(query, own):
    """One line for each of many results, and an answer that a program put into JSON, are quotations like any other."""
    context, second = quoted_by_another(EphemeralStorage())
    context.archive(keep=0)
    asking = context if own else second
    reply = calling(call("s2", "search_memory", {"query": query}))
    asking.append_turn("What do you remember?", reply)
    [answer] = asking.answers(reply)
    said = answer["content"]
    assert "canary1" in said
    asking.append_turn(answer)
    for _ in range(3):
        asking.append_turn(said := json.dumps({"result": [said]}))

    context.erase(1)

    second.refresh()
    assert not canary(context)
    assert not canary(second)
    well(context, second)


@pytest.mark.parametrize("line", ['#1 user: "canary1-quest…"', 'known of the user: "Mel: canary1-question please"'])
def test_line_that_is_cut_or_names_who_said_it_quotes(line):
    """What an answer had no room for, or says beside the words, is no part of them."""
    context = opened()
    context.append_turn(*secret())
    context.append_turn(f"<memci:memory 00000000>\n{line}")

    assert context.erase(1).entries == 6


@pytest.mark.parametrize(("page", "quoted"), [(1, True), (2, True), (3, False)])
def test_line_of_an_answer_may_quote_two_messages(page, quoted, storage):
    """What was said later stands behind a result; a text may look as if it did."""
    said = ['the first \\"; later, #3 entry 1 user: "third', "second", "third"]
    context = opened(storage)
    for each in said:
        context.append_turn(each, {"role": "assistant", "content": "ok"})
    context.append_turn("Who said what?", calling(call("s", "search_memory")))
    first, second, _ = (f"#{at} entry 1 user, turn {at - 1}: {json.dumps(each)}" for at, each in enumerate(said, 1))
    line = f"{first}; later, {second}"
    context.append_turn(result("s", f"<memci:memory 00000000>\n{line}\n</memci:memory 00000000>"))

    context.erase(page)

    assert any("memci:memory" in str(each["content"]) for each in context.messages()) is not quoted
    well(context)


@pytest.mark.parametrize("scope", ["page", "context"])
def test_answers_of_searches_that_tell_a_fact_of_it_are_erased_too(scope, storage):
    """A fact that a program stored has words that no message has; it goes with its page, and so do answers with it."""
    context = opened(storage, id="first", owner="ann", window=20_000)
    for number in (1, 2, 3):
        context.append_turn(*turn(number))
    context.flush()
    context.memory.learn("The boat key is in the canary1 box.", context="first", index=1)
    context.memory.learn("The garage anchor is in the shed.", context="first", index=2)
    second = opened(storage, id="second", owner="ann", window=20_000)
    told = [searched(second, query, query) for query in ("boat key box", "garage anchor")]
    assert "canary1" in json.dumps(second.recall_page(told[0]))
    kept = json.dumps(second.recall_page(told[1]))
    assert ("shed" in kept, "canary1" in kept) == (True, False)
    second.close()

    if scope == "page":
        context.erase(1)
    else:
        context.close()
        erase(storage, context="first")

    second = again(storage, id="second")
    assert not canary(second)
    assert ("shed" in json.dumps(second.recall_page(told[1]))) == (scope == "page")
    well(second)


@pytest.mark.parametrize(("page", "erased"), [(1, True), (15, False)])
def test_answers_of_searches_that_tell_what_a_talk_was_about_are_erased_too(page, erased, storage):
    """A line has titles of several pages: it quotes those that it shows."""
    context = opened(storage, window=20_000)
    for number in range(16):
        said = f"The garden {number or 'canary1'} of Lisbon needs soil."
        context.append_turn(said, {"role": "assistant", "content": "Noted."})
    context.end_session()
    context.flush()
    told = searched(context, "Sum up what we said about the garden of Lisbon.", "s1")
    [answer] = [each["content"] for each in context.recall_page(told) if each["role"] == "tool"]
    assert ("The garden canary1 of Lisbon" in answer, "The garden 14 of" in answer, "\n#" in answer) == (
        True,
        False,
        False,
    )

    context.erase(page)

    assert ([each["content"] for each in context.recall_page(told) if each["role"] == "tool"] == []) == erased
    well(context)


@pytest.mark.parametrize("entry", [1, 2])
def test_answer_with_a_fact_of_another_message_of_the_page_stays(entry, storage):
    """What a message says that stays is told by the answer: only the message that is erased takes it along."""
    context = opened(storage, id="first", owner="ann", window=20_000)
    said = "I live in Oslo with my dog Rex."
    context.append_turn(said, {"role": "assistant", "content": "canary1"})
    for number in range(2, 8):
        context.append_turn(*turn(number))
    context.flush()
    second = opened(storage, id="second", owner="ann", window=20_000)
    told = searched(second, "Who am I?", "s1")
    assert f'known of the user: "{said}"' in second.recall_page(told)[2]["content"]

    context.erase(1, entry)

    second.refresh()
    assert (said in json.dumps(second.recall_page(told))) == (entry == 2)
    well(context, second)


def test_what_other_pages_tell_is_no_text_of_the_one_that_goes():
    """A fact that two pages say is told in the later words, which only go with both."""
    context = opened(window=20_000)
    said = ["I live in Oslo with my dog Rex.", "i LIVE in oslo with my dog rex!"]
    for each in said:
        context.append_turn(each, {"role": "assistant", "content": "Noted."})
    for number in range(3, 9):
        context.append_turn(*turn(number))
    context.flush()

    told = [texts_of(context._storage, {"alice": pages}) for pages in ([1], [2], [1, 2])]

    assert [said[1] in each for each in told] == [False, True, True]


def test_forks_lose_answers_of_searches_too(storage):
    """A fork shares an answer that quotes the erased: both lose it, another owner's copy does not."""
    context, second = quoted_by_another(storage)
    second.append_turn(*turn(3))
    second.archive(keep=0)
    fork = second.fork("fork")
    assert "canary1" in shown(fork)
    fork.close()
    copy = second.fork("copy", owner="bob")
    second.close()

    context.erase(1)

    assert canary(copy)
    well(copy)
    for name in ("second", "fork"):
        each = opened(storage, id=name, owner="ann")
        assert not canary(each)
        well(each)


def test_answers_of_searches_go_with_a_whole_conversation(storage):
    """A conversation that is erased whole is quoted by no other one of its owner any more, nor by a fork of that."""
    context, second = quoted_by_another(storage)
    context.close()
    second.append_turn(*turn(3))
    fork = second.fork("fork")
    fork.close()
    second.close()

    receipt = erase(storage, context="first")

    assert (receipt.contexts, receipt.memory) == (1, "done")
    for name in ("second", "fork"):
        each = opened(storage, id=name, owner="ann")
        assert not canary(each)
        assert "[erased]" in json.dumps(list(each.messages()))
        well(each)


def test_message_that_cannot_be_read_keeps_no_context_from_being_erased():
    """The others are erased with the answers that quote them."""
    storage = EphemeralStorage()
    context, _ = quoted_by_another(storage)
    context.close()
    storage._connection.execute("UPDATE entry SET body = x'00' WHERE key = (SELECT min(key) + 2 FROM entry)")

    assert erase(storage, context="first").contexts == 1
    assert not canary(again(storage, id="second"))


@pytest.mark.parametrize(
    ("damaged", "page", "entry"), [(3, 1, None), (3, 3, 1), (3, 3, 2), (3, 3, None), (13, 1, None)]
)
def test_message_that_cannot_be_read_keeps_no_page_from_being_erased(damaged, page, entry):
    """A page or a message goes with the answers that quote it; one that can't be read goes when it is named."""
    storage = EphemeralStorage()
    contexts = quoted_by_another(storage)
    for context, first in zip(contexts, (3, 13), strict=True):
        context.append_turn(*turn(first))
        context.append_turn(*turn(first + 1))
        context.archive(keep=0)
        context.close()
    storage._connection.execute("UPDATE entry SET body = x'00' WHERE instr(body, ?)", (f"answer {damaged} ".encode(),))
    context = again(storage, id="first")

    receipt = context.erase(page, entry)

    assert context.erase(page, entry) == receipt
    rows = [row for record in storage.contexts() for row in readable_entries(storage, record)]
    assert any(isinstance(row, Unread) for row in rows) == ((page, entry) not in {(3, 2), (3, None)})
    assert any(b"canary" in row.body for row in rows if not isinstance(row, Unread)) == (page != 1)


def test_answers_stay_that_quote_what_the_parent_of_an_erased_fork_keeps(storage):
    """A fork that is erased whole takes its own messages along, not those that it shared."""
    context, _ = quoted_by_another(storage)
    context.fork("fork").append_turn(*turn(3))

    erase(storage, context="fork")

    assert canary(context)
    assert canary(again(storage, id="second"))


@pytest.mark.parametrize("framed", [True, False])
@pytest.mark.parametrize("first", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("gone", [1, 3, 5])
def test_answer_quotes_what_stands_from_its_entry_on(first, gone, framed):
    """An answer to a recall that began at an entry quotes that one and what follows it, and nothing before it."""
    context = opened(window=20_000)
    context.append_turn(*turn(1))
    context.append_turn(*secret())
    context.append_turn(*turn(3))
    context.archive(keep=0)
    reply = calling(call("r1", "recall_page", {"index": 2, "entry": first}))
    context.append_turn("What was it?", reply)
    own = {"role": "tool", "tool_call_id": "r1", "content": json.dumps(context.recall_page(2, first))}
    context.append_turn(*(context.answers(reply) if framed else [own]))

    context.erase(2, gone)

    kept = "[erased]" not in json.dumps(context.recall_page(4))
    assert kept == (gone < first)
    well(context)


@pytest.mark.parametrize("scope", ["page", "page of a fork", "owner", "made again", "copied"])
def test_answers_of_the_owner_before_go_too(scope, storage):
    """What is erased goes with the answers that quote it where the owner before found it.

    Also if the memory of that owner was made again since, and no longer knows the context.
    """
    context, second = quoted_by_another(storage)
    context.close()
    second.close()
    moved = opened(storage, id="first", owner="bob", change_owner=True)
    if scope == "made again":
        second = opened(storage, id="second", owner="ann")
        second.memory.erase(Scope())
        second.flush()
        second.close()
    if scope == "copied":
        moved.close()
        source, storage = storage, EphemeralStorage()
        assert len(list(copy_contexts(source, storage))) == 2
        moved = again(storage, id="first")

    if scope != "owner":
        eraser = moved.fork("fork") if scope == "page of a fork" else moved
        assert eraser.erase(1).entries == 3
    else:
        moved.close()
        assert erase(storage, owner="bob").contexts == 1

    left = opened(storage, id="second", owner="ann")
    assert not canary(left)
