"""What went wrong elsewhere when a process died or a disk was full, and can't here. The numbers are public issues."""

import os
import resource
import signal
import subprocess
import sys

import apsw
import pytest

from memci import SQLiteStorage
from memci.errors import CommitUnknown, CorruptRecord, MemciError, StorageBusy, StorageError
from memci.storage import FilesystemStorage
from tests.context.kit import ON_DISK, again, calling, opened, result, store, talked, turn
from tests.machine.chat_grammars import problems as refused

pytestmark = pytest.mark.usefixtures("no_memory")


def cut(path, size):
    with path.open("r+b") as file:
        file.truncate(size)


def test_torn_end_of_a_file_is_never_joined_to_what_comes_next(tmp_path):
    """oh-my-pi#8596: a full disk left half a line, and the next append was fused with it. It is written again."""
    with opened(FilesystemStorage(tmp_path / "agent")) as context:
        for number in range(3):
            context.append_turn(*turn(number))
    [file] = (tmp_path / "agent").rglob("*.jsonl")

    for lost in (1, 2, 7, 40):
        whole = file.read_bytes()
        cut(file, len(whole) - lost)
        with again(FilesystemStorage(tmp_path / "agent")) as context:
            context.append_turn(*turn(3))
        assert file.read_bytes().startswith(whole)


def test_empty_file_is_no_empty_conversation(tmp_path):
    """opencode#7607: a full disk left files of 0 bytes, and no session opened. Here it says what is damaged."""
    with opened(FilesystemStorage(tmp_path / "agent")) as context:
        context.append_turn(*turn(0))
    cut(tmp_path / "agent" / "store.db", 0)

    with pytest.raises(CorruptRecord):
        again(FilesystemStorage(tmp_path / "agent"))


def test_killed_in_the_middle_of_a_tool_the_next_turn_is_accepted(storage):
    """openclaw PR#106935: killed mid-tool, the orphan call made every request fail. It is answered as interrupted."""
    context = opened(storage)
    context.append_turn("go", calling("a", "b"), result("a"))

    with again(storage) as other:  # the process died here
        other.append_turn("And now?")
        rendering = other.render()

    assert refused(rendering) == []
    assert sum(message.get("role") == "tool" for message in rendering) == 2


def test_damaged_store_is_not_an_empty_one(tmp_path):
    """hermes-agent#72046: a corrupt database was shown as "no sessions". Here it is an error."""
    path = tmp_path / "agent.db"
    talked(40, storage=path).close()
    body = bytearray(path.read_bytes())
    for at in range(4096, len(body), 256):
        body[at] ^= 0xFF
    path.write_bytes(body)

    with pytest.raises(MemciError):
        list(again(path).messages())


def test_sound_file_is_not_put_aside(tmp_path):
    """codebase-memory-mcp#1037, metis PR#312: a sound file was put aside, or unlinked, since it was busy. It stays."""
    path = tmp_path / "agent.db"
    context = talked(3, storage=SQLiteStorage(path, busy_timeout_seconds=0.05))
    inode = path.stat().st_ino
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StorageBusy):
        context.append_turn(*turn(4))
    with again(path, read_only=True) as reader:
        assert len(list(reader.messages())) == 6

    other.execute("ROLLBACK")
    context.append_turn(*turn(4))
    assert path.stat().st_ino == inode
    names = {each.name.removeprefix("agent.db") for each in tmp_path.iterdir()}
    assert names == {"", "-shm", "-wal", "-witness"}
    other.close()


@pytest.mark.parametrize("kind", ON_DISK)
def test_full_disk_is_told_and_forgotten_when_there_is_room(kind, tmp_path):
    """gemini-cli#27277: a full disk stopped the recording in silence. kimi-code PR#3695: two minutes of it became
    twelve hours. Here the append raises, what came before is there, and with room again the same turn is stored.
    """
    context = talked(3, storage=store(kind, tmp_path))
    long = turn(4, 20_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, hard))
    try:
        with pytest.raises(StorageError) as told:
            context.append_turn(*long, op_id="4")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert told.value.data_safe
    if isinstance(told.value, CommitUnknown):
        context = again(store(kind, tmp_path))
    context.append_turn(*long, op_id="4")
    context.append_turn(*turn(5))
    assert list(again(store(kind, tmp_path)).messages()) == [
        *(each for number in (1, 2, 3) for each in turn(number)),
        *long,
        *turn(5),
    ]


def test_ended_by_a_signal_the_last_turn_is_there(tmp_path):
    """gemini-cli#27277: recording had stopped in silence. What an append returned from is there after a kill."""
    code = """
import os, signal, sys
from tests.context.kit import opened, turn
context = opened(sys.argv[1])
for number in range(100):
    context.append_turn(*turn(number))
    print(number, flush=True)
    if number == 20:
        os.kill(os.getpid(), signal.SIGTERM)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "agent.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    assert done.returncode == -signal.SIGTERM
    with again(tmp_path / "agent.db") as context:
        assert len(list(context.messages())) == 2 * len(done.stdout.split())
