"""The failing disk, as Python sees it: compiles `shim.c`, has it loaded, tells it what to do.

    subprocess.run([sys.executable, …], env=preloaded(library(folder)))

    shim = Shim()                                # in that process
    shim.arm(folder, FAULTS["enospc"], 17)       # the 17th call that takes room fails, and all after it
    …
    shim.disarm()                                # there is room again

This module knows nothing of memci.
"""

import ctypes
import os
import shutil
import subprocess
from enum import IntEnum, IntFlag
from errno import EIO, ENOSPC
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("shim.c")


class Call(IntFlag):
    """Kinds of calls that change what is on a disk; the numbers are those of `shim.c`."""

    CREATE = 1
    WRITE = 2
    SYNC = 4
    CUT = 8
    RENAME = 16
    UNLINK = 32
    MKDIR = 64
    LINK = 128
    GROW = 256
    SYNC_FOLDER = 512
    EXTEND = 1024


class Action(IntEnum):
    """What becomes of the N-th call; the numbers are those of `shim.c`."""

    COUNT = 0
    KILL_BEFORE = 1
    KILL_AFTER = 2
    TORN = 3
    FAIL_ONCE = 4
    FAIL_FROM = 5
    SHORT_THEN_FAIL = 6


class Fault(NamedTuple):
    """What goes wrong, and which calls it may happen to."""

    action: Action
    calls: Call
    error: int = 0

    @property
    def kills(self) -> bool:
        """Whether the process dies of it."""
        return self.action in {Action.KILL_BEFORE, Action.KILL_AFTER, Action.TORN}


_ALL = Call(2047)
_WRITES = Call.WRITE | Call.EXTEND
_ROOM = Call.CREATE | Call.EXTEND | Call.GROW | Call.MKDIR | Call.LINK

FAULTS = {
    "kill_before": Fault(Action.KILL_BEFORE, _ALL),
    "kill_after": Fault(Action.KILL_AFTER, _ALL),
    "torn": Fault(Action.TORN, _WRITES),
    "enospc": Fault(Action.FAIL_FROM, _ROOM, ENOSPC),
    "enospc_all": Fault(Action.SHORT_THEN_FAIL, _ROOM | Call.WRITE | Call.RENAME, ENOSPC),
    "eio_write": Fault(Action.FAIL_ONCE, _WRITES, EIO),
    "eio_sync": Fault(Action.FAIL_ONCE, Call.SYNC, EIO),
    "eio_sync_folder": Fault(Action.FAIL_ONCE, Call.SYNC_FOLDER, EIO),
}
COUNTED = Fault(Action.COUNT, _ALL)


def library(folder: str) -> str:
    """Compile the shim into *folder* and return its path. Some tenths of a second.

    Raises:
        RuntimeError: If there is no compiler, or no way to load the shim here; it says what to do.
    """
    if not Path("/proc/self/fd").is_dir():
        raise RuntimeError("the fault harnesses need Linux: their shim asks /proc which file a descriptor is")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise RuntimeError("the fault harnesses need a C compiler as `cc`: install gcc or clang, with the C headers")
    made = str(Path(folder) / "shim.so")
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", made, str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"`{compiler}` can't compile the shim: install gcc or clang, with the C headers\n{done.stderr}"
        )
    return made


def preloaded(shim: str) -> dict[str, str]:
    """Return an environment in which a program starts with the shim at *shim* in it."""
    return os.environ | {"LD_PRELOAD": shim, "PYTHONHASHSEED": "0"}


class Shim:
    """The shim in this process, which was started with it. One at a time; a forked child has its own."""

    def __init__(self) -> None:
        self._calls = ctypes.CDLL(None)
        if not hasattr(self._calls, "fault_arm"):
            raise RuntimeError("this process was not started with the shim: see `preloaded`")
        self._calls.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_int]
        self._calls.fault_note.argtypes = [ctypes.c_char_p, ctypes.c_long]
        self._calls.fault_counted.restype = ctypes.c_long

    def arm(self, folder: str, fault: Fault, number: int) -> None:
        """Let *fault* happen to call *number* (from 1), counted from now on, of those that change *folder*."""
        self._calls.fault_arm(os.fsencode(folder), int(fault.action), int(fault.calls), number, fault.error)

    def disarm(self) -> None:
        """Let nothing go wrong any more."""
        self._calls.fault_disarm()

    def counted(self) -> dict[Call, int]:
        """Return how many calls of each kind there were since it was armed."""
        return {kind: int(self._calls.fault_counted(int(kind))) for kind in Call}

    @property
    def fired(self) -> bool:
        """Whether the fault has happened."""
        return bool(self._calls.fault_fired())

    def log(self, file: int) -> None:
        """Write every call that changes the armed folder, and its data, to the descriptor *file*."""
        self._calls.fault_log(file)

    def note(self, text: str) -> None:
        """Put *text* between the calls in the log."""
        content = text.encode()
        self._calls.fault_note(content, len(content))
