"""How the tests are spread over the cores, and what holds for every property: none of them watches the clock."""

import gc
import os

import pytest
from hypothesis import settings

settings.register_profile("memci", deadline=None)
settings.load_profile("memci")


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
