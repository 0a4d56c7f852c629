"""A new store that is made in a hidden folder beside its place, and then moved there: it is whole, or not there.

    backups/
      .memci-unfinished-x7f3k2q9/    locked while its program lives
        store, store-witness, …      ──▶  backups/agents.db, agents.db-witness, …

What a killed program left is removed by the next one that makes a store in that folder: nobody locks it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from ..errors import InvalidSetting, StorageError
from ..storage.filesystem.files import locked_whole, meaning
from ..storage.system import PRIVATE, lock_file, sync_folder, unlock_file

_HIDDEN: Final = ".memci-unfinished-"
_STORE: Final = "store"
_ENDS: Final = ("-witness", "-audit", "-wal", "-shm", "-journal")  # files beside that of a store
_SECONDS: Final = 5.0  # how long to wait for others that move something to the same folder
_LOCKS: Final = hasattr(os, "O_DIRECTORY")  # whether a folder can be locked; not on Windows, where nothing is removed


def beside(path: Path, end: str) -> Path:
    """Return the path of the file that is beside the store *path* and has this *end*."""
    return path.with_name(path.name + end)


def all_beside(path: Path) -> Iterator[Path]:
    """Yield the paths of all files that may be beside the store *path*."""
    return (beside(path, end) for end in _ENDS)


def free_place(target: str | os.PathLike[str]) -> Path:
    """Return the path of a new store *target*; InvalidSetting if there is something, or it can't be a store."""
    place = Path(target)
    if not place.name or "\0" in str(place):
        raise InvalidSetting("target", f"{str(target)!r} is no name of a file or a folder: name a new store")
    if there := next((each for each in (place, *all_beside(place)) if os.path.lexists(each)), None):
        raise InvalidSetting("target", f"{str(there)!r} is there already, and is unchanged: name a new store")
    if not os.path.isdir(place.absolute().parent):  # noqa: PTH112 -- a Path raises where it can't be reached
        raise InvalidSetting("target", f"there is no folder {str(place.parent)!r}: make it first")
    return place


@contextmanager
def moved_to(place: Path) -> Iterator[Path]:
    """Yield a path for a store, which is then moved to its *place*, with what is beside it; removed after an error.

    An OSError of what makes it becomes a StorageError, and a StorageError names its *place*.
    """
    made = place
    try:
        with _hidden_folder(place.absolute().parent) as hidden:
            made = hidden / _STORE
            yield made
            parent = str(place.absolute().parent)
            with locked_whole(parent, _SECONDS) if _LOCKS else nullcontext():
                free_place(place)  # again: another program may have taken it meanwhile
                for old, new in zip((made, *all_beside(made)), (place, *all_beside(place)), strict=True):
                    if old.exists():  # the file comes first: what belongs to a missing file would count as a loss
                        old.rename(new)
            sync_folder(str(place.absolute()))
    except StorageError as error:
        error.args = (str(error).replace(str(made), str(place)),)
        raise
    except OSError as error:
        hides = error.filename is None or _HIDDEN in str(error.filename)
        raise meaning(error, str(place if hides else error.filename)) from error


@contextmanager
def _hidden_folder(parent: Path) -> Iterator[Path]:
    for left in parent.glob(f"{_HIDDEN}*") if _LOCKS else ():
        with _lock(left) as is_alone:
            if is_alone and all(name.startswith(_STORE) for name in os.listdir(left)):  # noqa: PTH208
                shutil.rmtree(left, ignore_errors=True)
    while True:
        hidden = Path(mkdtemp(prefix=_HIDDEN, dir=parent))
        with _lock(hidden) as is_alone:
            if not is_alone or not hidden.exists():  # another program took it for one that was left
                continue
            try:
                yield hidden
            finally:
                shutil.rmtree(hidden, ignore_errors=True)
            return


@contextmanager
def _lock(folder: Path) -> Iterator[bool]:
    """Lock *folder* itself, and give whether no other program had; False if it is gone, or a link."""
    if not _LOCKS:
        yield True
        return
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | PRIVATE)
    except OSError:
        yield False
        return
    try:
        yield lock_file(file, 0.0)
    finally:
        unlock_file(file)
        os.close(file)
