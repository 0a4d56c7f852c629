"""A store that has lost what was committed says so when it is opened: by its log, or by its witness."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Event, Thread

import apsw
import pytest

from memci import Context, SQLiteStorage
from memci.errors import CorruptRecord, MemciError, StorageBusy, StorageUnavailable
from memci.storage import FilesystemStorage
from memci.storage.protocol import Erasure, Storage
from memci.storage.sqlite.loss import accept_loss
from memci.storage.witness import Slot, Witness, _place, key_of
from memci.testing.storage.rows import append, bodies_of

FRAME = 4096 + 24
BODIES = [b"%d" % at for at in range(8)]
OPENERS = {
    "sqlite": lambda folder: SQLiteStorage(folder / "agent.db"),
    "files": lambda folder: FilesystemStorage(folder / "agent"),
}


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store as a killed program leaves it: its newest commits are in the log only."""
    storage = SQLiteStorage(tmp_path / "live.db")
    for body in BODIES:
        append(storage, "a", body)
    (tmp_path / "killed").mkdir()
    for end in ("", "-wal", "-witness"):
        shutil.copy(tmp_path / f"live.db{end}", tmp_path / "killed" / f"agent.db{end}")
    storage.close()
    return tmp_path / "killed" / "agent.db"


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def flip(path: Path, at: int, bit: int = 0) -> None:
    body = bytearray(path.read_bytes())
    body[at] ^= 1 << bit
    path.write_bytes(body)


def read(path: Path, *, read_only: bool = True) -> list[bytes]:
    storage = SQLiteStorage(path, read_only=read_only)
    try:
        return bodies_of(storage, "a")
    finally:
        storage.close()


def test_killed_program_has_lost_nothing(killed: Path) -> None:
    """What was committed is there, although only the log has it."""
    assert read(killed) == BODIES
    assert read(killed, read_only=False) == BODIES


def test_flipped_bit_of_a_live_log_is_an_error_and_nothing_is_written(killed: Path) -> None:
    """Wherever a bit of the log is flipped, its header and its last frame included, opening says so."""
    log = beside(killed, "-wal")
    whole = log.read_bytes()
    end = len(whole)
    places = [*range(0, 32, 3), *range(32, 56), *range(end - FRAME, end - FRAME + 24), end - 1, *range(40, end, 3001)]

    for at in places:
        log.write_bytes(whole)
        flip(log, at, at % 8)
        damaged = log.read_bytes()
        for read_only in (True, False):
            with pytest.raises(CorruptRecord, match="memci doctor STORE --accept"):
                read(killed, read_only=read_only)
        assert log.read_bytes() == damaged, f"byte {at}"

    log.write_bytes(whole)
    assert read(killed) == BODIES


def test_flipped_bit_before_later_commits_is_an_error_without_a_witness(killed: Path) -> None:
    """A log shows by itself that a commit was whole once, if a later one continues it; a torn tail is none."""
    beside(killed, "-witness").unlink()
    log = beside(killed, "-wal")
    whole = log.read_bytes()
    for at in (0, 20, 30, 33, 60, 32 + 5 * FRAME + 1, 32 + 9 * FRAME + 200):
        log.write_bytes(whole)
        flip(log, at)
        with pytest.raises(CorruptRecord, match="commits behind it"):
            read(killed)

    log.write_bytes(whole)
    assert read(killed) == BODIES


def test_torn_tail_of_a_power_cut_opens(tmp_path: Path) -> None:
    """A commit that had not returned may be torn anywhere: the one before it is the newest then."""
    storage = SQLiteStorage(tmp_path / "live.db")
    append(storage, "a", *BODIES)
    witness, before = (tmp_path / "live.db-witness").read_bytes(), (tmp_path / "live.db-wal").stat().st_size
    append(storage, "a", b"more" * 3_000)
    log = (tmp_path / "live.db-wal").read_bytes()
    path = tmp_path / "cut.db"
    shutil.copy(tmp_path / "live.db", path)
    storage.close()

    for known in (witness, b""):
        for torn in range(before, len(log) - 512, 2048):
            beside(path, "-witness").write_bytes(known)
            beside(path, "-wal").write_bytes(log[:torn] + b"\xa5" * 512 + log[torn + 512 :])
            assert read(path) == BODIES


@pytest.mark.parametrize("kind", OPENERS)
def test_context_that_is_lost_is_an_error_and_can_be_accepted(tmp_path: Path, kind: str) -> None:
    """An older copy in the place of a store is an error at open or load, and a finding; accepted, it goes on."""
    make: Callable[[Path], Storage] = OPENERS[kind]
    folder, copy = tmp_path / "now", tmp_path / "copy"
    folder.mkdir()
    storage = make(folder)
    append(storage, "a", b"1")
    storage.close()
    shutil.copytree(folder, copy)
    storage = make(folder)
    append(storage, "a", b"2")
    storage.close()
    for path in copy.rglob("*"):
        if path.is_file() and "witness" not in path.name:
            shutil.copy(path, folder / path.relative_to(copy))

    with pytest.raises(CorruptRecord, match="at revision 1, it was at revision 2"):
        make(folder).load("a")

    database = folder / ("agent.db" if kind == "sqlite" else "agent/store.db")
    assert accept_loss(str(database)) is None, "there is no log to keep"
    storage = make(folder)
    assert bodies_of(storage, "a") == [b"1"]
    append(storage, "a", b"3")
    assert storage.damage() == []
    storage.close()


def test_damaged_log_is_kept_when_its_loss_is_accepted(killed: Path) -> None:
    """The copy has every byte, is private, keeps an erasure from being complete, and is never replaced."""
    log, kept = beside(killed, "-wal"), beside(killed, "-wal.damaged")
    flip(log, log.stat().st_size - 1)
    damaged = log.read_bytes()

    assert accept_loss(str(killed)) == str(kept)

    assert kept.read_bytes() == damaged
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with pytest.raises(MemciError, match="move it away"):
        accept_loss(str(killed))
    storage = SQLiteStorage(killed)
    assert bodies_of(storage, "a") == BODIES[:-1]
    append(storage, "a", b"on")
    assert not storage.erase(Erasure()).scrubbed
    kept.unlink()
    assert storage.erase(Erasure()).scrubbed
    storage.close()


def test_flipped_bits_of_the_index_of_ids_make_no_new_context(tmp_path: Path) -> None:
    """A context that looks absent, since a page of the tree is damaged, is an error; the others open."""
    path = tmp_path / "agent.db"
    for name in ("a", "b"):
        with Context.open(path, name, window=2000) as context:
            context.append_turn(f"question of {name}", "answer")
    whole = path.read_bytes()
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    [[root]] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_context_1'")
    connection.close()

    refused = 0
    for at in (*range((root - 1) * 4096, (root - 1) * 4096 + 10, 2), *range(root * 4096 - 8, root * 4096, 2)):
        path.write_bytes(whole)
        flip(path, at, at % 8)
        for name in ("a", "b"):
            try:
                with Context.open(path, name, window=2000) as context:
                    assert len(list(context.messages())) == 2, f"byte {at}"
            except MemciError:
                refused += 1
    assert refused


def test_erased_context_is_not_lost(tmp_path: Path) -> None:
    """What was erased may be made again, also beside a handle that has yet to tell the witness of it."""
    path = tmp_path / "agent.db"
    fast, full = SQLiteStorage(path, durability="fast"), SQLiteStorage(path)
    append(fast, "a", b"1")
    append(full, "b", b"1")
    full.erase(Erasure(contexts=("a", "b")))
    fast.close()
    full.close()

    storage = SQLiteStorage(path)

    assert storage.load("a") is storage.load("b") is None
    append(storage, "b", b"2")
    storage.close()


def test_erasure_has_the_witness_alone(tmp_path: Path) -> None:
    """Commits share its lock. An erasure waits for them, and a commit leaves its slot out while an erasure has it."""
    path = str(tmp_path / "agent.db-witness")
    erasing, one, other = (Witness(path) for _ in range(3))
    with erasing.locked(0) as held:
        assert not held, "there is no witness yet"
    for each in (erasing, one, other):
        each.make()

    with one.locked() as mine, other.locked() as theirs:
        assert mine
        assert theirs
        with pytest.raises(StorageBusy), erasing.locked(0.002):
            pass
    with erasing.locked(0) as alone, one.locked() as held:
        assert alone
        assert not held
    with one.locked() as held:
        assert held
    for each in (erasing, one, other):
        each.close()


def test_witness_is_private_made_by_a_commit_and_may_be_missing(tmp_path: Path) -> None:
    """Opening makes none, and the next commit does."""
    path = tmp_path / "agent.db"
    witness = beside(path, "-witness")
    storage = SQLiteStorage(path)
    assert not witness.exists()
    append(storage, "a", b"1")
    assert stat.S_IMODE(witness.stat().st_mode) == 0o600
    storage.close()

    witness.unlink()
    storage = SQLiteStorage(path)
    append(storage, "a", b"2")
    storage.close()
    assert [slot.revision for slot in Witness(str(witness)).slots()] == [2]


@pytest.mark.parametrize("left", [("-wal", "-witness"), ("-wal",), ("-witness",)])
@pytest.mark.parametrize("read_only", [True, False])
def test_file_that_is_gone_while_its_log_or_witness_is_there_is_no_new_store(
    killed: Path, left: tuple[str, ...], read_only: bool
) -> None:
    """Opening changes nothing and says what to do: put it back, and all is there; or move the rest away."""
    whole = killed.read_bytes()
    killed.unlink()
    for end in {"-wal", "-witness"}.difference(left):
        beside(killed, end).unlink()
    before = {each: each.read_bytes() for each in killed.parent.iterdir()}

    with pytest.raises(CorruptRecord, match=r"is gone, but not .*put it back .*move"):
        read(killed, read_only=read_only)

    assert {each: each.read_bytes() for each in killed.parent.iterdir()} == before
    if "-wal" in left:
        killed.write_bytes(whole)
        assert read(killed) == BODIES
        killed.unlink()
    for each in before:
        each.unlink()
    SQLiteStorage(killed).close()


def test_file_that_was_copied_without_its_log_says_so(killed: Path) -> None:
    """The witness beside it shows that commits are missing, and the error names the log."""
    beside(killed, "-wal").unlink()

    with pytest.raises(CorruptRecord, match=r"its log .*agent.db-wal' is not there"):
        read(killed)


@pytest.mark.parametrize("left", ["-wal", "-witness"])
def test_file_that_was_emptied_is_no_new_store(killed: Path, left: str) -> None:
    """An empty file beside a filled log or a witness was emptied by somebody: the log is not taken along."""
    killed.write_bytes(b"")
    for end in {"-wal", "-witness"}.difference({left}):
        beside(killed, end).unlink()
    before = {each: each.read_bytes() for each in killed.parent.iterdir()}

    with pytest.raises(CorruptRecord, match=rf"is empty .*not there.* but not .*{left}': put it back .*move"):
        SQLiteStorage(killed)

    assert {each: each.read_bytes() for each in killed.parent.iterdir()} == before


def test_empty_file_that_is_being_made_becomes_a_store(tmp_path: Path) -> None:
    """Who was killed while it made a store has left an empty file, and the journal of that."""
    path = tmp_path / "agent.db"
    path.write_bytes(b"")
    beside(path, "-journal").write_bytes(bytes(512))

    SQLiteStorage(path).close()

    assert path.stat().st_size


def test_log_stays_small(tmp_path: Path) -> None:
    """The log is copied into the file after about a MiB, and one large commit does not leave it long."""
    storage = SQLiteStorage(tmp_path / "agent.db", durability="fast")
    append(storage, "a", b"x" * 4_000_000)
    assert (tmp_path / "agent.db-wal").stat().st_size > 4_000_000
    for _ in range(60):
        append(storage, "a", b"x" * 20_000)

    assert (tmp_path / "agent.db-wal").stat().st_size <= 2**21
    storage.close()


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Path]:
    """A store that is written to all the time, its log begun again and again."""
    path, done = tmp_path / "agent.db", Event()

    def work(name: str) -> None:
        storage = SQLiteStorage(path, durability="fast" if name == "a" else "full")
        while not done.is_set():
            append(storage, name, b"x" * 9_000)
            if name == "b":
                storage.erase(Erasure())
        storage.close()

    SQLiteStorage(path).close()
    threads = [Thread(target=work, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    yield path
    done.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("known", [True, False])
def test_log_that_others_write_is_no_loss(writers: Path, known: bool) -> None:
    """Whatever others append, copy or begin again meanwhile: opening and loading find nothing lost."""
    for _ in range(60):
        if not known:
            beside(writers, "-witness").unlink(missing_ok=True)
        storage = SQLiteStorage(writers, read_only=True)
        storage.load("a")
        storage.load("b")
        storage.close()


def test_damaged_slot_of_the_witness_counts_as_empty(killed: Path) -> None:
    """Whatever bit of the witness is flipped, the store opens: the damage is in what was recorded, not in the store."""
    witness = beside(killed, "-witness")
    whole = witness.read_bytes()
    used = [at for at in range(32, len(whole)) if whole[at]]
    assert used

    for at in range(min(used), max(used) + 1):
        for bit in (0, 7):
            witness.write_bytes(whole)
            flip(witness, at, bit)
            assert read(killed) == BODIES, f"byte {at}, bit {bit}"


@pytest.mark.parametrize("kind", OPENERS)
def test_witness_of_the_next_revision_is_a_loss(tmp_path: Path, kind: str) -> None:
    """One commit that is missing is a loss, also under a handle that is open; as many as there are is none."""
    storage = OPENERS[kind](tmp_path)
    append(storage, "a", b"1")
    append(storage, "a", b"2")
    [path] = tmp_path.rglob("*witness")
    witness = Witness(str(path))
    slot = witness.slot("a")
    assert slot is not None
    assert slot.revision == storage.revision("a")
    witness.check("a", slot, slot.revision)

    with pytest.raises(CorruptRecord):
        witness.check("a", slot, slot.revision - 1)
    witness.note(slot._replace(revision=slot.revision + 1))
    with pytest.raises(CorruptRecord, match="at revision 2, it was at revision 3"):
        storage.load("a")
    storage.close()


def test_witness_keeps_what_was_noted_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots are synced when they are made and cleared; one that others share, or that was cut, is nobody's loss."""
    path, syncs = str(tmp_path / "agent.db-witness"), list[int]()
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: syncs.append(file) or fsync(file))
    alike = next(name for name in map(str, count()) if _place(key_of(name)) == _place(key_of("a")))
    with closing(Witness(path)) as witness:
        counts = []
        for act in (witness.make, lambda: witness.note(Slot(key_of("a"), 5)), lambda: witness.forget(alike)):
            act()
            counts.append(len(syncs))
        before = witness.slot("a")
        assert (before, witness.slot(alike)) == (Slot(key_of("a"), 5), None)
        with pytest.raises(CorruptRecord):
            witness.check("a", before, 4)
        witness.forget("a")
        witness.check("a", before, 0)  # it was erased meanwhile
        assert [*counts, len(syncs)] == [2, 2, 2, 3]
        os.truncate(path, 40)
        assert (witness.slot("a"), witness.slots()) == (None, [])
    with closing(Witness(path, read_only=True)) as witness:
        witness.note(Slot(key_of("a"), 6))
    os.mkfifo(path + "-pipe")
    with pytest.raises(StorageUnavailable):
        Witness(path + "-pipe")
