"""The exclusive lock of a context: one holder at a time, by a file lock of the operating system.

    release = hold(folder, "alice", 30)      waits for the lock, for 30 seconds at most
    release()                                releases it, as the end of the process does

The lock files are empty and their names are digests. They are never removed: if a file were removed while another
process waits for it, two processes could hold the lock. This module knows nothing of stores.
"""

from collections.abc import Callable
from hashlib import blake2b
from math import isfinite
from pathlib import Path

from ..errors import InvalidSetting, StorageBusy, StorageUnavailable


def hold(folder: Path, context: str, seconds: float) -> Callable[[], None]:
    """Take the lock of *context* by a file in *folder*, and return the function that releases it.

    The folder is made if it is missing.

    Raises:
        InvalidSetting: If *seconds* is not a number from 0.
        StorageBusy: If another holder kept the lock for *seconds*.
        StorageUnavailable: If the lock file can't be made or locked.
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
        raise StorageUnavailable(f"a lock can't be taken in {str(folder)!r}: {error}") from error

    def release() -> None:
        lock.release(force=True)

    return release


def check_seconds(seconds: float) -> None:
    """Raise InvalidSetting unless *seconds* is a finite number from 0."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not isfinite(seconds) or seconds < 0:
        raise InvalidSetting("wait", f"expected seconds (a number from 0), got {seconds!r:.60}")


def busy(context: str, seconds: float) -> StorageBusy:
    """Return the error for a caller that waited *seconds* for the lock of *context* and did not get it."""
    return StorageBusy(f"another one held the lock of context {context!r:.60} for {seconds:g} s: try again later")
