"""`memci doctor`: check what memci runs on, and whether a store is safe where it is.

It writes nothing into a store, but for `--accept`. It reads messages only to count those
that are erased: `memci verify` reads all.
"""

import platform
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final, Literal

import apsw
from rich.filesize import pick_unit_and_suffix
from rich.text import Text
from typer import Argument, Option

from ..errors import CorruptRecord, InvalidSetting, KeyMissing, MemciError, StorageBusy
from ..model_catalog import prices_source
from ..rows import Ticket
from ..storage.filesystem.store import DATABASE, MARK
from ..storage.locks import find_living, holder
from ..storage.opening import is_folder, is_url
from ..storage.protocol import CheckedStorage
from ..storage.sqlite.connection import check_library, connect, network_file_system, storage_error
from ..storage.sqlite.loss import SAVE, accept_loss, beside, check_left
from ..storage.sqlite.schema import APPLICATION_ID, version
from ..storage.witness import WAY_OUT
from .app import NamedCommand
from .commands import COMMANDS
from .configuration import HERE, config_file
from .options import Str
from .printer import Part, Result, many, many_messages, total, visible
from .stores import check_path, database, open_store, read_witness

_MIB: Final = 2**20
_LITTLE_SPACE: Final = 256 * _MIB  # bytes: a log that grows, or a file written again after an erasure, may need as much
_NO_SPACE: Final = 16 * _MIB  # bytes: a few large commits fill it
_LONG_LOG: Final = 64 * _MIB  # bytes: SQLite moves a log into the file long before, unless a reader holds it
_WIDTH: Final = 18  # columns of the names: the longest name of a check fits
_MARKS: Final = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}
_PACKAGES: Final = ("apsw", "orjson", "pydantic", "tiktoken", "typer", "rich")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    state: Literal["ok", "warning", "problem"]
    text: str
    advice: str = ""  # what to do; empty if all is well


def run_doctor(
    store: Annotated[Str, Argument(metavar="STORE", help="A store to check, too.")] = None,
    *,
    accept: Annotated[bool, Option("--accept", help="Accept a store that has lost commits as it is.")] = False,
) -> Result:
    """Check this machine, and how a store is kept on it. Changes nothing, but for --accept."""
    if accept and store is None:
        raise InvalidSetting("--accept", "name the store to accept")
    findings = [*_machine(), *_settings()]
    if store is not None:
        findings += [_accept(store)] if accept else []
        findings += _store(store)
    well = all(each.state != "problem" for each in findings)
    view: list[Part] = []
    for each in findings:
        advice = f": {each.advice}" if each.advice else ""
        mark, style = _MARKS[each.state]
        line = visible(f" {each.name:<{_WIDTH}}{each.text}{advice}")
        view.append((Text.assemble((mark, style), line), ""))
    return Result({"store": store, "well": well, "findings": findings}, view, well)


def _machine() -> Iterator[Finding]:
    yield Finding("memci", "ok", metadata.version("memci"))
    yield Finding("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield _library(apsw.sqlite_lib_version())
    for name in _PACKAGES:
        yield Finding(name, "ok", metadata.version(name))
    yield Finding("prices", "ok", prices_source())


def _settings() -> Iterator[Finding]:
    """Yield each option that the environment or the file sets, and where."""
    try:
        yield Finding("settings", "ok", str(config_file() or f"no file: {HERE}, or memci/config.toml of the user"))
        for name in COMMANDS:
            for option, each in NamedCommand(name).settings().items():
                yield Finding(f"{name} {option}", "ok", str(each))
    except InvalidSetting as error:
        yield Finding("settings", "problem", str(error))


def _unless(bad: bool, name: str, text: str, advice: str, well: str | None = None) -> Finding:
    """Return a warning with *advice* if it is *bad*, else that all is *well*, by default with the same text."""
    return Finding(name, "warning", text, advice) if bad else Finding(name, "ok", text if well is None else well)


def _library(version: str) -> Finding:
    try:
        check_library(version)
    except MemciError as error:
        return Finding("SQLite", "problem", version, str(error))
    return Finding("SQLite", "ok", f"{version}: safe, apsw's own")


def _store(path: str) -> Iterator[Finding]:
    if is_url(path):
        yield from _server(path)
        return
    place = check_path(path, filled=False)
    yield _file_system(network_file_system(path), folder=is_folder(path))
    yield _space(shutil.disk_usage(place if place.is_dir() else place.resolve().parent).free)
    found = list(_folder(place) if is_folder(path) else _file(path))
    yield from found
    slots = read_witness(path)
    known = None if slots is None else len(slots)
    none = "none: the loss of whole commits could not be seen; the next commit makes one"
    yield Finding("witness", "ok", none if known is None else f"holds the last commits of {many(known, 'context')}")
    if all(each.name != "schema" or each.state == "ok" for each in found):
        yield from _contents(path)


def _server(url: str) -> Iterator[Finding]:
    try:
        from ..storage.postgres.health import health

        found = [Finding(*each) for each in health(url)]
    except MemciError as error:
        yield Finding("server", "problem", str(error))
        return
    yield from found
    yield from _contents(url)


def _accept(path: str) -> Finding:
    """Accept the loss of commits in the store at *path*, if there is one."""
    if is_url(path):
        raise InvalidSetting("--accept", "is for files: a server keeps its own log")
    check_path(path, filled=False)
    try:
        with open_store(path) as storage:
            lost = storage.damage() if isinstance(storage, CheckedStorage) else []
    except CorruptRecord as error:
        lost = [str(error)]
    if not lost:
        return Finding("accepted", "ok", "nothing: no commit is lost")
    kept = accept_loss(database(path))
    reason = lost[0].removesuffix(f": {WAY_OUT}")
    advice = f"its log is kept as {kept}: remove that when you need it no more" if kept else ""
    return Finding("accepted", "warning", f"the store as it is, although {reason}", advice)


def _file_system(network: str | None, *, folder: bool) -> Finding:
    if network is None:
        return Finding("file system", "ok", "local, as far as the system says")
    if folder:
        text = f"{network}, over a network"
        return Finding("file system", "warning", text, "let one machine at a time use the store")
    return Finding("file system", "problem", f"{network}, where WAL corrupts", "move the store to a local disk")


def _space(free: int) -> Finding:
    text = f"{_size(free)} are free"
    if free < _NO_SPACE:
        return Finding("space", "problem", text, "make room: a commit that does not fit is refused (StorageFull)")
    return _unless(free < _LITTLE_SPACE, "space", text, "make room soon")


def _file(path: str) -> Iterator[Finding]:
    size = Path(path).stat().st_size
    yield Finding("file", "ok", _size(size))
    if not size:
        try:
            check_left(path)
        except CorruptRecord as error:
            yield Finding("schema", "problem", *_parts(error))
            return
        yield Finding("schema", "warning", "empty, not a store yet", "it becomes one when memci opens it for writing")
        return
    try:
        with closing(connect(path, read_only=True)) as connection:
            journal = connection.pragma("journal_mode")
            schema = version(connection, path)
    except apsw.NotADBError:
        other = "is not a SQLite file", "name a store; take a copy of it from a backup"
        yield Finding("schema", "problem", *("is damaged where it begins", SAVE) if beside(path) else other)
    except apsw.Error as error:
        yield Finding("schema", "problem", *_parts(storage_error(error, path)))
    except MemciError as error:
        yield Finding("schema", "problem", *_parts(error))
    else:
        yield Finding("schema", "ok", f"{schema}, application id {APPLICATION_ID:#x}")
        slow = journal not in {"wal", "truncate"}
        yield _unless(slow, "journal", journal, "memci opens it with a truncate journal; wal is quicker")
        yield from _beside(path, size)


def _beside(path: str, size: int) -> Iterator[Finding]:
    log, journal, kept = (Path(f"{path}{end}") for end in ("-wal", "-journal", "-wal.damaged"))
    pending = log.stat().st_size if log.exists() else 0
    late, advice = (
        f"{_size(pending)} are not in the file yet",
        "close what has read the store for long, then write once",
    )
    well = f"{_size(pending)}; it belongs to the file: copy both" if pending else "empty"
    yield _unless(pending > max(_LONG_LOG, size), "write-ahead log", late, advice, well)
    if journal.exists() and journal.stat().st_size:
        advice = "leave it there: the next opening for writing rolls back with it"
        yield Finding("rollback journal", "warning", "a write was cut short, or is going on", advice)
    if kept.exists():
        advice = "remove it when you need it no more; until then no erasure is complete"
        yield Finding("damaged log", "warning", f"{kept.name} is kept, from when its loss was accepted", advice)


def _folder(place: Path) -> Iterator[Finding]:
    files = [each for each in place.rglob("*") if each.is_file()]
    yield Finding("folder", "ok", f"{_size(sum(each.stat().st_size for each in files))} in {len(files):,} files")
    if not (place / MARK).is_file():
        yield Finding("schema", "problem", f"it has no {MARK}, so it is not a store", "name a store in it")
        return
    if not (place / DATABASE).is_file():
        yield Finding("schema", "problem", f"there is no {DATABASE}", "put the file back from a backup")
    else:
        yield from _file(str(place / DATABASE))
    left = [each for each in files if each.name.startswith(".") and each.name.endswith(".tmp")]
    advice = "a write was cut short, or is going on; memci erase STORE --scrub removes what is left"
    yield _unless(bool(left), "leftovers", f"{len(left):,} unfinished files", advice, "none")


def _contents(path: str) -> Iterator[Finding]:
    """Yield the locks, the contexts, and the pages that no memory could take in. O(pages)."""
    try:
        with open_store(path, plain=True) as storage:
            queues: dict[str, list[Ticket]] = {}
            for ticket in find_living(storage.tickets()):
                queues.setdefault(ticket.context, []).append(ticket)
            for context, (first, *others) in queues.items():
                waiting = f", {len(others):,} waiting" if others else ""
                yield Finding("lock", "ok", f"of {context!r:.60}: held by {holder(first)}{waiting}")
            yield Finding("locks", "ok", f"{len(queues):,} held now")
            from ..history.listing import count_erased
            from ..memory import TieredMemory

            records = storage.contexts()
            aside, erased = 0, total(count_erased(storage, each) for each in records)
            for each in records:
                with closing(TieredMemory(storage, owner=each.owner, read_only=True)) as memory:
                    aside += len(memory.set_aside(each.id))
    except MemciError as error:
        text, way_out, _ = str(error).partition(WAY_OUT)
        parts = (text.removesuffix(": "), way_out) if way_out else _parts(error)
        yield Finding("contexts", "warning" if isinstance(error, StorageBusy) else "problem", *parts)
        return
    sealed = sum(each.encrypted for each in records)
    if sealed:
        yield from _key(path)
    part, advice = f"{sealed:,} of {many(len(records), 'context')}", "copy the store into an encrypted one: memci copy"
    whole = "AES-256-GCM, every context; its key is yours to keep"
    none = "none: the files can be read by all who may open them"
    yield _unless(0 < sealed < len(records), "encryption", part, advice, whole if sealed else none)
    text = f"{len(records):,}, {many_messages(sum(each.head for each in records), erased)}"
    forks = sum(each.parent is not None for each in records)
    yield Finding("contexts", "ok", text + (f", {forks:,} of them forks" if forks else ""))
    if aside:
        advice = "memci verify says whether they can be read; memci consolidate feeds them again"
        yield Finding("memory", "warning", f"{many(aside, 'page')} set aside, and not searchable", advice)


def _parts(error: MemciError) -> tuple[str, str]:
    """Return what *error* says, and what it advises behind its last colon."""
    if isinstance(error, CorruptRecord) and "backup" not in str(error):
        return str(error), SAVE
    text, _, advice = str(error).rpartition(": ")
    return (text, advice) if text else (advice, "")


def _key(path: str) -> Iterator[Finding]:
    """Yield a warning if the environment has no key, or a wrong one, for an encrypted store. O(contexts)."""
    try:
        with open_store(path) as storage:
            for record in storage.contexts():
                record.read_settings()
    except KeyMissing as error:
        yield Finding("key", "warning", f"{error.what}: {error.reason}", "set MEMCI_KEY or MEMCI_KEY_FILE")


def _size(count: int) -> str:
    unit, name = pick_unit_and_suffix(count, ["bytes", "KiB", "MiB", "GiB"], 1024)
    return f"{count // unit:,} {name}"
