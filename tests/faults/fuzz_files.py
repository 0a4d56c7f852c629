"""Files of a store with a bit flipped, a byte changed or an end cut off, and what is read from them then.

    agent.db, bit 3 of byte 8123 flipped    ──▶  as it was · an error of ours · found by a check; never just different

Everything is read that the public API gives: messages, pages, renderings, recalls, the past. A live log is that of a
program that was killed: nothing but the log has its newest commits. Damage is done in a folder in RAM. This module
knows nothing of how a store writes its files.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import apsw

from memci import Context, SQLiteStorage
from memci.errors import MemciError
from memci.history.verify import problems
from memci.storage.filesystem.store import FilesystemStorage
from memci.storage.protocol import Storage

from .fuzz_texts import opened, outcomes
from .worker import room

_AT = (0, 4)
_MAIN, _FORK = "alice", "alice-2"
_PAGES = range(1, 9)
_SAID = {f"{name}: {what}" for name in (_MAIN, _FORK) for what in ("messages", *(f"page #{at}" for at in _PAGES))}
"""what was said: it is never read otherwise, even if a check would find that; a window may be, if one does"""

Make = Callable[[Path], Storage]
Check = Callable[[Storage, str], Iterator[str]]
Seen = dict[str, Any]
"""what was read, by what it is; None for what can't be read"""


STORES: Mapping[str, Make] = {
    "sqlite": lambda folder: SQLiteStorage(folder / "agent.db"),
    "files": lambda folder: FilesystemStorage(folder / "agent"),
}


def sqlite(rng: Random) -> str | None:
    """A damaged file is as it was, or an error, or found by a check."""
    return damaged(rng, "sqlite")


def files(rng: Random) -> str | None:
    """A folder with a damaged file is as it was, or an error, or found by a check."""
    return damaged(rng, "files")


def logs(rng: Random) -> str | None:
    """A flipped bit in a live log is harmless, or an error, or found by a check: at its header and its end, too."""
    return damaged(rng, "sqlite", hurt=_flipped_log)


def damaged(
    rng: Random,
    store: str,
    read: Callable[[Storage], Seen] | None = None,
    check: Check = problems,
    hurt: Callable[[Random, Path], str] | None = None,
) -> str | None:
    """Return what is read from a damaged copy of a *store* that is neither as it was, nor an error, nor found.

    With *hurt*, which damages it, it is the copy of a store that was killed.
    """
    make, read = STORES[store], read or seen
    whole, expected = _golden(store, live=hurt is not None)
    with room() as made:
        folder = Path(made)
        shutil.copytree(whole, folder, dirs_exist_ok=True)
        damage = (hurt or _damage)(rng, folder)
        store = f"{store}, live" if hurt else store
        try:
            storage = make(folder)
        except MemciError:
            outcomes[f"{store}: refused"] += 1
            return None
        try:
            found = read(storage)
            changed = {name: value for name, value in found.items() if value != expected[name] and value is not None}
            if not changed:
                outcomes[f"{store}: {'identical' if found == expected else 'refused'}"] += 1
                return None
            said = [name for name in changed if name in _SAID]
            if not said and any(any(check(storage, name)) for name in (_MAIN, _FORK)):
                outcomes[f"{store}: found by problems()"] += 1
                return None
        finally:
            storage.close()
        if not said and _unsound(folder / ("agent/store.db" if store.startswith("files") else "agent.db")):
            outcomes[f"{store}: found by integrity_check"] += 1
            return None
        name = said[0] if said else next(iter(changed))
        return f"{store}, {damage}: {name} was {expected[name]!r:.300} and is {changed[name]!r:.300}, in silence"


def seen(storage: Storage) -> Seen:
    """Return all that can be read of the contexts in *storage*, by what it is; None for what can't be read."""
    found: Seen = {"contexts": _outcome(storage.contexts)}
    for name in (_MAIN, _FORK):
        found |= _seen(storage, name, None)
    for turn in _AT:
        found |= _seen(storage, _MAIN, turn)
    return found


def _seen(storage: Storage, name: str, at: int | None) -> Seen:
    of = f"{name}: " if at is None else f"{name} at {at}: "
    keys = ("messages", "pages", "rendering", *(f"page #{index}" for index in _PAGES))
    try:
        context = Context.view(storage, id=name, counter=_count, at=at)
    except MemciError:
        return dict.fromkeys(of + key for key in keys)
    acts: list[Callable[[], Any]] = [
        lambda: list(context.messages()),
        lambda: list(context.pages()),
        lambda: context.render(strict=False),
        *((lambda index=index: context.recall_page(index)) for index in _PAGES),
    ]
    return {of + key: _outcome(act) for key, act in zip(keys, acts, strict=True)}


def _outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except MemciError:
        return None


def _count(said: str) -> int:
    return len(said) // 4


@cache
def _golden(store: str, *, live: bool = False) -> tuple[str, Seen]:
    """Return a folder with a whole store in it, *live*: as a killed program left it, and what is read from it."""
    kept, copy = TemporaryDirectory(), TemporaryDirectory()
    _kept.extend((kept, copy))
    storage = STORES[store](Path(kept.name))
    context = opened(storage, 1_000)
    for at in range(8):
        context.append_turn(*_turn(at), op_id=f"op {at}")
        context.render()
    context.archive(keep=2)
    context.recall_page(2)
    fork = context.fork(_FORK)
    fork.append_turn("And by train?", {"role": "assistant", "content": "Nineteen hours."}, op_id="fork")
    context.append_turn(*_turn(8))
    if live:
        shutil.copytree(kept.name, copy.name, dirs_exist_ok=True)
    storage.close()
    storage = STORES[store](Path(kept.name))
    expected = seen(storage)
    assert not any(any(problems(storage, name)) for name in (_MAIN, _FORK)), "a whole store has no problems"
    storage.close()
    return copy.name if live else kept.name, expected


_kept: list[TemporaryDirectory[str]] = []


def _turn(at: int) -> list[dict[str, Any]]:
    call = {"id": f"c{at}", "type": "function", "function": {"name": "find", "arguments": f'{{"day": {at}}}'}}
    return [
        {"role": "user", "content": f"What is there on day {at}? " + "Please. " * at},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": f"c{at}",
            "content": f"HAT{at} at {at}:30, half: \ufffd. " + "Seats left. " * 12,
        },
        {"role": "assistant", "content": f"HAT{at}."},
    ]


def _damage(rng: Random, folder: Path) -> str:
    every = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]
    path = rng.choice(every)
    body = bytearray(path.read_bytes())
    at = rng.randrange(len(body))
    chance = rng.random()
    if chance < 0.6:
        bit = rng.randrange(8)
        body[at] ^= 1 << bit
        told = f"bit {bit} of byte {at} flipped"
    elif chance < 0.8:
        body[at] = rng.randrange(256)
        told = f"byte {at} made {body[at]}"
    else:
        del body[at:]
        told = f"cut to {at} bytes"
    path.write_bytes(body)
    return f"{path.relative_to(folder)} {told}"


def _flipped_log(rng: Random, folder: Path) -> str:
    """Flip a bit of the log: often in its header, its last frame, or the header of a frame."""
    path = folder / "agent.db-wal"
    body = bytearray(path.read_bytes())
    frames = (len(body) - 32) // 4120
    chance = rng.random()
    if chance < 0.15:
        at = rng.randrange(32)
    elif chance < 0.4:
        at = 32 + (frames - 1) * 4120 + rng.randrange(4120)
    elif chance < 0.6:
        at = 32 + rng.randrange(frames) * 4120 + rng.randrange(24)
    else:
        at = rng.randrange(len(body))
    bit = rng.randrange(8)
    body[at] ^= 1 << bit
    path.write_bytes(body)
    return f"bit {bit} of byte {at} of the log flipped"


def _unsound(path: Path) -> bool:
    try:
        connection = apsw.Connection(str(path))
        try:
            return list(connection.execute("PRAGMA integrity_check")) != [("ok",)]
        finally:
            connection.close()
    except apsw.Error:
        return True
