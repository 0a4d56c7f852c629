"""Context: the object between an agent and its model.

    context = Context.open("agent.db", "alice", system="You are a travel agent.", window=32_000)
    messages = context.render("Book me a flight to Oslo.", tools=my_tools)
    reply = client.chat.completions.create(model="…", messages=messages, tools=[*my_tools, *context.tools])
    context.append_turn("Book me a flight to Oslo.", reply.choices[0].message, usage=reply.usage)

    open  ──▶  render, append_turn, recall_page, search_memory …  ──▶  close
               fork  ──▶  a context of its own that shares the messages so far

Each call that changes something is one transaction: it is committed first, and shown then. `Context` checks arguments
and holds the lock; `memci.window` decides, and `memci.history` stores.
"""

from __future__ import annotations

import builtins
import copy
import os
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from inspect import Signature
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .. import formats
from ..chapters.chapter import Entry
from ..chapters.instructions import Instruction
from ..errors import (
    BudgetExceeded,
    Closed,
    HandlePoisoned,
    InvalidSetting,
    LimitExceeded,
    StorageError,
    brief,
    suggesting,
)
from ..formats.overflow import overflow
from ..history.as_of import AsOf
from ..history.erase import erase_messages, finish_killed_erasures, scrub_memories
from ..history.erasures import ErasureReceipt
from ..history.events import Event
from ..history.fork import store_fork
from ..history.listing import ContextInfo, list_contexts
from ..history.loader import OpenRequest, load_context, locate_context
from ..history.page_reader import page_text
from ..history.reader import PageInfo, Reader
from ..history.writer import Writer
from ..memory.backend import Learned, MemoryBackend, NullMemory, Recollection
from ..messages import Message, MessageLike, call_name, check, plain
from ..model_catalog import is_known, known_window, name_hint
from ..rows import CallRow
from ..storage import EphemeralStorage, Storage
from ..storage.audit import audit
from ..storage.locks import HeldLock, check_seconds, hold
from ..storage.opening import open_store
from ..storage.protocol import CheckedStorage
from ..storage.validation import check_filled, check_int, check_memory
from ..text.moments import moment, zone_named
from ..tools import search_memory as search_tool
from ..tools.recall_page import functions as recall_functions
from ..window.compaction import instructions_of
from ..window.draft import Draft
from ..window.drafting import BATCH, draft, timestamp
from ..window.state import LEARNED, RATIOS, WindowState
from ..window.window import REFUSED_CEILING, Window
from ..workers import guard_lock, recent_calls
from .compactor import Compactor
from .memory_client import MemoryClient
from .memory_page import MemoryPage
from .renderer import CacheMeter, Renderer
from .report import Receipt, Report, report
from .sync import SyncLog
from .tool_dispatch import RECALL, SEARCH, ToolDispatch

if TYPE_CHECKING:
    from ..llm.model import ChatModel
    from ..segments.own import Segment
    from ..settings import Policy

_WIDE = 1_000_000
"""tokens of a window in which every setting can be checked, where the real one is not known yet"""
Clock = Callable[[], datetime]  # returns the time, in UTC
Store = str | os.PathLike[str] | Storage  # a path (one SQLite file for many contexts), or a store


def system_clock() -> datetime:
    """Return the time in UTC, to the second."""
    return datetime.fromtimestamp(int(time.time()), UTC)


class _Parts(NamedTuple):
    """What a context consists of in memory. When it is read again, all parts are replaced at once."""

    window: Window
    reader: Reader
    writer: Writer
    compactor: Compactor
    renderer: Renderer
    dispatch: ToolDispatch
    memory_page: MemoryPage | None


class Context:
    """`Context.open` opens one conversation and its window, `close` or a `with` block closes it. Thread-safe.

        with Context.open("agent.db", "alice", system="Be brief.", model="gpt-5") as context:
            messages = context.render("Hi")                 # what to send now; it always fits
            context.append_turn("Hi", reply, usage=usage)   # store what was said

    `view` opens it for reading, `list` lists those of a store, `memci.Agent` runs the whole loop. Any call may raise a
    `memci.errors.StorageError`: nothing has changed then, unless it is a `CommitUnknown`. A `WriteConflict` says that
    another writer was first: call `refresh`, and decide again.
    """

    __signature__ = Signature()  # of the constructor, which nobody calls: `help` begins with `open`

    @classmethod
    def open(
        cls,
        store: Store,
        id: str,  # noqa: A002 -- the name that is used everywhere
        *,
        system: str | None = None,
        model: str | None = None,
        window: int | None = None,
        reply: int | None = None,
        policy: Policy | None = None,
        segments: Iterable[Segment] | None = None,
        memory: MemoryBackend | None = None,
        chat: ChatModel | None = None,
        owner: str | None = None,
        new: bool = False,
        change_owner: bool = False,
        counter: Callable[[str], int] | None = None,
        format: str | None = None,  # noqa: A002 -- the name that is used everywhere
        zone: str | None = None,
        clock: Clock | None = system_clock,
        wait: float = 0,
        on_event: Callable[[Event], None] | None = None,
        nonce: str | None = None,
    ) -> Self:
        """Open the context *id* in *store*, or create it. O(messages in the window), however much is archived.

        None stands for the stored value. Opening an existing context writes nothing and does not block other writers:
        new settings are stored with the first change. The first commit wins; any other handle then gets `WriteConflict`
        from its next `render` or change.

        Args:
            store: A path (one SQLite file for many contexts, or a folder), the URL of a Postgres database, or a store,
                which stays open when the context closes.
            id: The name of the context. Each owner has names of its own.
            system: The system prompt.
            model: The name of the model: it selects the vocabulary, the rules for images and tools, and the window.
            window: The model's context length in tokens. A new context needs it, unless *model* is a known one.
            reply: Tokens kept free for the answer; default min(4,096, window / 8).
            policy: How the window is used (`memci.Policy`). Default: the stored one; in a new context "balanced".
            segments: Segments of your own between the system prompt and the conversation (`memci.segments.own`).
                Pass them at every open; what they show is fixed between compactions. Default: what is shown stays.
            memory: The owner's memory, which receives pages that leave the window, and is searched. Default:
                `TieredMemory` in the same store. `NullMemory()` keeps nothing, and the model is then offered no search.
            chat: A model (`memci.llm.Chat`) that improves the default memory in the background: lines of the Contents
                Page, topics, facts, the profile. No call waits for it. Default: none, everything is extracted by rule.
                If you pass a *memory*, pass the model to it instead.
            owner: Owner of the context and its memory. Default: the stored owner; for a new context, that of *memory*
                if it has one, else the id. If only another owner has a context of this id, opening is refused.
            new: Whether *owner* gets a context of its own in that case. It is stored as "id∷owner", which also opens
                it.
            change_owner: Whether *owner* replaces the stored owner, at once. What the memory of the previous owner
                knows of the context stays until that or the owner is erased.
            counter: Counts the tokens of a text, in place of the vocabulary. Pass it at every open.
            format: The format of the messages that `render` returns, one of `memci.formats.FORMATS`; default
                "openai_chat". Messages of any format may be appended.
            zone: The zone of the person who talks, as "Europe/Berlin" or "+08:00": of the clock, and of times that are
                given without one. Default: UTC.
            clock: Returns the time in UTC. It dates appends without `at`, and detects pauses in which the provider's
                prompt cache expired. None stores no time. Times order nothing.
            wait: Seconds to wait for the exclusive lock of this context, which is held until it is closed. 0 takes
                no lock.
            on_event: Called with every `Event`.
            nonce: 8 hex digits for the frames of a new context; for tests that compare bytes.

        Raises:
            InvalidSetting: If an argument makes no sense; it says which and why. `SeveralOwners` if no *owner* is given
                and several have a context of this id.
            BudgetExceeded: If system, tools and a quarter for the open page do not fit the window.
            StorageBusy: If another handle held the lock for *wait* seconds.
        """
        if new and (owner is None or change_owner):
            raise InvalidSetting("new", "it needs an owner, and excludes change_owner")
        if format is not None:
            formats.check(format)
        given: dict[str, object] = {"model": model, "window": window, "reply": reply, "format": format, "zone": zone}
        more: dict[str, Any] = {"owner": owner, "new": new, "change_owner": change_owner, "nonce": nonce}
        if segments is not None:
            if not isinstance(segments, Iterable):
                raise InvalidSetting("segments", f"expected a list of segments, got {brief(segments)}")
            more["segments"] = tuple(segments)
        request = _request(id, given, policy, memory, system=system, counter=counter, **more)
        if chat is not None:
            from ..llm.model import check_chat

            check_chat("chat", chat)
            if memory is not None:
                raise InvalidSetting("chat", f"pass the model to the memory: {type(memory).__name__}(…, chat=…)")
        if isinstance(model, str) and counter is None and not is_known(model):
            counted = "its tokens are estimated, too high rather than too low, until usage= corrects them"
            warnings.warn(f"the model {model!r:.60} is not known, {counted}{name_hint(model)}", stacklevel=3)
        for name, called in {"clock": clock, "on_event": on_event}.items():
            if called is not None and not callable(called):
                raise InvalidSetting(name, f"expected a callable, or None, got {brief(called)}")
        if zone is not None:
            zone_named(zone)
        file = Path(store) if isinstance(store, str) and isinstance(id, str) and id.endswith(".db") else None
        if file is not None and not (file.suffix or file.exists()):
            raise InvalidSetting("id", f"{id!r:.60} is named like a file: Context.open(store, id), or make it first")
        return cls(store, request, policy, memory=memory, chat=chat, clock=clock, wait=wait, on_event=on_event)

    @classmethod
    def view(
        cls,
        store: Store,
        id: str,  # noqa: A002
        *,
        at: int | None = None,
        system: str | None = None,
        model: str | None = None,
        window: int | None = None,
        reply: int | None = None,
        policy: Policy | None = None,
        memory: MemoryBackend | None = None,
        owner: str | None = None,
        counter: Callable[[str], int] | None = None,
    ) -> Self:
        """Open the context *id* in *store* for reading only: nothing is ever written. O(messages in the window).

        Calls that would change something raise `StorageReadOnly`. A compaction that a rendering needs happens in memory
        only. With *at*, the context is shown as it was at the close of that turn (from 0, as `PageInfo.turn`). The
        other arguments are those of `open`: they show the context as it would look with them.

        Raises:
            InvalidSetting: If there is no such context or no such turn, or an argument makes no sense.
        """
        given: dict[str, object] = {"model": model, "window": window, "reply": reply}
        more = {"owner": owner, "read_only": True, "recount": at is not None}
        request = _request(id, given, policy, memory, system=system, counter=counter, **more)
        return cls(store, request, policy, memory=memory, at=at)

    @classmethod
    def list(
        cls, store: Store, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> builtins.list[ContextInfo]:
        """Return the contexts in *store*, by id, at most *limit*. O(those, and the ones that are skipped).

        *owner*: only the contexts of this owner. *after*: only ids after this one, the last of the previous page.
        """
        with _opened(store, read_only=True) as storage:
            return list_contexts(storage, owner=owner, after=after, limit=limit)

    @classmethod
    def import_(
        cls,
        store: Store,
        lines: Iterable[str],
        *,
        id: str | None = None,  # noqa: A002
        window: int | None = None,
        system: str | None = None,
        model: str | None = None,
        memory: MemoryBackend | None = None,
        counter: Callable[[str], int] | None = None,
        key: bytes | None = None,
    ) -> Self:
        """Store the context in *lines*, whole or not at all, and open it. O(lines), all of them in memory.

        *system*, *model*, *window*, *memory* and *counter* are those of `open`.

        Args:
            store: Where to store it.
            lines: What `export` returned; or a plain chat: the JSON of its messages, or one message per line.
            id: Its name. Default: the one in the export; a chat needs one.
            window: A chat needs it.
            system: Default: the one in the export, or in the first message of the chat.
            model: The name of the model.
            memory: A store without a sidecar needs it.
            counter: Counts the tokens of a text.
            key: The lines must be signed with this key. Default: a signature is not checked.

        Raises:
            InvalidSetting: If there is such a context, or the lines are no whole export and no chat, or not signed with
                *key*; it says where.
            InvalidMessage: If a message of a chat is not one that a provider accepts.
            BudgetExceeded: If system, tools and a quarter for the open page do not fit the window; nothing is stored.
        """
        from ..history.export_format import is_native
        from ..history.import_ import import_lines
        from ..history.plain_chat import PlainChat, export_chat, read_chat

        def opening(scratch: Storage, chat: PlainChat) -> Callable[..., object]:
            chosen = chat.system if system is None else system
            made = cls.open(scratch, id or "", window=window, system=chosen, model=model, counter=counter, clock=None)
            return made.append_turn

        if isinstance(lines, (str, bytes, Mapping)) or not isinstance(lines, Iterable):
            raise InvalidSetting(
                "lines", f"expected the lines of a file, as open(path) yields them; got {brief(lines)}"
            )
        text = builtins.list(lines)
        request = _request("", {"model": model, "window": window}, None, memory, system=system, counter=counter)
        with _opened(store, read_only=False) as storage:
            if memory is None:
                check_memory(storage)  # for the default memory: without it, what was stored could not be opened
            if key is None and not (text and is_native(text[0])):
                text = builtins.list(export_chat(read_chat(text), id or "", opening))
            name = import_lines(storage, text, id=id, request=request, key=key)
        return cls(store, request._replace(id=name), None, memory=memory, clock=system_clock)

    def __init__(
        self,
        store: Store,
        request: OpenRequest | object = None,
        policy: Policy | None = None,
        *,
        memory: MemoryBackend | None = None,
        chat: ChatModel | None = None,
        at: int | None = None,
        clock: Clock | None = None,
        wait: float = 0,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        if not isinstance(request, OpenRequest):
            raise InvalidSetting("Context", "open it: Context.open(store, id, window=…)")
        self._lock = guard_lock(threading.RLock(), "call")
        self._closed = False
        self._store, self._request, self._policy = store, request, policy
        self._given_memory, self._chat, self._clock = memory, chat, clock
        self._wait = wait
        self._sync_log = SyncLog()
        self._held: HeldLock | None = None
        self.on_event = on_event
        """called with every `Event`, after it was committed; an error that it raises reaches the caller"""
        self._owns_store = isinstance(store, (str, os.PathLike))
        self._storage = _storage(store, read_only=request.read_only)
        self._client = MemoryClient(
            memory,
            self._default_memory,
            self._lock,
            read_only=request.read_only,
            as_of=at is not None,
            models=chat is not None,
            note=self._note,
            today=self._today,
        )
        try:
            check_seconds(wait)
            if memory is None:
                check_memory(self._storage)
            if wait and not request.read_only:  # a reader needs no lock
                self._held = hold(self._storage, locate_context(self._storage, request)[0], wait)
            if not request.read_only:
                finish_killed_erasures(self._storage)
            if at is not None:
                self._request = request._replace(id=locate_context(self._storage, request)[0], exact=True)
                self._storage = AsOf(self._storage, self._request.id, at)
            self._read()
            self._request = self._request._replace(id=self.id, exact=True)
            if request.change_owner:
                self._parts.writer.store_opened()
        except BaseException:
            self._let_go()
            raise

    def _read(self, meter: CacheMeter | None = None) -> None:
        """Reload everything from the store. Keep the counts of *meter*, if given."""
        window, reader, unwritten = load_context(self._storage, self._request)
        # Another holder has taken over, or another owner has taken the name that was free: wait again.
        while self._held is not None and not (self._held.context == window.record.id and self._held.is_kept()):
            self._held.release()
            self._held = hold(self._storage, window.record.id, self._wait)
            window, reader, unwritten = load_context(self._storage, self._request)
        client, read_only = self._client, self._request.read_only
        writer = Writer(self._storage, window, reader, self._notify, unwritten=unwritten, read_only=read_only)
        compactor = Compactor(
            self._storage,
            window,
            reader,
            writer,
            self._lock,
            rules=self._policy.rules if self._policy is not None else None,
            notify=self._notify,
            summaries=client.summaries if self._chat is not None or self._given_memory is not None else None,
        )
        own_tools = self._request.tools(window.settings.language) if window.settings.notice else ()
        renderer = Renderer(window, compactor, meter or CacheMeter(), own_tools)
        dispatch = ToolDispatch(window, reader, writer, client.search, self._today)
        client.follow(self._storage, window)
        page = None
        if window.settings.remember and not client.off:
            page = MemoryPage(window, writer, client.search, client.removals)
        self._parts = _Parts(window, reader, writer, compactor, renderer, dispatch, page)
        self._unread = False
        self._known = window.record.revision, window.state.erasures
        if isinstance(self._storage, AsOf):
            now = self._storage.now
            self._known = now.revision, WindowState.loads(now.state).erasures

    def _drop_erased(self) -> None:
        """Read the context again if something was erased since it was read: no call must show it. One small query.

        A handle that writes gets WriteConflict instead, as by a rendering.
        """
        seen, (revision, erasures) = self._storage, self._known
        storage = seen.storage if isinstance(seen, AsOf) else seen
        now = storage.revision(self.id)
        if now in {revision, self._parts.window.record.revision}:
            return
        found = storage.load(self.id)
        if found is None or WindowState.loads(found[0].state).erasures != erasures:
            self._parts.writer.check_revision()
            self._storage = AsOf(storage, self.id, seen.turn) if found and isinstance(seen, AsOf) else storage
            self._reload()
        else:
            self._known = now, erasures

    def _reload(self) -> None:
        """Read the context again; HandlePoisoned if it is not there any more."""
        if not self._storage.revision(self.id):
            raise HandlePoisoned(f"the context {self.id!r:.60} was erased: there is nothing to read any more")
        self._read(self._parts.renderer.meter)

    # -- properties

    @property
    def id(self) -> str:
        """The name of the context in its store."""
        return self._parts.window.record.id

    @property
    def owner(self) -> str:
        """The owner of the context and its memory."""
        return self._parts.window.record.owner

    @property
    def system(self) -> str | None:
        """The system prompt that was given, None if there is none."""
        return self._parts.window.system.prompt

    @property
    def model(self) -> str | None:
        """The name of the model, None if it was not given."""
        return self._parts.window.settings.model

    @property
    def window(self) -> int:
        """The model's context length, in tokens."""
        return self._parts.window.settings.window

    @property
    def reply(self) -> int:
        """Tokens that are kept free for the answer."""
        return self._parts.window.settings.reply

    @property
    def budget(self) -> int:
        """Tokens that a request may cost now, by the provider's count: the window without the reply."""
        return self._parts.window.limits.budget

    @property
    def clip_limit(self) -> int:
        """Tokens up to which a message is shown whole; a larger one is clipped when it is appended."""
        return self._parts.window.clip_limit

    @property
    def nonce(self) -> str:
        """The random word in the frames of this context. Use it for frames of your own."""
        return self._parts.window.state.nonce

    @property
    def memory(self) -> MemoryBackend:
        """The memory behind the window. It is created when it is first needed."""
        with self._usable():
            return self._client.memory

    @property
    def format(self) -> str:
        """The format of the messages that `render` returns."""
        return self._parts.window.settings.format

    @property
    def read_only(self) -> bool:
        """Whether the context was opened by `view`, so that nothing is written."""
        return self._request.read_only

    def count(self, text: str) -> int:
        """Return the tokens of *text*, as the window counts them. O(length)."""
        if not isinstance(text, str):
            raise InvalidSetting("text", f"expected a str, got {brief(text)}")
        return self._parts.window.count(text)

    # -- the loop of an agent

    def render(
        self,
        *pending: MessageLike,
        tools: Iterable[Any] = (),
        strict: bool = True,
        format: str | None = None,  # noqa: A002
        at: datetime | str | None = None,
        media_inside: bool = False,
    ) -> builtins.list[Any]:
        """Return the messages of the next request. They fit the budget, whatever was said before.

        Between two compactions each rendering extends the one before, byte for byte. The messages are shared with the
        window: copy one before you change it. In formats other than Chat Completions the system prompt is not among
        the messages: `request` returns it, too. O(new messages) in Chat Completions, else O(the window).

        Args:
            pending: Messages to show that are not appended yet. They count against the budget.
            tools: The schemas that you send along, to be counted. `context.tools` are counted in any case, once.
            strict: Whether tool calls at the end that have no result yet are an error; else they are shown.
            format: One of `memci.formats.FORMATS`; default: the format of the context.
            at: When the pending messages were said, as in `append_turn`; default: now, unless appends name times.
            media_inside: Whether results keep their media in Chat Completions, for a framework that places them; else
                they follow the results, since the provider takes only text in these.

        Raises:
            BudgetExceeded: If what can't be taken out does not fit; it names the parts.
            OpenToolGroup: If calls at the end wait for their results, which no provider accepts.
            InvalidMessage: If a pending message is not one.
            WriteConflict: If another writer has changed the context.
        """
        form = self._form(format)
        with self._usable():
            view, pending_view = self._view(pending, tools, strict=strict, at=at)
            window = self._parts.window
            if form != "openai_chat":
                view = window.with_valid_thoughts(view)[len(window.system.view) :]
            elif not window.active.rewritten and all(map(formats.openai_chat.is_sent_as_it_is, pending_view)):
                return view
            return formats.write(form, formats.spoken(form, view) or view, media_inside=media_inside)

    def request(
        self,
        *pending: MessageLike,
        tools: Iterable[Any] = (),
        strict: bool = True,
        format: str | None = None,  # noqa: A002
        at: datetime | str | None = None,
    ) -> dict[str, Any]:
        """Return the whole next request, as keyword arguments for the provider's own client. O(the window).

            client.messages.create(model="…", max_tokens=4_096, **context.request("Hi", format="anthropic"))

        The keys are `messages`, or `input` and `instructions`, or `system` and `messages`, or `contents` and `config`;
        and `tools`, which include the context's own. For the prompt caches of Anthropic and of gpt-5.6 and later, the
        ends of the stable parts are marked (system, contents with condensed pages, closed pages): at most three marks,
        yours included.

        The arguments and errors are those of `render`.
        """
        form = self._form(format)
        tools = builtins.list(tools) if isinstance(tools, Iterable) else tools
        with self._usable():
            (view, _), window = self._view(pending, tools, strict=strict, at=at), self._parts.window
            front = len(window.system.view)
            return formats.request(
                form,
                window.with_valid_thoughts(view)[front:],
                system=view[0] if front else None,
                schemas=[*tools, *self.tools],
                stable=window.stable,
                model=window.settings.model,
            )

    def append_turn(
        self,
        *messages: MessageLike | Sequence[MessageLike],
        op_id: str | None = None,
        usage: object = None,
        at: datetime | str | None = None,
        opens_page: bool | None = True,
        gate: bool = True,
    ) -> Receipt:
        """Store *messages*, all or none, and add them to the window. O(new text), apart from compactions.

        It never raises for the budget: a message that is too large is stored whole, and shown clipped or archived.

        Args:
            messages: Dicts, message objects of an SDK, or a str for the user's text; or one list of them.
            op_id: Name of this append. The same op_id with the same messages stores nothing again.
            usage: What the provider reported for the last request. It calibrates the count, and is stored (`calls`).
            at: When it was said, for all *messages*; without a zone, in that of the context. Default: the clock, for
                the last interaction among them, since the others may be old. Times order nothing. After a pause in
                which the provider's prompt cache expired, older pages leave (`Policy.pricing`).
            opens_page: Whether a user's message closes the open page and opens the next; False for observations
                that are sent in the user's role; None, as in `sync`: not if it is directly behind results.
            gate: Whether results of tools that exceed `Policy.gate` are shown as digests.

        Raises:
            InvalidMessage: If a message is not what a provider accepts, or not exact JSON; nothing was stored.
            LimitExceeded: If one is too large to store; nothing was stored.
            OpConflict: If *op_id* was used with other messages.
            Undone: If what *op_id* stored was taken back; `Erased` if it was erased.
            CommitUnknown: If the disk failed at the last moment: open the store again, and repeat it with its op_id.
        """
        with self._usable():
            window, writer = self._parts.window, self._parts.writer
            if op_id is not None:
                check_filled("op_id", op_id)
            when = self._now() if at is None else timestamp(at, self._zone)
            call = None if usage is None else self._parts.renderer.call(usage, when)
            ratios = window.state.ratios if call is None else window.calibrate(call)
            own = at is None and when is not None
            drafted = self._draft(_flat(messages), opens_page=opens_page, gate=gate, at=when, stamped=own)
            now = None if when is None else moment(when).timestamp()
            self._parts.compactor.look(now, drafted, op_id)
            state = window.state if ratios is window.state.ratios else window.state._replace(ratios=ratios)
            seq = window.record.head
            if not drafted.messages:
                writer.store_state(state, call=call)
                return Receipt(window.record.open_page or 0, (), seq, op_id)
            if own != state.cache.stamped:
                state = state._replace(cache=state.cache._replace(stamped=own))
            if self._parts.memory_page is not None:
                state = self._parts.memory_page.keep(state, drafted)
            known = writer.append(drafted, state, call, op_id=op_id)
            self._parts.renderer.said = {}
            places = known.entries if known else [each.place for each in drafted.messages]
            entries = tuple(
                [Entry(*at, each.node.message["role"]) for at, each in zip(places, drafted.messages, strict=True)]
            )
            receipt = Receipt(entries[-1].page, entries, known.first if known else seq, op_id, known is not None)
            if known is None:
                window.latest, window.absent = now, 0.0
                self._parts.compactor.after_append()
            client = self._client
            client.touched = time.monotonic()
            if window.record.next_page >= client.due or client.part_waits:
                client.submit()
            return receipt

    def overflowed(self, error: object) -> bool:
        """Return whether *error* says that the last request was too long; if so, the next one is smaller.

        Catch the error of the provider's client, ask this, and send the next rendering once more:

            try:
                reply = client.chat.completions.create(…, **context.request("Hi"))
            except openai.BadRequestError as error:
                if not context.overflowed(error):
                    raise
                reply = client.chat.completions.create(…, **context.request("Hi"))

        The numbers in the error are learnt, and stored: the budget shrinks by them (`Report.ratio`). O(the error).

        Raises:
            BudgetExceeded: If less than a third could be sent; it gives both counts, and what the provider takes.
        """
        said = overflow(error)
        if said is None:
            return False
        with self._usable():
            window, predicted = self._parts.window, self._parts.renderer.predicted
            ratio = round(window.learn(said, predicted), 4)
            if ratio > REFUSED_CEILING:
                more = max(0, (said.asked or window.settings.window) - predicted)
                counts = {"counted": predicted, "more by the provider": more}
                room = min(self.budget, max(0, said.room(self.reply))) if said.most else self.budget
                raise BudgetExceeded(room, counts) from (error if isinstance(error, BaseException) else None)
            state = window.state._replace(ratios=(ratio,) * RATIOS, refused=max(ratio, window.state.refused))
            self._parts.writer.store_state(state)
            return True

    def sync(
        self,
        messages: Iterable[MessageLike],
        *,
        format: str | None = None,  # noqa: A002
        whole: bool = True,
        start: int = 0,
        usage: object = None,
        at: datetime | str | None = None,
        gate: bool = True,
    ) -> builtins.list[Message]:
        """Store those of a framework's *messages* that are new, and return them. O(the list).

        The list is the whole conversation as the framework has it, in any format. A system prompt at its beginning that
        is the context's own is skipped. Repeating a call stores nothing. More than 10,000 new messages are stored in
        parts, each of them whole or not at all: after an error, the next call continues where this one stopped.

        Args:
            messages: All messages so far, oldest first.
            format: The format of items that several formats write alike, one of `memci.formats.FORMATS`; default: the
                format of the context. A list keeps the format in which it was stored.
            whole: Whether the list begins with the first message of the conversation. If not, it may be only the end:
                its beginning is matched with the end of what is stored, or else it follows all that is stored.
            start: The number of the stored message with which the list begins; those before it are not looked at.
            usage: As in `append_turn`.
            at: As in `append_turn`.
            gate: As in `append_turn`.

        Raises:
            Diverged: If the list differs from what is stored, or is shorter: it says where, and where to `fork`.
            InvalidMessage: If a message is not what a provider accepts; nothing was stored.
        """
        if not isinstance(messages, Iterable) or isinstance(messages, str):
            raise InvalidSetting("messages", f"expected a list of messages, got {brief(messages)}")
        check_int("start", start, 0)
        with self._usable():
            self._parts.writer.check_revision()
            window = self._parts.window
            read = formats.read(messages, window.settings.format if format is None else format)
            for position, message in enumerate(read):
                check(message, f"messages[{position}]")
            new = self._sync_log.new(read, window, self._parts.reader, whole=whole, start=start)
            given: dict[str, Any] = {"at": at, "gate": gate, "opens_page": None}
            self.append_turn(*new[:BATCH], usage=usage, **given)
            for part in range(BATCH, len(new), BATCH):
                self.append_turn(*new[part : part + BATCH], **given)
            return [*new]

    def known(self, op_id: str) -> int:
        """Return the page of the append that had this *op_id*, even if it was taken back since; 0 if none had it."""
        check_filled("op_id", op_id)
        with self._usable():
            op = self._storage.op(self.id, op_id)
            return 0 if op is None else op.entries[-1][0]

    # -- tools of the model

    @property
    def tools(self) -> builtins.list[Any]:
        """The schemas of the tools that the model may call; constant bytes. [] without the notice."""
        settings = self._parts.window.settings
        return copy.deepcopy(self._request.tools(settings.language)) if settings.notice else []

    @property
    def functions(self) -> dict[str, Callable[..., str]]:
        """The same tools as Python functions, for a text protocol such as `memci.tools.attp`."""

        def text(name: str, arguments: object) -> str:
            with self._usable(shows=self.read_only):
                return self._parts.dispatch.text(name, arguments)

        recall = recall_functions(partial(text, RECALL))
        return recall | (search_tool.functions(partial(text, SEARCH)) if self._request.searchable else {})

    def tools_for(self, format: str) -> builtins.list[Any]:  # noqa: A002
        """Return `tools` in *format*."""
        return formats.tools(format, self.tools)

    def handles(self, call: object) -> bool:
        """Return whether *call* (a tool call of a reply, in any format) is for a tool of the context."""
        _, calls = formats.calls(call, self.format)
        return len(calls) == 1 and call_name(calls[0]) in self._parts.window.tools

    def answer(self, call: object) -> Message:
        """Return the message or item that answers one *call*, in the format of the call.

        A model's mistake is answered, too. A page that is stored but can't be read is answered as that, never as one
        that does not exist. Raised are only `HandlePoisoned` (the store has to be opened again) and `WriteConflict`
        (another handle changed the context, and perhaps erased what would be answered: call `refresh`).
        """
        form, calls = formats.calls(call, self.format)
        with self._usable(shows=self.read_only):
            asked = calls[:1] or [plain(call, "call")]
            return formats.write_answers(form, asked, self._parts.dispatch.answers(asked))[0]

    def answers(self, reply: object) -> builtins.list[Message]:
        """Return the answers to those calls in *reply* that are for the context, in its format; [] if there are none.

        *reply* is the result of the client's call, its message, or its list of items.
        """
        form, calls = formats.calls(reply, self.format)
        with self._usable(shows=self.read_only):
            own = [call for call in calls if call_name(call) in self._parts.window.tools]
            return formats.write_answers(form, own, self._parts.dispatch.answers(own))

    def recall_page(self, index: int, entry: int | None = None, last: int | None = None) -> builtins.list[Message]:
        """Return the messages of page *index*, whole and exact, or its one *entry*, or those from *entry* to *last*.

        O(messages of the page). It counts as a use of the page, once per turn, unless the page is in the window.

        Raises:
            PageNotFound: If no page has this index, or it has no such entry; `Undone` if it was taken back, `Erased` if
                it was erased.
        """
        if last is not None:
            check_int("last", last)
        with self._usable(shows=True):
            page = page_text(self._parts.window, self._parts.reader, index, entry)
            first, end = entry or 1, last or entry or 2**63
            chosen = [each for found, each in page.entries if first <= found.ordinal <= end]
            if not page.shown:
                self._parts.writer.count_recall(page.index)
            return chosen

    def search_memory(
        self,
        query: str,
        *,
        k: int = 5,
        budget: int | None = None,
        since: datetime | str | float | None = None,
        until: datetime | str | float | None = None,
        seen: bool = True,
    ) -> Recollection:
        """Search the messages outside the window, and the facts and summaries derived from them.

        A page of this context has an index for `recall_page`; one of another context of the same owner names that
        context. Results count as accessed, which raises their heat.

        Args:
            query: In the words of the person who asks.
            k: How many messages at most; a request ("How do I …?") gets up to eight lasting instructions beside them.
            budget: Tokens that all texts together may cost; default: no bound.
            since: Only messages from then on: a datetime, ISO 8601, or seconds since 1970. Without a zone it is meant
                on the clock on the wall where each message was said. Messages without a time are left out.
            until: Only messages until then; a date stands for its end.
            seen: Whether the model sees the window: pages that are shown whole are left out then.

        If the memory can't be read, a StorageError is raised; the result is never empty for that reason.
        """
        check_filled("query", query.strip() if isinstance(query, str) else query)
        check_int("k", k)
        if budget is not None:
            check_int("budget", budget)
        with self._usable():
            asked = search_tool.bounded(query, since, until, self._today())
            return self._client.search(asked, k=k, budget=budget, seen=seen)

    # -- pages

    def pin(self, index: int) -> None:
        """Keep page *index* in the window, word for word; an archived page comes back at the next compaction.

        Raises:
            PageNotFound: If no page has this index.
            BudgetExceeded: If system, pinned pages and a quarter for the open page would not fit any more.
        """
        with self._usable():
            self._parts.writer.pin(index)

    def unpin(self, index: int) -> None:
        """Remove the pin of page *index*: compactions archive it as any other page."""
        with self._usable():
            self._parts.writer.unpin(index)

    def instructions(self) -> builtins.list[Instruction]:
        """Return the user's lasting instructions: those that stand in the window, and those on its pages, oldest first.

        A later one may take back an earlier one, and is listed as one. O(messages in the window).
        """
        with self._usable(shows=True):
            return instructions_of(self._parts.window)

    def drop_instruction(self, id: str) -> None:  # noqa: A002
        """Drop the instruction *id*, as `instructions` lists it: it stands no more, and its page stays as it is.

        It is for programs and operators; a model has no tool for it. If the user gives the same instruction again, it
        is a new one. InvalidSetting if no instruction has this id.
        """
        with self._usable():
            self._parts.writer.drop_instruction(id)

    def archive(self, *, keep: int | None = None) -> tuple[int, ...]:
        """Compact now, and return the indexes of the pages that were archived.

        A good moment is when the provider's cache has expired anyway. Without *keep*, as much stays as after any
        compaction; with it, the newest *keep* closed pages. The open page and pinned pages always stay.

        BudgetExceeded if the window can't fit, whatever is archived; nothing has changed then.
        """
        if keep is not None:
            check_int("keep", keep, 0)
        with self._usable():
            return self._parts.compactor.archive(keep).archive

    def undo(self) -> builtins.list[Message]:
        """Take back the newest interaction and return its messages, in order; PageNotFound if there is none.

        They are not shown or recalled any more, but stay in the store. Page numbers are not used again.
        """
        with self._usable():
            return self._parts.writer.undo()

    def pop(self) -> Message:
        """Take back the newest message and return it. O(messages in the window).

        A call whose result was taken back waits for it again. If the message opened its page, the page before is open
        again. The message is not shown or recalled any more, but stays in the store. Its place is not used again.

        Raises:
            PageNotFound: If there is nothing to take back.
            InvalidSetting: If the message is archived: `undo` takes back its whole interaction.
        """
        return self.take_back(1)[0]

    def take_back(self, count: int) -> builtins.list[Message]:
        """Take back the newest *count* messages, all or none, and return them in order. It raises as `pop`."""
        check_int("count", count)
        with self._usable():
            messages = self._parts.writer.pop(count)
            with suppress(StorageError):  # they are taken back; if the rest can't be read, the next call raises
                self._read(self._parts.renderer.meter)
            return messages

    def pages(self) -> Iterator[PageInfo]:
        """Yield every page that was ever opened, by index: where it is, and how it was used. O(pages)."""
        with self._usable(shows=True):
            record, pins = self._parts.window.record, self._parts.window.state.pins
            contents = self._parts.window.contents
            known = {**self._parts.window.rows, **self._parts.window.listed} if self.read_only else {}
        return self._parts.reader.pages(record, pins, contents, known)

    def messages(self, *, start: int = 0) -> Iterator[Message]:
        """Yield every message from number *start* on that was not taken back, exact and in order. O(messages)."""
        check_int("start", start, 0)
        with self._usable():
            record = self._parts.window.record
        return self._parts.reader.messages(record, start)

    def turns(self, last: int) -> builtins.list[builtins.list[Message]]:
        """Return the messages of the *last* pages in the window, oldest page first. O(messages in the window)."""
        if type(last) is not int:
            raise InvalidSetting("last", f"expected a number of pages (an int), got {brief(last)}")
        with self._usable(shows=True):
            pages = [*self._parts.window.active][-last:] if last > 0 else []
            return [[node.message for node in page] for page in pages]

    # -- maintenance

    def report(self, *, costs: bool = True) -> Report:
        """Return where tokens and pages are, what the prompt cache keeps, and what the model's calls cost.

        Without *costs*, the calls since the last report are not read. O(messages in the window, and these calls).
        """
        with self._usable():
            meter = self._parts.renderer.meter
            if costs:
                meter.add(self._storage.calls(self.id, after=meter.counted))
            return report(self._parts.window, meter, self._client.work, self._client.set_aside)

    def calls(self, *, after: int = 0, limit: int = 100) -> builtins.list[CallRow]:
        """Return what the model's calls cost, oldest first: those whose `usage` was appended. O(*limit*).

        Each says what was predicted and what was reported, when, by which model, and which tools were sent. A fork
        has only its own calls. *after*: only calls with a higher `revision` than this, the last of the previous page.
        """
        check_int("after", after, 0)
        check_int("limit", limit)
        with self._usable():
            return builtins.list(islice(self._storage.calls(self.id, after=after), limit))

    def refresh(self) -> None:
        """Reload the context from its store: after `WriteConflict`, or to see what others appended.

        O(messages in the window). All that was appended here is stored, and stays. If the lock was lost because the
        process was suspended for long, it is taken again, with the `wait` of `open`.

        Raises:
            HandlePoisoned: If the context was erased meanwhile: it is not created again.
            StorageBusy: If the lock was lost, and another handle has it.
        """
        with self._usable():
            self._reload()

    def fork(self, id: str, *, at: int | None = None, owner: str | None = None) -> Self:  # noqa: A002
        """Create the context *id*, which shares the past of this one, and return it. Each continues on its own.

        No message is copied, only a small row per page: O(pages). The fork is in the same store, with the settings,
        counter and rules of this context. What is erased in one is erased in both. For another owner all messages are
        copied, and what is erased in one stays in the other: O(messages), all of them in memory.

        *at*: the last turn that is shared; default: all turns. InvalidSetting if there is no such turn, or the owner
        has a context of this name.
        """
        with self._usable(shows=True):
            then = self._request._replace(read_only=True, given={}, system=None, recount=True)
            writable = self._storage
            if isinstance(writable, AsOf):
                writable = writable.storage
            if at is not None or isinstance(self._storage, AsOf):
                seen = self._storage if at is None else AsOf(writable, self.id, at)
                name = store_fork(seen, writable, load_context(seen, then).window, id, owner)
            else:
                self._parts.writer.check_revision()
                name = store_fork(self._storage, writable, self._parts.window, id, owner)
            store = self._store if self._owns_store else writable
            memory = self._given_memory if owner is None else None
            segments = then.segments if owner is None else None
            request = then._replace(id=name, owner=owner, nonce=None, read_only=False, recount=False, segments=segments)
            return type(self)(store, request, self._policy, memory=memory, chat=self._chat, clock=self._clock)

    def erase(self, page: int, entry: int | None = None) -> ErasureReceipt:
        """Erase page *page*, or its one *entry*: the bytes are removed from this context and from all its forks.

        Everything the model read of it is removed, too: lines of the Contents Page, answers that quoted it, earlier
        compactions (so earlier states can't be opened with `at=` any more). The page's number is not used again.
        A page that was undone can be erased, too. O(entries + contexts in the store).

        An erasure that is repeated returns its receipt again, and finishes what a kill or a full disk left of it.

        PageNotFound if no page has this index, or it has no such entry; `Erased` if another erasure removed it.
        """
        with self._usable():
            self._parts.writer.check_writable()
            self._parts.writer.check_revision()
            try:
                self._parts.writer.store_opened()
                receipt = erase_messages(
                    self._storage, self._parts.window, self._parts.reader, page, entry, counter=self._request.counter
                )
            except StorageError:  # it may be erased, although not everything was done
                self._unread = True
                raise
            self._unread = True
            try:
                self._read()
                told = self._client.send_state_changes() and scrub_memories(self._storage)
            except StorageError:  # it is erased: the next call reads the context again
                told = False
            return receipt if told else replace(receipt, memory="pending")

    def export(self, *, key: bytes | None = None) -> Iterator[str]:
        """Yield the whole context as lines of JSON, without newlines; `import_` reads them. O(entries).

        They hold every byte of every message, and all facts about pages, compactions and ops (docs/storage.md
        describes the lines). With a secret *key* (from 16 bytes) the last line is signed (HMAC-SHA256).
        """
        from ..history.export import export_lines

        with self._usable():
            lines = export_lines(self._storage, self.id, key=key)
            if not self._request.read_only:
                audit(self._storage, "export", context=self.id, owner=self.owner)
            return lines

    def verify(self) -> builtins.list[str]:
        """Read everything that is stored, and return what is wrong with it; [] if all is well.

        O(messages). A SQLite file is checked as a whole, with all contexts in it: O(bytes). KeyMissing if a key was not
        given: encrypted rows can't be checked without it.
        """
        from ..history.verify import problems

        with self._usable():
            damage = self._storage.damage() if isinstance(self._storage, CheckedStorage) else []
            return [*damage, *problems(self._storage, self.id)]

    def flush(self) -> None:
        """Send all closed pages to the memory, also those that were set aside, and let it do what is due. O(the pages).

        Messages are stored when `append_turn` returns, in any case. A worker does the same while the context is idle:
        call this in tests and in scheduled jobs. With a model, it waits for all of the model's jobs that are due, each
        once; other threads may use the context meanwhile. What the memory can't store is sent again later.
        """
        with self._usable():
            self._client.flush()
        self._client.maintain()

    def end_session(self) -> None:
        """End the conversation: the memory takes in all of it, and summarizes it. O(its pages).

        Without this call, a conversation is over after a silence (`silence_seconds` in the memory's rules).
        Closing a context ends no conversation, since a server opens a context per request. The context can still be
        used: the next message begins another conversation.
        """
        with self._usable():
            self._client.end_session()

    def close(self) -> None:
        """Close the context, release its lock, and close its store if it opened it. Closing twice is fine.

        Pages that wait are sent to the memory before: another context of this owner finds them.
        """
        with self._lock:
            if not self._closed:
                self._closed = True
                self._parts.compactor.end()
                self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        record = self._parts.window.record
        return f"<Context {record.id!r:.60}: {record.head:,} messages, page #{record.next_page - 1}>"

    def _let_go(self) -> None:
        held, self._held = self._held, None
        try:
            self._client.close()
        finally:
            if held is not None:
                held.release()
            if self._owns_store:
                self._storage.close()

    def _usable(self, *, shows: bool = False) -> threading.RLock:
        """Return the lock that every call holds; Closed if the context was closed.

        *shows*: whether the call shows text that this handle has read before, and no other check of the call does.
        """
        if self._closed:
            raise Closed(f"the context {self.id!r:.60} is closed: open it again")
        if self._unread or shows:
            with self._lock:
                if self._unread:  # an erasure could not be read back: nothing older must be shown
                    self._read()
                if shows:
                    self._drop_erased()
        if not recent_calls or recent_calls[-1] is not self._lock:
            recent_calls.append(self._lock)
        return self._lock

    def _note(self, learned: Learned) -> None:
        """Store a fact that a program gave to the memory, so that it is kept as the pages are."""
        from ..memory.tiers.facts import digest_of  # its tables take long to read

        with self._usable():
            state = self._parts.window.state
            page, _, _, _, instead, _ = fields = learned
            kept = [each for each in state.learned if each[0] != page or digest_of(each[2]) != instead]
            if fields not in kept:
                if len(kept) >= LEARNED:
                    raise LimitExceeded("facts of a context that programs had stored", len(kept) + 1, LEARNED)
                self._parts.writer.store_state(state._replace(learned=(*kept, fields)))

    def _default_memory(self) -> MemoryBackend:
        """Create the memory of a context that was opened without one."""
        from ..memory.tiered_memory import TieredMemory  # imports numpy, which takes long

        window, storage = self._parts.window, self._storage
        return TieredMemory(
            storage.storage if isinstance(storage, AsOf) else storage,
            owner=window.record.owner,
            counter=window.count,
            read_only=self._request.read_only,
            chat=self._chat,
        )

    def _form(self, format: str | None) -> str:  # noqa: A002
        if format is not None:
            formats.check(format)
        return format or self.format

    def _notify(self, event: Event) -> None:
        if self.on_event is not None:
            self.on_event(event)

    def _view(
        self,
        pending: Sequence[MessageLike],
        tools: Iterable[Any],
        *,
        strict: bool,
        at: datetime | str | None = None,
    ) -> tuple[builtins.list[Message], builtins.list[Message]]:
        """Return the messages of the next request in memci's own form, and those at its end that are pending."""
        if type(tools) is not tuple:
            if not isinstance(tools, Iterable):
                raise InvalidSetting("tools", f"expected a list of schemas, got {brief(tools)}")
            tools = tuple(tools)
        self._parts.writer.check_revision()
        if self.read_only:
            self._drop_erased()
        window, renderer, page = self._parts.window, self._parts.renderer, self._parts.memory_page
        now, when = window.latest, None if at is None else timestamp(at, self._zone)
        if self._clock is not None and window.state.cache.stamped:
            now = self._clock().timestamp()
            self._parts.compactor.look(now)
        if pending:
            stamped = when is None and (window.state.cache.stamped or not window.record.head)
            when = self._now() if stamped else when
            view = renderer.pending(lambda: self._draft(pending, at=when, stamped=stamped), tools=tools, strict=strict)
        else:
            view = renderer.view(tools=tools, strict=strict)
        rest = len(view) - len(window.front) - len(window.active.view)
        if page is not None:
            view = page.place(view, view[len(view) - rest :] if pending else [], renderer.predicted)
            rest = max(rest, page.behind)
            renderer.predicted += page.tokens
        renderer.meter.count_rendering(window, view, rest, renderer.predicted, tools=renderer.sent, now=now)
        return view, view[len(view) - rest :]

    @property
    def _zone(self) -> tzinfo:
        """The zone of times that come without one."""
        name = self._parts.window.settings.zone
        return UTC if name is None else zone_named(name)

    def _now(self) -> str | None:
        """Return the time by the clock, in the zone of the context; None without a clock."""
        if self._clock is None:
            return None
        when = self._clock()
        if not isinstance(when, datetime):
            raise InvalidSetting("clock", f"expected it to return a datetime, got {brief(when)}")
        return timestamp((when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(self._zone))

    def _today(self) -> date | None:
        """Return the day of what is asked now: by the clock if that dates appends, else that of the last message."""
        window = self._parts.window
        if self._clock is not None and (window.state.cache.stamped or window.latest is None):
            return moment(self._now() or "").date()
        node = window.active.messages.tail
        while node is not None and node.at is None:
            node = node.prev if node.prev.owner is not None else None
        if node is not None and node.at is not None:
            return moment(node.at).date()
        return None if window.latest is None else datetime.fromtimestamp(window.latest, self._zone).date()

    def _draft(
        self,
        values: Sequence[object],
        *,
        opens_page: bool | None = True,
        gate: bool = True,
        at: str | None = None,
        stamped: bool = False,
    ) -> Draft:
        window, reader = self._parts.window, self._parts.reader

        def made(ids: Collection[str]) -> set[str]:
            known = window.find_calls(ids)
            return known | reader.made(set(ids) - known)

        known = self._parts.renderer
        said = known.said if stamped else None
        return draft(window, values, opens_page=opens_page, made=made, costs=known.costs, gate=gate, at=at, said=said)


for _name in ("open", "view", "import_"):
    setattr(Context, _name, classmethod(suggesting(vars(Context)[_name].__func__)))


def check_settings(**given: Any) -> None:
    """Raise InvalidSetting if no context can be opened with *given*, as a context in RAM shows."""
    model = given.get("model")
    window = given.get("window") or (known_window(model) if isinstance(model, str) else None) or _WIDE
    Context.open(EphemeralStorage(), "settings", **{**given, "window": window}).close()


def _request(
    id: str,  # noqa: A002
    given: dict[str, object],
    policy: Policy | None,
    memory: MemoryBackend | None,
    **more: Any,
) -> OpenRequest:
    """Return the arguments of `open` as a request, whose values the loader checks."""
    if policy is not None:
        from ..settings import Policy  # pydantic would take half of the time of `import memci`

        if not isinstance(policy, Policy):
            raise InvalidSetting("policy", f'expected a Policy, as Policy(preset="economy"), got {brief(policy)}')
        policy.check()
        given |= policy.given
    if memory is not None and not isinstance(memory, MemoryBackend):
        raise InvalidSetting("memory", f"expected a MemoryBackend, got {type(memory).__name__}")
    owner = getattr(memory, "owner", None)  # a memory of one's own may have anything there
    remembers = owner if isinstance(owner, str) and owner else None
    return OpenRequest(id, given=given, searchable=not isinstance(memory, NullMemory), remembers=remembers, **more)


def _flat(messages: tuple[MessageLike | Sequence[MessageLike], ...]) -> Sequence[MessageLike]:
    """Return *messages*, or the elements of the one list among them; warn if an answer's text is among them."""
    if len(messages) == 1 and isinstance(messages[0], (list, tuple)):
        return messages[0]
    if (str, str) in pairwise(map(type, messages)):
        instead = "pass the reply's message, or {'role': 'assistant', 'content': …}"
        warnings.warn(f"two texts in a row are both stored as the user's. For an answer {instead}", stacklevel=3)
    return messages  # type: ignore[return-value]  # a list among other messages is refused later, with its position


def _opened(store: Store, *, read_only: bool) -> AbstractContextManager[Storage]:
    """Open *store* if it is a path, and close it at the end."""
    storage = _storage(store, read_only=read_only)
    return nullcontext(storage) if storage is store else closing(storage)


def _storage(store: Any, *, read_only: bool) -> Storage:
    if isinstance(store, (str, os.PathLike)):
        return open_store(store, read_only=read_only)
    if isinstance(store, type) or not isinstance(store, Storage):
        given = f"the class {store.__name__}" if isinstance(store, type) else type(store).__name__
        raise InvalidSetting("store", f"expected a path or a Storage, got {given}")
    return store
