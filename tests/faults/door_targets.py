"""What is done with whatever came through the door: a function for each way in, from chance to what broke, or None.

    messages    offered to a context; what it takes it renders, finds, recalls, exports, forks, undoes and erases
    replies     of a server, a stream, a model of the caller's own, a text protocol: answered or refused
    arguments   of every public call
    exports     changed in any field and sealed again, then used as any other context

Every function makes `CASES` cases. An error that is no `MemciError` leaves it, and is a broken promise: who calls it
says so. This module knows nothing of how often anything is tried.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel

from memci import Context, EphemeralStorage, Policy, SQLiteStorage
from memci.companion.turn import tidy
from memci.errors import MemciError
from memci.history.verify import problems
from memci.llm import Ledger, ask
from memci.llm import embeddings as embedding_answers
from memci.llm.model import Reply, Usage
from memci.llm.replies import IncomingStream, reply_of
from memci.llm.server_errors import Unusable
from memci.memory import NullMemory, TieredMemory
from memci.storage import Storage
from memci.storage.codec import digest
from memci.tools import attp

from . import fuzz_imports
from .door_values import call, changed, completion, message, odd
from .fuzz_texts import NONCE, outcomes, text
from .worker import room

CASES = 40
"""cases of one seed"""
_SEARCHES = 0.04
"""the share of conversations that are kept on disk, with a memory"""

_T = TypeVar("_T")


def tried(act: Callable[[], _T], what: str) -> _T | None:
    """Return what *act* returns, None if it is refused; what was refused, and what not, is counted."""
    try:
        value = act()
    except (MemciError, Unusable):
        outcomes[f"{what}: refused"] += 1
        return None
    outcomes[f"{what}: answered"] += 1
    return value


# -- messages


def messages(rng: Random, append: Callable[..., Any] = Context.append_turn, searched: bool | None = None) -> str | None:
    """What `append_turn` takes is kept exactly, and every other call takes it, too; what is refused leaves no trace."""
    with _opened(rng, rng.random() < _SEARCHES if searched is None else searched) as context:
        kept: list[Any] = []
        for _ in range(CASES):
            offered = message(rng, context._parts.window.active.missing)
            usage = changed(rng, {"prompt_tokens": 50, "completion_tokens": 1}) if rng.random() < 0.1 else None
            at = odd(rng) if rng.random() < 0.1 else None
            if rng.random() < 0.3:
                tried(lambda each=offered: context.render(each, strict=False), "pending")
            opens = rng.random() < 0.9
            receipt = tried(
                lambda each=offered, usage=usage, at=at, opens=opens: append(
                    context, each, usage=usage, at=at, opens_page=opens
                ),
                "messages",
            )
            if receipt is not None:
                several = offered if isinstance(offered, list | tuple) else [offered]
                kept += [each if isinstance(each, dict) else {"role": "user", "content": each} for each in several]
            _use(rng, context)
        return _ended(rng, context, kept)


@contextmanager
def _opened(rng: Random, searched: bool) -> Iterator[Context]:
    window = rng.choice((900, 1_500, 4_000))
    with room() as made:
        storage: Any = SQLiteStorage(Path(made) / "agent.db", durability="fast") if searched else EphemeralStorage()
        memory = TieredMemory(storage, owner="alice") if searched else NullMemory()
        with (
            closing(storage),
            closing(memory),
            Context.open(
                storage, "alice", window=window, reply=64, counter=count, nonce=NONCE, memory=memory, clock=None
            ) as context,
        ):
            yield context


def _use(rng: Random, context: Context) -> None:
    tried(lambda: context.render(strict=False), "render")
    if rng.random() < 0.1:
        tried(lambda: context.archive(keep=0), "archive")
    if rng.random() < 0.1:
        index = rng.randrange(1, 4)
        tried(lambda: context.recall_page(index), "recall")
        asked = {"name": "recall_page", "arguments": json.dumps({"index": index, "entry": None, "offset": None})}
        tried(lambda: context.answer({"id": "q", "type": "function", "function": asked}), "answer")
    if rng.random() < 0.1:
        query = text(rng) or "x"
        tried(lambda: context.search_memory(query), "search")


def _ended(rng: Random, context: Context, kept: list[Any]) -> str | None:
    """Do with a whole conversation what can be done with one, and return what broke."""
    shown = list(context.messages())
    if shown != kept:
        return f"{shown!r:.300} is not what was taken: {kept!r:.300}"
    context.flush()
    if found := context.verify():
        return f"verify() finds {found!r:.300}"
    storage = context._storage
    tried(lambda: context.fork("other", at=rng.randrange(3)), "fork")
    lines = list(context.export())
    other = Context.import_(EphemeralStorage(), lines, counter=count)
    if list(other.messages()) != kept:
        return "an export of what was taken is not what its import has"
    tried(lambda: Context.view(storage, "alice", at=0, counter=count).render(strict=False), "view")
    tried(context.undo, "undo")
    for index in range(1, 4):
        tried(lambda index=index: context.erase(index), "erase")
    tried(lambda: context.render(strict=False), "render")
    context.flush()
    return f"verify() finds {found!r:.300}" if (found := context.verify()) else None


# -- replies


class _Title(BaseModel):
    title: str
    number: int = 0


@cache
def _desk() -> Context:
    """Return a context that answers calls; nothing is appended to it."""
    context = Context.open(EphemeralStorage(), "desk", window=4_000, counter=count, nonce=NONCE, memory=NullMemory())
    context.append_turn("Hi", {"role": "assistant", "content": "Hello."})
    context.append_turn("And now?")
    context.archive(keep=0)
    return context


def replies(rng: Random, read: Callable[[bytes], Reply] = reply_of) -> str | None:
    """Whatever a model, its server or its stream says is read, or refused; what is read is accepted."""
    for _ in range(CASES):
        way = rng.choice((_whole, _whole, _streamed, _embedded, _own, _own, _called, _called, _written))
        tried(partial(way, rng, read), way.__name__[1:])
    return None


def _whole(rng: Random, read: Callable[[bytes], Reply]) -> object:
    completed = completion(rng, message(rng))
    while rng.random() < 0.5:
        completed = changed(rng, completed, json_only=True)
    reply = read(_body(completed))
    Ledger().add("x", _spent(reply.usage))
    return _desk().render(reply.message, strict=False)


def _embedded(rng: Random, _: object) -> object:
    vectors = {"data": [{"index": 0, "embedding": [0.1]}, {"index": 1, "embedding": "AAAAAA=="}], "usage": {}}
    return embedding_answers._Rows.of(2, _body(changed(rng, vectors, json_only=True)))


def _own(rng: Random, _: object) -> object:
    """Let a model of the caller's own answer, and a companion take its message."""
    said = message(rng)
    if isinstance(said, dict) and rng.random() < 0.5:
        return tidy(said)
    title = json.dumps(changed(rng, {"title": "x", "number": 1}, json_only=True))
    own = rng.choice((odd(rng), Reply(said), Reply({"role": "assistant", "content": title}, odd(rng), odd(rng))))
    return ask(lambda *_, **__: own, [], _Title, step="x", tries=1)


def _called(rng: Random, _: object) -> object:
    asked = changed(rng, call(rng)) if rng.random() < 0.5 else call(rng)
    return rng.choice((_desk().handles, _desk().answer, lambda each: _desk().answers({"tool_calls": each})))(asked)


def _written(rng: Random, _: object) -> object:
    written = odd(rng) if rng.random() < 0.5 else f"[tool_call]\ncode = '''\n__result__ = f({text(rng, 3)})\n'''"
    return attp.run(attp.parse(written), {"f": lambda *_: odd(rng)})


def _spent(usage: Usage) -> Any:
    from memci.llm.usage import Spent

    return Spent(1, usage.prompt, usage.completion, cached=usage.cached)


def _streamed(rng: Random, _: object) -> Reply:
    events = []
    for _ in range(rng.randrange(1, 4)):
        delta = {"role": "assistant", "content": text(rng, 3), "tool_calls": [{**call(rng), "index": 0}]}
        event = completion(rng, None) | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        while rng.random() < 0.5:
            event = changed(rng, event, json_only=True)
        events.append(b"data: " + _body(event) + b"\n\n")
    incoming = IncomingStream([*events, b"data: [DONE]\n\n"], 60, time.monotonic)
    list(incoming.pieces())
    return incoming.result


def _body(value: Any) -> bytes:
    """Return the JSON of *value*, and of what has none something else."""
    try:
        return json.dumps(value).encode()
    except (ValueError, TypeError, RecursionError):
        return b'{"choices": '


# -- arguments


def arguments(rng: Random) -> str | None:
    """Any argument of any public call is taken or refused."""
    context, storage = _desk(), _desk()._storage
    for _ in range(CASES):
        value, other = odd(rng), odd(rng)
        schema = {"type": "object", "properties": {"q": {"type": "string", "enum": ["a"], "description": "x"}}}
        tools = [{"type": "function", "function": {"name": "f", "description": "x", "parameters": schema}}]
        given = rng.choice((value, [value], changed(rng, tools)))
        field = rng.choice(("system", "model", "window", "reply", "owner", "counter", "format", "clock", "nonce"))
        setting = rng.choice(("preset", "archive_share", "fewest", "active_pages", "contents_tokens", "rules", "stale"))
        acts: list[Callable[[], object]] = [
            lambda value=value: context.count(value),
            lambda given=given: context.render(tools=given, strict=False),
            lambda value=value: context.turns(value),
            lambda value=value, other=other: context.recall_page(value, other),
            lambda value=value, other=other: context.search_memory("x", k=value, since=other),
            lambda value=value, other=other: context.search_memory(value, budget=other, until=value),
            lambda value=value: context.pin(value),
            lambda value=value: context.archive(keep=value if value is not None else 0),
            lambda value=value, other=other: context.fork(value, at=other, owner=other),
            lambda value=value, other=other: context.erase(value, other) if value not in (1, True) else None,
            lambda value=value, other=other: Context.view(storage, value, at=other, counter=count),
            lambda value=value, other=other: Context.list(storage, owner=value, after=other, limit=other),
            lambda value=value, other=other: Context.import_(EphemeralStorage(), value, id=other),
            lambda value=value: Context.import_(EphemeralStorage(), [value], id="x", window=4_000),
            lambda field=field, value=value: Context.open(
                EphemeralStorage(), "x", **{"window": 4_000, "memory": NullMemory(), field: value}
            ),
            lambda setting=setting, value=value: Context.open(
                EphemeralStorage(), "x", window=4_000, memory=NullMemory(), policy=Policy(**{setting: value})
            ),
            lambda value=value: Context.open(value if not isinstance(value, str) else 7, "x", window=4_000),
            lambda value=value, other=other: Ledger(value, period_seconds=other),
            lambda value=value: attp.describe(value),
            lambda value=value, other=other: attp.run("x", value, call_limit=other),
        ]
        act = rng.choice(acts)
        tried(act, "arguments")
    return None


# -- exports


def exports(rng: Random, take: Callable[..., Context] = Context.import_) -> str | None:
    """An export that was changed anywhere and sealed again is refused whole, or is a context like any other."""
    for _ in range(CASES):
        lines = list(fuzz_imports._exported())
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(len(lines) - 1)
            lines[at] = _forged(rng, lines[at])
        fuzz_imports.seal(lines)
        storage = EphemeralStorage()
        context = tried(lambda lines=lines, storage=storage: take(storage, lines, counter=count), "exports")
        if context is None:
            if storage.contexts():
                return "it was refused, and something is stored"
        elif found := _used(storage, context):
            return found
    return None


def _forged(rng: Random, line: str) -> str:
    """Return *line* with a field changed, in a text within it perhaps, and with the digest that fits."""
    fields = json.loads(line)
    if not isinstance(fields, dict):  # it was forged before
        return line
    inner = {"entry": ("message",), "compaction": ("text",), "context": ("state", "settings")}.get(
        str(fields.get("kind")), ()
    )
    key = rng.choice((*inner, None))
    whole = key is None or not isinstance(fields.get(key), dict)
    inside = changed(rng, fields if whole else fields[key], json_only=True)
    made = inside if whole else {**fields, key: inside}
    try:
        if not whole and key == "message":
            made["digest"] = digest(1, bytes(orjson.dumps(made["message"]))).hex()
        return json.dumps(made)
    except (TypeError, ValueError, RecursionError):
        return line


def _used(storage: Storage, context: Context) -> str | None:
    for problem in problems(storage, context.id):
        return f"taken, and has a problem: {problem}"
    for act in (
        lambda: context.render(strict=False),
        lambda: [context.recall_page(each.index) for each in context.pages() if each.where != "undone"],
        lambda: Context.import_(EphemeralStorage(), list(context.export()), counter=count),
        lambda: [Context.view(storage, context.id, at=at, counter=count).render(strict=False) for at in range(8)],
        lambda: context.fork("other", at=3),
        lambda: context.append_turn("x " * 60, {"role": "assistant", "content": "y"}),
        lambda: context.append_turn({"role": "tool", "tool_call_id": "c6", "content": "late"}),
        lambda: context.archive(keep=0),
        context.undo,
        lambda: [context.erase(index) for index in range(1, 8)],
        lambda: context.render(strict=False),
    ):
        tried(act, "use of exports")
    return next(iter(context.verify()), None)


def count(said: str) -> int:
    """Return a quarter of the characters."""
    return len(said) // 4
