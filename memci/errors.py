"""The errors of memci.

    MemciError
    ├── InvalidMessage      ValueError     a message that no provider accepts, or that is not exact JSON
    ├── InvalidSetting      ValueError     an argument or a setting that is not valid
    │   ├── SeveralOwners                  several owners have a context of this id: name one
    │   └── UnknownArgument     TypeError  a call has no argument of this name
    ├── LimitExceeded       ValueError     a message or a batch that is too large to store
    │   └── QuotaExceeded                  the contexts of an owner would hold more than their quota
    ├── OpenToolGroup       ValueError     a tool call has no result yet
    ├── BudgetExceeded      ValueError     what must stay in the window does not fit into it
    ├── PageNotFound        KeyError       no page has this index
    │   ├── Undone                         the page existed; undo() or pop() removed it
    │   └── Erased                         the page existed; it was erased on request
    ├── OpConflict          ValueError     an op_id was used again with other messages
    ├── Diverged            ValueError     a list of messages differs from the stored one
    ├── ModelError          RuntimeError   a model did not return what it was asked for
    │   ├── ModelUnavailable               no answer: timeout, overload, unreachable, or paused after failures
    │   ├── ModelRefused                   the provider refuses the request: its key, model name or content
    │   ├── AnswerRejected                 the answer is not what was asked for
    │   ├── CeilingReached                 the allowed tokens or steps are used up
    │   └── EmbeddingFailed                an embedder failed, or did not return vectors
    └── StorageError        OSError        the store failed
        ├── StorageFull                    there is no space left
        ├── StorageReadOnly                the store can be read, not written
        ├── StorageUnavailable             the store can't be reached or opened
        ├── StorageBusy                    another process or handle uses it
        ├── WriteConflict                  another writer changed the context before
        ├── CommitUnknown                  the change is stored completely or not at all: open the store again to see
        ├── HandlePoisoned                 the handle was closed, or a write failed: open the store again
        │   └── Closed                     the context was closed: open it again
        ├── KeyMissing                     it is encrypted, and its key was not given
        ├── CorruptRecord                  a record is damaged or missing
        └── SchemaTooNew                   a later memci wrote this file

A message says what failed, where, and what to do. The facts are attributes. Every error has two of them: `retryable`
(the same call may succeed later) and `data_safe` (all acknowledged data are still stored). A call that raises one of
these errors has changed nothing, except for `CommitUnknown`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def brief(value: object) -> str:
    """Return the text of *value* for an error, at most 60 characters."""
    try:
        return repr(value)[:60]
    except Exception:  # noqa: BLE001 -- an integer of too many digits, lists nested too deep, an object without a repr
        return f"of type {type(value).__name__}"


def hint(given: object, known: Iterable[str]) -> str:
    """Return ": did you mean …?" with the name of *known* that is most like *given*, "" if none is. O(names)."""
    names = {each.lower(): each for each in known}
    close = get_close_matches(str(given).lower()[:100], names, n=1, cutoff=0.7)
    return f": did you mean {names[close[0]]!r:.60}?" if close else ""


def check_keywords(given: Iterable[str], known: Iterable[str], call: str) -> None:
    """Raise UnknownArgument for the first of *given* that is not among *known*, the keywords of *call*."""
    known = [*known]
    for each in given:
        if each not in known:
            meant = hint(each, known) or f": it has {', '.join(name for name in known if name not in {'self', 'cls'})}"
            raise UnknownArgument(each, f"{call} has no such argument{meant}")


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """Return *function*, which says what was meant by a keyword that it does not have."""
    keywords = [*signature(function).parameters]

    @wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        check_keywords(given, keywords, function.__qualname__.removesuffix(".__init__"))
        return function(*args, **given)

    defaults = getattr(function, "__kwdefaults__", None)
    call.__kwdefaults__ = defaults  # type: ignore[attr-defined]  # programs read them, and `wraps` leaves them out
    return call


class MemciError(Exception):
    """The base of all errors of memci."""

    retryable = False
    """whether the same call may succeed later"""
    data_safe = True
    """whether all acknowledged data are still stored"""

    def __reduce__(self) -> str | tuple[object, ...]:
        """Return the parts of a copy: each named argument is an attribute of the same name."""
        arguments = signature(type(self).__init__).parameters.values()
        names = [each.name for each in arguments if each.kind is Parameter.POSITIONAL_OR_KEYWORD][1:]  # without self
        if not names:
            return super().__reduce__()
        return type(self), tuple(getattr(self, name) for name in names), self.__dict__


class InvalidMessage(MemciError, ValueError):
    """A message that no provider accepts, or that is not exact JSON; *path* says where in it, as `content[0].text`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class InvalidSetting(MemciError, ValueError):
    """An argument or a setting is not valid; *name* says which one, *reason* why and what to pass."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


class UnknownArgument(InvalidSetting, TypeError):
    """A call got an argument that it does not have; *name* says which one."""


class SeveralOwners(InvalidSetting):
    """Several owners have a context *id*, and none was named; *owners* holds them, or the first of them."""

    def __init__(self, id: str, owners: Sequence[str]) -> None:  # noqa: A002
        named = ", ".join(repr(each)[:60] for each in owners)
        super().__init__("owner", f"several have a context {id!r:.60}: pass owner=, one of {named}")
        self.id = id
        self.owners = tuple(owners)


class LimitExceeded(MemciError, ValueError):
    """Something is larger than the store accepts: *value* is its size, *at_most* the largest allowed for *limit*."""

    def __init__(self, limit: str, value: int, at_most: int) -> None:
        super().__init__(f"{limit}: {value:,}, at most {at_most:,}")
        self.limit = limit
        self.value = value
        self.at_most = at_most


class QuotaExceeded(LimitExceeded):
    """The contexts of *owner* would hold more than their quota; nothing was stored. `memci.storage.quota` counts."""

    def __init__(self, owner: str, limit: str, value: int, at_most: int) -> None:
        super().__init__(f"owner {owner!r:.60}: {limit} with this append", value, at_most)
        self.owner = owner
        self.limit = limit


class OpenToolGroup(MemciError, ValueError):
    """The window ends with tool calls that have no results; *missing* holds the ids of these calls."""

    retryable = True

    def __init__(self, missing: Sequence[str]) -> None:
        names = ", ".join(repr(each) for each in missing)
        super().__init__(f"no result yet for tool call {names}: append the results first, or render(strict=False)")
        self.missing = tuple(missing)


class BudgetExceeded(MemciError, ValueError):
    """What must stay in the window is larger than its *budget*; *parts* holds the tokens of each part that has some."""

    def __init__(self, budget: int, parts: Mapping[str, int]) -> None:
        parts = {name: tokens for name, tokens in parts.items() if tokens}
        listed = " + ".join(f"{name} {tokens:,}" for name, tokens in parts.items())
        super().__init__(
            f"{listed} = {sum(parts.values()):,} tokens can't be reduced, the budget is {budget:,}: "
            f"use a larger window, a smaller reply, or make the largest part smaller"
        )
        self.budget = budget
        self.parts = parts


class PageNotFound(MemciError, KeyError):
    """No page has this *index*, or it lacks the *entry*; *valid*: the first and the last index, None without pages."""

    _gone = ""  # what happened to it, if it was there

    def __init__(self, index: object, valid: tuple[int, int] | None = None, *, entry: object = None) -> None:
        known = f"pages are #{valid[0]} to #{valid[1]}" if valid else "there are no pages"
        missing = f"no page {brief(index)}: {known}" if entry is None else f"page #{index} has no entry {brief(entry)}"
        super().__init__(f"{index} {self._gone}" if self._gone else missing)
        self.index = index
        self.valid = valid

    def __str__(self) -> str:
        return str(self.args[0])


class Undone(PageNotFound):
    """undo() or pop() removed the page, or what the operation stored; *index* names it."""

    _gone = "was taken back"


class Erased(PageNotFound):
    """The page, or what the operation stored, was erased: its bytes no longer exist; *index* names it."""

    _gone = "was erased"


class OpConflict(MemciError, ValueError):
    """This op_id was used before, with other messages."""

    def __init__(self, op_id: str) -> None:
        super().__init__(f"op_id {op_id!r} was used before with other messages: use a new one")
        self.op_id = op_id


class Diverged(MemciError, ValueError):
    """A list of messages differs from the stored one; nothing was stored.

    *position* is the first item of the list that differs, or its length if more is stored. *turn* is the last turn
    that is the same in both, None if there is none: `context.fork(id, at=turn)` continues from there.
    """

    def __init__(self, position: int, turn: int | None) -> None:
        how = "make a new context" if turn is None else f"fork it at turn {turn}"
        super().__init__(f"the list differs from what is stored at item {position}: {how}, and sync that one")
        self.position = position
        self.turn = turn


class ModelError(MemciError, RuntimeError):
    """A model did not return what it was asked for; *step* names the purpose of the call. Nothing was changed."""

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.step = step
        self.reason = reason


class ModelUnavailable(ModelError):
    """The model did not answer after all retries, or calls are paused because it failed too often.

    *partial* is the text that arrived before a stream broke, "" if there is none.
    """

    retryable = True

    def __init__(self, step: str, reason: str, *, partial: str = "") -> None:
        super().__init__(step, reason)
        self.partial = partial


class ModelRefused(ModelError):
    """The provider refuses the request (its key, model name or content): the same request will fail again."""


class AnswerRejected(ModelError):
    """The model answered, but not what it was asked for; the answer was not used."""

    retryable = True


class CeilingReached(ModelError):
    """The allowed tokens, or steps of an agent, are used up; no call is made until more are allowed."""


class EmbeddingFailed(ModelError):
    """An embedder failed, or did not return vectors; *embedder* names it. Search by words works without it."""

    def __init__(self, embedder: str, reason: str, *, retryable: bool = False) -> None:
        super().__init__(f"embedder {embedder!r}", reason)
        self.embedder = embedder
        self.retryable = retryable


class StorageError(MemciError, OSError):
    """The store failed."""


class StorageFull(StorageError):
    """There is no space left for the store; nothing of the call was stored. Free some space and repeat the call."""

    retryable = True


class StorageReadOnly(StorageError):
    """The store can be read, not written: it was opened for reading, or its files are protected."""


class StorageUnavailable(StorageError):
    """The store can't be opened or reached, or the path holds something else."""

    retryable = True


class StorageBusy(StorageError):
    """Another process or handle used the store, or the lock of a context, for longer than this call may wait."""

    retryable = True


class WriteConflict(StorageError):
    """Another writer changed this context; nothing was stored. `Context.refresh()` reads its current state."""


class CommitUnknown(StorageError):
    """The disk failed during a commit: the change is stored completely or not at all, and which is unknown.

    Open the store again. Repeat an append with its *op_id*, and it is stored once. An append without one has to be
    compared with the messages of the context.
    """

    retryable = True

    def __init__(self, op_id: str | None, reason: str) -> None:
        named = f"op_id {op_id!r}" if op_id is not None else "an append without op_id, or a compaction"
        super().__init__(f"{named} may be stored or not ({reason}): open the store again, then repeat it")
        self.op_id = op_id
        self.reason = reason


class HandlePoisoned(StorageError):
    """This handle was closed, or a write failed, after which it is not used any more: open the store again.

    Acknowledged data are still stored.
    """


class Closed(HandlePoisoned):
    """The context was closed: open it again. All that was appended to it is stored."""


class KeyMissing(StorageError):
    """*what* is encrypted, and its key was not given; *key* is the name of that key, None if there is no key."""

    def __init__(self, what: str, key: str | None, reason: str) -> None:
        super().__init__(f"{what} can't be read: {reason}: open the store with EncryptedStorage, or set MEMCI_KEY")
        self.what = what
        self.key = key
        self.reason = reason


class CorruptRecord(StorageError):
    """A record is damaged or missing: *context* and *seq* name it, *reason* says how.

    *context* is "" if the damage is not in one record, but in a file of the store.
    """

    data_safe = False

    def __init__(self, context: str, seq: int, reason: str) -> None:
        super().__init__(f"context {context!r}, seq {seq}: {reason}" if context else reason)
        self.context = context
        self.seq = seq
        self.reason = reason


class SchemaTooNew(StorageError):
    """A later version of memci wrote this file, and it was not changed: install that version to open it."""
