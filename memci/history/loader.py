"""Opens a context: makes a window of its rows. A new context is stored first.

Opening an existing context writes nothing: new settings are stored with its first change, so opening does not block
another writer. Only pages in the window are read, whatever the size of the archive.
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
from ..errors import BudgetExceeded, CorruptRecord, InvalidSetting, MemciError, StorageBusy, WriteConflict, brief, hint
from ..messages import Message
from ..rows import ContextRecord, PageRow, PageState
from ..segments.budget import CONTENTS_FLOOR
from ..segments.own import Segment, read_segments
from ..storage import Storage
from ..storage.audit import audit
from ..storage.names import MARK, Stored, beside, find, owned
from ..storage.protocol import Transition
from ..storage.validation import check_filled, check_text
from ..text.interface import tool
from ..text.moments import moment
from ..tokens import TokenCounter, counter_for
from ..window import snapshot as snapshots
from ..window.state import WindowState, alone
from ..window.window import Window
from .page_reader import as_nodes
from .page_runs import page_problems
from .reader import Reader

if TYPE_CHECKING:
    from ..settings import Settings

ATTEMPTS = 64
"""How often opening starts again when another writer changes the context meanwhile. With the pauses below that takes up
to a second: no writer commits so often for so long."""
PAUSE_SECONDS = 0.02
"""The longest pause before opening starts again: the time of a few commits. It is random, so two openers that collide
do not collide again."""


class OpenRequest(NamedTuple):
    """The arguments of `Context.open`."""

    id: str
    owner: str | None = None
    system: str | None = None
    counter: Callable[[str], int] | None = None
    nonce: str | None = None
    given: Mapping[str, object] = {}  # the settings that are not None, by name
    read_only: bool = False
    searchable: bool = False  # whether there is a memory, which the model may search
    remembers: str | None = None  # the owner of that memory, if it has one; by default, of a new context, too
    change_owner: bool = False  # whether *owner* may replace the stored owner
    new: bool = False  # whether *owner* gets a context of its own if another owner has this id
    exact: bool = False  # whether *id* is the id in the store, which may name an owner ("id∷owner")
    segments: tuple[Segment, ...] | None = None  # segments of the program; None: those that the context shows stay
    recount: bool = False
    """whether to count the tokens of the window again, as those in the store may be of another counter"""

    def tools(self, language: str) -> list[Message]:
        """Return the schemas of the context's own tools, which are offered to the model, described in *language*."""
        names = ("recall_page", "search_memory") if self.searchable else ("recall_page",)
        return [tool(name, language) for name in names]


class Unwritten(NamedTuple):
    """Changes that opening made in memory only. The first commit stores them, too."""

    was: str  # the settings in the store, which new ones replace
    views: tuple[tuple[int, int, int], ...] = ()
    """(seq, tokens, clip) of the messages in the window, counted by a new counter"""


class LoadedContext(NamedTuple):
    """An open context."""

    window: Window
    reader: Reader
    unwritten: Unwritten | None = None


def load_context(storage: Storage, request: OpenRequest) -> LoadedContext:
    """Return the context of *request*; a new one is stored first. O(messages in the window + lines).

    Raises:
        InvalidSetting: If an argument is wrong, or a context that is only read does not exist. `SeveralOwners` if
            several owners have this id.
        BudgetExceeded: If a new context, or new settings, leave no room for the system prompt, the tools and a quarter
            for the open page. With its stored settings a context always opens; rendering says what does not fit.
        StorageBusy: If other writers changed the context each time that it was read.
        StorageError: If the store can't be read.
    """
    nonce = request.nonce
    if nonce is not None and not (isinstance(nonce, str) and re.fullmatch("[0-9a-f]{8}", nonce)):
        raise InvalidSetting("nonce", f"expected 8 hex digits, got {brief(nonce)}")
    for attempt in range(ATTEMPTS):
        with contextlib.suppress(WriteConflict):  # another writer created or changed it meanwhile
            return _load(storage, request)
        time.sleep(random.uniform(0, PAUSE_SECONDS) if attempt else 0)  # noqa: S311 -- no secret
    raise StorageBusy(f"context {request.id!r:.60} changes faster than it can be loaded")


def locate_context(storage: Storage, request: OpenRequest) -> tuple[str, Stored | None]:
    """Return the id under which the context of *request* is stored, and the context; None if it would be new. O(1).

    Raises InvalidSetting as `load_context`, if another owner, or several, have a context of this id.
    """
    check_filled("id", request.id)
    if request.owner is not None:
        check_filled("owner", request.owner)
    exact = request.exact
    name, found = (request.id, storage.load(request.id)) if exact else find(storage, request.id, request.owner)
    if found is None:
        if MARK in request.id and not (exact or request.read_only):
            raise InvalidSetting("id", f"{MARK!r} is kept for ids that several owners have: take another id")
        return name, None
    if request.owner in {None, found[0].owner}:
        return name, found
    if request.change_owner:  # of the only context that has the id
        plain, *beside_another = request.id.split(MARK)
        if beside_another and not exact and owned(storage, plain, request.owner) is not None:
            raise InvalidSetting("owner", f"{request.owner!r:.60} has a context {plain!r:.60} already: erase one first")
        return (name, found) if exact else find(storage, request.id, None)
    own = beside(request.id, request.owner)
    if request.new and name != own and not (exact or MARK in request.id):
        return own, None
    instead = "leave owner out, or pass change_owner=True"
    raise InvalidSetting(
        "owner",
        f"context {request.id!r:.60} belongs to {found[0].owner!r:.60}: {instead}, or new=True for one of its own",
    )


def settings_of(record: ContextRecord) -> Settings:
    """Return the settings of the context of *record*; KeyMissing if they are encrypted. O(characters)."""
    from ..settings import settings

    return settings({}, json.dumps(record.read_settings()["settings"]))[0]


def _load(storage: Storage, request: OpenRequest) -> LoadedContext:
    name, found = locate_context(storage, request)
    if found is None and request.read_only:
        near = hint(request.id, [each.id for each in storage.contexts(limit=1_000)])
        raise InvalidSetting(
            "id", f"there is no context {request.id!r:.60} in this store, and reading creates none{near}"
        )
    settings, system, count, text = _choose(request, found[0].read_settings() if found else {})
    owner = _owner(request, name, found[0] if found else None)
    if found is None:
        state = WindowState(request.nonce or secrets.token_hex(4))
        if request.segments:
            state = state._replace(segments=read_segments(request.segments))
        record = ContextRecord(name, owner, text, state.dumps())
    else:
        if owner != found[0].owner:
            audit(storage, "owner", context=name, owner=owner, before=found[0].owner)
        record = (found[0] if owner == found[0].owner else alone(found[0], handed_over=True))._replace(
            settings=text, owner=owner
        )
        state = WindowState.loads(record.state)
        if request.segments and state.segments is None:
            state = state._replace(segments=read_segments(request.segments))
            record = record._replace(state=state.dumps())
    window = Window(
        record,
        state=state,
        settings=settings,
        system=system,
        tools=request.tools(settings.language),
        count=count,
        segments=request.segments,
    )
    reader = Reader(storage, name)
    if found is None:
        _check_settings_fit(window)
        storage.commit(Transition(head=0, record=record))
        return LoadedContext(window, reader)
    try:
        return LoadedContext(window, reader, _read(storage, reader, window, found, recount=request.recount))
    except (MemciError, ValueError, LookupError):
        _check_unchanged(storage, found[0])  # rows of two revisions may not fit together
        raise


def _owner(request: OpenRequest, name: str, stored: ContextRecord | None) -> str:
    """Return the owner from now on: the *stored* one, unless the *request* changes it.

    InvalidSetting if the memory is that of another owner, who would find the pages of this one.
    """
    if stored is None:
        owner = request.owner or request.remembers or name
    else:
        owner = (request.owner if request.change_owner else None) or stored.owner
    if request.remembers not in {None, owner}:
        raise InvalidSetting("memory", f"it is of {request.remembers!r:.60}, the context of {owner!r:.60}")
    return owner


def _read(
    storage: Storage, reader: Reader, window: Window, found: tuple[ContextRecord, str | None], *, recount: bool
) -> Unwritten | None:
    """Fill *window* from the context *found* and its pages, and return what the store does not have yet."""
    record, compaction = found
    before = record.read_settings()
    counted = before.get("counter"), before["settings"].get("model")
    recount = recount or counted != (window.count.name, window.settings.model)
    recount = recount or before["settings"].get("notice", True) != window.settings.notice  # a digest needs its recall
    contents = ContentsPage()
    if compaction is not None:
        contents = snapshots.contents(compaction, nonce=window.state.nonce, weigh=window.weigh if recount else None)
    _fill(window, reader, storage, contents, recount=recount)
    if record.head and counted[1] is not None and counted[1] != window.settings.model:
        window.change_model(counted[1])
    if record.head and (prompt := before.get("system")) and prompt != window.system.prompt:
        window.broken = f"the system prompt changed, {_difference(prompt, window.system.prompt or '')}"
    _check_unchanged(storage, record)
    if window.record.settings != record.settings or (window.segments.shown and window.record.state != record.state):
        _check_settings_fit(window)
    return Unwritten(record.settings, window.views if recount else ()) if window.record != record else None


def _difference(before: str, now: str) -> str:
    """Return in a few words where the text *before* differs from the text *now*. O(characters)."""
    pairs = zip(before, now, strict=False)
    at = next((at for at, (old, new) in enumerate(pairs) if old != new), min(len(before), len(now)))
    start = max(before.rfind(" ", 0, at), before.rfind("\n", 0, at)) + 1
    first, second = ((text[start:].split(maxsplit=1) or [""])[0] for text in (before, now))
    return f"from {brief(first)} to {brief(second)}"


def _check_unchanged(storage: Storage, record: ContextRecord) -> None:
    if storage.revision(record.id) != record.revision:
        raise WriteConflict(f"context {record.id!r:.60} was changed while it was read")


def _choose(request: OpenRequest, stored: dict[str, object]) -> tuple[Settings, str | None, TokenCounter, str]:
    """Return the settings in effect, the system prompt, the counter, and the text in which all three are stored."""
    from ..settings import settings

    chosen, kept = settings(dict(request.given), json.dumps(stored["settings"]) if stored else None)
    prompt = request.system if request.system is not None else stored.get("system")
    if prompt is not None and not isinstance(prompt, str):
        raise InvalidSetting("system", f"expected the system prompt (a str), got {type(prompt).__name__}")
    for name, value in {**kept, "system": prompt}.items():
        if isinstance(value, str):  # JSON escapes half of a surrogate pair, so the store could not tell
            check_text(name, value)
    count = counter_for(chosen.model, request.counter)
    text = json.dumps({"system": prompt, "counter": count.name, "settings": kept}, sort_keys=True)
    return chosen, prompt, count, text


def _fill(window: Window, reader: Reader, storage: Storage, contents: ContentsPage, *, recount: bool) -> None:
    """Put the active pages in the store, and the Contents Page *contents*, into *window*. O(messages in the window)."""
    record = window.record
    rows = sorted(storage.pages(record.id, state=PageState.ACTIVE), key=lambda row: row.spans(record.head))
    for problem in page_problems(record, rows):
        raise CorruptRecord(record.id, 0, problem)
    rows.sort(key=lambda row: row.index == record.open_page)
    entries = reader.all_entries(rows, record.head, shown=True)
    for row in rows:
        window.rows[row.index] = row
        page = as_nodes(window, reader, row, entries[row.index], recount=recount)
        window.active.open_page(row.index, page.base)
        for node in page.text.nodes:
            window.active.append(node)
    last = entries[rows[-1].index] if rows else []
    latest = next((entry.at for entry, _ in reversed(last) if entry.at is not None), None)
    window.latest = None if latest is None else moment(latest).timestamp()
    if record.open_page is None:
        window.active.close()

    def listed() -> dict[int, PageRow]:
        found = {row.index: row for row in storage.pages_at(record.id, contents.listed)}
        if len(found) < len({*contents.listed}):  # erased meanwhile
            _check_unchanged(storage, window.record)
        return found

    if contents.blocks or window.state.lead:
        window.show(contents, listed)


def _check_settings_fit(window: Window) -> None:
    check_room(window, sum(page.tokens for page in filter(None, map(window.active.page, window.state.pins))))


def check_room(window: Window, pinned: int) -> None:
    """Raise BudgetExceeded if the budget of *window* is too small.

    It must hold system, tools, the smallest Contents Page, *pinned* tokens, and a quarter for the open page.
    """
    budget = window.limits.budget
    parts = {
        "system": window.system.tokens,
        "segments": window.segments.tokens,
        "tools": window.own_tools + window.state.tools,
        "framing": 3,
        "contents": CONTENTS_FLOOR,
        "pinned": pinned,
        "task (a quarter for the open page)": budget // 4,
    }
    if sum(parts.values()) > budget:
        raise BudgetExceeded(budget, parts)
