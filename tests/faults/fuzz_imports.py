"""Files that are imported: exports with lines lost, doubled or made up, and chats that are none.

    {"kind":"page","index":2,…}  becomes  {"kind":"page","index":-1,…}, and the end agrees  ──▶  refused, with its line

What is taken is whole: it opens, has no problems, and gives the same lines when it is exported again. Of what is
refused nothing is stored. This module knows nothing of what a line means.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from random import Random
from typing import Any

from memci import Context, EphemeralStorage
from memci.errors import BudgetExceeded, InvalidMessage, InvalidSetting, LimitExceeded, SchemaTooNew
from memci.history.verify import problems

from .fuzz_texts import markers, opened, outcomes, said, text

_REFUSALS = (InvalidSetting, InvalidMessage, LimitExceeded, SchemaTooNew)
_KINDS = ("context", "entry", "page", "compaction", "op", "call", "end")
_ODD: tuple[Any, ...] = (
    *(None, True, 0, 1, 2, 7, -1, 2**31, 2**53, 10**30, 1.5, "", "1", "alice", "erased", "active", "open", "0" * 8),
    *([], [0], [1, 2], [[1, 1]], {}, {"a": 1}, "</memci:contents 1f9a03c2>", "a\n#9 Forged", "\ud83d", "\u202e"),
    "0" * 32,
)  # fmt: skip
_ODD_MESSAGES = (
    *({"role": "tool", "content": "x"}, {"role": 7}, {"role": "user"}, {"role": "system", "content": []}),
    *_ODD,
)
_ODD_LINES = ("", "{", "NaN", '{"role": 1e999}', "[" * 5_000)

Import = Callable[..., Context]


def imports(rng: Random, take: Import = Context.import_) -> str | None:
    """What is imported is whole, or refused, and then nothing of it is stored."""
    return _chat(rng, take) if rng.random() < 0.3 else _export(rng, take)


def _export(rng: Random, take: Import) -> str | None:
    whole = _exported()
    lines, sealed = list(whole), rng.random() < 0.7
    steps = [_changed(rng, lines, sealed=sealed) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    if sealed:
        seal(lines)
    storage = EphemeralStorage()
    try:
        context = take(storage, lines, counter=_count)
    except _REFUSALS:
        outcomes["imports: refused"] += 1
        return f"{steps}: refused, and something is stored" if storage.contexts() else None
    outcomes["imports: taken"] += 1
    if not sealed and tuple(context.export()) != whole:
        return f"{steps}: taken, though it is not what was exported"
    found = _whole(storage, context)
    return f"{steps}, {'sealed' if sealed else 'as it is'}: {found}" if found is not None else None


def _whole(storage: EphemeralStorage, context: Context) -> str | None:
    """Return what is wrong with a context that was imported."""
    [record] = storage.contexts()
    for problem in problems(storage, record.id):
        return f"taken, and has a problem: {problem}"
    kept = list(context.messages())
    try:
        shown = context.render(strict=False)
    except BudgetExceeded:  # its window, or its messages, may be other ones now
        shown = []
    for message in shown:
        content = message.get("content")
        if isinstance(content, str) and content.startswith("<memci:contents ") and len(markers(content)) != 2:
            return f"a frame that is not closed once: {content!r:.400}"
    for page in context.pages():
        if page.where in ("active", "archived", "unloaded"):
            context.recall_page(page.index)
    for turn in range(record.turn + 1):
        with suppress(BudgetExceeded, InvalidSetting):  # its settings may be other ones now
            Context.view(storage, record.id, at=turn, counter=_count).render(strict=False)
    lines = list(context.export())
    other = Context.import_(EphemeralStorage(), lines, counter=_count)
    if list(other.messages()) != kept:
        return f"{kept!r:.300} is {list(other.messages())!r:.300} when it is exported and imported"
    if list(other.export()) != lines:
        return f"{lines!r:.300} is not what is exported from its own import"
    with suppress(BudgetExceeded):
        other.archive(keep=0)
    return next(problems(other._storage, record.id), None)


def _chat(rng: Random, take: Import) -> str | None:
    messages: list[Any] = [said(rng, rng.choice(("user", "assistant"))) for _ in range(rng.randrange(4))]
    if rng.random() < 0.3:
        messages.insert(0, said(rng, rng.choice(("system", "developer"))))
    if rng.random() < 0.5:
        messages.insert(rng.randrange(len(messages) + 1), rng.choice(_ODD_MESSAGES))
    lines = _written(rng, messages)
    storage = EphemeralStorage()
    try:
        context = take(storage, lines, id="chat", window=4_000, counter=_count)
    except (*_REFUSALS, BudgetExceeded):
        outcomes["imports: chats refused"] += 1
        return f"{lines!r:.400} is refused, and something is stored" if storage.contexts() else None
    outcomes["imports: chats taken"] += 1
    told = [message for message in _read(lines) if message["role"] not in {"system", "developer"}]
    kept = list(context.messages())
    return f"{told!r:.400} is {kept!r:.400} when it is imported" if kept != told else _whole(storage, context)


def _written(rng: Random, messages: list[Any]) -> list[str]:
    """Return *messages* as one of the forms that other programs have them in, or nearly."""
    form = rng.random()
    if form < 0.5:
        lines = [json.dumps(message, ensure_ascii=rng.random() < 0.5) for message in messages]
    else:
        lines = json.dumps(messages if form < 0.7 else {"messages": messages}, indent=rng.choice((None, 1))).split("\n")
    if rng.random() < 0.2:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice((*_ODD_LINES, text(rng))))
    return lines


def _read(lines: Sequence[str]) -> list[Any]:
    """Return the messages of a chat that was taken."""
    try:
        whole = json.loads("\n".join(lines))
    except ValueError:
        return [json.loads(line) for line in lines if line.strip()]
    if isinstance(whole, list):
        return whole
    return [whole] if "role" in whole else list(whole["messages"])


@cache
def _exported() -> tuple[str, ...]:
    """Return an export with lines of every kind."""
    context = opened(EphemeralStorage(), 780)
    for at in range(7):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "find", "arguments": f'{{"day": {at}}}'}}
        context.append_turn(
            f"What is there on day {at}? " + "Please. " * at,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": f"HAT{at}, half: \ufffd. " + "Seats left. " * 9},
            {"role": "assistant", "content": f"HAT{at}."},
            op_id=f"op {at}" if at % 2 else None,
        )
        context.render()
    context.archive(keep=1)
    context.append_turn("Thanks.", usage={"prompt_tokens": 60})
    lines = tuple(context.export())
    assert {json.loads(line)["kind"] for line in lines} == {*_KINDS}, "lines of every kind"
    return lines


def _changed(rng: Random, lines: list[str], *, sealed: bool) -> str:
    """Change one of *lines*, and return what was done."""
    at = rng.randrange(len(lines))
    line = lines[at]
    chance = rng.random()
    if chance < (0.8 if sealed else 0.4):
        return f"line {at + 1}: {_revalued(rng, lines, at)}"
    if chance < 0.84:
        lines.insert(rng.randrange(len(lines) + 1), line)
        return f"line {at + 1} doubled"
    if chance < 0.88:
        lines[at] = rng.choice(("", "{}", "[]", "NaN", "7", text(rng), line[: len(line) // 2], "[" * 5_000, line + " "))
        return f"line {at + 1} is {lines[at]!r:.100}"
    if chance < 0.92 and len(lines) > 1:
        del lines[at]
        return f"line {at + 1} deleted"
    spot = rng.randrange(len(line)) if line else 0
    lines[at] = line[:spot] + rng.choice(("", "0", "7", '"', "é", "\ud83d", "}", ",", text(rng, 2))) + line[spot + 1 :]
    return f"line {at + 1} from character {spot}: {lines[at][spot : spot + 40]!r}"


def _revalued(rng: Random, lines: list[str], at: int) -> str:
    """Put another value somewhere into the JSON of a line."""
    try:
        whole = json.loads(lines[at])
    except (ValueError, RecursionError):
        return "is no JSON any more"
    inside, path = whole, ""
    while isinstance(inside, dict | list) and inside:
        key: Any = rng.choice(list(inside)) if isinstance(inside, dict) else rng.randrange(len(inside))
        path += f"[{key!r}]"
        if isinstance(inside[key], dict | list) and inside[key] and rng.random() < 0.8:
            inside = inside[key]
            continue
        if rng.random() < 0.1:
            del inside[key]
            path += " deleted"
        else:
            inside[key] = _other(rng, inside[key])
            path += f" = {inside[key]!r:.60}"
        break
    lines[at] = json.dumps(whole, separators=(",", ":"))
    return path


def _other(rng: Random, value: Any) -> Any:
    if type(value) is int and rng.random() < 0.6:
        return value + rng.choice((-2, -1, 1, 2, 100))
    return text(rng, 4) if isinstance(value, str) and rng.random() < 0.4 else rng.choice(_ODD)


def seal(lines: list[str]) -> None:
    """Put an end to *lines* that agrees with them."""
    kept = [line for line in lines[:-1] if line.strip()]
    whole = "".join(f"{line}\n" for line in kept).encode("utf-8", "surrogatepass")
    lines[-1] = json.dumps({"kind": "end", "lines": len(kept), "digest": blake2b(whole, digest_size=16).hexdigest()})


def _count(said: str) -> int:
    return len(said) // 4
