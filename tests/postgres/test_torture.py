"""The short tier of the torture of a Postgres server; the long one is `make postgres-torture`."""

import json
import os
import secrets
import subprocess
from contextlib import closing

import pytest

from memci.errors import StorageFull
from memci.storage import PostgresStorage
from memci.testing.storage.rows import append, bodies_of
from tests.postgres.server import Server
from tests.postgres.torture import run


@pytest.mark.slow
def test_nothing_is_lost_when_the_server_is_killed():
    """Six faults under load: every acknowledged append is there once."""
    assert figures(rounds=6)["appends acknowledged, postgres"] > 10


@pytest.fixture
def small_disk(tmp_path):
    """Skips where no small disk can be mounted."""
    mounting = ["mount", "-t", "tmpfs", "tmpfs", tmp_path]
    if os.getuid() or subprocess.run(mounting, check=False).returncode:
        pytest.skip("a small disk can be mounted by root only")
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.slow
def test_nothing_is_lost_when_the_disk_is_full(small_disk):
    """So it is if its disk is filled between them: some appends find no room, or the server ends; it goes on."""
    seen = figures("--disk", "384", rounds=3)

    assert seen["full disks"] > 0
    assert seen["appends acknowledged, postgres"] > 5


@pytest.mark.slow
def test_full_disk_is_said_and_passes(small_disk):
    """An append that finds no room is StorageFull, nothing of it is stored, and the same handle goes on afterwards."""
    with Server(disk=64, log_apart=True) as server, closing(PostgresStorage(server.url)) as storage:
        append(storage, "a", b"1")
        stored = 1
        with server.full_disk(), pytest.raises(StorageFull, match="free some space"):
            while True:
                append(storage, "a", secrets.token_bytes(100_000))
                stored += 1
        assert stored < 100
        assert len(bodies_of(storage, "a")) == storage.load("a")[0].head == stored

        append(storage, "a", b"2")
        assert bodies_of(storage, "a")[-1] == b"2"
        assert storage.damage() == []


def figures(*options, rounds):
    """Return the figures of a run in which no promise was broken."""
    code, output = run(rounds, secrets.randbits(32), *options)
    assert code == 0, output
    return json.loads(output[output.index("{") :])
