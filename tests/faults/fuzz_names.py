"""Names of contexts, owners and operations: alike, hostile to files, with no form in UTF-8, or no names at all.

    "acme" · "ACME" · "acme/../x" · "ac\u200bme" · "a\ud83d"    ──▶  each its own context, or refused for a reason

Two names that differ are two contexts, in every store, and no name leads out of a store's folder. This module knows
nothing of how a store makes a file of a name.
"""

import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import InvalidSetting, OpConflict
from memci.storage import FilesystemStorage, Storage

from .fuzz_texts import NONCE, outcomes, text
from .worker import room

_ODD = (
    *(".", "..", "../x", "/", "/etc/x", "~", "-", "*", "%", "_", "a_b", "a%b", "a?b", "CON", "nul.txt", "a.", "a "),
    *(" a", "context.jsonl", ".lock", "agent.db", "contexts", "a\x00b", "é", "e\u0301", "ſ", "ß", "\u212a", "İ", "ﬁ"),
    *("\ud83d", "a\udfff", "x" * 255, "ü" * 128, "x" * 4_000, "😀", "%2e%2e", "a\nb", "a\tb", "\ufeffa", "'; --", '"'),
    *("1", "0x1", ""),
)  # fmt: skip
_NO_NAMES: tuple[Any, ...] = (None, 7, True, 1.5, b"a", ("a",), ["a"], {}, Path("a"), object)

Open = Callable[..., Context]
Said = Mapping[str, list[dict[str, str]]]


def names(rng: Random, open_context: Open = Context.open) -> str | None:
    """Each name is refused for a reason, or a context of its own, and none reaches what is outside of its store."""
    chance = rng.random()
    if chance < 0.93:
        return _kept(rng, EphemeralStorage(), open_context)
    with room() as made:
        inner = Path(made) / "inner" / "store"
        inner.mkdir(parents=True)
        kind = "sqlite" if chance < 0.95 else "files"
        storage = SQLiteStorage(inner / "agent.db") if kind == "sqlite" else FilesystemStorage(inner / "agent")
        outcomes[f"names: {kind}"] += 1
        try:
            found = _kept(rng, storage, open_context)
        finally:
            storage.close()
        strays = [path for path in Path(made).rglob("*") if inner not in (path, *path.parents) and path != inner.parent]
        return found or (f"{strays} are outside of the folder" if strays else None)


def _kept(rng: Random, storage: Storage, open_context: Open) -> str | None:
    told: dict[str, list[dict[str, str]]] = {}
    used: set[tuple[str, Any]] = set()
    owners: dict[str, str] = {}
    for number in range(rng.randrange(2, 5)):
        name, op_id = _name(rng, list(told)), _op_id(rng)
        owner = owners.get(name) if isinstance(name, str) and name in owners else _owner(rng)
        message = {"role": "user", "content": f"{number} {name!r:.40}"}
        refusable = not _is_name(name) or not (owner is None or _is_name(owner))
        try:
            context = open_context(storage, id=name, owner=owner, window=4_000, counter=_count, nonce=NONCE)
        except InvalidSetting as refusal:
            if refusable:
                continue
            return f"id {name!r:.200}, owner {owner!r:.200} are refused: {refusal}"
        if refusable:
            return f"id {name!r:.200}, owner {owner!r:.200} are taken"
        told.setdefault(name, [])
        owners.setdefault(name, owner or name)
        try:
            found = _appended(context, message, op_id, told[name])
        except OpConflict:
            found = None if (name, op_id) in used else "refused as used"
        if found is not None:
            return f"{found}: id {name!r:.200}, op_id {op_id!r:.200}, used before {used!r:.300}"
        if _is_name(op_id):
            used.add((name, op_id))
    return _apart(storage, told, owners)


def _appended(context: Context, message: dict[str, str], op_id: Any, told: list[dict[str, str]]) -> str | None:
    try:
        first = context.append_turn(message, op_id=op_id)
    except InvalidSetting as refusal:
        return f"refused: {refusal}" if op_id is None or _is_name(op_id) else None
    if not (op_id is None or _is_name(op_id)):
        return "what is no op_id is taken"
    told.append(message)
    if op_id is None:
        return None
    again = context.append_turn(message, op_id=op_id)
    return None if again.duplicate and again.entries == first.entries else "the same op_id stores it twice"


def _apart(storage: Storage, told: Said, owners: Mapping[str, str]) -> str | None:
    kept = {record.id: record.owner for record in storage.contexts()}
    if kept != owners:
        return f"contexts and owners are {kept!r:.400}, not {owners!r:.400}"
    for name, messages in told.items():
        context = Context.view(storage, id=name, counter=_count)
        found = list(context.messages())
        if found != messages:
            return f"{name!r:.200} holds {found!r:.300}, not {messages!r:.300}, beside {list(told)!r:.300}"
    return None


def _is_name(name: Any) -> bool:
    if not isinstance(name, str) or not name:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name(rng: Random, known: list[str]) -> Any:
    chance = rng.random()
    if known and chance < 0.45:
        return _alike(rng, rng.choice(known))
    if chance < 0.55:
        return rng.choice(_NO_NAMES)
    return rng.choice(_ODD) if chance < 0.8 else text(rng, 4)


def _alike(rng: Random, name: str) -> str:
    return rng.choice((
        name, name.upper(), name.lower(), name.casefold(), name + ".", name + " ", " " + name, name + "\x00",
        name + "/", name + "/..", "./" + name, name + "\u200b", name + "\ufe0f", name[:-1], name[:1], name * 2,
        name + "%", "_" * len(name), unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name),
        unicodedata.normalize("NFKC", name),
    ))  # fmt: skip


def _owner(rng: Random) -> Any:
    chance = rng.random()
    return None if chance < 0.6 else rng.choice(_NO_NAMES) if chance < 0.65 else rng.choice(_ODD) or None


def _op_id(rng: Random) -> Any:
    chance = rng.random()
    return None if chance < 0.3 else rng.choice(_NO_NAMES) if chance < 0.36 else rng.choice((*_ODD, text(rng, 3)))


def _count(said: str) -> int:
    return len(said) // 4
