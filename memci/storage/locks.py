"""The exclusive lock of a context: a queue of tickets in the store, served in the order of arrival.

    tickets of "alice"     c41f…   holds it: the first whose holder lives     renewed every 3 s, ends after 10 s
                           09ab…   waits                                      renewed too
                           77d0…   waits, and its process has died            is passed over

A ticket is a row, so this works wherever a transaction works. Waiting only reads the queue, and renews its ticket. A
holder is replaced if it has not renewed its ticket for 10 seconds, or at once if its process on this machine has ended.
Its successor first raises the revision of the context: a late change of the old holder is then a `WriteConflict`. So a
wrong clock costs a wait or a conflict, but never a message.
"""

import os
import platform
import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Event, Lock, main_thread
from typing import Final, NoReturn

from ..errors import HandlePoisoned, InvalidSetting, StorageBusy, StorageError, WriteConflict, brief
from ..rows import Ticket
from ..workers import guard_lock, lock_worker
from .audit import audit
from .protocol import Storage, Transition

EXPIRY_SECONDS: Final = 10.0  # A ticket ends this long after its last renewal: three renewals may fail before that.
RENEWAL_SECONDS: Final = 3.0
_SHORTEST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.05
"""Between two reads of the queue: a free lock is taken soon, and a long wait costs 20 reads a second at most."""

given_up: ContextVar[Event | None] = ContextVar("given_up", default=None)
"""Set this around `hold`: once the event is set, the wait ends with StorageBusy."""


class HeldLock:
    """The lock of a context, held until `release`. A worker renews it as long as this object is referred to."""

    patience = RENEWAL_SECONDS

    def __init__(self, storage: Storage, ticket: Ticket) -> None:
        self._storage = storage
        self.context = ticket.context
        self._ticket: Ticket | None = ticket
        self._since = time.time()
        self._mutex = guard_lock(Lock())
        self._pid = os.getpid()
        self.touched = time.monotonic()
        lock_worker.submit(self)

    def is_kept(self) -> bool:
        """Return whether the lock is still held: no other holder has taken over. One read.

        What was read from the store before this returned True can be changed without a conflict that goes unnoticed.
        """
        ticket = self._ticket
        if ticket is not None and time.time() < ticket.expires - EXPIRY_SECONDS / 2:
            return any(each.token == ticket.token for each in self._storage.tickets(ticket.context))
        return self._renew()  # others may count it as ended: only a write shows that it is still there

    def step(self) -> bool:
        """Renew the ticket, and return whether to do it again."""
        self.touched = time.monotonic()
        try:
            return self._renew()
        except HandlePoisoned:
            return False
        except StorageError:  # a busy or full store: two more attempts follow before the ticket ends
            return True

    def release(self) -> None:
        """Release the lock; calling it twice is fine. If the store can't be written, the ticket ends by itself."""
        if os.getpid() != self._pid:
            return  # the parent process holds it
        with self._mutex:
            ticket, self._ticket = self._ticket, None
            if ticket is not None:
                with suppress(StorageError):
                    self._storage.replace_ticket(ticket, None)

    def _renew(self) -> bool:
        with self._mutex:
            if self._ticket is None:
                return False
            renewed = self._ticket._replace(since=self._since, expires=time.time() + EXPIRY_SECONDS)
            if not self._storage.replace_ticket(self._ticket, renewed):
                return False
            self._ticket = renewed
            return True


def hold(storage: Storage, context: str, seconds: float) -> HeldLock:
    """Take the exclusive lock of *context* in *storage*, in the order of arrival.

    It excludes other callers of `hold`, in this process and in others, but not readers and writers that do not call
    it. With 0 *seconds*, it writes nothing unless the lock is free.

    Raises:
        InvalidSetting: If *seconds* is not a number from 0.
        StorageBusy: If others held the lock for *seconds*. The error names the holder and the time.
        StorageError: If the store can't be read or written.
    """
    check_seconds(seconds)
    until = time.monotonic() + seconds
    mine: Ticket | None = None
    renewed = moved = ahead = 0.0
    try:
        while True:
            queue = storage.tickets(context)
            place = next((i for i, each in enumerate(queue) if mine and each.token == mine.token), None)
            before, now = queue[:place], time.monotonic()
            alive = find_living(before)
            if alive and (now >= until or _is_given_up()):
                _refuse(alive[0], seconds)
            if place is None or mine is None:  # only a waiting ticket may take over, so only one does
                mine, renewed = _ticket(context), now
                storage.replace_ticket(None, mine)
            elif not alive and before:
                _take_over(storage, context, before)
            elif not alive:
                return HeldLock(storage, mine)
            elif now - renewed >= RENEWAL_SECONDS:
                later = mine._replace(expires=time.time() + EXPIRY_SECONDS)
                storage.replace_ticket(mine, later)
                renewed, mine = now, later
            else:
                if len(alive) != ahead:
                    moved, ahead = now, len(alive)
                # A tenth of the time waited so far: a lock that is held for long is not read every millisecond.
                pause = min(ahead * max(_SHORTEST_PAUSE, (now - moved) / 10), _LONGEST_PAUSE, until - now)
                time.sleep(pause)
    except BaseException:
        if mine is not None:
            with suppress(StorageError):
                storage.replace_ticket(mine, None)
        raise


def find_living(queue: Iterable[Ticket]) -> list[Ticket]:
    """Return the tickets of *queue* that have not ended, in order. The first of a context holds its lock."""
    now = time.time()
    # Otherwise, after a clock was set back, a ticket of another machine would stay valid for hours.
    return [each for each in queue if now < each.expires < now + 2 * EXPIRY_SECONDS and not has_ended(each.process)]


def check_seconds(seconds: float) -> None:
    """Raise InvalidSetting unless *seconds* is a number from 0 that a thread can wait."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 2**31:
        raise InvalidSetting("wait", f"expected seconds (a number from 0 to 68 years), got {brief(seconds)}")


def holder(ticket: Ticket) -> str:
    """Return the holder of *ticket* and the time when it began, as text for people."""
    return f"{ticket.holder} since {datetime.fromtimestamp(ticket.since, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _refuse(first: Ticket, seconds: float) -> NoReturn:
    raise StorageBusy(
        f"context {first.context!r:.60} is locked by {holder(first)}; waited {seconds:g} s: try again later"
    )


def _take_over(storage: Storage, context: str, ended: Sequence[Ticket]) -> None:
    """Remove the tickets *ended*, all of which come before the first one that is valid.

    First raise the revision of the context, so that a late commit of an old holder is a conflict. A ticket that was
    renewed meanwhile stays.
    """
    audit(storage, "lock", context=context, holder=ended[0].holder)
    while (found := storage.load(context)) is not None:
        record = found[0]
        try:
            storage.commit(Transition(record.head, record._replace(revision=record.revision + 1)))
            break
        except WriteConflict:
            continue  # another commit was first, perhaps the last one of the old holder
    for ticket in ended:
        storage.replace_ticket(ticket, None)


def _ticket(context: str) -> Ticket:
    now = time.time()
    name = f"process {os.getpid()} on {platform.node()}"
    return Ticket(context, secrets.token_hex(8), name, this_process(), now, now + EXPIRY_SECONDS)


def this_process() -> str:
    """Return a name for this process that no other one ever has; "" where processes can't be told (not Linux)."""
    machine, pid = _machine(), os.getpid()
    return f"{machine} {pid} {_own_beginning(pid)}" if machine else ""


@cache
def _own_beginning(pid: int) -> str:
    """Return the start time of this process, whose id is *pid*: a child after fork() has another one."""
    return _beginning(pid)


def _is_given_up() -> bool:
    event = given_up.get()
    return event is not None and (event.is_set() or not main_thread().is_alive())  # no one waits for it any more


@cache
def _machine() -> str:
    """Return a name shared by processes that see each other's process ids; "" if there is none (not Linux)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 -- a Path would be no name of a file
    except OSError:
        return ""


def _beginning(pid: int) -> str:
    """Return the start time of process *pid*, in ticks since the machine started; "" if it is unknown."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if state in "ZX" else rest[18]  # it ended, and its parent has not collected it yet


def has_ended(process: str) -> bool:
    """Return whether *process* ran on this machine and has ended; False if that is unknown."""
    words = process.split()
    if len(words) != 4 or words[:2] != _machine().split() or not words[2].isdecimal():
        return False
    try:
        os.kill(int(words[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's
        return False
    return _beginning(int(words[2])) not in {"", words[3]}
