"""The conversation of one request: its context, found by the list of messages, and the request to the provider.

    the client's list                        the context that has it
    u1 a1 u2                                 key-1f9a…:digest(u1)
    u1 a1 u2 a2 u3                           the same: it grows
    u1 a1 u4                                 key-1f9a…:digest(…, u4): a fork that shares u1 a1

The name of a fork follows from the messages alone, so that every worker finds it, also after a restart. Conversations
of one credential are never found with another. Where several share a memory, it forgets what an edited list does not
have any more (`memci.context.branches`); a list with another beginning is no edit, but trimmed, compacted or new. What
a trimmed list still has is known by its own context alone from then on.

A list whose end moved on is no fork: its end is taken back, and what stands there now is shown as pending, so that none
of it is archived.

    u1 a1 FILES u2 REMINDER
    u1 a1 u2 a2 FILES u3 REMINDER

A request for a summary of the conversation (`memci.serve.summary_request`) gets a context of its own, in memory, with
the whole list.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from .. import formats
from ..chapters.system import notice
from ..context.branches import overlapping, take_over, withdraw_others
from ..context.context import Context
from ..context.loop import ToolCalls
from ..errors import BudgetExceeded, Diverged, InvalidSetting, StorageBusy, WriteConflict
from ..formats.identity import identity
from ..memory.backend import Scope
from ..messages import Enveloped, Message, call_name
from ..model_catalog import known_window
from ..settings import Policy
from ..storage import Storage
from ..storage.ephemeral import EphemeralStorage
from ..storage.protocol import ContextRecord
from ..text.interface import section
from .hidden import insert_hidden
from .streams import ReplyStream
from .summary_request import asks_for_summary, is_for_summaries
from .trimmed import Recent, find
from .wire import ClientRequest

_ATTEMPTS = 256  # contexts that are tried for one list: far more forks than a client makes, and still a bound
_MOVED = 64  # messages that move at most: files, a reminder and a question are some ten; each is taken back by itself
_COST_ATTEMPTS = 8
"""attempts to store a cost while the same client sends its next requests; more than a few conflicts were never seen"""

_TAKES_NO_TOOLS = re.compile(
    r"(?:tool|function)[^.\n]{0,60}(?:support|requires?\b|enabled)|(?:support|enabled)[^.\n]{0,40}(?:tool|function)",
    re.IGNORECASE,
)
"""what providers say of a model, or of their own settings, that takes no tools"""


@dataclass(frozen=True, slots=True)
class Caller:
    """The client of a request, and whose memory it may search."""

    key: str  # the beginning of all names of its conversations: a digest of its identity
    owner: str | None
    """the owner of all its conversations, which share a memory; None: each conversation has an owner of its own"""
    name: str | None = None  # the client's name for the conversation; None: the first message identifies it


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of all conversations."""

    window: int | None = None  # the window in tokens; None: that of the model, if it is known
    model: str | None = None  # the model whose rules count tokens; None: the first model that a conversation is sent to
    policy: Policy | None = None


class Conversation:
    """The context of one request: an `Exchange`. Its methods read and write the store: call them in a thread."""

    def __init__(
        self, storage: Storage, scope: Caller, options: Options, request: ClientRequest, recent: Recent | None = None
    ) -> None:
        """Find or make the context of *request*, and store what is new of the list. O(the list).

        Raises:
            BudgetExceeded: If the window can't hold the system prompt and a quarter for the open page.
            InvalidMessage: If a message of the list does not have its format.
            InvalidSetting: If no window is known for the model.
            StorageError: If the store can't be read or written.
        """
        self.client = request
        self.forks = 0
        """the number of forks that were made, since the list differs from a stored one"""
        self.called: Counter[str] = Counter()
        """the number of answered calls of each of memci's tools"""
        self._storage, self._scope, self._recent = storage, scope, recent or Recent()
        self._counted_by = options.model
        self._messages = formats.read(request.items, request.format, opaque=True)
        self._pending: list[Message] = []  # messages at the end that moved: stored when the request is made
        self._start = 0  # the seq of the message with which the list begins; above 0: it was trimmed
        self._refused = False  # whether the provider said that the request was too long
        self._whole = self._asks_for_summary()
        if self._whole:
            self._storage = EphemeralStorage()
        self._opening = self._arguments(options)
        self.gate_tokens = 0
        """tokens that digests save in a request"""
        self.own: frozenset[str] = frozenset()
        """the names of memci's tools that the model may call: none until something is archived, and none if the client
        has tools of these names itself"""
        self._locate()

    @property
    def rewritten(self) -> bool:
        """Whether the provider gets a different body than the client sent."""
        return self.sent is not self.client.raw

    def _first_body(self) -> bytes:
        try:
            body = self._view()
        except BudgetExceeded:
            if not self._pending:
                raise
            self._store_pending()  # more moved than the window holds: it is archived as all messages are
            body = self._view()
        self._store_pending()
        return body

    def _view(self) -> bytes:
        """Return the client's body, or, once something of the list is archived or shortened, memci's."""
        context, request = self.context, self.client
        if self._start and not self._refused and self._fits_itself():
            return request.raw
        context.render(*self._pending, tools=request.schemas, strict=False, format="openai_chat")
        report = context.report(costs=False)
        if not (report.compactions or report.clipped):
            return request.raw
        self.own, self.gate_tokens = frozenset(self._offered()), report.gated_tokens
        return self.request(last=False)

    def _fits_itself(self) -> bool:
        """Return whether the window has the whole list, which the client trimmed. O(the list)."""
        count = len(self._list) - len(self._pending)
        shown = [message for page in self.context.turns(count) for message in page]
        whole = 0 < count <= len(shown) and identity(shown[-count]) == identity(self._list[0])
        return whole and not self._pending and not self.context.report(costs=False).clipped

    def _store_pending(self) -> None:
        if self._pending:
            self.context.flush()  # the memory forgets what was taken back, and the append stores that
            self.context.append_turn(*self._pending, gate=self._gates, opens_page=None)
            self._pending = []

    def request(self, *, last: bool) -> bytes:
        """Return the body with memci's view of the list, its notice and its tools. O(the window).

        Args:
            last: Whether the model must answer without a tool.

        Raises:
            BudgetExceeded: If what can't be archived does not fit.
            WriteConflict: If another request has changed the conversation.
        """
        client, context = self.client, self.context
        given: dict[str, Any] = {"tools": client.schemas, "strict": False, "format": client.format}
        made = self._despite_others(lambda: context.request(*self._pending, **given))
        view = made["input" if client.format == "openai_responses" else "messages"]
        if client.format == "openai_chat":
            view = view[1:]
        tools = context.tools_for(client.format) if self.own else []
        told = notice(searchable=len(tools) > 1) if self.own else ""
        if self._scope.owner is None:  # it can search this conversation only
            told = told.replace(section("notice")["shared"], "")
            tools = json.loads(json.dumps(tools).replace(section("search_memory")["shared"], ""))
        return client.with_view(view, notice=told, tools=tools, last=last)

    def next_request(self, *, last: bool) -> bytes:
        """Return the body of a further round, as `request`; behind the rounds of others if they were faster."""
        try:
            return self.request(last=last)
        except WriteConflict:
            self._go_on_behind_others()
            return self.request(last=last)

    def _go_on_behind_others(self) -> None:
        self.context.close()
        self._locate()

    def shorten(self, error: Exception) -> bool:
        """Return whether *error* says that the request was too long; then the next one is shorter.

        From then on the list is memci's view, with its tools; without them if it says that the model takes none.
        """
        if self.own and not self.client.tools and _TAKES_NO_TOOLS.search(str(error)):
            self.own = frozenset()
            return True
        if not self.context.overflowed(error):
            return False
        self._refused = True
        self.sent = self._first_body()
        return self.rewritten

    def keep(self, reply: ReplyStream, *, last: bool) -> ToolCalls | None:
        """Store *reply* with the answers to its calls of memci's tools, if it has any; None if it is the answer.

        If another request of the same list has stored its own rounds, and the client saw nothing of them, those are
        taken over. StorageBusy if others are always faster. O(the window).
        """
        found = reply.calls
        if last or found.cut or not found.own:
            return None
        _, calls = formats.calls(reply.reply, self.client.format)
        self._withdraw()  # a request of another branch may have been slower
        for _ in range(_ATTEMPTS):
            try:
                self._despite_others(lambda: self.context.append_turn(reply.reply, *self.context.answers(reply.reply)))
                break
            except WriteConflict:  # the same list was sent twice, and the other request was faster
                self._go_on_behind_others()
                if identity(self._list[-1]) != identity(self._messages[-1]):  # its rounds are those of both
                    break
        else:
            raise StorageBusy(f"{_ATTEMPTS} other requests of this list were faster: try again")
        self.called.update(call_name(call) for call in calls if call_name(call) in self.own)
        return [] if found.goes_on else None

    def add(self, call: Message, result: Message) -> None:
        """Do nothing: the client runs its own tools, and sends their results with its list."""

    def cost(self, usage: object) -> None:
        """Store the *usage* of the last request, unless other requests of the client conflict again and again."""
        if self._start and not self.rewritten:
            self.context.refresh()  # it calibrates nothing: less was sent than the window has
        with suppress(WriteConflict):
            self._despite_others(lambda: self.context.append_turn(usage=usage), messages=True)

    def _despite_others(self, call: Callable[[], Any], *, messages: bool = False) -> Any:
        """Return what *call* returns; made again if another request of the client stored its cost meanwhile.

        Raises:
            WriteConflict: If another request has stored messages, unless *messages* make no difference.
        """
        for _ in range(_COST_ATTEMPTS):
            try:
                return call()
            except WriteConflict:
                before = self.context.report(costs=False).messages
                self.context.refresh()
                if not messages and self.context.report(costs=False).messages != before:
                    raise
        return call()

    def close(self) -> None:
        """Close the context, which hands its pages to the memory."""
        self.context.close()
        if self._whole:
            self._storage.close()

    def _asks_for_summary(self) -> bool:
        """Return whether the client asks for a summary of the conversation: by its list, or by another prompt."""
        request = self.client
        if asks_for_summary(request.items[-1]):
            return True
        if not is_for_summaries(request.system):
            return False
        stored = self._storage.load(self._name)
        return len(request.items) == 1 if stored is None else stored[0].read_settings().get("system") != request.system

    def _arguments(self, options: Options) -> dict[str, Any]:
        request, model = self.client, options.model or self.client.model
        known = known_window(model)
        window = min(filter(None, (options.window, known)), default=None)
        if self._whole and window is not None:
            window = known or max(window, request.size)  # a model that is not known refuses what is too long for it
        if window is None:
            raise InvalidSetting(
                "window", f"none is known for the model {model!r:.60}: start memci serve with --window"
            )
        # the reply may use what the model's own window has beyond the one that was set
        beyond = None if known is None else known - window
        inside = min(request.reply, window // 4) if beyond is None else min(request.reply - beyond, window // 2)
        reply = max(0, inside) if request.reply else None
        policy = options.policy or Policy()
        if policy.dates is None:  # a request is passed as it came until its first compaction
            policy = replace(policy, dates="compacted")
        fields = {"system": request.system, "model": model, "window": window, "reply": reply, "policy": policy}
        return {**fields, "format": request.format}

    @property
    def _name(self) -> str:
        """The name of the context, if the list differs from no stored one."""
        told, name = self._scope.key, self._scope.name
        return f"{told}:" + (f"named:{name}" if name else _digest("", self._messages[:1]))

    def _locate(self) -> None:
        """Set `context` and `sent`: open the context of the list, or make it, as a fork if the list differs from it."""
        name, found = self._name, False
        for _ in range(_ATTEMPTS):
            known, others = self._storage.revision(name), list[ContextRecord]()
            if not known:
                elsewhere, others = self._find_elsewhere(recent=not found)
                if elsewhere and not found:
                    found, (name, self._start) = True, elsewhere
                    continue
            opening = {**self._opening, "owner": self._scope.owner or name}
            if known:  # a context keeps its first model: clients ask a second one in between
                opening["model"] = self._counted_by
            with ExitStack() as opened:
                self.context = opened.enter_context(Context.open(self._storage, name, **opening))
                try:
                    self._sync()
                    for other in others:
                        take_over(self._storage, self.context, other, self._messages)
                    if self.forks:
                        self._withdraw()
                    self.sent = self._first_body()
                    """the body for the provider: the client's body until something is archived"""
                except WriteConflict:
                    pass
                except Diverged as parted:
                    if not found and (behind := self._find_behind(parted.position)):
                        name, self._start = behind
                    else:
                        name = self._fork(parted)
                    found = True
                else:
                    opened.pop_all()
                    if self._scope.owner is not None:
                        self._recent.note(self._scope.owner, self.context.id)
                    return
        raise StorageBusy(f"the list differed from {_ATTEMPTS} stored ones, or other requests changed them: try again")

    def _fork(self, parted: Diverged) -> str:
        """Return the name of the context of the list, which *parted* from `context`: a fork, if a turn is shared."""
        name, shared = self._fork_name(self.context.id, parted.position), self._scope.owner is not None
        if not self._storage.revision(name):
            if parted.turn is not None:
                try:
                    self.context.fork(name, at=parted.turn, owner=None if shared else name).close()
                    self.forks += 1
                except InvalidSetting:  # another worker has made it; or `context` is a fork, of a later turn
                    parent = self._storage.load(self.context.id)
                    if not self._storage.revision(name) and parent is not None and parent[0].parent:
                        return parent[0].parent
            elif self._is_edited(parted.position):
                self.context.memory.erase(Scope(self.context.id))
        if self._start and (fork := self._storage.load(name)) is not None:
            self._start = min(self._start, fork[0].base)
        return name

    def _find_elsewhere(self, *, recent: bool = True) -> tuple[tuple[str, int] | None, list[ContextRecord]]:
        """Return where the list begins, which was trimmed, and the contexts that have parts of it otherwise.

        *recent*: whether those that the owner had last are enough, if it begins there.
        """
        owner = self._scope.owner
        if owner is None or not any(each["role"] == "assistant" for each in self._messages):
            return None, []
        if recent and (found := find(self._storage, owner, self._recent.of(owner), self._messages)):
            return found, []
        others = overlapping(self._storage, owner, self._messages)
        return find(self._storage, owner, [record.id for record in others], self._messages), others

    def _find_behind(self, position: int) -> tuple[str, int] | None:
        """Return where the list begins, which differs from `context` at *position*.

        If they begin alike, it is looked for there alone.
        """
        if position == 0:
            return self._find_elsewhere()[0]
        owner = self._scope.owner
        found = None if owner is None else find(self._storage, owner, [self.context.id], self._messages)
        return found if found and found[1] else None

    def _is_edited(self, position: int) -> bool:
        """Return whether the list, which differs from *position* on, is another version of the stored one. O(messages).

        No whole turn is the same, as with two conversations that begin with one greeting: an answer of both tells, or
        the client's name of the conversation.
        """
        if position == 0 or self._scope.owner is None:
            return False
        if self._scope.name:
            return True
        log = self.context.messages(start=self._start)
        stored = {_digest("", [each]) for each in log if each["role"] == "assistant"}
        return any(_digest("", [each]) in stored for each in self._messages)

    def _withdraw(self) -> None:
        """Let a shared memory know this branch of the conversation, and no other one. O(branches, and their pages)."""
        if self._scope.owner is not None:
            withdraw_others(self._storage, self.context)

    def _sync(self) -> None:
        """Store what is new of the list.

        Diverged if the list differs from the stored one, even with the hidden messages inserted.
        """
        context, form = self.context, self.client.format
        self._list, self._pending = self._messages, []
        given: dict[str, Any] = {"format": form, "start": self._start, "gate": self._gates}
        try:
            context.sync(self._list, **given)
        except Diverged:
            own, log = {call_name(tool) for tool in context.tools}, [*context.messages(start=self._start)]
            self._list = insert_hidden(form, self._messages, log, own)
            try:
                context.sync(self._list, **given)
            except Diverged as parted:
                forked = self._storage.revision(self._fork_name(context.id, parted.position))
                if forked or not self._take_back(log):
                    raise

    @property
    def _gates(self) -> bool:
        """Whether large results are shown as digests: not before the first compaction, and with the tool to read on."""
        return self.context.report(costs=False).compactions > 0 and bool(self._offered())

    def _take_back(self, log: list[Message]) -> bool:
        """Take back the end of the *log* if it moved on in the list, and return whether it did. O(messages).

        It moved if the newest message of the log stands further on in the list, or if the log has no answer to what the
        list has otherwise, and goes on with one. An answer at the end of the log is one that the client had begun for
        the model: none yet.
        """
        stored, listed = [identity(each) for each in log], [identity(each) for each in self._list]
        same = next((at for at, (old, new) in enumerate(zip(stored, listed, strict=False)) if old != new), len(listed))
        lost, new = log[same:], self._list[same:]
        asked = lost[:-1] if lost and lost[-1]["role"] == "assistant" else lost
        answered = [any(each["role"] == "assistant" for each in part) for part in (asked, new)]
        moved = not asked or stored[-1] in listed[same:] or answered == [False, True]
        if not same or len(lost) > _MOVED or not moved:
            return False
        if lost:
            try:
                self.context.take_back(len(lost))
            except InvalidSetting:  # one is archived
                return False
        self._pending = new
        return True

    def _offered(self) -> set[str]:
        """Return the names of memci's tools; none if the client has tools of these names, or functions of old."""
        own = {call_name(tool) for tool in self.context.tools}
        return set() if own & self.client.tool_names or self.client.body.get("functions") else own

    def _fork_name(self, name: str, position: int) -> str:
        """Return the name of the fork of *name* for this list, which differs from the item *position* on."""
        return f"{self._scope.key}:{_digest(name, self._shared_start(position))}"

    def _shared_start(self, position: int) -> list[Message]:
        """Return the messages of the list up to the one with the item *position*, which differs."""
        items = 0
        for count, message in enumerate(self._list, 1):
            items += len(message.native.items) - message.native.joins if isinstance(message, Enveloped) else 1
            if items > position:
                return self._list[:count]
        return [*self._list]


def _digest(before: str, messages: list[Message]) -> str:
    """Return a name that *messages* determine, behind the name *before*."""
    whole = b"".join(map(identity, messages))
    return blake2b(before.encode() + b"\0" + whole, digest_size=12).hexdigest()
