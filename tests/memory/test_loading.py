"""What an open context loads, and in which thread."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest

import memci

ROOT = Path(memci.__file__).parent.parent


@functools.cache
def loaded():
    """Return the threads that loaded numpy while contexts were opened: without a memory, then with one in children."""
    code = """if True:
        import asyncio, os, sys, tempfile, threading
        from memci import AsyncContext, Context
        from memci.memory import NullMemory

        class Watch:
            thread = ""
            def find_spec(self, name, path=None, target=None):
                if name == "numpy":
                    Watch.thread = threading.current_thread().name

        sys.meta_path.insert(0, Watch())
        path = tempfile.mkdtemp() + "/talk.db"

        async def awaited():
            await (await AsyncContext.open(path, id="a", window=8_000)).close()

        Context.open(path, id='a', window=8_000, memory=NullMemory()).close()
        print(f"alone={Watch.thread}", flush=True)
        for name, opened in ("sync", lambda: Context.open(path, id='a')), ("async", lambda: asyncio.run(awaited())):
            if not os.fork():
                opened()
                print(f"{name}={Watch.thread}", flush=True)
                os._exit(0)
            os.wait()
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(line.split("=") for line in done.stdout.split())


@pytest.mark.parametrize("way", ["sync", "async"])
def test_numpy_is_loaded_by_the_caller_before_a_worker_uses_it(way):
    """Python can't import numpy in a worker while the caller imports a part of it: both would fail."""
    assert loaded()[way] == "MainThread"


def test_a_context_without_a_memory_loads_no_numpy():
    """Who has no memory does not pay for one."""
    assert loaded()["alone"] == ""
