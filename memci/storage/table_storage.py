"""What stores in the tables of a database do alike, SQLite or Postgres: arguments, and the walk through forks.

alice      0 1 2 3 4 5 6                 the rows of an entry are those of the context that appended it
alice-2    └──────┘ 4 5                  so 0 to 3 are read from alice, with the views of alice-2
"""

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, NoReturn

from ..errors import CorruptRecord
from ..rows import EntryRow, PageRow, PageState
from .validation import MAX_PAGE, check_text


class Place(NamedTuple):
    """The key of a context's rows, and its head and revision when it was read; `number` is 0 if it is missing."""

    number: int = 0
    head: int = 0
    revision: int = 0
    parent: str | None = None
    base: int = 0
    owner_key: int = 0  # the other part of the key in Postgres
    tokens: Sequence[int] = ()  # random numbers of its last commits in Postgres, newest first

    def token_of(self, revision: int) -> int | None:
        """Return the number of the commit that made *revision*, None if it is too old to be known."""
        back = self.revision - revision
        return self.tokens[back] if 0 <= back < len(self.tokens) else None


class TableStorage:
    """A store that finds the rows of a context by its `Place`."""

    @abstractmethod
    def _place(self, context: str) -> Place:
        """Read the place of *context*."""

    @abstractmethod
    def _pages(self, context: str, indexes: Sequence[int], state: PageState | None) -> Iterator[PageRow]:
        """Yield the pages with *indexes*, a range (in *state*) or sorted numbers."""

    @abstractmethod
    def _scan(
        self, context: str, shown: Place, name: str, holder: Place, seqs: Sequence[int], containing: bytes | None
    ) -> Iterator[EntryRow]:
        """Yield entries of *name*, at *holder*, with the views at *shown*: of *context*, the same one or a fork."""

    def revision(self, context: str) -> int:
        """Return the revision of *context*, 0 if there is no such context. One statement."""
        return self._place(context).revision

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, state: PageState | None = None
    ) -> Iterator[PageRow]:
        """Yield pages by index, as the protocol says; a page that is added meanwhile may be among them."""
        check_text("id", context)
        indexes = range(max(first, 1), 1 + (MAX_PAGE if last is None else min(last, MAX_PAGE)))
        return self._pages(context, indexes, state)

    def pages_at(self, context: str, indexes: Collection[int]) -> Sequence[PageRow]:
        """Return the pages with *indexes*, as the protocol says. One statement or two for each 256 of them."""
        return list(self._pages(context, sorted({index for index in indexes if 0 < index <= MAX_PAGE}), None))

    def entries(
        self,
        context: str,
        first: int = 0,
        end: int | None = None,
        *,
        containing: bytes | None = None,
        as_appended: bool = False,
    ) -> Iterator[EntryRow]:
        """Yield entries in order, as the protocol says; only those that exist at the call.

        With *containing*, the database does the search: other entries are neither read nor checked.
        """
        seqs = range(max(first, 0), 2**62 if end is None else end)
        return self._entries(context, seqs, containing, as_appended=as_appended)

    def entries_at(self, context: str, seqs: Collection[int]) -> Sequence[EntryRow]:
        """Return the entries with *seqs*, as the protocol says. Two statements for each 256 of them."""
        return list(self._entries(context, sorted({seq for seq in seqs if seq >= 0})))

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} can't be pickled: open it again there")

    def _entries(
        self, context: str, seqs: Sequence[int], containing: bytes | None = None, *, as_appended: bool = False
    ) -> Iterator[EntryRow]:
        """Yield the entries with *seqs*, a range or sorted numbers; only those that exist at the call."""
        name, holder, runs = context, self._place(context), []
        shown, seqs = Place() if as_appended else holder, seqs[: bisect_left(seqs, holder.head)]
        while seqs:
            if not holder.number:
                raise CorruptRecord(context, seqs[0], "what it was forked from is missing")
            shared = bisect_left(seqs, holder.base)
            runs.append((name, holder, seqs[shared:]))
            seqs = seqs[:shared]
            if seqs:
                name = holder.parent or ""
                holder = self._place(name)
        return (row for each in reversed(runs) for row in self._scan(context, shown, *each, containing))
