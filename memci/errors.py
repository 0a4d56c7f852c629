"""Every error that memci raises on purpose.

    MemciError
    ├── InvalidMessage      ValueError     a message that no provider would accept, or that is not exact JSON
    ├── InvalidSetting      ValueError     an argument or a setting of ours that makes no sense
    ├── LimitExceeded       ValueError     a message or a batch that is too large to store
    ├── OpenToolGroup       ValueError     a tool call still waits for its result
    ├── BudgetExceeded      ValueError     what can't be taken out of the window does not fit it
    ├── PageNotFound        KeyError       no page has this index
    │   ├── Undone                         it was there, and was taken back
    │   └── Erased                         it was there, and was erased on request
    ├── OpConflict          ValueError     an op_id came back with other content
    ├── ModelError          RuntimeError   a model did not give what it was asked for
    │   ├── ModelUnavailable               it did not answer: too slow, too busy, unreachable, or paused after failures
    │   ├── ModelRefused                   it refuses the request: the key, its name, what was sent
    │   ├── AnswerRejected                 it answered, but not what was asked for
    │   ├── CeilingReached                 the tokens that it may cost are spent
    │   └── EmbeddingFailed                what it gave are no vectors
    └── StorageError        OSError        the store could not do it
        ├── StorageFull                    no space left
        ├── StorageReadOnly                it can be read, not written
        ├── StorageUnavailable             it can't be reached or opened
        ├── StorageBusy                    another process holds it
        ├── WriteConflict                  another writer was here first
        ├── CommitUnknown                  it may be stored or not: open again, and ask
        ├── HandlePoisoned                 it was closed, or a write failed halfway: open it again
        ├── CorruptRecord                  a record does not hold what was written
        └── SchemaTooNew                   a later memci wrote this file

Each error says what and which, carries the facts as attributes, and tells two things that a caller needs:
`retryable` (the same call may succeed later) and `data_safe` (all that was acknowledged is still there).
A call that failed has changed nothing. This module knows nothing of the rest.
"""

from collections.abc import Mapping, Sequence


def brief(value: object) -> str:
    """Return a caller's *value* as an error names it: at most 60 characters, whatever it is."""
    try:
        return repr(value)[:60]
    except (ValueError, RecursionError):  # an integer of more digits than Python writes; a list in a list in a …
        return f"of type {type(value).__name__}"


class MemciError(Exception):
    """The root of all errors that memci raises on purpose."""

    retryable = False
    data_safe = True


class InvalidMessage(MemciError, ValueError):
    """A message is not one that a provider would accept, or not exact JSON."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.path, self.reason)


class InvalidSetting(MemciError, ValueError):
    """An argument or a setting makes no sense; *name* says which."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.name, self.reason)


class LimitExceeded(MemciError, ValueError):
    """Something is larger than the store accepts; *limit* says which limit, *value* what it met."""

    def __init__(self, limit: str, value: int, at_most: int) -> None:
        super().__init__(f"{limit}: {value:,}, at most {at_most:,}")
        self.limit = limit
        self.value = value
        self.at_most = at_most

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.limit, self.value, self.at_most)


class OpenToolGroup(MemciError, ValueError):
    """The window ends in tool calls without their results; *missing* holds the ids of the calls."""

    retryable = True

    def __init__(self, missing: Sequence[str]) -> None:
        names = ", ".join(repr(each) for each in missing)
        super().__init__(f"no result yet for tool call {names}: append the results first, or render(strict=False)")
        self.missing = tuple(missing)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.missing,)


class BudgetExceeded(MemciError, ValueError):
    """What can't leave the window is larger than its budget; *parts* holds tokens per part."""

    def __init__(self, budget: int, parts: Mapping[str, int]) -> None:
        listed = " + ".join(f"{name} {tokens:,}" for name, tokens in parts.items())
        super().__init__(
            f"{listed} = {sum(parts.values()):,} tokens can't be reduced, the budget is {budget:,}: "
            f"take a larger window, a smaller reply, or less of the largest part"
        )
        self.budget = budget
        self.parts = dict(parts)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.budget, self.parts)


class PageNotFound(MemciError, KeyError):
    """No page has this index; *valid* is the range of indexes that were given out so far."""

    def __init__(self, index: object, valid: tuple[int, int] | None) -> None:
        known = f"pages are #{valid[0]} to #{valid[1]}" if valid else "there are no pages yet"
        super().__init__(f"no page {brief(index)}: {known}")
        self.index = index
        self.valid = valid

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.index, self.valid)


class Undone(PageNotFound):
    """The page, or the operation, was taken back by undo()."""

    def __init__(self, what: str) -> None:
        MemciError.__init__(self, f"{what} was taken back by undo()")
        self.index = what
        self.valid = None

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (str(self.index),)


class Erased(PageNotFound):
    """The page, or what the operation stored, was erased: its bytes do not exist any more."""

    def __init__(self, what: str) -> None:
        MemciError.__init__(self, f"{what} was erased")
        self.index = what
        self.valid = None

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (str(self.index),)


class OpConflict(MemciError, ValueError):
    """This op_id was used before, with other messages."""

    def __init__(self, op_id: str) -> None:
        super().__init__(f"op_id {op_id!r} was used before with other messages: take a new one")
        self.op_id = op_id

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.op_id,)


class ModelError(MemciError, RuntimeError):
    """A model did not give what it was asked for; *step* says what the call was for. Nothing was changed by it."""

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.step = step
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.step, self.reason)


class ModelUnavailable(ModelError):
    """The model did not answer, however often it was tried; or it is left alone for a while, since it failed often.

    *partial* is what had come of an answer whose stream was cut.
    """

    retryable = True

    def __init__(self, step: str, reason: str, *, partial: str = "") -> None:
        super().__init__(step, reason)
        self.partial = partial

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.step, self.reason), {"partial": self.partial}


class ModelRefused(ModelError):
    """The provider refuses the request (the key, the model's name, what was sent): trying again is of no use."""


class AnswerRejected(ModelError):
    """The model answered, but not what it was asked for; the answer is not kept."""

    retryable = True


class CeilingReached(ModelError):
    """The tokens that were allowed are spent; no call is made until there are more."""


class EmbeddingFailed(ModelError):
    """An embedder raised, or gave what are no vectors; *embedder* says which. Search by words goes on without it."""

    def __init__(self, embedder: str, reason: str, *, retryable: bool = False) -> None:
        super().__init__(f"embedder {embedder!r}", reason)
        self.embedder = embedder
        self.retryable = retryable

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.embedder, self.reason), {"retryable": self.retryable}


class StorageError(MemciError, OSError):
    """The store could not do what it was asked."""


class StorageFull(StorageError):
    """No space is left for the store; nothing of the call was kept."""

    retryable = True


class StorageReadOnly(StorageError):
    """The store can be read, not written."""


class StorageUnavailable(StorageError):
    """The store can't be opened or reached."""

    retryable = True


class StorageBusy(StorageError):
    """Another process held the store for longer than we wait."""

    retryable = True


class WriteConflict(StorageError):
    """Another writer changed this context since it was opened: `Context.refresh()` reads what it is now."""


class CommitUnknown(StorageError):
    """The disk failed while a change was made final: it is stored whole or not at all, and which can't be told yet.

    Open the store again. An append that had an `op_id` is repeated with it, and is stored once; without one, compare
    the context's messages with what was appended.
    """

    retryable = True

    def __init__(self, op_id: str | None, reason: str) -> None:
        named = f"op_id {op_id!r}" if op_id is not None else "an append without op_id, or a compaction"
        super().__init__(f"{named} may be stored or not ({reason}): open the store again, then repeat it")
        self.op_id = op_id
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.op_id, self.reason)


class HandlePoisoned(StorageError):
    """This handle was closed, or can't be trusted after a failed write: open the store again."""


class CorruptRecord(StorageError):
    """A record does not hold what was written; *context* and *seq* say which."""

    data_safe = False

    def __init__(self, context: str, seq: int, reason: str) -> None:
        super().__init__(f"context {context!r}, seq {seq}: {reason}")
        self.context = context
        self.seq = seq
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.context, self.seq, self.reason)


class SchemaTooNew(StorageError):
    """A later version of memci wrote this file; it was not touched."""
