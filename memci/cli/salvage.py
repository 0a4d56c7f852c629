"""What `memci salvage` does: what can be read of a damaged store goes to a new one, and what is lost is named.

    $ memci salvage agent.db saved.db
    ! alice: 119 of 120 messages
      message 24 (page #12): its bytes are not those that were written

The damaged store is only read. This module knows nothing of how a context is salvaged.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import CorruptRecord, InvalidSetting
from ..storage import Storage
from ..storage.opening import is_url
from ..storage.sqlite.loss import accept_loss
from .app import Json, NewStore, Store
from .output import many, terminal
from .stores import database, existing, open_store

_LOST = 20
"""what is lost of a context that is printed, at most"""


def run_salvage(store: Store, target: NewStore, *, json: Json = False) -> bool:
    """Save what can be read of a damaged store into a new one. What is lost is named; the old store is only read."""
    from ..history.salvage import salvaged

    output = terminal(json=json)
    if not is_url(target) and Path(target).exists():
        raise InvalidSetting(target, "is there already, and was left as it is: name a new store")
    with _readable(store) as (source, place, refused), open_store(target, write=True, make=True) as into:
        if is_url(target) and into.contexts(limit=1):
            raise InvalidSetting("target", "holds contexts already: name an empty database or schema")
        found = [
            each._replace(lost=tuple(reason.replace(place, store) for reason in each.lost))
            for each in salvaged(source, into)
        ]
    lost = [refused] if refused else []
    well = not lost and not any(each.lost for each in found)
    if output.json:
        contexts = [each._asdict() for each in found]
        output.print_json({"store": store, "target": target, "well": well, "lost": lost, "contexts": contexts})
        return well
    for reason in lost:
        output.line(f"! {reason}", "yellow")
    for each in found:
        mark, style = ("✓", "green") if not each.lost else ("!", "yellow") if each.saved else ("✗", "red")
        result = many(each.messages, "message") if each.saved else "could not be saved"
        output.line(f"{mark} {each.id or 'unknown'}: {result}{', all of it' if not each.lost else ''}", style)
        for reason in each.lost[:_LOST]:
            output.line(f"  lost: {reason}")
        if len(each.lost) > _LOST:
            output.line(f"  and {len(each.lost) - _LOST:,} more: --json names them all", "dim")
    output.line(f"the new store: memci inspect {target}; its memory: memci consolidate {target}", "dim")
    return well


@contextmanager
def _readable(path: str) -> Iterator[tuple[Storage, str, str]]:
    """Yield the store at *path*, where it is read, and "" or why it is refused: then a copy without witness is read."""
    reason = _refused(path)
    if not reason:
        with open_store(path) as storage:
            yield storage, path, ""
        return
    with TemporaryDirectory(prefix="memci-") as folder:
        place, copy = existing(path, filled=True), Path(folder, "store")
        if place.is_dir():
            shutil.copytree(place, copy)
        else:
            for each in (place, *place.parent.glob(f"{place.name}-*")):
                shutil.copy2(each, f"{copy}{each.name.removeprefix(place.name)}")
        file = database(str(copy))
        accept_loss(file)
        _fill(file)
        if _refused(str(copy)):
            raise InvalidSetting(path, f"nothing of it can be read, take a backup: {reason}")
        with open_store(str(copy)) as storage:
            yield storage, str(copy), reason


def _fill(file: str) -> None:
    """Give a SQLite file that lost its end its length again: SQLite reads none that is shorter than it says."""
    with Path(file).open("r+b") as opened:
        head = opened.read(32)
        length = int.from_bytes(head[16:18]) * int.from_bytes(head[28:32])
        if length > Path(file).stat().st_size:
            opened.truncate(length)


def _refused(path: str) -> str:
    """Return why the store at *path* is not opened although its files are there, "" if it is opened."""
    try:
        with open_store(path):
            return ""
    except CorruptRecord as error:
        if is_url(path):
            raise
        return str(error)
