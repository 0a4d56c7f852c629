"""Opening: a context's window, made anew or read back from its store.

    nothing stored  ──▶  Window, empty        record + edition + active pages  ──▶  Window, as it was

It reads what is in the window, whatever the size of the archive. This module knows nothing of what happens afterwards.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from .chapters import wire
from .errors import BudgetExceeded, InvalidSetting, LeaseLost, StorageBusy
from .messages import Message
from .readback import as_nodes
from .reader import Reader
from .recall import RECALL_PAGE
from .segments.budget import CONTENTS_FLOOR
from .storage import Storage
from .storage.protocol import ContextRecord, PageRow, Place, Transition
from .tokens import TokenCounter, counter_for, message_tokens, tools_tokens
from .window import Memo, Window

if TYPE_CHECKING:
    from .settings import Settings

ATTEMPTS = 8
"""How often opening starts anew because another writer came between."""


def opened(
    storage: Storage,
    *,
    id: str,  # noqa: A002 -- the façade's word
    owner: str | None,
    system: str | None,
    counter: Callable[[str], int] | None,
    nonce: str | None,
    given: dict[str, object],
) -> tuple[Window, Reader]:
    """Return the window of context *id* and the reader of its entries; a new context is stored first.

    Raises:
        InvalidSetting: If an argument makes no sense.
        BudgetExceeded: If a new context, or new settings, leave no room for system, tools and a quarter for the open
            page. A stored context opened as it was always opens: rendering says what does not fit.
        StorageError: If the store can't be read.
    """
    if not isinstance(id, str) or not id:
        raise InvalidSetting("id", f"expected a name for the context (a str that is not empty), got {id!r:.60}")
    if owner is not None and (not isinstance(owner, str) or not owner):
        raise InvalidSetting("owner", f"expected a name (a str that is not empty), got {owner!r:.60}")
    if nonce is not None and not (isinstance(nonce, str) and re.fullmatch("[0-9a-f]{8}", nonce)):
        raise InvalidSetting("nonce", f"expected 8 hex digits, got {nonce!r:.60}")
    for _ in range(ATTEMPTS):
        with contextlib.suppress(LeaseLost):  # another one made it, or changed it, between our reading and our writing
            return _opened(storage, id, owner=owner, system=system, counter=counter, nonce=nonce, given=given)
    raise StorageBusy(f"context {id!r:.60} changes faster than it can be opened")


def _opened(
    storage: Storage,
    id: str,  # noqa: A002
    *,
    owner: str | None,
    system: str | None,
    counter: Callable[[str], int] | None,
    nonce: str | None,
    given: dict[str, object],
) -> tuple[Window, Reader]:
    from .settings import settings  # noqa: PLC0415 -- pydantic takes half of the time of `import memci`

    found = storage.load(id)
    stored = json.loads(found[0].settings) if found else {}
    chosen, kept = settings(given, json.dumps(stored["settings"]) if found else None)
    prompt = system if system is not None else stored.get("system")
    if prompt is not None and not isinstance(prompt, str):
        raise InvalidSetting("system", f"expected the system prompt (a str), got {type(prompt).__name__}")
    count = counter_for(chosen.model, counter)
    text = json.dumps(
        {"system": prompt, "counter": count.name, "settings": kept},
        sort_keys=True,
    )
    if found:
        memo = Memo.loads(found[0].state)
        record = found[0]._replace(settings=text, owner=owner or found[0].owner)
        if record != found[0]:
            record = record._replace(revision=record.revision + 1)
    else:
        memo = Memo(nonce or secrets.token_hex(4))
        record = ContextRecord(id, owner or id, text, memo.dumps())
    window = _window(record, memo, chosen, prompt, count)
    reader = Reader(storage, id)
    recount = bool(found) and stored.get("counter") != count.name
    if found:
        _fill(window, reader, storage, found[1], recount=recount)
    if not found or text != found[0].settings:
        _admit(window)
    if recount:
        storage.commit(_recounted(window))
    elif not found or record != found[0]:
        storage.commit(Transition(head=record.head, record=record))
    return window, reader


def _window(record: ContextRecord, memo: Memo, chosen: Settings, prompt: str | None, count: TokenCounter) -> Window:
    def weigh(message: Message) -> int:
        return message_tokens(message, count, chosen.model)

    tools = tools_tokens([RECALL_PAGE], count, chosen.model) if chosen.notice else 0
    return Window(record, memo=memo, settings=chosen, system=prompt, tools=tools, count=count, weigh=weigh)


def _fill(window: Window, reader: Reader, storage: Storage, edition: str | None, *, recount: bool) -> None:
    """Put into *window* what the store has of it. O(messages in the window)."""
    record = window.record
    rows = sorted(storage.pages(record.id, place=Place.ACTIVE), key=lambda row: row.spans(record.head))
    rows.sort(key=lambda row: row.index == record.open_page)
    entries = reader.all_entries(rows, record.head)
    for row in rows:
        window.rows[row.index] = row
        page = as_nodes(window, reader, row, entries[row.index], recount=recount)
        window.active.start(row.index, page.base)
        for node in page.nodes:
            window.active.append(node)
    if record.open_page is None:
        window.active.close()
    if edition is not None:
        contents = wire.loads(edition, nonce=window.memo.nonce, weigh=window.weigh if recount else None)
        listed = _rows(storage, record.id, contents.listed)
        window.show(contents, listed)


def _recounted(window: Window) -> Transition:
    """Return the transition that stores what the window costs by a new counter."""
    views = tuple((node.seq, window.weigh(node.view), node.clip) for node in window.active.messages)
    edition = wire.dumps(window.common.archive.contents)
    return Transition(window.record.head, window.record, views=views, edition=edition)


def _rows(storage: Storage, context: str, indexes: list[int]) -> dict[int, PageRow]:
    """Return the rows of *indexes*, read in a few runs."""
    rows: dict[int, PageRow] = {}
    wanted = sorted(indexes)
    while wanted:
        last = next((at for at, index in enumerate(wanted) if index > wanted[0] + 2 * at + 64), len(wanted))
        run, wanted = wanted[:last], wanted[last:]
        names = set(run)
        rows.update(
            (row.index, row) for row in storage.pages(context, first=run[0], last=run[-1]) if row.index in names
        )
    return rows


def _admit(window: Window) -> None:
    """Refuse a window in which nothing could ever be said."""
    limits, pinned = window.limits, 0
    for index in window.memo.pins:
        page = window.active.page(index)
        pinned += page.tokens if page else 0
    fits(window, pinned, limits.budget)


def fits(window: Window, pinned: int, budget: int) -> None:
    """Check that there is room for a conversation beside what never leaves.

    Raises:
        BudgetExceeded: If system, tools, the smallest Contents Page, *pinned* tokens and a quarter of the budget for
            the open page do not fit *budget*.
    """
    parts = {
        "system": window.system.tokens,
        "tools": window.own_tools + window.memo.tools,
        "framing": 3,
        "contents": CONTENTS_FLOOR,
        "pinned": pinned,
        "task (a quarter for the open page)": budget // 4,
    }
    if sum(parts.values()) > budget:
        raise BudgetExceeded(budget, {name: tokens for name, tokens in parts.items() if tokens})
