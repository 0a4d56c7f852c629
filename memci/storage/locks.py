"""Turns: one holder at a time, by a lock of the operating system on a file of its own.

    release = hold(folder, "alice", 30)      waits up to 30 seconds for whoever has the turn
    release()                                gives it back, as the death of the process does

The files are empty, are named by a digest, and stay: removing one that another process waits for would let two in. This
module knows nothing of stores.
"""

from collections.abc import Callable
from hashlib import blake2b
from math import isfinite
from pathlib import Path

from ..errors import InvalidSetting, StorageBusy, StorageUnavailable


def hold(folder: Path, context: str, seconds: float) -> Callable[[], None]:
    """Return what gives the turn of *context* back, once it is ours; its lock lies in *folder*, which is made.

    Raises:
        StorageBusy: If another one has had it for *seconds*.
        StorageUnavailable: If the lock can't be made.
    """
    from filelock import FileLock, Timeout

    check_seconds(seconds)
    name = blake2b(context.encode(), digest_size=16).hexdigest()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = FileLock(
            folder / f"{name}.lock", mode=0o600, thread_local=False, fallback_to_soft=False, poll_interval=0.02
        )
        lock.acquire(timeout=seconds)
    except Timeout:
        raise busy(context, seconds) from None
    except (OSError, NotImplementedError) as error:
        raise StorageUnavailable(f"a turn can't be held in {str(folder)!r}: {error}") from error

    def release() -> None:
        lock.release(force=True)

    return release


def check_seconds(seconds: float) -> None:
    """Raise InvalidSetting unless *seconds* is a time that one can wait."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not isfinite(seconds) or seconds < 0:
        raise InvalidSetting("wait", f"expected seconds (a number from 0), got {seconds!r:.60}")


def busy(context: str, seconds: float) -> StorageBusy:
    """Return the error of who has waited in vain."""
    return StorageBusy(f"another one has had the turn of context {context!r:.60} for {seconds:g} s: try again later")
