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
from typing import Annotated

from typer import Argument

from ..errors import CorruptRecord, InvalidSetting
from ..storage import Storage
from ..storage.opening import is_url
from ..storage.sqlite.loss import accept_loss
from .app import Json, NewStore, Store
from .output import many, terminal
from .stores import database, existing, open_store


def run_salvage(store: Store, target: NewStore, *, json: Json = False) -> bool:
    """Save what can be read of a damaged store into a new one. What is lost is named; the old store is only read."""
    from ..history.salvage import salvaged

    output = terminal(json=json)
    if not is_url(target) and Path(target).exists():
        raise InvalidSetting(target, "is there already, and was left as it is: name a new store")
    with _readable(store) as (source, refused), open_store(target, write=True, make=True) as into:
        if is_url(target) and into.contexts(limit=1):
            raise InvalidSetting("target", "holds contexts already: name an empty database or schema")
        found = list(salvaged(source, into))
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
        for reason in each.lost:
            output.line(f"  lost: {reason}")
    output.line(f"the new store: memci inspect {target}; its memory: memci consolidate {target}", "dim")
    return well


@contextmanager
def _readable(path: str) -> Iterator[tuple[Storage, str]]:
    """Yield the store at *path*, and "" or why commits are lost: then it is read from a copy, without its witness."""
    reason = _refused(path)
    if not reason:
        with open_store(path) as storage:
            yield storage, ""
        return
    with TemporaryDirectory(prefix="memci-") as folder:
        place, copy = existing(path, filled=True), Path(folder, "store")
        if place.is_dir():
            shutil.copytree(place, copy)
        else:
            for each in (place, *place.parent.glob(f"{place.name}-*")):
                shutil.copy2(each, f"{copy}{each.name.removeprefix(place.name)}")
        accept_loss(database(str(copy)))
        with open_store(str(copy)) as storage:
            yield storage, reason


def _refused(path: str) -> str:
    """Return why the store at *path* is not opened although its files are there, "" if it is opened."""
    try:
        with open_store(path):
            return ""
    except CorruptRecord as error:
        if is_url(path):
            raise
        return str(error)
