"""Copies the file of a SQLite store that is in use, by SQLite's own backup: one state of it, with all commits.

The copy has no locks, and a witness of its own.
"""

from contextlib import closing

import apsw

from ...errors import CorruptRecord
from ..witness import Slot, Witness, key_of
from .connection import connect, make_private, storage_error
from .loss import revisions, witness_path

_SECONDS = 5  # how long to wait for another process, as a store does


def copy_file(source: str, target: str, *, store: bool = True) -> None:
    """Copy the SQLite file *source* to the new file *target*, and sync it. O(bytes); others may write meanwhile.

    It is a *store*, or the file of a memory, which has no witness. It raises a StorageError, as opening it does.
    """
    make_private(target)
    try:
        with (
            closing(connect(source, read_only=True)) as old,
            closing(apsw.Connection(target)) as new,
        ):
            old.set_busy_timeout(1_000 * _SECONDS)
            new.pragma("synchronous", "FULL")
            with new.backup("main", old, "main") as copying:
                copying.step(-1)
            if store:
                new.execute("DELETE FROM ticket")  # its locks are those of handles of the source
                numbers = [number for (number,) in new.execute("SELECT number FROM context")]
                with closing(Witness(witness_path(target))) as witness:
                    witness.make()
                    for number, (context, revision) in revisions(new, numbers).items():
                        if not context:
                            raise CorruptRecord("", 0, f"{target!r} has a context without an id")
                        witness.note(Slot(key_of(context), revision, number))
    except apsw.Error as error:
        raise storage_error(error, target if isinstance(error, apsw.FullError) else source) from error
