"""Many processes on one Postgres store while the server is killed: nothing acknowledged is lost, nothing is twice.

    $ python -m tests.postgres.torture --rounds 300

A round is one of these, at a random time while eight writers append to shared contexts of their own:

    kill -9 of the postmaster, and a restart          all connections are lost, the log is replayed
    kill -9 of a backend                              the postmaster ends all others, and replays the log
    pg_terminate_backend of some or all backends      in the middle of whatever they do
    kill -9 of a writer                               its commit may arrive after its death
    a full disk, with --disk                          the server's files lie on a small one, which is filled

The writers and the examination of their histories are those of the other stores (`tests.faults.nemesis`).
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, suppress

import psycopg

from memci.errors import StorageUnavailable
from memci.storage import PostgresStorage
from tests.faults import nemesis
from tests.faults.nemesis import WRITERS, Conductor, _end
from tests.postgres.pooler import Pooler
from tests.postgres.server import Server

URL = "MEMCI_TORTURE_URL"
BATCH = 10
"""rounds after which the histories are examined, and a new store is begun"""
BACKENDS = """
SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"""


def postgres(folder):
    """Open the store that the writers share: a schema that is named for their folder."""
    schema = re.sub(r"\W", "_", folder.name).lower()
    until = time.monotonic() + 60
    while True:
        try:
            return PostgresStorage(os.environ[URL], schema=schema, pool_size=3, wait_seconds=60)
        except StorageUnavailable:  # opening does not wait for a server that is away
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


class ServerConductor(Conductor):
    """Kills the server as well as writers."""

    def __init__(self, seed, server, *, disk=False):
        super().__init__(seed, {"postgres": postgres})
        self._server = server
        self._weights = {"postmaster": 35, "backend": 15, "sessions": 30, "writer": 20, "disk": 100 * disk}
        self._first = ["disk"] * disk  # what is hit before chance decides: a short run has one, too

    def _round(self, folder, make, rng, pace):
        writers = {}
        try:
            for writer in range(WRITERS):
                writers[writer] = self._begun(folder, writer, make, rng)
            while pace.on:
                pace.wait(folder, rng)
                what = self._first.pop() if self._first else rng.choices([*self._weights], [*self._weights.values()])[0]
                if what == "writer":
                    writer = rng.randrange(WRITERS)
                    _end(writers.pop(writer))
                    writers[writer] = self._begun(folder, writer, make, rng)
                else:
                    getattr(self, f"_hit_{what}")(rng)
                pace.done += 1
                yield 1, Counter({"full disks" if what == "disk" else f"kills of a {what}": 1})
        finally:
            for process in writers.values():
                _end(process)
            self._end_sessions()

    def _end_sessions(self):
        """Wait until no session of a dead writer is left: a commit of it may arrive after its death, until then."""
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            while found := [pid for (pid,) in connection.execute(BACKENDS)]:
                for pid in found:
                    connection.execute("SELECT pg_terminate_backend(%s, 1000)", (pid,))

    def _hit_disk(self, rng):
        with self._server.full_disk():
            time.sleep(rng.choice((0.1, 0.5, 1)))
        self._server.start()  # it ends by itself where it can't write its log

    def _hit_postmaster(self, rng):
        self._server.kill(wait=False)
        time.sleep(rng.choice((0, 0, 0.2)))
        self._server.start()

    def _hit_backend(self, rng):
        with suppress(psycopg.OperationalError, ProcessLookupError):
            with psycopg.connect(self._server.url, autocommit=True) as connection:
                found = [pid for (pid,) in connection.execute(BACKENDS)]
            if found:
                os.kill(rng.choice(found), signal.SIGKILL)
        self._server.start()  # until it answers again

    def _hit_sessions(self, rng):
        with suppress(psycopg.OperationalError), psycopg.connect(self._server.url, autocommit=True) as connection:
            found = [pid for (pid,) in connection.execute(BACKENDS)]
            for pid in found if rng.random() < 0.3 else rng.sample(found, min(len(found), rng.randint(1, 4))):
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--fsync", action="store_true", help="let commits wait for the disk")
    parser.add_argument("--disk", type=int, metavar="MIB", help="fill the disk, which is of this size; only for root")
    parser.add_argument("--pooled", action="store_true", help="let the writers come through a pooler of transactions")
    order = parser.parse_args()
    print(f"seed {order.seed}, {order.rounds} rounds", flush=True)
    nemesis.ROUND_KILLS = BATCH
    counts, broken, done, begun = Counter(), [], 0, time.monotonic()
    settings = {"max_wal_size": "64MB"} if order.disk else None
    with Server(fsync=order.fsync, disk=order.disk, settings=settings) as server, ExitStack() as stack:
        os.environ[URL] = stack.enter_context(Pooler(server)).url if order.pooled else server.url
        for killed, seen, found in ServerConductor(order.seed, server, disk=order.disk is not None).rounds(
            order.rounds, order.seconds
        ):
            done += killed
            counts.update(seen)
            broken += found
            if found or (killed and done % 50 == 0):
                print(f"{done} rounds, {time.monotonic() - begun:.0f} s", *found, sep="\n", flush=True)
    figures = {"rounds": done, "seconds": round(time.monotonic() - begun), **counts, "broken": broken}
    print(json.dumps(figures, indent=1))
    return bool(broken) or done < min(order.rounds, 1)


def run(rounds, seed, *options):
    """Return the exit code and the output of a run in a process of its own."""
    command = [sys.executable, "-m", "tests.postgres.torture", "--rounds", str(rounds), "--seed", str(seed), *options]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


if __name__ == "__main__":
    sys.exit(main())
