"""FilesystemStorage keeps the promises of a store in plain files, and fails loudly."""

import copy
import fcntl
import json
import os
import pickle
import random
import re
import resource
import signal
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path

import pytest

from memci.errors import (
    CommitUnknown,
    CorruptRecord,
    HandlePoisoned,
    InvalidSetting,
    LeaseLost,
    MemciError,
    SchemaTooNew,
    StorageBusy,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
)
from memci.storage import FilesystemStorage, filesystem_files
from memci.storage.filesystem_context import folder_name
from memci.storage.filesystem_erasing import dumps, stage
from memci.storage.filesystem_locks import Locks
from memci.storage.protocol import ContextRecord, Erasure, OpRow, PageRow, Place, Transition
from memci.testing.storage import DurableStorageConformance
from memci.testing.storage_rows import append, appended, current, entry


class TestFilesystemStorage(DurableStorageConformance):
    @pytest.fixture(autouse=True)
    def unsynced(self, unsynced: None) -> None:
        pass

    @pytest.fixture
    def reopen(self, path: Path) -> Callable[[], FilesystemStorage]:
        return lambda: FilesystemStorage(path, durability="fast")

    @pytest.fixture
    def storage(self, reopen: Callable[[], FilesystemStorage]) -> Iterator[FilesystemStorage]:
        storage = reopen()
        yield storage
        storage.close()

    @pytest.fixture
    def corrupt(self, path: Path) -> Callable[[str, int], None]:
        return lambda context, seq: flip(path, context, seq)

    @pytest.fixture
    def remove(self, path: Path) -> Callable[[str, int], None]:
        def delete(context: str, seq: int) -> None:
            file, line = line_of(path, context, seq)
            file.write_bytes(file.read_bytes().replace(line + b"\n", b""))

        return delete


class TestSpilledAtOnce(TestFilesystemStorage):
    """The same promises, where each commit first spills what the one before brought."""

    @pytest.fixture(autouse=True)
    def spill(self, spill_at_once: None) -> None:
        pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent"


@pytest.fixture
def storage(path: Path) -> Iterator[FilesystemStorage]:
    storage = FilesystemStorage(path, busy_timeout_seconds=0)
    yield storage
    storage.close()


@pytest.fixture
def spill_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memci.storage.filesystem_context.SPILL_BYTES", 0)


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is not about disks, and writes much."""
    monkeypatch.setattr(filesystem_files, "sync", lambda file: None)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder, and a user who owns it and is not root."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        if root:
            os.chown(name, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)


def line_of(path: Path, context: str, seq: int) -> tuple[Path, bytes]:
    """The file, and the line in it, that holds an entry."""
    for file in (path / "contexts" / folder_name(context)).rglob("*.jsonl"):
        for line in file.read_bytes().split(b"\n"):
            if b'","seq":%d,' % seq in line:
                return file, line
    raise AssertionError(f"no entry {seq}")


def flip(path: Path, context: str, seq: int) -> None:
    file, line = line_of(path, context, seq)
    file.write_bytes(file.read_bytes().replace(line, line[:-3] + bytes([line[-3] ^ 1]) + line[-2:]))


def everything(storage: FilesystemStorage, *contexts: str) -> list[object]:
    reads = (storage.load, storage.revision)
    lists = (storage.entries, storage.pages, storage.editions, storage.ops)
    return [[*(read(each) for read in reads), *(list(read(each)) for read in lists)] for each in contexts]


def fill(storage: FilesystemStorage, context: str, turns: int) -> None:
    """Commit *turns* of three messages each; ops, editions, views and archived pages come with them."""
    for turn in range(turns):
        record = current(storage, context)
        made = appended(record, *(b'{"content":"%d %d %b"}' % (turn, i, b"word " * 9) for i in range(3)))
        op = OpRow(f"op {turn}", b"d" * 16, record.head, tuple((record.next_page, i) for i in range(3)))
        if turn:
            archived = PageRow(record.next_page - 1, record.head - 3, record.head, turn, Place.ARCHIVED)
            view = ((record.head - 1, 5, 64),)
            made = made._replace(pages=(archived, *made.pages), views=view, edition=f'["edition {turn}"]')
        storage.commit(made._replace(op=op))


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


# The folder


def test_folder_tells_what_it_is(path: Path) -> None:
    """A new folder is made, for its owner alone, and says that it is ours."""
    FilesystemStorage(path).close()

    assert json.loads((path / "memci.json").read_text())["format"] == "memci folder"
    assert path.stat().st_mode & 0o777 == 0o700


def test_files_are_for_their_owner_alone(storage: FilesystemStorage, path: Path, spill_at_once: None) -> None:
    """Whatever the umask, no one else may read a file or enter a folder."""
    before = os.umask(0)
    try:
        fill(storage, "a", 3)
        storage.hold("a", 1)()
    finally:
        os.umask(before)

    modes = {(each.is_dir(), each.stat().st_mode & 0o777) for each in path.rglob("*") if each.parent.name != "turns"}

    assert modes == {(True, 0o700), (False, 0o600)}


def test_every_line_is_json(storage: FilesystemStorage, path: Path, spill_at_once: None) -> None:
    """Each line of each file is JSON, and a message stands in its line as it is, on the page that it was said on."""
    fill(storage, "a", 4)

    files = [file for file in path.rglob("*.jsonl") if file.is_file()]
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]

    messages = {each["seq"]: (each["page"], each["json"]["content"][:3]) for each in found if "seq" in each}
    assert messages == {seq: (seq // 3 + 1, f"{seq // 3} {seq % 3}") for seq in range(12)}
    assert {file.parent.name for file in files} > {"messages", "pages", "views", "editions", "ops"}


@pytest.mark.parametrize(
    ("durability", "timeout", "name"), [("safe", 5.0, "durability"), ("full", -1.0, "busy_timeout_seconds")]
)
def test_setting_that_makes_no_sense_is_refused(path: Path, durability: str, timeout: float, name: str) -> None:
    """An unknown durability or a negative timeout is refused by its name, and no folder is made."""
    with pytest.raises(InvalidSetting) as caught:
        FilesystemStorage(path, durability=durability, busy_timeout_seconds=timeout)  # type: ignore[arg-type]

    assert caught.value.name == name
    assert not path.exists()


def test_name_that_no_folder_can_have_is_refused(tmp_path: Path) -> None:
    """A NUL in a path is the caller's mistake."""
    with pytest.raises(InvalidSetting):
        FilesystemStorage(str(tmp_path / "a\x00b"))


def test_missing_folder_above_is_named(tmp_path: Path) -> None:
    """The folder that it is in is not made, and named."""
    with pytest.raises(StorageUnavailable, match="missing"):
        FilesystemStorage(tmp_path / "missing" / "agent")

    assert not (tmp_path / "missing").exists()


def test_file_is_no_folder(path: Path) -> None:
    """A path that is a file is refused with that reason."""
    path.touch()

    with pytest.raises(StorageUnavailable, match="no folder"):
        FilesystemStorage(path)


def test_folder_of_another_program_is_untouched(path: Path) -> None:
    """A folder that holds other things is refused, and nothing is written into it."""
    path.mkdir()
    (path / "theirs.txt").write_text("theirs")

    with pytest.raises(StorageUnavailable, match=r"theirs\.txt"):
        FilesystemStorage(path)

    assert contents(path) == {"theirs.txt": b"theirs"}


def test_folder_with_git_becomes_a_store(path: Path) -> None:
    """Who has made a repository of the folder before can still take it."""
    (path / ".git").mkdir(parents=True)

    FilesystemStorage(path).close()

    assert (path / "memci.json").exists()


@pytest.mark.parametrize(
    ("mark", "error"),
    [
        ('{"format":"memci folder","schema":2}', SchemaTooNew),
        ('{"format":"theirs","schema":1}', StorageUnavailable),
        ('{"format":"memci folder","schema":"1"}', StorageUnavailable),
        ("[" * 100_000, StorageUnavailable),
        ("", StorageUnavailable),
        ("3", StorageUnavailable),
    ],
)
def test_folder_that_is_not_ours_to_open_is_untouched(path: Path, mark: str, error: type[MemciError]) -> None:
    """A later schema, another program's mark or a damaged one is refused, and no byte changes."""
    path.mkdir()
    (path / "memci.json").write_text(mark)

    with pytest.raises(error):
        FilesystemStorage(path)

    assert contents(path) == {"memci.json": mark.encode()}


def test_folder_that_was_moved_poisons_the_handle(storage: FilesystemStorage, path: Path) -> None:
    """A folder that was moved or replaced under us takes no more writes."""
    append(storage, "a", b"1")
    path.rename(path.with_name("elsewhere"))
    path.mkdir()

    with pytest.raises(HandlePoisoned, match="moved"):
        storage.load("a")
    with pytest.raises(HandlePoisoned):
        append(storage, "a", b"2")

    assert list(path.iterdir()) == []


def test_pickling_is_refused(storage: FilesystemStorage) -> None:
    """A handle can't be pickled or copied; the error says what to do."""
    for carry in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="open its folder"):
            carry(storage)


# Names


def hostile_ids(count: int) -> list[str]:
    parts = ["..", "/", "\\", "a", "A", ".", " ", "\x00", "\n", "CON", "NUL", "~", "%2e", "é", "e\u0301", "\U0001f600"]
    parts += [
        "contexts",
        "context.jsonl",
        ".tmp",
        "*",
        "$(id)",
        "`",
        "|",
        "-rf",
        "\u202e",
        "\ufeff",
        "x" * 300,
        "'",
        '"',
    ]
    draw = random.Random(7)
    ids = {"", "../x", "/etc/passwd", "a/b", "a\\b", "a.", "a ", "a", "A", "ä", "a\u0308", "x" * 100_000}
    while len(ids) < count:
        ids.add("".join(draw.choices(parts, k=draw.randrange(1, 5))))
    return sorted(ids)


def test_ids_never_become_names(tmp_path: Path, unsynced: None) -> None:
    """Of 2,000 hostile ids each is a context of its own, none leaves the folder, none is seen in a name."""
    path = tmp_path / "inner" / "agent"
    path.parent.mkdir()
    storage = FilesystemStorage(path)
    ids = hostile_ids(2_000)

    for i, each in enumerate(ids):
        storage.commit(appended(ContextRecord(each, "o", "{}", "{}"), b"%d" % i))

    assert [record.id for record in storage.contexts()] == ids
    assert [[row.body for row in storage.entries(each)] for each in ids[::50]] == [
        [b"%d" % i] for i in range(0, 2_000, 50)
    ]
    assert len({unicodedata.normalize("NFC", each) for each in ids}) < len(ids), "there are twins among them"
    assert [*tmp_path.iterdir(), *path.parent.iterdir()] == [path.parent, path]
    names = {re.sub("[0-9a-f]{32}", "H", str(each.relative_to(path))) for each in path.rglob("*")}
    assert names == {"memci.json", "contexts", "contexts/H", "contexts/H/context.jsonl", "locks", "locks/H.lock"}
    storage.close()


SPOTS = [
    "contexts",
    "contexts/H",
    "contexts/H/context.jsonl",
    "contexts/H/messages",
    "contexts/H/messages/000000000000-p1.jsonl",
    "contexts/H/pages/0000000000.jsonl",
    "locks",
    "locks/H.lock",
    "memci.json",
    "erasing.jsonl",
]


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
@pytest.mark.parametrize("spot", SPOTS)
def test_what_is_no_file_of_ours_is_refused(tmp_path: Path, spot: str, kind: str, spill_at_once: None) -> None:
    """A link or a pipe in the place of ours is refused at once, and nothing outside is read, written or made."""
    path, outside = tmp_path / "agent", tmp_path / "outside"
    storage = FilesystemStorage(path)
    fill(storage, "a", 3)
    place = path / spot.replace("H", folder_name("a"))
    place.rename(outside) if place.exists() else outside.mkdir()
    before = contents(outside) if outside.is_dir() else outside.read_bytes()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(outside if kind == "link" else tmp_path / "nowhere")

    with pytest.raises(MemciError):
        list(storage.entries("a"))
        list(storage.pages("a"))
        append(storage, "a", b"1")
        append(storage, "a", b"2")
        FilesystemStorage(path)

    assert not (tmp_path / "nowhere").exists()
    assert (contents(outside) if outside.is_dir() else outside.read_bytes()) == before
    storage.close()


def test_file_of_another_user_is_refused(storage: FilesystemStorage, path: Path) -> None:
    """A file that belongs to someone else is not ours, whatever it says."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    append(storage, "a", b"1")
    os.chown(path / "contexts" / folder_name("a") / "context.jsonl", 65534, 65534)

    with pytest.raises(StorageUnavailable, match="another user"):
        storage.load("a")


def test_erasure_that_names_other_files_is_refused(storage: FilesystemStorage, path: Path) -> None:
    """A planted journal can't write or remove what is no file of ours, though its check sums are right."""
    append(storage, "a", b"1")
    for name in ("../x", "memci.json", "contexts/../../x", "/etc/x", f"contexts/{'0' * 32}/../x", "contexts/a\n"):
        for content in (b"x", None):
            (path / "erasing.jsonl").write_bytes(dumps({name: content}))
            before = contents(path.parent)

            with pytest.raises(CorruptRecord, match="no file of ours"):
                storage.load("a")

            assert contents(path.parent) == before


# Damage


def readings(storage: FilesystemStorage, context: str) -> list[object]:
    """What each way of reading gives, an error where it raises one; entries and pages one by one."""
    found: list[object] = []
    reads: list[Callable[[], object]] = [
        lambda: storage.load(context),
        lambda: storage.revision(context),
        lambda: list(storage.pages(context, place=Place.ACTIVE)),
        lambda: list(storage.editions(context)),
        lambda: list(storage.ops(context)),
        *(lambda i=i: list(storage.entries(context, i, i + 1)) for i in range(12)),  # type: ignore[misc]
        *(lambda i=i: list(storage.pages(context, first=i, last=i)) for i in range(1, 5)),  # type: ignore[misc]
    ]
    for read in reads:
        try:
            found.append(read())
        except MemciError as error:
            found.append(error)
    return found


@pytest.mark.slow
def test_flipped_bytes_are_told_or_harmless(storage: FilesystemStorage, path: Path) -> None:
    """Any byte of any file may change: what is read is what was written, or an error of ours; most stays readable."""
    storage.close()
    storage = FilesystemStorage(path, durability="fast")
    fill(storage, "a", 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memci.storage.filesystem_context.SPILL_BYTES", 0)
        fill_one_more(storage)
    whole = readings(storage, "a")
    lost: dict[str, list[int]] = {}

    for file in sorted((path / "contexts").rglob("*.jsonl")):
        content = file.read_bytes()
        for place in range(0, len(content), 5):
            file.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
            found = readings(storage, "a")
            assert all(new == old or isinstance(new, CorruptRecord) for new, old in zip(found, whole, strict=True)), (
                f"{file.name}, byte {place}"
            )
            lost.setdefault(file.parent.name, []).append(sum(isinstance(each, CorruptRecord) for each in found))
        file.write_bytes(content)

    assert readings(storage, "a") == whole
    assert max(lost["messages"]) <= 2, "two lines, where the newline between them goes"
    assert min(max(each) for each in lost.values()) == 1, "nothing is lost unseen"


def fill_one_more(storage: FilesystemStorage) -> None:
    record = current(storage, "a")
    storage.commit(appended(record, b'"9"', b'"10"', b'"11"')._replace(op=OpRow("late", b"d" * 16, 9, ((4, 0),))))


@pytest.mark.parametrize("kind", ["messages", "pages", "views", "editions", "ops"])
def test_file_that_is_gone_is_corrupt(storage: FilesystemStorage, path: Path, kind: str, spill_at_once: None) -> None:
    """A file that was deleted is missed when what it held is asked for."""
    fill(storage, "a", 3)
    file = next((path / "contexts" / folder_name("a") / kind).iterdir())
    before = readings(storage, "a")
    file.unlink()

    after = readings(storage, "a")

    assert any(isinstance(each, CorruptRecord) for each in after)
    assert all(new == old or isinstance(new, CorruptRecord) for new, old in zip(after, before, strict=True))


def test_context_without_its_file_is_corrupt(storage: FilesystemStorage, path: Path) -> None:
    """A context whose context.jsonl is gone is damaged, not new: nothing is started over it."""
    append(storage, "a", b"1")
    append(storage, "b", b"1")
    (path / "contexts" / folder_name("a") / "context.jsonl").unlink()

    for call in (
        lambda: storage.load("a"),
        lambda: storage.revision("a"),
        lambda: storage.commit(appended(ContextRecord("a", "a", "{}", "{}"), b"1")),
    ):
        with pytest.raises(CorruptRecord, match="missing"):
            call()
    assert storage.load("b") is not None


def test_folder_of_another_context_is_corrupt(storage: FilesystemStorage, path: Path) -> None:
    """A context's folder under another one's name is found out."""
    append(storage, "a", b"1")
    append(storage, "b", b"1")
    a, b = (path / "contexts" / folder_name(each) / "context.jsonl" for each in "ab")
    a.write_bytes(b.read_bytes())

    with pytest.raises(CorruptRecord):
        storage.load("a")


def test_line_of_another_context_is_corrupt(storage: FilesystemStorage, path: Path, spill_at_once: None) -> None:
    """A file of another context, whole in itself, does not pass for one of this."""
    for name, body in (("a", b'"a"'), ("b", b'"b"')):
        append(storage, name, body)
        append(storage, name, body)
    a, b = (next((path / "contexts" / folder_name(each) / "messages").iterdir()) for each in "ab")
    a.write_bytes(b.read_bytes())

    with pytest.raises(CorruptRecord):
        next(storage.entries("a"))


def test_damaged_news_are_not_written_over(storage: FilesystemStorage, path: Path) -> None:
    """Where the newest entries are damaged, a commit is refused rather than that it makes the damage look whole."""
    append(storage, "a", b"zero", b"one")
    transition = appended(current(storage, "a"), b"two")
    flip(path, "a", 0)

    with pytest.raises(CorruptRecord):
        storage.commit(transition)

    assert [row.body for row in storage.entries("a", 1)] == [b"one"]


# Costs


def test_growing_page_costs_what_is_new(storage: FilesystemStorage, path: Path) -> None:
    """A page of 1,000 entries grows by bounded writes: no file is large, and what is spilled is written once."""
    folder = path / "contexts" / folder_name("a")
    seen: dict[str, int] = {}
    body = b'"' + b"x" * 500 + b'"'

    for head in range(0, 1_000, 10):
        record = ContextRecord("a", "a", "{}", "{}", head + 10, 2, 0, 1, revision=head // 10 + 1)
        entries = tuple(entry(seq, body) for seq in range(head, head + 10))
        storage.commit(Transition(head, record, entries, (PageRow(1, 0, None, 0),)))
        for file in folder.glob("messages/*"):
            inode = file.stat().st_ino
            assert seen.setdefault(file.name, inode) == inode, "written twice"
            assert file.stat().st_size < 64 * 1_000
        assert (folder / "context.jsonl").stat().st_size < 64 * 1_000

    assert [row.body for row in storage.entries("a")] == [body] * 1_000
    assert len(seen) < 30


def test_active_pages_are_read_from_one_file(storage: FilesystemStorage, path: Path, spill_at_once: None) -> None:
    """The pages in the window are found in context.jsonl, wherever the others are."""
    fill(storage, "a", 5)
    for kind in ("pages", "messages", "views", "ops"):
        for file in (path / "contexts" / folder_name("a") / kind).iterdir():
            file.unlink()

    active = list(storage.pages("a", place=Place.ACTIVE))

    assert [page.index for page in active] == [5]


# Processes and threads


def test_held_context_is_busy(storage: FilesystemStorage, path: Path) -> None:
    """While another process writes a context, a write to it is StorageBusy; reading and other contexts go on."""
    append(storage, "a", b"1")
    transition = appended(current(storage, "a"), b"2")
    lock = Locks(storage._files, 5).held([folder_name("a")])
    child = dozing(lambda: lock.__enter__() is None)
    try:
        with pytest.raises(StorageBusy) as caught:
            storage.commit(transition)

        assert caught.value.retryable
        assert [row.body for row in storage.entries("a")] == [b"1"]
        append(storage, "b", b"1")
    finally:
        end(child)
    assert storage.commit(transition) is None


def test_lock_that_an_exception_left_behind_is_given_back(storage: FilesystemStorage) -> None:
    """A Ctrl-C while a lock is given back leaves it held: the next call of the handle gives it back."""
    append(storage, "a", b"1")
    left = FileIO(storage._files.open_lock(f"locks/{folder_name('a')}.lock"))
    fcntl.flock(left, fcntl.LOCK_EX)
    storage._locks._held.append(left)

    append(storage, "a", b"2")

    assert len(list(storage.entries("a"))) == 2
    assert left.closed


def dozing(begin: Callable[[], object]) -> int:
    """A process that has begun something and then sleeps, until it is killed."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            kept = begin()
            os.write(tell, b"x" if kept else b"")
            signal.pause()
        finally:
            os._exit(1)
    os.close(tell)
    with os.fdopen(ready, "rb") as told:
        assert told.read(1) == b"x"
    return child


def end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_turn_is_given_back_when_its_holder_dies(storage: FilesystemStorage, path: Path) -> None:
    """A turn is exclusive among processes, and a killed one does not keep it."""
    child = dozing(lambda: FilesystemStorage(path).hold("a", 1))
    try:
        with pytest.raises(StorageBusy):
            storage.hold("a", 0)
        storage.hold("b", 0)()
    finally:
        end(child)

    storage.hold("a", 1)()


def test_handle_is_of_no_use_after_a_fork(storage: FilesystemStorage) -> None:
    """A child process is told to open the store again, and its parent goes on."""
    append(storage, "a", b"1")
    child = os.fork()
    if child == 0:
        try:
            append(storage, "a", b"2")
        except HandlePoisoned:
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)

    append(storage, "a", b"3")

    assert status == 0
    assert [row.body for row in storage.entries("a")] == [b"1", b"3"]


# Failing disks


def test_full_disk_keeps_nothing_of_the_call(storage: FilesystemStorage, path: Path) -> None:
    """Without room a commit is StorageFull and leaves no trace; with room again the same handle goes on."""
    append(storage, "a", b"1")
    transition = appended(current(storage, "a"), b"small", b"x" * 100_000)
    new = appended(ContextRecord("b", "b", "{}", "{}"), b"x" * 100_000)
    before = contents(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        for each in (transition, new):
            with pytest.raises(StorageFull) as caught:
                storage.commit(each)
            assert caught.value.retryable
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert {name: each for name, each in contents(path).items() if not name.startswith("locks")} == {
        name: each for name, each in before.items() if not name.startswith("locks")
    }
    assert storage.commit(transition) is None
    assert storage.commit(new) is None
    assert len(list(storage.entries("a"))) == 3


@pytest.mark.parametrize(("failing", "error", "kept"), [(1, StorageUnavailable, 1), (2, CommitUnknown, 2)])
def test_failed_sync_poisons_the_handle(
    storage: FilesystemStorage,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: int,
    error: type[MemciError],
    kept: int,
) -> None:
    """A sync that fails before the commit means not stored, one that fails at it means unknown; both end the handle."""
    append(storage, "a", b"1")
    transition = appended(current(storage, "a"), b"2")._replace(op=OpRow("op", b"d" * 16, 1, ((2, 0),)))
    calls = 0

    def sync(file: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(filesystem_files, "sync", sync)

    with pytest.raises(error) as caught:
        storage.commit(transition)

    assert getattr(caught.value, "op_id", "op") == "op"
    with pytest.raises(HandlePoisoned, match="synced"):
        storage.load("a")
    monkeypatch.undo()
    again = FilesystemStorage(path)
    assert len(list(again.entries("a"))) == kept
    again.close()


class Killed(BaseException):
    """The process ends here."""


def lived(path: Path, after: int) -> int:
    """Live a short life in a child that dies at its system call number *after*; return how many steps it acked."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            left = after

            def deadly(call: Callable[..., object]) -> Callable[..., object]:
                def counted(*args: object, **named: object) -> object:
                    nonlocal left
                    left -= 1
                    if left < 0:
                        os._exit(7)
                    return call(*args, **named)

                return counted

            storage = FilesystemStorage(path, durability="fast")
            ack = os.write
            for name in ("mkdir", "write", "rename", "unlink", "rmdir"):
                setattr(os, name, deadly(getattr(os, name)))
            for step in steps(storage):
                step()
                ack(tell, b"x")
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as acks:
        count = len(acks.read())
    os.waitpid(child, 0)
    return count


def steps(storage: FilesystemStorage) -> list[Callable[[], object]]:
    def erase() -> None:
        tombstones = (("a", entry(1, b'"gone"')), ("a", entry(8, b'"gone"')))
        storage.erase(Erasure(("b",), tombstones, (Transition(9, current(storage, "a"), edition="after"),)))

    return [
        *[lambda: fill_turn(storage)] * 3,
        lambda: append(storage, "b", b"canary"),
        erase,
        lambda: fill_turn(storage),
    ]


def fill_turn(storage: FilesystemStorage) -> None:
    record = current(storage, "a")
    op = OpRow(f"op {record.head}", b"d" * 16, record.head, ((record.next_page, 0),))
    rows = (b'"canary %d %d"' % (record.head, i) for i in range(3))
    storage.commit(appended(record, *rows)._replace(op=op, edition=f"{record.head}"))


@pytest.mark.slow
def test_killed_at_any_call_leaves_whole_steps(tmp_path: Path, spill_at_once: None) -> None:
    """Wherever the process dies, each step is there whole or not at all, and what it acked is there."""
    model = FilesystemStorage(tmp_path / "model", durability="fast")
    states = [everything(model, "a", "b")]
    for step in steps(model):
        step()
        states.append(everything(model, "a", "b"))
    model.close()
    after, acked = 0, 0

    while acked < len(states) - 1:
        path = tmp_path / str(after)
        acked = lived(path, after)
        reader = FilesystemStorage(path, read_only=True)
        seen = everything(reader, "a", "b")
        reader.close()
        storage = FilesystemStorage(path, durability="fast")
        assert everything(storage, "a", "b") in states[acked : acked + 2], f"killed at call {after}"
        assert seen == everything(storage, "a", "b"), "who only reads sees the same"
        if everything(storage, "a", "b") == states[5]:
            storage.erase(Erasure())
            assert b"canary 0 1" not in b"".join(contents(path).values())
        fill_turn(storage)
        storage.close()
        after += 1

    assert after > 60


def test_what_was_left_unfinished_is_ignored_and_replaced(storage: FilesystemStorage, path: Path) -> None:
    """A file that was never given its name is no file of a context, and the next writer takes it away."""
    append(storage, "a", b"1")
    folder = path / "contexts" / folder_name("a")
    (folder / ".context.jsonl.tmp").write_bytes(b"half a lin")
    (path / "contexts" / f".{folder_name('b')}.tmp").mkdir()
    (path / "contexts" / f".{folder_name('b')}.tmp" / "context.jsonl").write_bytes(b"half")

    assert [record.id for record in storage.contexts()] == ["a"]
    append(storage, "a", b"2")
    append(storage, "b", b"1")

    assert [each for each in path.rglob("*") if each.name.endswith(".tmp")] == []


# Reading only


def test_read_only_handle_writes_nothing(storage: FilesystemStorage, path: Path) -> None:
    """A handle for reading reads, sees what others commit, and refuses to change anything."""
    fill(storage, "a", 3)
    reader = FilesystemStorage(path, read_only=True)
    transition = appended(current(storage, "a"), b"1")
    before = contents(path)

    assert everything(reader, "a") == everything(storage, "a")
    for call in (lambda: reader.commit(transition), lambda: reader.erase(Erasure()), lambda: reader.hold("a", 0)):
        with pytest.raises(StorageReadOnly):
            call()
    assert contents(path) == before
    storage.commit(transition)
    assert everything(reader, "a") == everything(storage, "a")
    reader.close()


def test_read_only_makes_no_store(path: Path) -> None:
    """Where there is no store, reading only is an error, and no folder is made."""
    with pytest.raises(StorageUnavailable, match="no folder"):
        FilesystemStorage(path, read_only=True)
    assert not path.exists()
    path.mkdir()

    with pytest.raises(StorageUnavailable, match="no store"):
        FilesystemStorage(path, read_only=True)

    assert contents(path) == {}


@pytest.mark.parametrize("read_only", [True, False])
def test_folder_without_the_right_to_write_can_be_read(
    unprivileged: Path, read_only: bool, spill_at_once: None
) -> None:
    """Where nothing may be written a store is read, also one with an erasure cut short, and a commit is refused."""
    path = unprivileged / "agent"
    storage = FilesystemStorage(path)
    fill(storage, "a", 3)
    erasure = Erasure(entries=(("a", entry(0, b'"gone"')),))
    (path / "erasing.jsonl").write_bytes(dumps(stage(storage._files, erasure)[0]))
    (path / "erasing.jsonl").chmod(0o600)
    storage.close()
    folders = [path, *(each for each in path.rglob("*") if each.is_dir())]
    files = [each for each in path.rglob("*") if each.is_file()]
    for each in (*files, *folders):
        each.chmod(0o555 if each.is_dir() else 0o444)

    storage = FilesystemStorage(path, read_only=read_only)

    assert next(storage.entries("a")).body == b'"gone"'
    assert len(list(storage.entries("a"))) == 9
    with pytest.raises(StorageReadOnly):
        storage.commit(appended(current(storage, "a"), b"2"))
    storage.close()
    for each in folders:
        each.chmod(0o755)


# Forks and erasing


def fork(storage: FilesystemStorage, parent: str, name: str, base: int) -> None:
    record = ContextRecord(name, name, "{}", "{}", head=base, parent=parent, base=base)
    storage.commit(Transition(0, record))


def test_fork_reads_what_it_shares_with_views_of_its_own(storage: FilesystemStorage, spill_at_once: None) -> None:
    """A fork of a fork shows the past of both with its own views, and theirs stay as they are."""
    fill(storage, "a", 3)
    fork(storage, "a", "b", 5)
    append(storage, "b", b"b")
    fork(storage, "b", "c", 6)
    storage.commit(Transition(6, current(storage, "c"), views=((2, 1, 2), (5, 3, 4))))
    append(storage, "c", b"c")
    append(storage, "a", b"a")

    rows = list(storage.entries("c"))

    assert [row.body for row in rows] == [row.body for row in storage.entries("a", 0, 5)] + [b"b", b"c"]
    assert [(row.tokens, row.clip) for row in rows] == [(7, 0), (7, 0), (1, 2), (7, 0), (7, 0), (3, 4), (7, 0)]
    assert [(row.tokens, row.clip) for row in storage.entries("a", 2, 4)] == [(5, 64), (7, 0)]
    assert [row.seq for row in storage.entries("c", 4, 6)] == [4, 5]


def test_fork_of_nothing_is_refused(storage: FilesystemStorage) -> None:
    """A fork shares only what is there."""
    append(storage, "a", b"1")

    for parent, base in (("a", 2), ("nobody", 0)):
        with pytest.raises(InvalidSetting):
            fork(storage, parent, "b", base)

    assert [record.id for record in storage.contexts()] == ["a"]


@pytest.mark.parametrize("spills", [True, False])
def test_erased_bytes_are_in_no_file(
    storage: FilesystemStorage, path: Path, spills: bool, request: pytest.FixtureRequest
) -> None:
    """What is erased is gone from every file: entries, views, editions, digests of ops, what was left unfinished."""
    if spills:
        request.getfixturevalue("spill_at_once")
    storage.commit(
        appended(current(storage, "a"), b'"canary"', b'"stays"')._replace(
            op=OpRow("op", b"canary canary 16", 0, ((1, 0), (1, 1))), edition="canary"
        )
    )
    fill(storage, "a", 2)
    storage.commit(Transition(8, current(storage, "a"), views=((0, 777_777, 1),), edition="canary too"))
    fork(storage, "a", "b", 4)
    append(storage, "b", b"1")
    append(storage, "c", b"canary")
    storage.commit(Transition(5, current(storage, "b"), views=((0, 777_777, 2),)))
    for name in (".context.jsonl.tmp", ".other.jsonl.tmp"):
        (path / "contexts" / folder_name("a") / name).write_bytes(b"canary")

    after = Transition(8, current(storage, "a"), edition="after"), Transition(5, current(storage, "b"))
    erased = storage.erase(Erasure(("c",), (("b", entry(0, b'"gone"')),), after))

    assert (erased.contexts, erased.entries, erased.editions, erased.ops, erased.scrubbed) == (1, 2, 3, 1, True)
    held = b"".join(contents(path).values())
    assert not any(each in held for each in (b"canary", b"canary canary 16".hex().encode(), b"777777"))
    assert [row.body for row in storage.entries("a", 0, 2)] == [b'"gone"', b'"stays"']
    assert next(storage.entries("b")).body == b'"gone"'
    assert [row.text for row in storage.editions("a")] == ["after"]
    assert [op.digest for op in storage.ops("a")][:2] == [bytes(16), b"d" * 16]
    assert [record.id for record in storage.contexts()] == ["a", "b"]
    again = FilesystemStorage(path)
    assert everything(again, "a", "b") == everything(storage, "a", "b")
    again.close()


def test_erasing_what_a_spill_left_behind(
    storage: FilesystemStorage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes are gone also from the file of a spill that was cut short before its commit."""
    append(storage, "a", b'"canary"')
    transition = appended(current(storage, "a"), b'"2"')
    monkeypatch.setattr("memci.storage.filesystem_context.SPILL_BYTES", 0)
    write = filesystem_files.Files.write

    def cut(files: filesystem_files.Files, name: str, content: bytes) -> None:
        if name.endswith("context.jsonl"):
            raise Killed
        write(files, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(filesystem_files.Files, "write", cut)
        with pytest.raises(Killed):
            storage.commit(transition)
    assert sum(b"canary" in each for each in contents(path).values()) == 2

    storage.erase(Erasure(entries=(("a", entry(0, b'"gone"')),)))

    assert not any(b"canary" in each for each in contents(path).values())
    assert [row.body for row in storage.entries("a")] == [b'"gone"']


def test_erasing_the_past_of_a_fork_is_refused(storage: FilesystemStorage, path: Path) -> None:
    """A context that a fork still shares is not removed without it, and nothing is touched."""
    append(storage, "a", b"1")
    fork(storage, "a", "b", 1)
    before = everything(storage, "a", "b")

    with pytest.raises(InvalidSetting, match="'b'"):
        storage.erase(Erasure(("a",)))

    assert everything(storage, "a", "b") == before
    assert storage.erase(Erasure(("a", "b", "nobody"))).contexts == 2
    assert storage.contexts() == []
    assert list((path / "contexts").iterdir()) == []


def test_stale_erasure_touches_nothing(storage: FilesystemStorage, path: Path) -> None:
    """An erasure whose transition is behind is LeaseLost, and no byte changes."""
    append(storage, "a", b"1")
    append(storage, "b", b"1")
    stale = Transition(1, current(storage, "a"))
    append(storage, "a", b"2")
    before = {name: each for name, each in contents(path).items() if not name.startswith("locks")}

    with pytest.raises(LeaseLost):
        storage.erase(Erasure(("b",), (("a", entry(0, b"gone")),), (stale,)))

    assert {name: each for name, each in contents(path).items() if not name.startswith("locks")} == before
