"""Context: what stands between an agent and its model.

    context = Context.open("agent.db", id="alice", system="You are a travel agent.", window=32_000)
    messages = context.render("Book me a flight to Oslo.", tools=my_tools)
    reply = client.chat.completions.create(model="…", messages=messages, tools=[*my_tools, *context.tools])
    context.append_turn("Book me a flight to Oslo.", reply.choices[0].message, usage=reply.usage)

Each call that changes something is one transaction: it is committed first, and shown then. This is the one façade;
it knows nothing of how things are decided (`window`, `drafting`, `compactions`) and stored (`writer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Self

from ..chapters.pages import Entry
from ..chapters.unload import UnloadRule
from ..errors import InvalidSetting, brief
from ..history.events import Event
from ..history.loader import Wanted
from ..history.reader import PageInfo
from ..memory.backend import MemoryBackend, NullMemory
from ..messages import Message
from ..storage import Storage
from ..window.draft import Draft
from ..window.drafting import draft, moment
from .calls import Calls
from .lifetime import Store, kept_open
from .memory_page import MemoryPage
from .report import Receipt, Report, report

if TYPE_CHECKING:
    from ..llm.model import ChatModel
    from ..settings import Preset


class Context(Calls):
    """One conversation and its window. Thread-safe. Made by `Context.open`, closed by `close` or a `with` block."""

    @classmethod
    def open(
        cls,
        store: Store,
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
        standing_tokens: int | None = None,
        never_recalled: int | None = None,
        stale: int | None = None,
        rules: Sequence[UnloadRule] | None = None,
        notice: bool | None = None,
        read_only: bool = False,
        at: int | None = None,
        wait: float = 0,
        memory: MemoryBackend | None = None,
        chat: ChatModel | None = None,
        remember: bool | None = None,
        nonce: str | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> Self:
        """Open the context *id* in *store*, or make it. O(messages in the window), whatever was archived.

        None stands for the stored value of a setting. Opening writes nothing, but for a new context, and takes nothing
        from whoever writes the same one: new settings are stored with the first change, the first that changes it goes
        on, and the other one gets `WriteConflict` from its next `render` or change, and may `refresh`.

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
            archive_share: The share of the active pages that a compaction archives, 0 to 1.
            active_pages: How many closed pages stay verbatim at most; default: as many as fit.
            contents_tokens: The ceiling of the Contents Page; default 15 % of the window.
            standing_tokens: What the user's standing instructions ("always answer in French") may cost, which stay in
                the window verbatim; default min(600, 5 % of the window), 0 shows none.
            never_recalled: Turns after which a page that was never recalled is unloaded; default: never.
            stale: Turns without a recall after which a page that was recalled is unloaded; default: never.
            rules: Unload rules of your own, in place of those two; pass them at every open.
            notice: Whether the model is told of the archive and is offered `recall_page`; default True.
            read_only: Whether nothing is ever written: what changes the context is an error, and a compaction that a
                rendering needs is reckoned in memory only.
            at: Show the context as it stood at the close of this turn (from 0, as `PageInfo.turn`); only for reading.
            wait: Seconds to wait for the exclusive lock of this context, which is held until it is closed: no other
                caller that asks for it gets it meanwhile. 0 asks for none.
            memory: Where pages go that leave the window, and what is searched; default: `TieredMemory`, in the same
                store. `NullMemory()` remembers nothing, and the model is offered no search then.
            chat: A model (`memci.llm.Chat`) that makes better, in the background, what the default memory knows: lines
                of the Contents Page, topics, facts, the profile. No call of the context ever waits for it; default:
                none, all of it is extracted. A memory of your own is given its model when it is made.
            remember: Whether what the memory finds for a turn is shown in front of it, as a page of at most 3 % of the
                window; default False, since a provider's cache bills what stands behind it anew each turn.
            nonce: 8 hex digits in the frames of a new context; for tests that compare bytes.
            on_event: Called with every `Event`.

        Raises:
            InvalidSetting: If an argument makes no sense; it says which and why.
            BudgetExceeded: If system, tools and a quarter for the open page do not fit the window.
            StorageBusy: If another one held the lock for *wait* seconds.
            StorageError: If the store can't be opened or read.
        """
        given = {
            "model": model,
            "window": window,
            "reply": reply,
            "preset": preset,
            "archive_share": archive_share,
            "active_pages": active_pages,
            "contents_tokens": contents_tokens,
            "standing_tokens": standing_tokens,
            "never_recalled": never_recalled,
            "stale": stale,
            "notice": notice,
            "remember": remember,
        }
        read_only = read_only or at is not None
        if memory is not None and not isinstance(memory, MemoryBackend):
            raise InvalidSetting("memory", f"expected a MemoryBackend, got {type(memory).__name__}")
        if chat is not None:
            _check_chat(chat, memory)
        searchable = not isinstance(memory, NullMemory)
        wanted = Wanted(id, owner, system, counter, nonce, given, read_only, searchable, recount=at is not None)
        return cls(store, wanted, rules=rules, memory=memory, chat=chat, at=at, wait=wait, on_event=on_event)

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
        counter: Callable[[str], int] | None = None,
    ) -> Self:
        """Store the context that *lines* hold, whole or not at all, and open it. O(lines), all of it in memory.

        Args:
            store: Where to.
            lines: What `export` gave; or a plain chat: JSON of its messages, or a message per line.
            id: Its name; an export has the one that it had, a chat needs one.
            window: As in `open`; a chat needs it, an export brings it.
            system: As in `open`; default: what the export or the first message of the chat says.
            model: As in `open`.
            counter: As in `open`.

        Raises:
            InvalidSetting: If there is such a context, or the lines are no whole export and no chat; it says where.
            InvalidMessage: If a message of a chat is not one that a provider accepts.
            StorageError: If it could not be stored.
        """
        from ..history import chat_of, imported, imported_chat, is_native

        def opening(scratch: Storage, prompt: str | None) -> Context:
            said = system if system is not None else prompt
            return cls.open(scratch, id=id or "", window=window, system=said, model=model, counter=counter)

        text = list(lines)
        with kept_open(store) as storage:
            if text and is_native(text[0]):
                name = imported(storage, text, id=id)
            else:
                name = imported_chat(storage, chat_of(text), id=id or "", open_context=opening)
        return cls.open(store, id=name, window=window, system=system, model=model, counter=counter)

    # -- the loop of an agent

    def render(self, *pending: object, tools: Sequence[Message] = (), strict: bool = True) -> list[Message]:
        """Return the messages of the next request: within the budget, whatever was said before.

        Between two compactions each rendering extends the one before, byte for byte. The messages are shared with the
        window: copy one before you change it.

        Args:
            pending: Messages to show that are not appended yet; they count against the budget.
            tools: The schemas that are sent along, for counting; `context.tools` are counted anyway, once.
            strict: Whether tool calls without a result at the tail are an error; else they are shown as they are.

        Raises:
            BudgetExceeded: If what can't be taken out does not fit; it says what that is.
            OpenToolGroup: If calls at the tail wait for their results, which no provider accepts.
            InvalidMessage: If a pending message is not one.
            WriteConflict: If another writer has changed the context: `refresh`, then render again.
        """
        with self._usable():
            self._parts.writer.check_revision()
            renderer, page = self._parts.renderer, self._parts.memory_page
            if not pending:
                view = renderer.view(tools=tools, strict=strict)
                return view if page is None else self._remembered(page, view, ())
            view = renderer.pending(lambda: self._draft(pending), tools=tools, strict=strict)
            return view if page is None else self._remembered(page, view, pending)

    def append_turn(
        self,
        *messages: object,
        op_id: str | None = None,
        usage: object = None,
        at: datetime | str | None = None,
        opens_page: bool = True,
    ) -> Receipt:
        """Store *messages*, all or none, and take them into the window. O(new text), apart from compactions.

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
            Undone: If what *op_id* stored was taken back; `Erased` if it was erased.
            WriteConflict: If another writer has changed the context; nothing was stored: `refresh`, and decide anew.
            CommitUnknown: If the disk failed at the last moment: open the store again, and repeat it with its op_id.
            StorageError: If it could not be stored; nothing was.
        """
        with self._usable():
            window, writer = self._parts.window, self._parts.writer
            if op_id is not None and (not isinstance(op_id, str) or not op_id):
                raise InvalidSetting("op_id", f"expected a str that is not empty, got {op_id!r:.60}")
            when = moment(at)
            state = window.calibrated(usage, self._parts.renderer.predicted)
            drafted = self._draft(messages, opens_page=opens_page)
            seq = window.record.head
            if not drafted.nodes:
                writer.remember(state)
                return Receipt(window.record.open_page or 0, (), seq, op_id)
            if self._parts.memory_page is not None:
                state = self._parts.memory_page.kept(state, drafted)
            known = writer.append(drafted, state, op_id=op_id, at=when)
            entries = tuple(
                Entry(page, ordinal, node.message["role"])
                for (page, ordinal), node in zip(known.entries if known else drafted.places, drafted.nodes, strict=True)
            )
            receipt = Receipt(entries[-1].page, entries, known.first if known else seq, op_id, known is not None)
            if known is None and (window.crowded or writer.due):
                self._parts.renderer.compaction_after_append()
            self._remembering.used()
            return receipt

    # -- pages

    def pin(self, index: int) -> None:
        """Keep page *index* verbatim in the window; an archived page comes back at the next compaction.

        Raises:
            PageNotFound: If no page has this index.
            BudgetExceeded: If system, pins and a quarter for the open page would not fit any more.
        """
        with self._usable():
            self._parts.writer.pin(index)

    def unpin(self, index: int) -> None:
        """Let page *index* be archived again, when its time comes."""
        with self._usable():
            self._parts.writer.unpin(index)

    def archive(self, *, keep: int | None = None) -> tuple[int, ...]:
        """Start a compaction now, and return the indexes of the pages that it archived.

        A good moment is when the provider's cache has gone cold anyway. It leaves the share of the active pages that
        a compaction leaves, or the newest *keep* closed pages; the open page and pinned ones always stay.

        Raises:
            InvalidSetting: If *keep* makes no sense.
            BudgetExceeded: If the window can't fit, whatever is archived; nothing has changed then.
            StorageError: If it could not be stored.
        """
        if keep is not None and (type(keep) is not int or keep < 0):
            raise InvalidSetting("keep", f"expected how many closed pages to keep (an int from 0), got {keep!r:.60}")
        with self._usable():
            self._parts.renderer.meter.breaks(self._parts.window)
            return self._parts.writer.archive(keep).archive

    def undo(self) -> list[Message]:
        """Take back the newest interaction and return its messages, in order.

        They are neither shown nor recalled any more, but stay in the store; page numbers are not used again.

        Raises:
            PageNotFound: If there is nothing to take back.
        """
        with self._usable():
            self._parts.renderer.meter.breaks(self._parts.window)
            return self._parts.writer.undo()

    def pages(self) -> Iterator[PageInfo]:
        """Yield every page that was ever opened, by index: where it is, how it was used. O(pages)."""
        with self._usable():
            record, pins = self._parts.window.record, self._parts.window.state.pins
            titles = {index: line.title for index, line in self._parts.window.contents.lines.items()}
            known = {**self._parts.window.rows, **self._parts.window.listed} if self.read_only else {}
        return self._parts.reader.pages(record, pins, titles, known)

    def messages(self) -> Iterator[Message]:
        """Yield every message that was ever appended and not taken back, exact and in order. O(messages)."""
        with self._usable():
            record = self._parts.window.record
        return self._parts.reader.messages(record)

    # -- looking after it

    def report(self) -> Report:
        """Return where the tokens and the pages are, and what a prompt cache keeps. O(messages in the window)."""
        with self._usable():
            return report(self._parts.window, self._parts.renderer.meter, self._remembering.work)

    def _remembered(self, page: MemoryPage, view: list[Message], pending: Sequence[object]) -> list[Message]:
        shown = len(view) - len(self._parts.window.view) if pending else 0
        view = page.placed(view, view[len(view) - shown :], self._parts.renderer.predicted)
        self._parts.renderer.predicted += page.tokens
        return view

    def _draft(self, values: Sequence[object], *, opens_page: bool = True) -> Draft:
        window, reader = self._parts.window, self._parts.reader
        return draft(
            window,
            values,
            opens_page=opens_page,
            known=lambda call_id: window.made(call_id) or reader.made(call_id),
            costs=self._parts.renderer.costs,
        )


def _check_chat(chat: object, memory: MemoryBackend | None) -> None:
    if not callable(chat) or isinstance(chat, type):
        raise InvalidSetting("chat", f"expected a model to call, as memci.llm.Chat, got {brief(chat)}")
    if iscoroutinefunction(chat) or iscoroutinefunction(type(chat).__call__):
        raise InvalidSetting(
            "chat", f"{type(chat).__name__} is awaited; threads of their own call this one: give a Chat"
        )
    if memory is not None:
        raise InvalidSetting("chat", f"give the model to the memory: {type(memory).__name__}(…, chat=…)")
