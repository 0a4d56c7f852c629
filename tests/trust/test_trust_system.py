"""S1: what others wrote never speaks with the authority of the system prompt."""

import json
from contextlib import suppress
from random import Random

from memci import EphemeralStorage
from memci.errors import BudgetExceeded, Undone
from tests.faults.fuzz_targets import text

from .kit import PAYLOADS, agent, hostile_turn


def test_system_message_is_the_same_bytes_in_every_state():
    """Whatever is said, archived, recalled, answered late, pinned, undone or forked, the system message stays."""
    rng, said = Random(1), set()

    for life in range(5):
        context = agent(nonce=f"{life:08x}")
        for turn in range(60):
            payload = text(rng, 30) + rng.choice(PAYLOADS)
            context.append_turn(*hostile_turn(payload, text(rng, 4), f"c{turn}"))
            act = rng.random()
            if act < 0.1:
                context.archive(keep=rng.randrange(3))
            elif act < 0.2:
                with suppress(Undone):
                    context.recall_page(rng.randrange(1, max(2, turn // 2)))
            elif act < 0.25:
                context.undo()
                context.append_turn(payload)
            elif act < 0.28:
                with suppress(Undone, BudgetExceeded):
                    context.pin(rng.randrange(1, max(2, turn // 2)))
            elif act < 0.33:
                body = {"name": "recall_page", "arguments": '{"index": 1}'}
                call = {"id": f"r{turn}", "type": "function", "function": body}
                asking = {"role": "assistant", "content": None, "tool_calls": [call]}
                context.append_turn(asking, payload, context.answer(call))
            elif act < 0.38:
                context = context.fork(f"fork {turn}")
            shown = context.render(payload) if rng.random() < 0.3 else context.render()
            said.add(json.dumps(shown[0]))
            assert [message["role"] for message in shown].count("system") == 1
            assert shown[0]["role"] == "system"

    assert len(said) == 1


def test_system_message_is_the_same_bytes_after_opening_again():
    """Opened again, and as it was in the past, a context has the system message that it had."""
    storage = EphemeralStorage()
    context = agent(storage)
    for turn, payload in enumerate(PAYLOADS):
        context.append_turn(*hostile_turn(payload, payload, f"c{turn}"))
    context.archive(keep=1)

    again = agent(storage, window=None, nonce=None, system=None)
    past = agent(storage, window=None, nonce=None, system=None, at=3)

    assert again.render()[0] == past.render()[0] == context.render()[0]
    assert not any(payload in context.render()[0]["content"] for payload in PAYLOADS)


def test_tools_are_the_same_bytes_in_every_state():
    """Schemas stand with the system prompt in a request: nothing that was said comes into them."""
    before = json.dumps(agent().tools)
    context = agent()

    for turn, payload in enumerate(PAYLOADS):
        context.append_turn(*hostile_turn(payload, payload, f"c{turn}"))

    assert json.dumps(context.tools) == before
