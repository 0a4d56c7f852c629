"""Context: what stands between an agent and its model.

    context = Context.open("agent.db", id="alice", system="You are a travel agent.", window=32_000)
    messages = context.render("Book me a flight to Oslo.", tools=my_tools)
    reply = client.chat.completions.create(model="…", messages=messages, tools=[*my_tools, *context.tools])
    context.append_turn("Book me a flight to Oslo.", reply.choices[0].message, usage=reply.usage)

Each call that changes something is one transaction: it is committed first, and shown then. This is the one façade;
it knows nothing of how things are decided (`window`, `drafting`, `editions`) and stored (`writer`).
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

from .answering import NAMES, Answerer
from .chapters.unload import UnloadRule
from .drafting import Draft, draft, moment
from .errors import HandlePoisoned, InvalidSetting
from .messages import Message, call_name, plain, tool_calls
from .opening import opened
from .pages import Entry
from .presets import Preset
from .readback import page_text
from .reader import PageInfo
from .recall import RECALL_PAGE, functions
from .rendering import Renderer
from .report import Event, Receipt, Report, report
from .storage import SQLiteStorage, Storage
from .verifying import problems
from .writer import Writer


class Context:
    """One conversation and its window. Thread-safe. Made by `Context.open`, closed by `close` or a `with` block."""

    def __init__(
        self, storage: Storage, *, owned: bool, on_event: Callable[[Event], None] | None, **given: Any
    ) -> None:
        rules = given.pop("rules")
        self._storage = storage
        self._owned = owned
        self._lock = threading.RLock()
        self._window, self._reader = opened(storage, **given)
        self._writer = Writer(storage, self._window, self._reader, rules=rules, notify=self._notify)
        self._renderer = Renderer(self._window, self._writer)
        self._answerer = Answerer(self._window, self._reader, self._writer)
        self._closed = False
        self.on_event = on_event
        """called with every `Event`, after it was committed; what it raises reaches the caller"""

    @classmethod
    def open(
        cls,
        store: str | os.PathLike[str] | Storage,
        *,
        id: str,  # noqa: A002 -- what it is called everywhere
        owner: str | None = None,
        system: str | None = None,
        model: str | None = None,
        counter: Callable[[str], int] | None = None,
        window: int | None = None,
        reply: int | None = None,
        preset: Preset | None = None,
        archive_share: float | None = None,
        active_pages: int | None = None,
        contents_tokens: int | None = None,
        never_recalled: int | None = None,
        stale: int | None = None,
        rules: Sequence[UnloadRule] | None = None,
        notice: bool | None = None,
        nonce: str | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> Context:
        """Open the context *id* in *store*, or make it. O(messages in the window), whatever was archived.

        Every setting is stored with the context; None stands for the stored value.

        Args:
            store: A path (one SQLite file for many contexts), or a store, which stays open when the context closes.
            id: The context's name in the store.
            owner: Whose memory it is; default: the id.
            system: The system prompt.
            model: Names the vocabulary, and the formulas for images and tools.
            counter: Counts the tokens of a text instead; pass it at every open.
            window: The model's context length in tokens; needed when the context is made.
            reply: Tokens kept free for the answer; default min(4,096, window / 8).
            preset: "balanced" archives half of the active pages at once, "economy" three quarters, "verbatim" a
                quarter; "original" one page a turn, with the rules n = 5, m = 10, p = 20 and 2,000 tokens of contents.
            archive_share: The share of the active pages that an edition archives, 0 to 1.
            active_pages: How many closed pages stay verbatim at most; default: as many as fit.
            contents_tokens: The ceiling of the Contents Page; default 15 % of the window.
            never_recalled: Turns after which a page that was never recalled is unloaded; default: never.
            stale: Turns without a recall after which a page that was recalled is unloaded; default: never.
            rules: Unload rules of your own, in place of those two; pass them at every open.
            notice: Whether the model is told of the archive and is offered `recall_page`; default True.
            nonce: 8 hex digits in the frames of a new context; for tests that compare bytes.
            on_event: Called with every `Event`.

        Raises:
            InvalidSetting: If an argument makes no sense; it says which and why.
            BudgetExceeded: If system, tools and a quarter for the open page do not fit the window.
            StorageError: If the store can't be opened or read.
        """
        owned = isinstance(store, (str, os.PathLike))
        if not owned and (isinstance(store, type) or not isinstance(store, Storage)):
            raise InvalidSetting("store", f"expected a path or a Storage, got {type(store).__name__}")
        storage: Storage = SQLiteStorage(store) if isinstance(store, (str, os.PathLike)) else store
        given = {
            "model": model,
            "window": window,
            "reply": reply,
            "preset": preset,
            "archive_share": archive_share,
            "active_pages": active_pages,
            "contents_tokens": contents_tokens,
            "never_recalled": never_recalled,
            "stale": stale,
            "notice": notice,
        }
        try:
            return cls(
                storage,
                owned=owned,
                on_event=on_event,
                id=id,
                owner=owner,
                system=system,
                counter=counter,
                nonce=nonce,
                rules=rules,
                given=given,
            )
        except BaseException:
            if owned:
                storage.close()
            raise

    # -- the loop of an agent

    def render(self, *pending: object, tools: Sequence[Message] = (), strict: bool = True) -> list[Message]:
        """Return the messages of the next request: within the budget, whatever was said before.

        Between two editions each rendering extends the one before, byte for byte. The messages are shared with the
        window: copy one before you change it.

        Args:
            pending: Messages to show that are not appended yet; they count against the budget.
            tools: The schemas that are sent along, for counting; `context.tools` are counted anyway, once.
            strict: Whether tool calls without a result at the tail are an error; else they are shown as they are.

        Raises:
            BudgetExceeded: If what can't be taken out does not fit; it says what that is.
            OpenToolGroup: If calls at the tail wait for their results, which no provider accepts.
            InvalidMessage: If a pending message is not one.
        """
        with self._usable():
            if not pending:
                return self._renderer.view(tools=tools, strict=strict)
            return self._renderer.pending(lambda: self._draft(pending), tools=tools, strict=strict)

    def append_turn(
        self,
        *messages: object,
        op_id: str | None = None,
        usage: object = None,
        at: datetime | str | None = None,
        opens_page: bool = True,
    ) -> Receipt:
        """Store *messages*, all or none, and take them into the window. O(new text), apart from editions.

        Never raises for the budget: what is too large is stored whole, shown clipped, or archived.

        Args:
            messages: Dicts, an SDK's message objects, or a str for the user's text.
            op_id: Names this append: the same op_id with the same messages stores nothing again.
            usage: What the provider reported for the last request; calibrates the count.
            at: When it happened, for information; it orders nothing.
            opens_page: Whether a user's message closes the open page and opens the next; False for observations
                that are sent in the user's role.

        Raises:
            InvalidMessage: If a message is not what a provider accepts, or not exact JSON; nothing was stored.
            LimitExceeded: If one is too large to store; nothing was stored.
            OpConflict: If *op_id* was used with other messages.
            Undone: If what *op_id* stored was taken back.
            StorageError: If it could not be stored.
        """
        with self._usable():
            window, writer = self._window, self._writer
            if op_id is not None and (not isinstance(op_id, str) or not op_id):
                raise InvalidSetting("op_id", f"expected a str that is not empty, got {op_id!r:.60}")
            when = moment(at)
            memo = window.calibrated(usage, self._renderer.predicted)
            drafted = self._draft(messages, opens_page=opens_page)
            seq = window.record.head
            if not drafted.nodes:
                writer.remember(memo)
                return Receipt(window.record.open_page or 0, (), seq, op_id)
            known = writer.append(drafted, memo, op_id=op_id, at=when)
            entries = tuple(
                Entry(page, ordinal, node.message["role"])
                for (page, ordinal), node in zip(known.entries if known else drafted.places, drafted.nodes, strict=True)
            )
            receipt = Receipt(entries[-1].page, entries, known.first if known else seq, op_id, known is not None)
            if known is None and (window.crowded or writer.due):
                self._renderer.edition_after_append()
            return receipt

    # -- what the model may call

    @property
    def tools(self) -> list[Message]:
        """The schemas of the tools that the model may call; constant bytes. [] without the notice."""
        return [copy.deepcopy(RECALL_PAGE)] if self._window.settings.notice else []

    @property
    def functions(self) -> dict[str, Callable[..., str]]:
        """The same tools as Python functions, for a text protocol such as `memci.attp`."""

        def text(arguments: str) -> str:
            with self._usable():
                return self._answerer.text(arguments)

        return functions(text)

    def handles(self, call: object) -> bool:
        """Tell whether *call* (a tool call of a reply) is for a tool of the context."""
        return call_name(plain(call, "call")) in NAMES

    def answer(self, call: object) -> Message:
        """Return the tool message that answers one *call*; a model's mistake is answered, never raised.

        Raises:
            StorageError: If the page exists but can't be read.
        """
        with self._usable():
            return self._answerer.answers([plain(call, "call")])[0]

    def answers(self, reply: object) -> list[Message]:
        """Return a tool message for each call in *reply* (an assistant's message) that is for the context, else []."""
        with self._usable():
            return self._answerer.answers([call for call in tool_calls(plain(reply, "reply")) if self.handles(call)])

    # -- pages

    def recall_page(self, index: int, entry: int | None = None) -> list[Message]:
        """Return the messages of page *index*, whole and exact, or its one *entry*. O(messages of the page).

        Counts as a use of the page, once per turn, if it is not in the window.

        Raises:
            PageNotFound: If no page has this index, or it has no such entry; `Undone` if it was taken back.
        """
        with self._usable():
            page = page_text(self._window, self._reader, index, entry)
            chosen = [message for found, message in page.entries if entry is None or found.ordinal == entry]
            if not page.in_window:
                self._writer.recalled(page.index)
            return chosen

    def pin(self, index: int) -> None:
        """Keep page *index* verbatim in the window; an archived page comes back at the next edition.

        Raises:
            PageNotFound: If no page has this index.
            BudgetExceeded: If system, pins and a quarter for the open page would not fit any more.
        """
        with self._usable():
            self._writer.pin(index)

    def unpin(self, index: int) -> None:
        """Let page *index* be archived again, when its time comes."""
        with self._usable():
            self._writer.unpin(index)

    def archive(self, *, keep: int | None = None) -> tuple[int, ...]:
        """Start an edition now, and return the indexes of the pages that it archived.

        A good moment is when the provider's cache has gone cold anyway. It leaves the share of the active pages that
        an edition leaves, or the newest *keep* closed pages; the open page and pinned ones always stay.

        Raises:
            InvalidSetting: If *keep* makes no sense.
            BudgetExceeded: If the window can't fit, whatever is archived; nothing has changed then.
            StorageError: If it could not be stored.
        """
        if keep is not None and (type(keep) is not int or keep < 0):
            raise InvalidSetting("keep", f"expected how many closed pages to keep (an int from 0), got {keep!r:.60}")
        with self._usable():
            self._renderer.meter.breaks(self._window)
            return self._writer.archive(keep).archive

    def undo(self) -> list[Message]:
        """Take back the newest interaction and return its messages, in order.

        They are neither shown nor recalled any more, but stay in the store; page numbers are not used again.

        Raises:
            PageNotFound: If there is nothing to take back.
        """
        with self._usable():
            self._renderer.meter.breaks(self._window)
            return self._writer.undo()

    def pages(self) -> Iterator[PageInfo]:
        """Yield every page that was ever opened, by index: where it is, how it was used. O(pages)."""
        with self._usable():
            record, pins = self._window.record, self._window.memo.pins
            titles = {index: line.title for index, line in self._window.common.archive.contents.lines.items()}
        return self._reader.pages(record, pins, titles)

    def messages(self) -> Iterator[Message]:
        """Yield every message that was ever appended and not taken back, exact and in order. O(messages)."""
        with self._usable():
            record = self._window.record
        return self._reader.messages(record)

    # -- looking after it

    @property
    def id(self) -> str:
        """The context's name in its store."""
        return self._window.record.id

    def report(self) -> Report:
        """Return where the tokens and the pages are, and what a prompt cache keeps. O(messages in the window)."""
        with self._usable():
            return report(self._window, self._renderer.meter)

    def verify(self) -> list[str]:
        """Read everything that is stored, and return what is wrong with it; [] is well. O(messages)."""
        with self._usable():
            return list(problems(self._storage, self.id))

    def flush(self) -> None:
        """Wait until all that was appended is stored. Appending waits for that anyway: this returns at once."""
        with self._usable():
            return

    def close(self) -> None:
        """Close the context, and its store if it opened it. Closing twice is fine."""
        with self._lock:
            if not self._closed and self._owned:
                self._storage.close()
            self._closed = True

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        record = self._window.record
        return f"<Context {record.id!r:.60}: {record.head:,} messages, page #{record.next_page - 1}>"

    # -- private

    def _usable(self) -> threading.RLock:
        """Return the lock that every call holds.

        Raises:
            HandlePoisoned: If the context was closed.
        """
        if self._closed:
            raise HandlePoisoned(f"the context {self.id!r:.60} is closed: open it again")
        return self._lock

    def _notify(self, event: Event) -> None:
        if self.on_event is not None:
            self.on_event(event)

    def _draft(self, values: Sequence[object], *, opens_page: bool = True) -> Draft:
        window, reader = self._window, self._reader
        return draft(
            window,
            values,
            opens_page=opens_page,
            known=lambda call_id: window.made(call_id) or reader.made(call_id),
            costs=self._renderer.costs,
        )
