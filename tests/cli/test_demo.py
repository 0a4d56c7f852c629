"""`memci demo`: its conversation, and what it proves."""

import json

from memci import Context, EphemeralStorage
from memci.cli.replay.demo import TURNS, conversation, recall
from memci.messages import call_name, check, tool_calls
from memci.text.sanitize import quote
from memci.tools.recall_page import quotable


def test_demo_when_it_runs(run):
    """The demo recalls a page word for word, reopens the context, and ends well; no control codes."""
    result = run("demo", "--turns", 60)

    assert result.exit_code == 0
    assert "messages came back word for word" in result.stdout
    assert "it renders the same bytes" in result.stdout
    assert "memci replay FILE" in result.stdout
    assert "✗" not in result.stdout
    assert "\x1b" not in result.stdout


def test_demo_when_all_fits_the_window(run):
    """With a window that is large enough there is nothing to recall, and the demo says so."""
    result = run("demo", "--turns", 20, "--window", 100_000)

    assert result.exit_code == 0
    assert "nothing to recall" in result.stdout


def test_demo_when_the_window_is_too_small(run):
    """A window in which nothing fits ends with 1 and one line."""
    result = run("demo", "--window", 600)

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_conversation_when_it_is_read():
    """Every message is one that a provider accepts; there are parallel calls, an error, Chinese and Japanese."""
    chat = conversation()
    messages = chat.messages
    text = json.dumps(messages, ensure_ascii=False)

    for message in messages:
        check(message)
    calls = [call["id"] for message in messages for call in tool_calls(message)]
    assert calls == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len(set(calls)) == len(calls)
    assert any(len(tool_calls(message)) == 3 for message in messages)
    named = {call_name(call) for message in messages for call in tool_calls(message)}
    assert named <= {tool["function"]["name"] for tool in chat.tools}
    assert all(each in text for each in ("upstream_timeout", "陈思远", "佐藤"))
    assert len(chat.pages()) == TURNS
    assert all(page[0]["role"] == "user" and page[-1]["role"] == "assistant" for page in chat.pages())


def test_recalled_when_a_page_is_archived():
    """The model's own call of the tool quotes each message of the page exactly."""
    page = conversation().pages()[0]
    with Context.open(EphemeralStorage(), id="a", system="Be brief.", window=8_000) as context:
        for each in conversation().pages()[:10]:
            context.append_turn(*each)
        context.archive(keep=0)

        answer = recall(context, 1)

    assert all(quote(quotable(message)[0]) in answer for message in page)


def test_demo_when_json_is_asked_for(told):
    """Its figures, the report, and both proofs are one JSON object."""
    value = told("demo", "--turns", 20)

    assert (value["turns"], value["recalled_exactly"], value["same_when_reopened"]) == (20, True, True)
    assert value["report"]["window"] == 8_000
