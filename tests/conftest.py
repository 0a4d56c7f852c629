"""How the tests are spread over the cores, where their files are, and that no property watches the clock."""

import contextlib
import gc
import os
import tempfile

import pytest
from hypothesis import settings

# the same examples each time, so that a change is what makes a test fail; `make faults` tries thousands of others,
# and so does `pytest --hypothesis-profile=explore`
settings.register_profile("memci", deadline=None, max_examples=40, derandomize=True)
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One more than there are cores: a test that waits for a process or a timeout leaves its core to another one."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items):
    """Slow tests come first: a long one that begins last would keep one core busy while the others wait."""
    items.sort(key=lambda item: "slow" not in item.keywords)


def pytest_collection_finish():
    """What was collected stays until the end: no collection of garbage looks at these thousands of tests again."""
    gc.collect()
    gc.freeze()
