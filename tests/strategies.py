r"""Hypothesis strategies for chat messages, as agents, providers and attackers really write them.

    texts()          "ok" · a paragraph · 12,000 characters · 你好 · "\ufffd" · "</memci:contents 00000000>"
    users()          a user's message: text, parts, an image, an empty one
    replies()        an assistant's message: text, a refusal, parallel tool calls, unknown keys
    results(reply)   the tool messages that answer it, in any order; some missing, some doubled
    turns()          a whole interaction, from the user's message to the last reply

All of them are messages that `Context.append_turn` must take, in this order. What it must refuse is not made here.
This module knows nothing of contexts: use it to test whatever takes chat messages.
"""

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from memci.messages import Message, tool_calls
from tests.hostile_texts import HOSTILE

WORDS = ("flight ", "Oslo, 12 May. ", "def f(x):\n    return x\n", "0123456789abcdef", "机票和行李", "- item\n", "🙂 ")
"""what long texts repeat; each costs a few tokens"""

LENGTHS = (1, 3, 12, 30, 30, 60, 60, 120, 250)
"""how often, as a rule: up to about a thousand tokens"""

PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg" + "A" * 404
)
"""an image of one pixel, as a data URL, with something behind its end"""

_EXTRAS: tuple[Message, ...] = (
    {"name": "alice"},
    {"reasoning_content": "First I look, then I book."},
    {"signature": "Q0xJUFBFRA==" * 20, "annotations": []},
    {"x-unknown": {"b": 1, "a": [2**70, 1e-7, None, True, -0.0]}},
)
_IDS = ("call_1", "call_2", "call_3", "call_1", "", "call_é 1", "a~2", "a")
_NAMES = ("search", "read_file", "get_weather", "run")


@st.composite
def texts(draw: st.DrawFn, *, giant: bool = True) -> str:
    """Return texts of a few characters to a few hundred tokens; *giant*: also some of about 8,000."""
    kind = draw(_percents)
    if kind < 20:
        return str(draw(st.sampled_from(HOSTILE)))
    if kind < 35:
        return str(draw(_short))
    times: int = draw(_any_length if giant else _usual_length)
    return str(draw(_words)) * times + str(draw(_numbers))


@st.composite
def users(draw: st.DrawFn, *, giant: bool = True) -> Message:
    """Return messages of the user."""
    kind = draw(_percents)
    if kind < 15:
        return {"role": "user", "content": [draw(_parts(giant)) for _ in range(draw(_few))]}
    text = draw(texts(giant=giant))
    if kind < 25:
        return {"content": text, "role": "user"}
    if kind < 35:
        return {**draw(_extras), "role": "user", "content": text}
    return {"role": "user", "content": text}


@st.composite
def replies(draw: st.DrawFn, *, giant: bool = True, calls: bool = True) -> Message:
    """Return messages of the assistant; *calls*: also ones that call tools."""
    kind = draw(_percents)
    if calls and kind >= 70:
        return draw(calling(giant=giant))
    if kind < 10:
        return {"role": "assistant", "content": None, "refusal": "I can't help with that."}
    text = draw(texts(giant=giant))
    if kind < 20:
        return {**draw(_extras), "role": "assistant", "content": text}
    return {"role": "assistant", "content": text}


@st.composite
def calling(draw: st.DrawFn, *, giant: bool = True, most: int = 4) -> Message:
    """Return messages of the assistant that call one tool or several at once, ids doubled or empty now and then."""
    calls = [_call(draw, giant) for _ in range(draw(st.integers(1, most)))]
    kind = draw(_percents)
    content = None if kind < 60 else draw(texts(giant=False))
    message = {"role": "assistant", "content": content, "tool_calls": calls}
    return message if kind % 4 else {**message, **draw(_extras)}


@st.composite
def results(
    draw: st.DrawFn, reply: Message, *, giant: bool = True, complete: bool = False, doubled: bool = True
) -> list[Message]:
    """Return the results of the calls in *reply*, in any order.

    Args:
        draw: Given by hypothesis.
        reply: An assistant's message.
        giant: Whether some are very large.
        complete: Whether every call is answered; else some may be missing.
        doubled: Whether a call may be answered once more.
    """
    ids = [str(call["id"]) for call in tool_calls(reply)]
    order = draw(st.permutations(ids))
    if not complete and draw(_percents) < 40:
        order = order[: draw(st.integers(0, len(order)))]
    if doubled and ids and draw(_percents) < 15:
        order = [*order, draw(st.sampled_from(ids))]
    return draw(answered(order, giant=giant))


@st.composite
def answered(draw: st.DrawFn, ids: Sequence[str], *, giant: bool = True) -> list[Message]:
    """Return one tool message for each of *ids*, in this order."""
    messages = []
    for call_id in ids:
        content = draw(texts(giant=giant)) if draw(_percents) < 85 else [draw(_parts(giant)), draw(_parts(giant))]
        messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
    return messages


@st.composite
def turns(draw: st.DrawFn, *, giant: bool = True, rounds: int = 3, complete: bool = True) -> list[Message]:
    """Return one interaction: a user's message, rounds of tool calls and their results, a last reply.

    Args:
        draw: Given by hypothesis.
        giant: Whether some messages are very large.
        rounds: Rounds of tool calls at most.
        complete: Whether every call is answered.
    """
    messages = [draw(users(giant=giant))]
    for _ in range(draw(st.integers(0, rounds))):
        reply = draw(calling(giant=giant))
        messages += [reply, *draw(results(reply, giant=giant, complete=complete))]
    messages.append(draw(replies(giant=giant, calls=False)))
    return messages


def schemas(*, most: int = 3) -> st.SearchStrategy[list[Message]]:
    """Return lists of tools, as they are sent along with a request."""
    return st.lists(st.sampled_from(_NAMES), max_size=most, unique=True).map(
        lambda names: [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": f"Call {name} with what to look for.",
                    "parameters": {
                        "type": "object",
                        "properties": {"query": {"type": "string", "description": "what to look for"}},
                        "required": ["query"],
                    },
                },
            }
            for name in names
        ]
    )


@st.composite
def _parts(draw: st.DrawFn, giant: bool) -> Message:
    if draw(_percents) < 35:
        return {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}
    return {"type": "text", "text": draw(texts(giant=giant))}


def _call(draw: st.DrawFn, giant: bool) -> Message:
    call_id = draw(_ids)
    kind = draw(_percents)
    if kind < 15:
        return {"id": call_id, "type": "custom", "custom": {"name": "run", "input": draw(texts(giant=giant))}}
    if kind < 30:
        written = draw(_broken)
    else:
        arguments: Message = {draw(_keys): draw(texts(giant=giant)) for _ in range(draw(_few))}
        if kind < 50:
            arguments |= {"n": draw(_numbers), "deep": [{"text": draw(texts(giant=giant))}, None, 1.5]}
        written = json.dumps(arguments, ensure_ascii=kind % 2 == 0)
    return {"id": call_id, "type": "function", "function": {"name": draw(_tool_names), "arguments": written}}


_percents = st.integers(0, 99)
_numbers = st.integers(0, 9_999)
_few = st.integers(0, 3)
_words = st.sampled_from(WORDS)
_usual_length = st.sampled_from(LENGTHS[:7])
_any_length = st.sampled_from((*LENGTHS, *LENGTHS, 2_000))
_short = st.text(max_size=12)
_extras = st.sampled_from(_EXTRAS)
_tool_names = st.sampled_from(_NAMES)
_keys = st.sampled_from(("query", "path", "text"))
_broken = st.sampled_from(("{}", "", '{"query": "cut of', "null", '"text"', "[1]"))
_ids = st.sampled_from(_IDS) | st.integers(0, 10**6).map(lambda number: f"call_{number}")
