"""Items of every provider's own form: each type that its SDK has, with places of it changed, offered to a context.

    {"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": 7}}]}

What is taken is sent to all four providers, archived, recalled, searched, exported, imported, verified and erased. Its
export is also forged: what an import takes is used in the same way. This module knows nothing of how often anything is
tried.
"""

import copy
import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import BudgetExceeded, Erased, MemciError
from memci.formats import FORMATS
from memci.memory import NullMemory, TieredMemory
from memci.storage.codec import digest

from . import fuzz_imports
from .door_targets import CASES, count, tried
from .door_values import changed
from .fuzz_texts import NONCE
from .worker import room

_SEARCHES = 0.03
"""the share of contexts that are kept on disk, with a memory"""
_FORGED = 0.5
"""the share of contexts whose export is forged"""


@cache
def _items(form: str) -> list[dict[str, Any]]:
    """Return an item of each type that the SDK of *form* has."""
    from tests.formats.test_round_trips import ITEMS

    return list(ITEMS[form]())


def natives(
    rng: Random, append: Callable[..., Any] = Context.append_turn, take: Callable[..., Context] = Context.import_
) -> str | None:
    """What is taken can be used by every call, in every format; so can what is taken of a forged export."""
    form = rng.choice(FORMATS)
    searched = rng.random() < _SEARCHES
    with room() as made:
        storage: Any = SQLiteStorage(Path(made) / "agent.db", durability="fast") if searched else EphemeralStorage()
        memory = TieredMemory(storage, owner="alice") if searched else NullMemory()
        settings = {"window": rng.choice((2_000, 60_000)), "reply": 64, "counter": count, "nonce": NONCE, "clock": None}
        with (
            closing(storage),
            closing(memory),
            Context.open(storage, "alice", memory=memory, format=form, **settings) as context,
        ):
            for _ in range(CASES):
                own = form if rng.random() < 0.9 else rng.choice(FORMATS)
                item = copy.deepcopy(rng.choice(_items(own)))
                for _ in range(rng.choice((0, 1, 1, 2, 3))):
                    item = changed(rng, item)
                opens = rng.random() < 0.8
                tried(lambda item=item, opens=opens: append(context, item, opens_page=opens), f"items of {own}")
                if rng.random() < 0.1 and (broken := _sent(context)):
                    return broken
            lines = list(context.export())
            return _used(context, storage) or (_forge(rng, lines, take) if rng.random() < _FORGED else None)


def _sent(context: Context) -> str | None:
    """Return what no client can send of the requests of *context*."""
    for form in FORMATS:
        try:
            request = context.request("And now?", format=form, strict=False)
        except BudgetExceeded:
            continue
        except MemciError as error:
            return f"what was taken can't be rendered for {form}: {error!r:.300}"
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
    return None


def _used(context: Context, storage: Any) -> str | None:
    """Do with *context* what can be done with one, and return what broke."""
    kept = list(context.messages())
    for act in (
        lambda: None,
        lambda: context.archive(keep=0),
        lambda: [context.recall_page(page.index) for page in context.pages() if page.where not in ("undone", "erased")],
        lambda: context.search_memory("a é 7"),
        lambda: context.fork("other"),
    ):
        tried(act, "use of items")
        if broken := _sent(context):
            return broken
    if found := context.verify():
        return f"verify() finds {found!r:.300}"
    lines = list(context.export())
    copied = Context.import_(EphemeralStorage(), lines, counter=count)
    if list(copied.messages()) != kept or list(copied.export()) != lines:
        return "an export of what was taken is not what its import has"
    if broken := _sent(copied):
        return broken
    for page in [each.index for each in context.pages() if each.where not in ("undone", "erased")]:
        try:
            context.erase(page)
        except Erased:  # it went with what it quoted
            continue
    if broken := _sent(context):
        return broken
    return f"verify() finds {found!r:.300}" if (found := context.verify()) else None


def _forge(rng: Random, lines: list[str], take: Callable[..., Context]) -> str | None:
    """Change messages in an export that agrees with itself; what an import takes of it can be used."""
    entries = [at for at, line in enumerate(lines) if line.startswith('{"kind":"entry"')]
    if not entries:
        return None
    for _ in range(5):
        forged = list(lines)
        for at in rng.sample(entries, min(len(entries), rng.choice((1, 1, 2)))):
            forged[at] = _forged(rng, json.loads(forged[at]))
        fuzz_imports.seal(forged)
        storage = EphemeralStorage()
        context = tried(lambda forged=forged, storage=storage: take(storage, forged, counter=count), "forged exports")
        if context is None:
            if storage.contexts():
                return "it was refused, and something is stored"
        elif found := _sent(context) or _used(context, storage):
            return f"of a forged export, {found}"
    return None


def _forged(rng: Random, fields: dict[str, Any]) -> str:
    """Return the line of an entry with its message changed, and the digest that fits."""
    sealed = "body" in fields
    message = json.loads(b64decode(fields["body"])) if sealed else fields["message"]
    for _ in range(rng.choice((1, 1, 2))):
        within = rng.choice(("items", "items", "items", "chat", None))
        if isinstance(message, dict) and within in message:
            message[within] = changed(rng, message[within], json_only=True)
        else:
            message = changed(rng, message, json_only=True)
    try:
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except (UnicodeEncodeError, TypeError, RecursionError):
        return json.dumps(fields)
    codec = fields.get("codec") or rng.choice((1, 2))
    del fields["body" if sealed else "message"]
    made = {**fields, "codec": codec, "body": b64encode(body).decode(), "digest": digest(codec, body).hex()}
    return json.dumps(made, separators=(",", ":"))
