"""What the tests of a context share: contexts that count words, stores, and messages to put in. It tests nothing."""

import json
import time
from collections.abc import Iterable
from pathlib import Path

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.rows import Ticket
from memci.storage import FilesystemStorage, Storage
from memci.storage.locks import EXPIRY_SECONDS
from tests.door import open_context

OWN_TOOL = {"type": "function", "function": {"name": "search", "description": "Search.", "parameters": {}}}
STORES = ("ram", "sqlite", "files")
"""the stores that a test of the façade runs on"""
ON_DISK = STORES[1:]


def words(text: str) -> int:
    return len(text.split())


def store(kind: str, folder: Path) -> Storage:
    """Return the store *kind* in *folder*, as it lies there; in RAM, a new one."""
    if kind == "ram":
        return EphemeralStorage()
    return SQLiteStorage(folder / "agent.db") if kind == "sqlite" else FilesystemStorage(folder / "agent")


def opened(storage: object = None, **given: object) -> Context:
    given = {"id": "alice", "window": 4_000, "counter": words, "nonce": "00000000", **given}
    return open_context(EphemeralStorage() if storage is None else storage, **given)


def again(storage: object, **given: object) -> Context:
    """Open what is stored, as it is stored."""
    return opened(storage, **{"window": None, "nonce": None, **given})


def call(call_id: str, name: str = "search", arguments: object = "{}") -> dict:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def calling(*calls: dict | str) -> dict:
    made = [each if isinstance(each, dict) else call(each) for each in calls]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str, text: str = "found") -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def turn(number: int, size: int = 3) -> tuple[dict, dict]:
    return (
        {"role": "user", "content": f"question {number} " + "word " * size},
        {"role": "assistant", "content": f"answer {number} " + "word " * size},
    )


def talked(turns: int, size: int = 3, **given: object) -> Context:
    context = opened(**given)
    for number in range(1, turns + 1):
        context.append_turn(*turn(number, size))
    return context


def where(context: Context) -> dict[int, str]:
    return {page.index: page.where for page in context.pages()}


def seen(context: Context) -> tuple:
    """Return all that a program can see of *context*, but what opening counts anew."""
    told = context.report()
    return (
        json.dumps(context.render(strict=False)),
        (told.tokens, told.total, told.pages, told.messages, told.compactions, told.turn, told.budget),
        list(context.pages()),
        [json.dumps(message) for message in context.messages()],
    )


def own_entries(storage: Storage) -> int:
    """Return how many entries a store keeps: a fork's own begin at its base."""
    return sum(record.head - record.base for record in storage.contexts())


def files(folder: Path) -> dict[str, bytes]:
    """Return every file below *folder* with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tells(folder: Path, *secrets: str) -> list[tuple[str, str]]:
    """Return the files below *folder* that hold one of *secrets*, in their names or bytes; close the store before."""
    return [
        (name, secret)
        for name, held in files(folder).items()
        for secret in secrets
        if secret in name or _in(held, secret)
    ]


def _in(held: bytes, secret: str) -> bool:
    forms: Iterable[bytes] = (secret.encode(), json.dumps(secret)[1:-1].encode(), secret.encode("utf-16-le"))
    return any(form in held for form in forms)


def extends(new: list[dict], old: list[dict]) -> bool:
    return json.dumps(new)[: len(json.dumps(old)) - 1] == json.dumps(old)[:-1]


def ended(context: str) -> Ticket:
    """Return a ticket whose holder has not renewed it for long."""
    return Ticket(context, "ended", "process 1 elsewhere", "", 0.0, time.time() - EXPIRY_SECONDS)
