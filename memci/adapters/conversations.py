"""The conversations of an adapter: a context for each of them, between a framework's list and its model.

    the framework's messages ──dump──▶ items ──sync──▶ context ──render──▶ items ──load──▶ the framework's messages

Before each call of the model, an adapter passes its list and gets the view; then it passes the reply. The list may
hold the whole conversation, or only the messages since the last run. A message that the view shows unchanged is the
framework's own object. An edited list continues in a fork.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count, pairwise, takewhile
from operator import itemgetter
from os import PathLike, fspath
from threading import Lock, RLock
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from .. import formats
from ..context.branches import withdraw_others
from ..context.context import Context, check_settings
from ..errors import Diverged, InvalidSetting, WriteConflict
from ..formats.envelope import function_call
from ..formats.identity import identity, unmarked
from ..formats.usage import if_readable
from ..history.erase import erase
from ..messages import parts_of, text_of
from ..storage.names import owned
from ..storage.opening import open_store
from ..tools import recall_page, search_memory
from ..workers import guard_lock
from .items import OWN, Item

M = TypeVar("M")
T = TypeVar("T")

TOOLS: tuple[Item, ...] = (recall_page.RECALL_PAGE, search_memory.SEARCH_MEMORY)
"""the schemas of the tools that the model may call, in the form of Chat Completions"""
OPEN = 64  # conversations that stay open: as many as are usually active at once, a few megabytes each
_ATTEMPTS = 8  # attempts beside other workers on the same conversation; more than a few conflicts were never seen


class View(NamedTuple, Generic[M]):
    """The system prompt and the messages for the model."""

    system: str  # the framework's system prompt, followed by memci's notice
    messages: list[M]


class Conversations(Generic[M]):
    """The contexts of one adapter, by the names of their conversations; safe for threads."""

    def __init__(
        self,
        store: Any,
        *,
        dump: Callable[[M], Iterable[Item]],
        load: Callable[[Sequence[Item]], Iterable[M]],
        format: str = "openai_chat",  # noqa: A002 -- the name that is used everywhere
        owner: str | Callable[[str], str] | None = None,
        **settings: Any,
    ) -> None:
        """Keep the conversations in *store*. A context is opened when its conversation is first used.

        Args:
            store: A path or a store, as for `Context.open`.
            dump: Writes a message of the framework as items of *format*, always the same ones.
            load: Reads items as messages of the framework.
            format: One of `memci.formats.FORMATS`.
            owner: The owner of the memory, or a function that returns it for the name of a conversation.
            settings: The settings of `Context.open`: `window`, `model`, `reply`, `policy`, `memory`, `chat`, …

        Raises:
            InvalidSetting: If no context could be opened with these settings.
        """
        if "system" in settings:
            raise InvalidSetting("system", "the system prompt is the framework's: give it to the agent")
        self._store = open_store(fspath(store)) if isinstance(store, (str, PathLike)) else store
        self._owns_store = self._store is not store
        self._dump, self._load, self._format = dump, load, format
        self._owner, self._settings = owner, settings
        check_settings(format=format, owner=None if callable(owner) else owner, **settings)
        self._open: OrderedDict[str, Context] = OrderedDict()
        self._locks: WeakValueDictionary[str, Any] = WeakValueDictionary()
        """a lock for each conversation that is held"""
        self._lists = _Lists()
        self._lock = guard_lock(Lock())
        """held for a moment to change the two above"""

    @contextmanager
    def _hold(self, name: str) -> Iterator[None]:
        """Hold the lock of the conversation *name*; calls for other conversations do not wait."""
        with self._lock:
            lock = self._locks.setdefault(name, guard_lock(RLock()))
        with lock:
            yield

    def view(
        self,
        name: str,
        messages: Iterable[M],
        *,
        system: str | None = None,
        tools: Iterable[Any] = (),
        whole: bool | None = None,
        new: bool = False,
    ) -> View[M]:
        """Store what is new of *messages*, and return the view for the model. O(the list, and the window).

        Args:
            name: The name of the conversation.
            messages: The framework's list, without its system prompt.
            system: The framework's system prompt.
            tools: The schemas of its tools, which count against the budget, with or without memci's own.
            whole: Whether the framework keeps the conversation, and gives all of it: then a list without its beginning
                was edited. Default: once a list had earlier turns.
            new: Whether all *messages* are known to be new.
        """
        with self._hold(name):
            dumped = [(message, list(self._dump(message))) for message in messages]
            items, schemas = [item for _, own in dumped for item in own], [*tools]
            keys = [*map(_key, items)]
            edited = not new and self._lists.lost_beginning(
                name, keys, whole=_has_turns(items, whole), kept=bool(whole)
            )

            def render() -> tuple[list[Item], list[Item]]:
                context = self._follow(name, items, system=system or None, whole=edited, new=new)
                first = (
                    context.render(tools=schemas, format="openai_chat")[:1] if context.system or context.tools else []
                )
                return context.render(tools=schemas, format=self._format, media_inside=True), first

            shown, first = self._try(name, render)
            if first and self._format == "openai_chat":
                shown = shown[1:]
            return View(text_of(first[0]) if first else "", self._messages_of(shown, dumped))

    def ask(self, name: str, call: Callable[[], T]) -> T:
        """Return the result of *call*, which asks the model with a view; if that was too long, it is called once more.

        Then the view is shorter: what the provider counts is learnt.
        """
        try:
            return call()
        except Exception as error:
            if not self.overflowed(name, error):
                raise
        return call()

    async def ask_async(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        """Do the same without blocking the loop."""
        try:
            return await call()
        except Exception as error:
            if not await asyncio.to_thread(self.overflowed, name, error):
                raise
        return await call()

    def overflowed(self, name: str, error: Exception) -> bool:
        """Return whether *error* says that the last request of the conversation *name* was too long."""
        with self._hold(name):
            return self.context(name).overflowed(error)

    def add(
        self, name: str, messages: Iterable[M], usage: object = None, *, whole: bool = False, new: bool = False
    ) -> None:
        """Store what is new of *messages*, and the usage of the last call. O(the list).

        Args:
            name: The name of the conversation.
            messages: The list with the reply, or only the reply.
            usage: The usage that the provider reported, in any format.
            whole: Whether these are all messages: if fewer are listed than stored, they go on in a fork.
            new: Whether all of them are known to be new.
        """
        with self._hold(name):
            items = [item for message in messages for item in self._dump(message)]
            self._lists.add(name, [*map(_key, items)])
            told = if_readable(usage)
            self._try(name, lambda: self._follow(name, items, usage=told, whole=whole, new=new))

    def answer(self, name: str, tool: str, arguments: object) -> str:
        """Return the answer of memci's tool *tool* in the conversation *name*; a mistaken call is answered, too.

        *arguments* are a dict, or JSON.
        """
        call = function_call("call", tool, arguments)
        with self._hold(name):
            return text_of(self._try(name, lambda: self.context(name).answer(call)))

    def messages(self, name: str) -> list[M]:
        """Return all messages of the conversation *name* as the framework has them. O(messages)."""
        with self._hold(name):
            context = self.context(name)
            context.refresh()
            return [*self._load(formats.write(self._format, [*context.messages()], media_inside=True))]

    def context(self, name: str) -> Context:
        """Return the context of the conversation *name*; after an edit of its past, the fork that continues it."""
        with self._hold(name):
            return self._open.get(name) or self._open_version(name, self._versions(name)[-1])

    def erase(self, name: str) -> None:
        """Erase the conversation *name* for good, with its forks, from the store and its memory.

        Raises:
            InvalidSetting: If a fork that the adapter did not make shares its messages.
        """
        with self._hold(name):
            self._lists.forget(name)
            if (context := self._open.pop(name, None)) is not None:
                context.close()
            for version in reversed(self._versions(name)):
                if (found := self._store.load(version)) is not None:
                    erase(self._store, context=version, owner=found[0].owner)

    def close(self) -> None:
        """Close all contexts, and the store if it was given as a path."""
        for name in [*self._open]:
            with self._hold(name):
                if (context := self._open.pop(name, None)) is not None:
                    context.close()
        if self._owns_store:
            self._store.close()

    def _try(self, name: str, act: Callable[[], T]) -> T:
        """Return the result of *act*; another worker may have changed the conversation, which is then read again."""
        for _ in range(_ATTEMPTS):
            try:
                return act()
            except WriteConflict:
                self.context(name).refresh()
        return act()

    def _follow(
        self,
        name: str,
        items: list[Item],
        *,
        system: str | None = None,
        usage: object = None,
        whole: bool = False,
        new: bool = False,
    ) -> Context:
        """Store what is new of *items* in the conversation *name*, or in a fork if they differ; return the context.

        They differ if they are not *whole* in it, or if they are edited anywhere. An earlier version goes on only if
        they are whole in it: what an edit took away does not come back. *new* ones are stored as they are.
        """
        if new:
            context = self._open_version(name, next(self._candidates(name)), system=system)
            context.refresh()
            items = [] if self._is_asked(context, items) else items
            if items or usage is not None:
                context.append_turn(*items, usage=usage)
            return context
        shared: tuple[int, int | None, str] = -1, None, ""
        """what is the same, and the version that has it; of several the oldest, whose states are all stored"""
        candidates = [*self._candidates(name)]
        for version in candidates:
            context, first = self._open_version(name, version, system=system), version == candidates[0]
            try:
                context.sync(items, format=self._format, whole=whole or not first, usage=usage)
            except Diverged as error:
                shared = max((error.position, error.turn, version), shared, key=itemgetter(0))
            else:
                return context if first else self._only(context, candidates)
        _, turn, version = shared
        after = f"{name}~{len(self._versions(name))}"
        if turn is not None:
            self._open_version(name, version).fork(after, at=turn).close()
        context = self._open_version(name, after, system=system)
        context.sync(items, format=self._format, whole=whole, usage=usage)
        return self._only(context, candidates)

    def _is_asked(self, context: Context, items: list[Item]) -> bool:
        """Return whether *items* are the question that the conversation ends with: it is asked again."""
        asked = formats.read(items, self._format)
        last = next(iter(context.turns(1)), [])[-len(asked) :] if asked and asked[-1]["role"] == "user" else []
        return bool(last) and [*map(identity, last)] == [*map(identity, asked)]

    def _only(self, context: Context, versions: Iterable[str]) -> Context:
        """Return *context*; a memory that it shares forgets what only other *versions* of the conversation hold."""
        if self._owner is not None:
            withdraw_others(self._store, context, versions)
        return context

    def _candidates(self, name: str) -> Iterator[str]:
        """Yield the ids of the contexts that may continue the conversation *name*: the open one, then newest first."""
        context = self._open.get(name)
        last = context.id if context is not None else None
        if last is not None:
            yield last
        yield from (each for each in reversed(self._versions(name)) if each != last)

    def _versions(self, name: str) -> list[str]:
        """Return the ids of the contexts of the conversation *name*, oldest first: its own, and those of its forks."""
        owner = self._owner_of(name)

        def stored(id: str) -> str | None:  # noqa: A002
            found = self._store.load(id) if owner is None else owned(self._store, id, owner)
            return None if found is None else found[0].id

        forks = (stored(f"{name}~{number}") for number in count(1))
        return [stored(name) or name, *(each for each in takewhile(bool, forks) if each)]

    def _owner_of(self, name: str) -> str | None:
        return self._owner(name) if callable(self._owner) else self._owner

    def _open_version(self, name: str, version: str, *, system: str | None = None) -> Context:
        """Open the context *version* of the conversation *name* with *system*, and return it."""
        with self._lock:
            context = self._open.pop(name, None)
        if context is not None and (context.id != version or (system is not None and context.system != system)):
            context.close()
            context = None
        if context is None:
            owner = self._owner_of(name)
            settings: dict[str, Any] = {
                "system": system,
                "owner": owner,
                "new": owner is not None,
                "format": self._format,
            }
            context = Context.open(self._store, version, **settings, **self._settings)
        with self._lock:
            self._open[name] = context
            unused = [each for each in self._open if each not in self._locks]
            for spare in unused[: max(0, len(self._open) - OPEN)]:
                self._lists.forget(spare)
                self._open.pop(spare).close()
        return context

    def _messages_of(self, items: Sequence[Item], given: Iterable[tuple[M, list[Item]]]) -> list[M]:
        """Return *items* as messages; those that came from a *given* message are that object.

        Of several that say the same, it is the one with the same thoughts, or else the newest one that is not shown.
        """
        own: dict[str, list[tuple[M, list[Item], list[str]]]] = {}
        for message, dumped in given:
            if keys := [*map(_key, dumped)]:
                own.setdefault(keys[0], []).append((message, dumped, keys))
        shown = [*map(_key, items)]
        messages: list[M] = []
        made: list[Item] = []
        at = 0
        while at < len(items):
            known = [each for each in own.get(shown[at], ()) if shown[at : at + len(each[2])] == each[2]]
            exact = (each for each in known if items[at : at + len(each[1])] == each[1])
            moved = (each for each in reversed(known) if each[1][0] not in items)  # a mark of the cache
            found = next(chain(exact, moved), None)
            if found is None:
                made.append(items[at])
                at += 1
                continue
            messages += self._load(made) if made else []
            made = []
            messages.append(found[0])
            at += len(found[1])
        return [*messages, *self._load(made)] if made else messages


class _Lists:
    """The last list of each conversation whose framework keeps it, in this process."""

    def __init__(self) -> None:
        self._keys: dict[str, list[int]] = {}
        self._trimmed: set[str] = set()

    def lost_beginning(self, name: str, keys: Sequence[str], *, whole: bool | None, kept: bool) -> bool:
        """Return whether the list with these *keys* lost the beginning of the one before: it was edited.

        One that the framework has *kept* may have lost all of it: it was cleared, and has other messages.
        Only the first loss is one of messages: a framework that goes on losing them trims its list.
        """
        made, last = [*map(hash, keys)], self._keys.get(name)
        if last is None or not made or whole is False:
            lost = False
        elif len(made) == 1:
            lost = made != last  # the same question, which has no answer yet, is asked again
        elif kept and not {*made[:-1]} & {*last}:
            lost = True
        else:
            lost = made[0] in last[1:] and made[0] != last[0] and name not in self._trimmed
            self._trimmed |= {name} if lost else set()
        if made and (whole or lost or (last and made[0] == last[0])):
            self._keys[name] = made
        return lost

    def add(self, name: str, keys: Sequence[str]) -> None:
        """Add what the answer of the model adds to the list."""
        if (last := self._keys.get(name)) is not None:
            last += {*map(hash, keys)} - {*last}

    def forget(self, name: str) -> None:
        """Forget the list of a conversation: the next one may be shorter."""
        self._keys.pop(name, None)
        self._trimmed.discard(name)


def _has_turns(items: Sequence[Item], whole: bool | None) -> bool | None:
    """Return *whole*; if it is None, True if *items* have earlier turns of the conversation."""
    if whole is not None:
        return whole
    roles = [None if item.get("tool_calls") else item.get("role") for item in items]
    return ("assistant", "user") in pairwise(roles) or None


def _key(item: Item) -> str:
    """Return what makes *item* the same in the list and in the window: not marks of the cache, which move.

    An answer that was clipped has lost what only the framework can read.
    """
    kept = {key: value for key, value in item.items() if key != OWN}
    if isinstance(kept.get("content"), str):
        kept["content"] = parts_of(kept["content"])
    clipped = item.get("role") == "assistant" and OWN not in item
    return json.dumps([unmarked(kept), clipped], sort_keys=True, default=str)
