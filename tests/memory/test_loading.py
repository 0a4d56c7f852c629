"""What an open context loads, and in which thread."""

import subprocess
import sys
from pathlib import Path

import pytest

import memci

ROOT = Path(memci.__file__).parent.parent


def loaded(opened):
    """Return the thread that loaded numpy while a context was *opened* in a fresh process; "" if none did."""
    code = f"""if True:
        import asyncio, sys, tempfile, threading
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

        {opened}
        print(Watch.thread)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "opened", ["Context.open(path, id='a', window=8_000)", "asyncio.run(awaited())"], ids=["sync", "async"]
)
def test_numpy_is_loaded_by_the_caller_before_a_worker_uses_it(opened):
    """Python can't import numpy in a worker while the caller imports a part of it: both would fail."""
    assert loaded(opened) == "MainThread"


def test_a_context_without_a_memory_loads_no_numpy():
    """Who has no memory does not pay for one."""
    assert loaded("Context.open(path, id='a', window=8_000, memory=NullMemory())") == ""
