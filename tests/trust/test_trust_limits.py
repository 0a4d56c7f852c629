"""S15: what is too large is refused at the door, exactly at its limit, and no text takes more than linear time."""

import json
import time
from collections.abc import Callable

import pytest

from memci import InvalidMessage, PageNotFound
from memci.errors import LimitExceeded
from memci.storage.codec import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, encode
from memci.text.sanitize import quote
from memci.text.summarize import LINE_COLUMNS, extract, one_line, titled
from memci.tools import attp
from memci.window.drafting import BATCH

from .kit import NONCE, agent

EMPTY = len(b'{"role":"user","content":""}')
SMALL, LARGE = 2**14, 2**16
WORST = 9.0
"""how many times longer four times the text may take: 4 is linear, 16 quadratic"""
NOTHING_SECONDS = 0.004
"""what takes less is not measured: anything quadratic would need minutes"""

ATTACKS = {
    "one letter": "a",
    "no vowels": "bcdfg",
    "blanks": " ",
    "blank lines": "\n",
    "blank lines with blanks": " \n\t",
    "dots": "a.",
    "paths": "/a",
    "digits": "1",
    "amounts": "1,",
    "colons": "1:",
    "brackets": "[",
    "braces": '{"a":',
    "pairs": '{"a": [1]}, ',
    "closing": "]}",
    "quotes": '"',
    "apostrophes": "'",
    "triple quotes": "'''",
    "backslashes": "\\",
    "fences": "```\n",
    "tildes": "~~~\n",
    "headers": "[tool_call]\n",
    "keys": "a = ",
    "tables": "| a | b |\n",
    "rules": "|---",
    "tabs": "a\tb\t",
    "commas": "a,b\n",
    "markdown": "![a](b) ",
    "links": "https://a.b/c?",
    "escapes": "\x1b[",
    "escapes that end nowhere": "\x1b]0;",
    "tracebacks": '  File "/a.py", line 1, in f\n',
    "errors": "Error: ",
    "hashes": "#",
    "numbered": "# 7 ",
    "marks": "e\u0301",
    "only marks": "\u0301",
    "joiners": "👩\u200d",
    "flags": "\U0001f1f3",
    "wide": "中",
    "replacements": "\ufffd",
    "bidi": "\u202e",
    "zero width": "\u200b",
    "angles": "<memci:recall>",
    "dashes": "-" * 7 + " ",
    "emphasis": "**a** ",
    "sentences": "A b. ",
    "no end": "A b, ",
    "question marks": "?!",
    "camels": "aB",
    "underscores": "_a",
    "keyed": "a=1 ",
    "mail": "a@b.",
}
"""what 65,536 characters are made of"""


def repeated(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def seconds(act: Callable[[str], object], text: str) -> float:
    """Return what *act* takes of this process's time."""
    started = time.process_time()
    act(text)
    return time.process_time() - started


def as_tool(text: str) -> object:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}
    turn = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": text},
    ]
    return extract(turn), titled([turn])


def as_json(text: str) -> object:
    return extract([{"role": "tool", "tool_call_id": "c", "content": json.dumps({"a": text, "b": [text[:1000]] * 9})}])


def as_reply(text: str) -> object:
    return attp.parse(text), attp.parse(
        f"thought = '''{text}'''\n[tool_call]\nstatus = \"success\"\ncode = '''{text}'''"
    )


def as_recall(text: str) -> object:
    context = agent()
    return [
        context.functions["recall_page"](text),
        context.answer({"id": "c", "function": {"name": "recall_page", "arguments": text}}),
    ]


def as_clipped(text: str) -> object:
    context = agent(window=2_000)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": text})}}
    context.append_turn({"role": "assistant", "content": None, "tool_calls": [call]}, text)
    return context.render(strict=False)


ROADS = {
    "a line": lambda text: one_line(text, LINE_COLUMNS),
    "a summary": as_tool,
    "a summary of JSON": as_json,
    "a frame": quote,
    "a reply in a text protocol": as_reply,
    "the arguments of a recall": as_recall,
    "the window": as_clipped,
    "the codec": lambda text: encode({"role": "user", "content": text}),
}


@pytest.mark.slow
@pytest.mark.parametrize("road", ROADS)
def test_time_grows_with_the_text_and_no_faster(road):
    """Four times the text takes about four times as long, whatever it is made of."""
    act = ROADS[road]
    act("warm")

    grown = {}
    for name, piece in ATTACKS.items():
        large = seconds(act, repeated(piece, LARGE))
        if large > NOTHING_SECONDS:
            grown[name] = large / seconds(act, repeated(piece, SMALL))

    # a slow moment of the machine is no growth: it does not come three times
    still = [
        name for name, ratio in grown.items() if ratio > WORST and all(again(act, ATTACKS[name]) > WORST for _ in "12")
    ]
    assert still == []


def again(act: Callable[[str], object], piece: str) -> float:
    return seconds(act, repeated(piece, LARGE)) / seconds(act, repeated(piece, SMALL))


def test_growth_that_is_not_linear_is_noticed():
    """The measure above has teeth."""

    def quadratic(text: str) -> int:
        return sum(text.count("x", at) for at in range(0, len(text), 1024))

    assert any(again(quadratic, "x") > WORST for _ in range(5))


@pytest.mark.parametrize(("char", "more"), [("a", -1), ("a", 0), ("a", 1), ("é", 0), ("é", 1)])
def test_message_bytes_at_their_limit(char, more):
    """A message of as many bytes as are allowed is stored, one byte more is not, and nothing has changed then."""
    size = MAX_BYTES - EMPTY + more
    bytes_each = len(char.encode())
    text = char * (size // bytes_each) + "a" * (size % bytes_each)
    context = agent()

    if more <= 0:
        context.append_turn(text)
    else:
        with pytest.raises(LimitExceeded) as error:
            context.append_turn("before", text)
        assert error.value.value > error.value.at_most == MAX_BYTES

    assert len(list(context.messages())) == int(more <= 0)


@pytest.mark.parametrize(("more", "taken"), [(-1, True), (0, True), (1, False)])
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
@pytest.mark.parametrize("odd", ["", 2**70])
def test_nesting_at_its_limit(more, taken, wrap, odd):
    """As many objects within one another as are allowed are stored, one more is not; with either codec."""
    inner = odd
    for _ in range(MAX_DEPTH - 1 + more):
        inner = wrap(inner)
    context = agent()

    if taken:
        context.append_turn({"role": "user", "content": "Hi.", "x": inner})
        assert next(iter(context.messages()))["x"] == inner
    else:
        with pytest.raises(InvalidMessage, match="inside one another"):
            context.append_turn({"role": "user", "content": "Hi.", "x": inner})


@pytest.mark.parametrize(("number", "taken"), [
    (10 ** (MAX_DIGITS - 1), True), (10**MAX_DIGITS - 1, True), (10**MAX_DIGITS, False), (-(10**MAX_DIGITS), False),
    (2**63, True), (2**64, True), (-(2**63) - 1, True), (10**5_000, False),
], ids=lambda value: None if type(value) is bool else hex(value)[:12])  # fmt: skip
def test_digits_at_their_limit(number, taken):
    """An integer of as many digits as are allowed is stored exactly, one of more is refused."""
    context = agent()

    if taken:
        context.append_turn({"role": "user", "content": "Hi.", "x": number})
        assert next(context.messages())["x"] == number
    else:
        with pytest.raises(InvalidMessage, match="digits"):
            context.append_turn({"role": "user", "content": "Hi.", "x": number})


def test_batch_at_its_limit():
    """As many messages as are allowed are stored at once, one more is not, and then none is."""
    reply = {"role": "assistant", "content": "Hi."}
    context = agent()

    with pytest.raises(LimitExceeded):
        context.append_turn(*[reply] * (BATCH + 1))
    nothing = context.report().messages
    context.append_turn(*[reply] * BATCH)

    assert (nothing, context.report().messages) == (0, BATCH)


@pytest.mark.parametrize(
    "index",
    [-1, 0, 4, 2**31, 2**32, 2**53 - 1, 2**53, 2**63, 10**400, 10**5_000, True, 1.0, "1", None, [1], {}],
    ids=lambda value: hex(value)[:12] if type(value) is int else repr(value),
)
def test_page_beyond_the_ends_is_not_found(index):
    """Pages are from 1 to the newest, and an index is an int: all else is an error that says so."""
    context = agent()
    for at in range(3):
        context.append_turn(f"{at}", {"role": "assistant", "content": "Yes."})

    with pytest.raises(PageNotFound) as error:
        context.recall_page(index)

    assert error.value.valid == (1, 3)
    assert [context.recall_page(each)[0]["content"] for each in (1, 3)] == ["0", "2"]


@pytest.mark.parametrize(
    "entry",
    [-1, 0, 3, 2**63, 10**400, 10**5_000, True, 1.0, "1", [1]],
    ids=lambda value: hex(value)[:12] if type(value) is int else repr(value),
)
def test_entry_beyond_the_ends_is_not_found(entry):
    """Entries are from 1 to the last of the page."""
    context = agent()
    context.append_turn("Hi.", {"role": "assistant", "content": "Yes."})

    with pytest.raises(PageNotFound):
        context.recall_page(1, entry)

    assert [context.recall_page(1, each)[0]["content"] for each in (1, 2)] == ["Hi.", "Yes."]


def test_offset_at_the_end_of_an_entry():
    """An offset may be the length of the entry, which quotes nothing; beyond it is a mistake that says the length."""
    context = agent()
    context.append_turn("12345", {"role": "assistant", "content": "Yes."})
    context.append_turn("Go on.")
    context.archive(keep=0)
    recall = context.functions["recall_page"]

    told = [recall(1, 1, offset) for offset in (4, 5, 6, 2**53 - 1, 2**53)]

    assert '1 user from character 4: "5"' in told[0]
    assert '1 user from character 5: ""' in told[1]
    assert told[2] == "error: entry 1 of page #1 has 5 characters, not 6."
    assert told[3].startswith("error: entry 1 of page #1 has 5 characters")
    assert told[4].startswith("error: offset must be a plain integer")
    assert f"<memci:recall {NONCE}>" in told[0]
