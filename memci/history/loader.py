"""Opening: a context's window, made new or read back from its store.

    nothing stored  ──▶  Window, empty, and stored    record + compaction + active pages  ──▶  Window, as it was

Opening a context that exists writes nothing: new settings go to the store with its first change, so that opening never
takes a context from another writer. It reads what is in the window, whatever the size of the archive. This module
knows nothing of what happens afterwards.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..chapters.contents import ContentsPage
from ..errors import BudgetExceeded, InvalidSetting, MemciError, StorageBusy, WriteConflict
from ..messages import Message
from ..segments.budget import CONTENTS_FLOOR
from ..storage import Storage
from ..storage.protocol import ContextRecord, PageRow, PageState, Transition
from ..storage.validation import check_text
from ..tokens import TokenCounter, counter_for
from ..tools.recall_page import RECALL_PAGE
from ..tools.search_memory import SEARCH_MEMORY
from ..window import snapshot as snapshots
from ..window.state import WindowState
from ..window.window import Window
from .page_reader import as_nodes
from .reader import Reader

if TYPE_CHECKING:
    from ..settings import Settings

ATTEMPTS = 64
"""How often opening starts again because another writer came between."""
PAUSE_SECONDS = 0.02
"""The longest pause before that, so that two openers do not go on in step."""


class OpenRequest(NamedTuple):
    """What the caller of `Context.open` asks for."""

    id: str
    owner: str | None = None
    system: str | None = None
    counter: Callable[[str], int] | None = None
    nonce: str | None = None
    given: Mapping[str, object] = {}
    """settings"""
    read_only: bool = False
    searchable: bool = False
    """whether there is a memory, which the model may search"""
    recount: bool = False
    """whether what the store says of the window's cost is not to be trusted: of the past, it was counted since"""

    @property
    def tools(self) -> list[Message]:
        """The schemas that are offered to the model, if it is told of them."""
        return [RECALL_PAGE, SEARCH_MEMORY] if self.searchable else [RECALL_PAGE]


class Unwritten(NamedTuple):
    """What opening found out, and the first change of the context stores along."""

    was: str
    """the settings before"""
    views: tuple[tuple[int, int, int], ...] = ()
    """what the messages in the window cost by a new counter"""


class LoadedContext(NamedTuple):
    """A context in memory."""

    window: Window
    reader: Reader
    unwritten: Unwritten | None = None


def loaded(storage: Storage, request: OpenRequest) -> LoadedContext:
    """Return the context that is *request*; a new one is stored first.

    Raises:
        InvalidSetting: If an argument makes no sense, or a context that is only to be read does not exist.
        BudgetExceeded: If a new context, or new settings, leave no room for system, tools and a quarter for the open
            page. A stored context loaded as it was always opens: rendering says what does not fit.
        StorageError: If the store can't be read.
    """
    _check(request)
    for attempt in range(ATTEMPTS):
        with contextlib.suppress(WriteConflict):  # another one made or changed it while we read
            return _loaded(storage, request)
        time.sleep(random.uniform(0, PAUSE_SECONDS) if attempt else 0)  # noqa: S311 -- no secret
    raise StorageBusy(f"context {request.id!r:.60} changes faster than it can be loaded")


def _check(request: OpenRequest) -> None:
    for name, value in (("id", request.id), ("owner", request.owner)):
        if (value is not None or name == "id") and (not isinstance(value, str) or not value):
            raise InvalidSetting(name, f"expected a name (a str that is not empty), got {value!r:.60}")
        check_text(name, value or "")
    if request.nonce is not None and not (
        isinstance(request.nonce, str) and re.fullmatch("[0-9a-f]{8}", request.nonce)
    ):
        raise InvalidSetting("nonce", f"expected 8 hex digits, got {request.nonce!r:.60}")


def _loaded(storage: Storage, request: OpenRequest) -> LoadedContext:
    found = storage.load(request.id)
    if found is None and request.read_only:
        raise InvalidSetting("id", f"there is no context {request.id!r:.60} in this store, and reading makes none")
    stored = json.loads(found[0].settings) if found else {}
    chosen, prompt, count, text = _chosen(request, stored)
    if found is None:
        state = WindowState(request.nonce or secrets.token_hex(4))
        record = ContextRecord(request.id, request.owner or request.id, text, state.dumps())
        window = _window(record, state, chosen, prompt, count, request)
        _admit(window)
        storage.commit(Transition(head=0, record=record))
        return LoadedContext(window, Reader(storage, request.id))
    try:
        return _read(storage, request, found, (chosen, prompt, count, text))
    except (MemciError, ValueError, LookupError):
        _check_unchanged(storage, found[0])  # what was read at two moments may make no sense
        raise


def _read(
    storage: Storage,
    request: OpenRequest,
    found: tuple[ContextRecord, str | None],
    settings: tuple[Settings, str | None, TokenCounter, str],
) -> LoadedContext:
    """Return the context that was *found*, with its *settings* as they are request."""
    chosen, prompt, count, text = settings
    record = found[0]._replace(settings=text, owner=request.owner or found[0].owner)
    window = _window(record, WindowState.loads(record.state), chosen, prompt, count, request)
    reader = Reader(storage, request.id)
    before = json.loads(found[0].settings)
    recount = request.recount or (before.get("counter"), before["settings"].get("model")) != (count.name, chosen.model)
    contents = ContentsPage()
    if found[1] is not None:
        contents = snapshots.contents(found[1], nonce=window.state.nonce, weigh=window.weigh if recount else None)
    _fill(window, reader, storage, contents, recount=recount)
    _check_unchanged(storage, found[0])
    if text != found[0].settings:
        _admit(window)
    if record == found[0]:
        return LoadedContext(window, reader)
    own = window.active.own_tokens
    views = tuple((node.seq, own(node), node.clip) for node in window.active.messages) if recount else ()
    return LoadedContext(window, reader, Unwritten(found[0].settings, views))


def _check_unchanged(storage: Storage, record: ContextRecord) -> None:
    if storage.revision(record.id) != record.revision:
        raise WriteConflict(f"context {record.id!r:.60} was changed while it was read")


def _chosen(request: OpenRequest, stored: dict[str, object]) -> tuple[Settings, str | None, TokenCounter, str]:
    """Return the settings, the system prompt, the counter, and all that as it is stored."""
    from ..settings import settings

    chosen, kept = settings(dict(request.given), json.dumps(stored["settings"]) if stored else None)
    prompt = request.system if request.system is not None else stored.get("system")
    if prompt is not None and not isinstance(prompt, str):
        raise InvalidSetting("system", f"expected the system prompt (a str), got {type(prompt).__name__}")
    count = counter_for(chosen.model, request.counter)
    return (
        chosen,
        prompt,
        count,
        json.dumps({"system": prompt, "counter": count.name, "settings": kept}, sort_keys=True),
    )


def _window(
    record: ContextRecord,
    state: WindowState,
    chosen: Settings,
    prompt: str | None,
    count: TokenCounter,
    request: OpenRequest,
) -> Window:
    return Window(record, state=state, settings=chosen, system=prompt, tools=request.tools, count=count)


def _fill(window: Window, reader: Reader, storage: Storage, contents: ContentsPage, *, recount: bool) -> None:
    """Put the active pages, as the store has them, and *contents* into *window*. O(messages in the window)."""
    record = window.record
    rows = sorted(storage.pages(record.id, state=PageState.ACTIVE), key=lambda row: row.spans(record.head))
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
    if contents.blocks:
        window.show(contents, _rows(storage, record.id, contents.listed))


def _rows(storage: Storage, context: str, indexes: list[int]) -> dict[int, PageRow]:
    """Return the rows of *indexes*, read in a few runs."""
    rows: dict[int, PageRow] = {}
    request = sorted(indexes)
    while request:
        last = next((at for at, index in enumerate(request) if index > request[0] + 2 * at + 64), len(request))
        run, request = request[:last], request[last:]
        names = set(run)
        rows.update(
            (row.index, row) for row in storage.pages(context, first=run[0], last=run[-1]) if row.index in names
        )
    return rows


def _admit(window: Window) -> None:
    """Refuse a window in which nothing could ever be said."""
    limits, pinned = window.limits, 0
    for index in window.state.pins:
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
        "tools": window.own_tools + window.state.tools,
        "framing": 3,
        "contents": CONTENTS_FLOOR,
        "pinned": pinned,
        "task (a quarter for the open page)": budget // 4,
    }
    if sum(parts.values()) > budget:
        raise BudgetExceeded(budget, {name: tokens for name, tokens in parts.items() if tokens})
