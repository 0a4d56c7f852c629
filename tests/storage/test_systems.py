"""A system without what Linux and macOS have: what works there, and what is refused, in words.

No such machine is at hand: a process of its own loses what Windows lacks before it imports the library.
"""

import subprocess
import sys

WITHOUT = """
import builtins, os, sys
for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "pread", "pwrite", "fork", "register_at_fork",
             "geteuid", "getuid", "fchmod", "statvfs"):
    delattr(os, name)
real = builtins.__import__
def missing(name, *more, **named):
    if name in {"fcntl", "resource", "pwd", "termios"}:
        raise ImportError(f"No module named {name!r}", name=name)
    return real(name, *more, **named)
builtins.__import__ = missing
opened = os.open
def no_folders(path, *more, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return opened(path, *more, **named)
os.open = no_folders
"""
LIFE = """
from memci import Context, SQLiteStorage
from memci.errors import InvalidSetting
from memci.history.backup import backup
for n in range(2):
    store = SQLiteStorage("agent.db")
    with Context.open(store, "alice", window=2_000, wait=5) as context:
        for day in range(12 * n, 12 * n + 12):
            reply = {"role": "assistant", "content": f"HAT{day} " * 30}
            context.append_turn(f"Flight {day}? " * 30, reply, op_id=str(day))
        report = context.report()
        assert report.messages == 24 * (n + 1) and report.compactions, report
        assert context.recall_page(3)[0]["content"].startswith("Flight 2?")
        context.flush()
        assert context.search_memory("HAT4").pages[0].index == 5
        context.fork("beside").close() if n else None
        context.erase(1 + n)
    store.close()
store = SQLiteStorage("agent.db")
assert not store.damage()
store.close()
backup("agent.db", "copy.db")
try:
    Context.open("folder/", "alice", window=2_000)
except InvalidSetting as error:
    print(error)
"""


def test_a_file_is_a_store_without_what_windows_lacks_and_a_folder_is_refused(tmp_path):
    """Stored, compacted, recalled, searched, forked, erased, opened again and copied; one sentence for the folder."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + LIFE], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.stderr == ""
    assert "needs a POSIX system (Linux, macOS): name a file instead" in done.stdout
