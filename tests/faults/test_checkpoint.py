"""What a store asks of the disk beside its commits: the checkpoint, and syncs that one who was killed left undone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.shim import library, preloaded

pytestmark = pytest.mark.slow

SETTING = """
import errno, json, sys
from memci.errors import HandlePoisoned
from memci.storage import SQLiteStorage
from memci.testing.storage.rows import append, appended, current, with_op
from tests.faults.shim import COUNTED, FAULTS, Action, Call, Fault, Shim

folder, shim = sys.argv[1], Shim()
file = f"{folder}/agent.db"

def log_fills(store):
    for _ in range(3):
        append(store, "a", b"x" * 600_000)
"""
CHECKPOINT = """
store = SQLiteStorage(file, durability="fast")
log_fills(store)  # from here on the log has its size: only the file itself has to grow
shim.arm(folder, {fault}, 1)
log_fills(store)
fired, goes_on = shim.fired, True
shim.disarm()
try:
    append(store, "a", b"y")
except HandlePoisoned:
    goes_on = False
store.close()
print(json.dumps([fired, goes_on, [len(row.body) for row in SQLiteStorage(file).entries("a")]]))
"""
KNOWN_OP = """
first = SQLiteStorage(file, durability="fast")
transition = appended(current(first, "a"), b"1")
transition = with_op(transition, "once")
first.commit(transition)
other, syncs = SQLiteStorage(file), []
for _ in range(2):
    shim.arm(folder, COUNTED, 0)
    assert other.commit(transition).op_id == "once"
    syncs.append(shim.counted()[Call.SYNC])
print(json.dumps(syncs))
"""
KILLED_BEFORE_ITS_SYNC = """
import os
from memci.memory.repository.home import tables_of
from memci.memory.repository.store import OwnerKey
from memci.storage.protocol import Ticket
from tests.faults.disk import first_call
from tests.faults.worker import forked

def killed():
    store = SQLiteStorage(file)
    shim.arm(folder, Fault(Action.KILL_AFTER, Call.CUT), 1)
    append(store, "a", b"2")

with_log = os.open(folder.rstrip("/") + ".log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
going_on = SQLiteStorage(file, journal="truncate")
append(going_on, "a", b"1")
memory = tables_of(going_on)

def remembers():
    with memory.change():
        OwnerKey(memory, str(len(memory.owner_names()))).add()

remembers()
acts = {
    "goes on": lambda: append(going_on, "a", b"3"),
    "opens": lambda: SQLiteStorage(file).close(),
    "takes a lock": lambda: going_on.replace_ticket(None, Ticket("a", "t", "h", "p", 0.0, 1.0)),
    "remembers": remembers,
}
found = {}
for name, act in acts.items():
    assert forked(killed) == 9
    os.truncate(with_log, 0)
    shim.arm(folder, COUNTED, 0)
    shim.log(with_log)
    act()
    shim.disarm()
    found[name] = first_call(os.pread(with_log, 2**20, 0))
print(json.dumps(found))
"""
BEGINS_ITS_LOG_AGAIN = """
import os, subprocess
from tests.faults.worker import forked

going_on = SQLiteStorage(file)  # else the next one to open would read the log from its beginning
append(going_on, "a", b"1")
append(going_on, "a", b"2")

def killed():
    store = SQLiteStorage(file)  # all of the log is in the file now
    shim.arm(folder, Fault(Action.KILL_BEFORE, Call.WRITE), 1)
    append(store, "a", b"3")

assert forked(killed) == 9
if {unwitnessed}:
    os.remove(f"{{file}}-witness")
found = [len(list(SQLiteStorage(file).entries("a")))]
going_on._connection.execute("BEGIN IMMEDIATE")
SQLiteStorage(file)
other = [sys.executable, "-c", "import apsw, sys; apsw.Connection(sys.argv[1]).execute('BEGIN IMMEDIATE')", file]
refused = subprocess.run(other, stderr=subprocess.PIPE, text=True).stderr
going_on._connection.execute("ROLLBACK")
append(going_on, "a", b"4")
found.append(len(list(SQLiteStorage(file).entries("a"))))
print(json.dumps([found, "BusyError" in refused]))
"""
MAKER_KILLED = """
import os
from random import Random
from memci.storage import FilesystemStorage
from tests.faults.disk import Disk
from tests.faults.worker import forked

log = os.open(folder.rstrip("/") + ".log", os.O_RDWR | os.O_CREAT | os.O_APPEND)

def opened(fault):
    shim.arm(folder, fault, 1)
    shim.log(log)
    return FilesystemStorage(f"{folder}/agent")

assert forked(lambda: opened(Fault(Action.KILL_AFTER, Call.MKDIR))) == 9
append(opened(COUNTED), "a", b"1")
shim.disarm()
disk = Disk(os.pread(log, 2**24, 0), folder)
print(json.dumps(["agent/memci.json" in disk.cut(disk.end, Random(seed)) for seed in range(20)]))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    try:
        return preloaded(library(str(tmp_path_factory.mktemp("shim"))))
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture
def ran(environment, tmp_path):
    """Return what a program prints that runs with the shim."""

    def run(program: str) -> object:
        command = [sys.executable, "-c", SETTING + program, str(tmp_path)]
        done = subprocess.run(command, env=environment, cwd=Path.cwd(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize(
    ("fault", "goes_on"),
    [('FAULTS["enospc"]', True), ("Fault(Action.FAIL_ONCE, Call.EXTEND, errno.EIO)", False)],
    ids=["full", "broken"],
)
def test_checkpoint_that_fails_loses_nothing(ran, fault, goes_on):
    """The log still holds all; if the disk is full, the handle goes on later, after an I/O error it does not."""

    fired, went_on, sizes = ran(CHECKPOINT.format(fault=fault))

    assert fired
    assert went_on is goes_on
    assert sizes == [600_000] * 6 + [1] * goes_on


def test_op_that_is_known_is_synced_once(ran):
    """The writer of an op may have died before its sync: who finds it syncs it, and need not do so again."""

    first, second = ran(KNOWN_OP)

    assert first > 0
    assert second == 0


def test_journal_is_synced_before_it_is_written_if_its_last_writer_may_have_been_killed(ran):
    """Else a power cut could bring back the old journal with parts of the new one in it."""

    first = ran(KILLED_BEFORE_ITS_SYNC)

    assert list(first) == ["goes on", "opens", "takes a lock", "remembers"]
    assert all(call == ["s", "agent.db-journal"] for call in first.values()), first


def test_folder_lasts_whose_maker_was_killed_before_its_sync(ran):
    """Else a power cut could take all of it, with what was acknowledged since by whoever opened it next."""

    there = ran(MAKER_KILLED)

    assert all(there), there


@pytest.mark.parametrize("unwitnessed", [False, True])
def test_log_that_was_to_be_begun_again_is_no_damage(ran, unwitnessed):
    """Its header is still that of before, and SQLite takes nothing of it any more: all of it is in the file.

    Finding that out releases no lock that another handle of this process holds.
    """

    assert ran(BEGINS_ITS_LOG_AGAIN.format(unwitnessed=unwitnessed)) == [[2, 3], True]
