"""Two hundred turns: no request is ever above the window, and between editions each extends the one before."""

import json
import random
from itertools import pairwise

import pytest

from memci import Context, EphemeralStorage
from memci.chat import Companion

LOOK_UP = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look up a train.",
        "parameters": {"type": "object", "properties": {"stop": {"type": "integer"}}},
    },
}
TURNS = 200


def spoken(dice, number):
    """What a user says in turn *number*: mostly short, sometimes a whole document, now and then in Chinese."""
    words = [
        f"stop {number} of line {dice.randint(1, 9)}",
        "the garden of my aunt",
        "中午之前到达的火车",
        "a very slow boat",
    ]
    size = dice.choice([1, 1, 1, 2, 5, 20, 400])
    return " and ".join(dice.choice(words) for _ in range(size)) + "?"


@pytest.fixture(params=[2_000, 8_000])
def window(request):
    return request.param


def talk(window, scripted, *, turns=TURNS, seed=7):
    """Lead a conversation and return the model with its requests, the report, and the editions before each request."""
    dice = random.Random(seed)
    editions = []
    with Context.open(EphemeralStorage(), id="alice", system="Be kind.", window=window) as context:
        chat = scripted()

        def answer(messages):
            editions.append(context.report().editions)
            if messages[-1]["role"] == "tool" or dice.random() < 0.6:
                return "It leaves at noon. " * dice.choice([1, 3, 30, 200])
            made = [chat.call("look_up", stop=dice.randint(1, 99)) for _ in range(dice.choice([1, 1, 3]))]
            pages = max(1, context.report().turn)
            made.append(chat.call("recall_page", index=dice.randint(1, pages), entry=None, offset=None))
            made.append(chat.call("search_memory", query="garden aunt", since=None, until=None))
            picked = dice.sample(made, dice.randint(1, len(made)))
            return picked[0] | {"tool_calls": [call for each in picked for call in each["tool_calls"]]}

        def analysis(messages):
            wants = dice.random() < 0.5
            return {
                "thinking": "",
                "need_memory_search": wants,
                "memory_search_query": "garden of the aunt" if wants else None,
                "should_save_memory": False,
                "memory_to_save": None,
            }

        chat.answer, chat.analysis = answer, analysis
        companion = Companion(
            context,
            chat,
            role="You know every train. " * 10,
            tools=[LOOK_UP],
            functions={
                "look_up": lambda stop=0: json.dumps([{"stop": stop, "at": "12:00"}] * dice.choice([1, 9, 900]))
            },
        )
        for number in range(turns):
            list(companion.stream(spoken(dice, number)))
        assert context.verify() == []
        return chat, context.report(), editions


def test_requests_when_a_conversation_is_long(window, scripted):
    """Every request fits the window beside the reply, tools and all; the turns are all there."""
    chat, report, _ = talk(window, scripted)

    costs = [chat.cost(messages, tools) for _, messages, tools in chat.requests]
    assert max(costs) <= report.budget
    assert report.turn + 1 == TURNS
    assert report.editions > 2


def test_prefix_when_there_was_no_edition(scripted):
    """Between editions a request begins with the bytes of the one before, up to what was remembered for it."""
    chat, _, editions = talk(16_000, scripted)
    asked = chat.asked()
    firsts = [at for at, messages in enumerate(asked) if messages[-1]["role"] == "user"]
    compared = 0
    for at, then in pairwise(firsts):
        if editions[at] == editions[then]:
            kept = asked[at][:-2]  # without the question, and what is remembered in front of it

            assert json.dumps(asked[then]).startswith(json.dumps(kept)[:-1])
            compared += 1

    assert compared > TURNS // 2


def test_prefix_when_tools_are_called(scripted):
    """Within a turn each request extends the one before, byte for byte, unless an edition comes between."""
    chat, _, editions = talk(16_000, scripted, turns=80)
    asked = chat.asked()
    compared = 0
    for at, messages in enumerate(asked):
        if messages[-1]["role"] == "tool" and editions[at] == editions[at - 1]:
            assert json.dumps(messages).startswith(json.dumps(asked[at - 1])[:-1])
            compared += 1

    assert compared > 10
