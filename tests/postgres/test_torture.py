"""The short tier of the torture of a Postgres server; the long one is `make postgres-torture`."""

import json
import os
import secrets
import subprocess

import pytest

from tests.postgres.torture import run


@pytest.mark.slow
def test_nothing_is_lost_when_the_server_is_killed():
    """Ten faults under load: every acknowledged append is there once."""
    assert figures(rounds=10)["appends acknowledged, postgres"] > 20


@pytest.mark.slow
def test_nothing_is_lost_when_the_disk_is_full(tmp_path):
    """So it is if its disk is filled between them: some appends find no room, or the server ends; it goes on."""
    mounting = ["mount", "-t", "tmpfs", "tmpfs", tmp_path]
    if os.getuid() or subprocess.run(mounting, check=False).returncode:
        pytest.skip("a small disk can be mounted by root only")
    subprocess.run(["umount", tmp_path], check=True)

    seen = figures("--disk", "384", rounds=12)

    assert seen["full disks"] > 0
    assert seen["appends acknowledged, postgres"] > 20


def figures(*options, rounds):
    """Return the figures of a run in which no promise was broken."""
    code, output = run(rounds, secrets.randbits(32), *options)
    assert code == 0, output
    return json.loads(output[output.index("{") :])
