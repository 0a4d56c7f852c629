"""Real conversations with tools, written in each format and read again, are the same conversations."""

import json
from itertools import groupby

import pytest

from memci.formats import FORMATS, read, request, write
from memci.messages import text_of, tool_calls
from memci.testing.formats import problems
from tests.golden.golden_texts import FOLDER, airline, swe, travel

WHY = "the real conversations are not here: set MEMCI_DATA to their folder"
real = [pytest.mark.data, pytest.mark.skipif(not FOLDER.is_dir(), reason=WHY)]


def understood(messages):
    """What is said, called and answered, by whom, in order: calls by their place instead of their id."""
    found, calls, waiting = [], 0, {}
    for role, run in groupby(messages, key=lambda message: message["role"]):
        for message in run:
            if role == "tool":
                found.append((role, text_of(message), waiting.pop(message["tool_call_id"])))
                continue
            text = text_of(message) or message.get("refusal") or ""
            if text.strip() and text != "(no text)":
                found.append((role, text))
            for call in tool_calls(message):
                waiting[call["id"]] = calls
                found.append((role, call["function"]["name"], json.loads(call["function"]["arguments"])))
                calls += 1
    return found


@pytest.mark.parametrize(
    "talks",
    [
        pytest.param(lambda: [travel()], id="own"),
        pytest.param(lambda: [airline(100)], id="airline", marks=real),
        pytest.param(lambda: list(swe()), id="swe", marks=real),
    ],
)
def test_a_conversation_comes_back_from_every_format(talks):
    """Written and read, and from each format into the next one, it says the same; no provider refuses it."""
    for talk in talks():
        messages = passed_on = [message for turn in talk.turns for message in turn]
        for form in (*FORMATS[1:], FORMATS[0]):
            passed_on = read(write(form, passed_on), form)
            assert understood(read(write(form, messages), form)) == understood(messages)
            assert understood(passed_on) == understood(messages)
            made = request(form, messages, system={"role": "system", "content": talk.system})
            assert problems(form, json.loads(json.dumps(made))) == []
