"""Long conversations over HTTP: no request is above the window, and between compactions each extends the one before."""

import json
import random
from functools import cache
from itertools import count, pairwise

import pytest

from memci import Context, EphemeralStorage
from memci.companion import Companion
from memci.llm import Chat
from memci.testing.llm import ModelServer
from memci.tokens import counter_for, message_tokens, tools_tokens

LOOK_UP = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look up a train.",
        "parameters": {"type": "object", "properties": {"stop": {"type": "integer"}}},
    },
}
TOKENS = counter_for(None)


@cache
def message_cost(text):
    return message_tokens(json.loads(text), TOKENS)


def cost(body):
    """What a request costs in tokens, tools and framing with it."""
    return (
        sum(message_cost(json.dumps(each)) for each in body["messages"])
        + tools_tokens(body.get("tools", ()), TOKENS)
        + 3
    )


def spoken(dice, number):
    """What a user says in turn *number*: mostly short, sometimes a whole document, now and then in Chinese."""
    words = [
        f"stop {number} of line {dice.randint(1, 9)}",
        "the garden of my aunt",
        "中午之前到达的火车",
        "a very slow boat",
    ]
    return " and ".join(dice.choice(words) for _ in range(dice.choice([1, 1, 1, 2, 5, 20, 150]))) + "?"


def analysis(dice):
    wants = dice.random() < 0.5
    return {
        "thinking": "",
        "need_memory_search": wants,
        "memory_search_query": "garden of the aunt" if wants else None,
        "should_save_memory": False,
        "memory_to_save": None,
    }


def called(dice, ids, pages):
    """A message with up to three calls: of the caller's tool, of both of the context's."""
    made = [
        ("look_up", {"stop": dice.randint(1, 99)}),
        ("recall_page", {"index": dice.randint(1, max(1, pages)), "entry": None, "offset": None}),
        ("search_memory", {"query": "garden aunt", "since": None, "until": None}),
    ]
    calls = [
        {"id": f"c{next(ids)}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for name, arguments in dice.sample(made, dice.randint(1, 3))
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


class Talk:
    """A conversation of so many *turns* in a window of *window* tokens, and what reached the server of it."""

    def __init__(self, window, dice, turns):
        self.turns = turns
        ids, self.compactions = count(1), []
        """compactions before each request for an answer"""

        def answer(request):
            if request.answer:
                return analysis(dice)
            self.compactions.append(context.report().compactions)
            if request.messages[-1]["role"] == "tool" or dice.random() < 0.6:
                return "It leaves at noon. " * dice.choice([1, 3, 30, 100])
            return called(dice, ids, context.report().turn)

        with (
            ModelServer(answer, usage=False, chunk=65_536) as server,
            Chat("gpt-4o", base_url=server.base_url) as chat,
            Context.open(EphemeralStorage(), id="alice", system="Be kind.", window=window) as context,
        ):
            companion = Companion(
                context,
                chat,
                role="You know every train. " * 10,
                tools=[LOOK_UP],
                functions={"look_up": lambda stop=0: [{"stop": stop, "at": "12:00"}] * dice.choice([1, 9, 300])},
            )
            for number in range(turns):
                list(companion.stream(spoken(dice, number)))
            self.problems = context.verify()
            self.report = context.report()
            self.costs = [cost(request.body) for request in server.requests]
            self.asked = [request.messages for request in server.requests if not request.answer]


def check_prefixes(talk):
    """Between compactions a request begins with the bytes of the one before, up to what was remembered for it.

    Within a turn, while tools are called, each request extends the one before.
    """
    asked, turns, calls = [json.dumps(each) for each in talk.asked], 0, 0
    firsts = [at for at, messages in enumerate(talk.asked) if messages[-1]["role"] == "user"]
    for at, then in pairwise(firsts):
        if talk.compactions[at] == talk.compactions[then]:
            kept = talk.asked[at][:-2]  # without the question, and what is remembered in front of it
            assert asked[then].startswith(json.dumps(kept)[:-1])
            turns += 1
    for at, messages in enumerate(talk.asked):
        if messages[-1]["role"] == "tool" and talk.compactions[at] == talk.compactions[at - 1]:
            assert asked[at].startswith(asked[at - 1][:-1])
            calls += 1
    assert turns > talk.turns // 2
    assert calls > talk.turns // 10


@pytest.mark.slow
def test_requests_when_a_conversation_is_long():
    """Every request fits the window beside the reply, tools and all, and extends the one before; no turn is lost."""
    for window, turns in ((2_000, 20), (12_000, 30)):
        talk = Talk(window, random.Random(7), turns)

        assert max(talk.costs) <= talk.report.budget
        assert talk.report.turn + 1 == talk.turns
        assert talk.report.compactions > 2
        assert talk.problems == []
    check_prefixes(talk)
