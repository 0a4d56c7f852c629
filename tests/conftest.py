"""How the tests are spread over the cores, where their files are, and that no property watches the clock."""

import contextlib
import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# the same examples each time, so that a change is what makes a test fail; `make faults` tries thousands of others,
# and so does `pytest --hypothesis-profile=explore`
settings.register_profile("memci", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=400)
settings.load_profile("memci")

_RAM_DISK = "/dev/shm"
_ROOM = 2_000_000_000
"""bytes that must be free there; a run of all tests was seen to have 73 MB there at once"""


def pytest_configure():
    """Files of tests are made in RAM, where there is room and no other place is set: thousands wait for no disk.

    Power cuts and failing disks are simulated wherever the files are. Workers and what tests start inherit the place.
    """
    with contextlib.suppress(OSError):
        free = os.statvfs(_RAM_DISK)
        if "TMPDIR" not in os.environ and os.access(_RAM_DISK, os.W_OK) and free.f_bavail * free.f_frsize >= _ROOM:
            os.environ["TMPDIR"] = tempfile.tempdir = _RAM_DISK


@pytest.fixture(scope="module")
def no_memory():
    """A memory that keeps nothing is the default: tests of windows spent half of their time on feeding one."""
    from memci import Context
    from memci.memory import NullMemory

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Context, "_default_memory", lambda _: NullMemory())
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One more than there are cores: a test that waits for a process or a timeout leaves its core to another one."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


_TOGETHER = {
    "sources": ("test_layers.py", "test_docstrings.py", "trust/test_trust_code.py"),
    "clients": ("formats/test_answers.py", "formats/test_hostile_items.py", "formats/test_round_trips.py"),
}
"""files that one worker runs: they parse the same modules, or import the clients of all providers"""
_GROUPS = {f"tests/{file}": group for group, files in _TOGETHER.items() for file in files}
_APART = ("tests/faults/", "tests/postgres/", "tests/serve/gateway/", "tests/storage/wrapped_stores.py")
"""few files, with minutes of work in each: a worker takes one test of them at a time"""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A worker runs whole files: what the tests of one share is made once. The files come in their order."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return nodeid if file.startswith(_APART) else _GROUPS.get(file, file)

    config.option.loadscopereorder = False
    return Scheduling(config, log)


def pytest_collection_modifyitems(items):
    """Files with slow tests come first: a long one that begins last would keep one core busy while the others wait."""
    slow = {item.path for item in items if "slow" in item.keywords}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish():
    """What was collected stays until the end: no collection of garbage looks at these thousands of tests again."""
    gc.collect()
    gc.freeze()


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
