"""Verifying: whether everything that a store holds of a context is there and consistent.

    problems(storage, "alice")      "entry 23: its bytes are not those that were written", …      nothing if all is well

It is the public counterpart of the `_check` methods. It reads everything and changes nothing.
"""

from collections.abc import Callable, Iterator

from ..errors import KeyMissing, MemciError
from ..rows import ENTRY, PAGE, VIEW, EntryRow
from ..storage import Storage
from .row_stream import Row, Unread, detached, readable_rows


def problems(storage: Storage, context: str, *, on_entry: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Yield a sentence for everything that is wrong with *context*; call *on_entry* for each entry. O(entries).

    KeyMissing if a key was not given: nothing is known of it then.
    """
    from .row_checks import RowChecks

    try:
        found = storage.load(context)
    except KeyMissing:
        raise
    except (MemciError, ValueError) as error:
        yield str(error)
        return
    if found is None:
        yield f"there is no context {context!r:.60}"
        return
    record = detached(found[0])
    checks = RowChecks(record)
    for row in readable_rows(storage, record, exact=False):
        try:
            checks.check(row)
        except KeyMissing:
            raise
        except (MemciError, ValueError) as error:
            yield f"{_name(row)}{error}"
        if isinstance(row, EntryRow):
            on_entry()
    yield from checks.whole()


def _name(row: Row | Unread) -> str:
    """Return which row an error is about, as the beginning of a sentence; "" where the error says so itself."""
    if isinstance(row, EntryRow):
        return f"entry {row.seq}: "
    if isinstance(row, Unread) and row.table in (ENTRY, VIEW, PAGE):
        return f"page #{row.number}: " if row.table is PAGE else f"entry {row.number}: "
    return ""
