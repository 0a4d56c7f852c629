"""Appends of many clients to a Postgres server and to one SQLite file, in one run; and how both grow.

    $ make postgres-bench OPTIONS="--seconds 5"

A client is a process with contexts of its own. It appends a turn (two messages of some 100 tokens, with an op_id),
renders, and goes on with its next context. Every commit waits for the disk, in both stores. Tokens are counted as
quarters of characters, so that the stores are measured and not the tokenizer. The machine, its clients and its server
share the same cores: the rates are those of the whole.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import psycopg

from memci import Context, SQLiteStorage
from memci.memory import NullMemory
from memci.rows import ContextRecord, PageRow, PageState
from memci.storage import PostgresStorage
from memci.storage.protocol import Transition
from memci.testing.storage.rows import entry
from tests.postgres.pooler import Pooler
from tests.postgres.server import Server

from .alone import alone

CONTEXTS = 8
"""contexts of each client"""
BODY = b'{"role":"user","content":"%s"}' % (b"some words of a message " * 16)


SAID = "some words of a message " * 16


def count(text):
    return len(text) // 4


def quantile(values, share):
    return 1000 * sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def client(number, make, seconds, begin, results):
    """Append for *seconds*, and report the times of each kind of call."""
    times = {"append": [], "render": [], "open": []}
    with closing(make()) as storage:
        names = [f"client {number} context {i}" for i in range(CONTEXTS)]
        settings = {"window": 4_000, "memory": NullMemory(), "counter": count, "clock": None}
        contexts = [Context.open(storage, name, owner=f"owner {number}", **settings) for name in names]
        turn = 0
        begin.wait()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            context = contexts[turn % CONTEXTS]
            turn += 1
            with Timed(times["append"]):
                context.append_turn(SAID, {"role": "assistant", "content": SAID}, op_id=f"{number}-{turn}")
            with Timed(times["render"]):
                context.render()
        for name in names[:4]:
            with Timed(times["open"]):
                Context.open(storage, name, **settings)
    results.put(times)


def committing(number, make, seconds, begin, results):
    """Commit turns that are ready, for *seconds*: what the stores take of clients that do nothing else."""
    times, turn = [], 0
    with closing(make()) as storage:
        records = [
            ContextRecord(f"ready {number} {i}", f"owner {number}", "{}", "{}", revision=0) for i in range(CONTEXTS)
        ]
        begin.wait()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            before = records[turn % CONTEXTS]
            after = before._replace(head=before.head + 2, revision=before.revision + 1)
            made = Transition(before.head, after, (entry(before.head, BODY), entry(before.head + 1, BODY)))
            with Timed(times):
                storage.commit(made)
            records[turn % CONTEXTS] = after
            turn += 1
    results.put({"commit": times})


class Timed:
    def __init__(self, kept):
        self._kept = kept

    def __enter__(self):
        self._begun = time.perf_counter()

    def __exit__(self, *_error):
        self._kept.append(time.perf_counter() - self._begun)


def rate(clients, make, seconds, work=client):
    """Return appends a second of all *clients*, and quantiles in ms."""
    processes = get_context("fork")
    results, begin = processes.Queue(), processes.Barrier(clients)
    running = [processes.Process(target=work, args=(i, make, seconds, begin, results)) for i in range(clients)]
    for each in running:
        each.start()
    reports = [results.get() for _ in running]
    for each in running:
        each.join()
    merged = {kind: [value for report in reports for value in report[kind]] for kind in reports[0]}
    figures = {f"{kind} {name}": quantile(merged[kind], share) for kind in merged for name, share in SHARES}
    return {"clients": clients, "appends/s": len(next(iter(merged.values()))) / seconds, **figures}


SHARES = (("p50", 0.5), ("p99", 0.99))


def loaded(storage, number, pages):
    """Put a context with so many archived pages into the store."""
    rows = tuple(entry(seq, BODY) for seq in range(2 * pages))
    held = tuple(PageRow(p + 1, 2 * p, 2 * p + 2, p, PageState.ARCHIVED) for p in range(pages))
    record = ContextRecord(f"loaded {number:06}", f"owner {number % 1000}", "{}", "{}", 2 * pages, pages + 1, pages)
    storage.commit(Transition(0, record, rows, held))


def grown(make, size, steps, pages):
    """Yield the times of commits and reads, in ms, and the bytes, as the store grows."""
    done = 0
    for contexts in steps:
        with closing(make()) as storage:
            for number in range(done, contexts):
                loaded(storage, number, pages)
            done = contexts
            times = {"commit": [], "load": [], "page": []}
            for i in range(0, contexts, max(1, contexts // 200)):
                name = f"loaded {i:06}"
                with Timed(times["load"]):
                    record = storage.load(name)[0]
                with Timed(times["page"]):
                    [page] = storage.pages(name, first=pages // 2, last=pages // 2)
                    list(storage.entries(name, page.first, page.end))
                after = record._replace(head=record.head + 2, revision=record.revision + 1)
                made = Transition(record.head, after, (entry(record.head, BODY), entry(record.head + 1, BODY)))
                with Timed(times["commit"]):
                    storage.commit(made)
        quantiles = {f"{kind} {name}": quantile(times[kind], share) for kind in times for name, share in SHARES}
        yield {"contexts": contexts, "pages": contexts * pages, "MiB": size() / 2**20, **quantiles}


def costs(server, calls=1_000):
    """Yield what a call costs without waiting, in ms of CPU and bytes of the log: an append, and a bare INSERT."""

    def measured(name, call):
        spent, served, written = time.process_time(), server_cpu(), log_position(server.url)
        for number in range(calls):
            call(number)
        spent, served = time.process_time() - spent, server_cpu() - served
        log = (log_position(server.url) - written) / calls
        return {"call": name, "worker ms": 1e3 * spent / calls, "server ms": 1e3 * served / calls, "log bytes": log}

    settings = {"window": 1_000_000, "memory": NullMemory(), "counter": count, "clock": None}  # no compaction
    with closing(PostgresStorage(server.url, schema="costs")) as storage:
        context = Context.open(storage, "one", **settings)
        turn = SAID, {"role": "assistant", "content": SAID}
        yield measured("append", lambda number: context.append_turn(*turn, op_id=f"turn {number}"))
        yield measured("render", lambda _number: context.render())
    with psycopg.connect(server.url, autocommit=True) as plain:
        plain.execute("CREATE TABLE bare (id bigserial PRIMARY KEY, body bytea)")
        insert = "INSERT INTO bare (body) VALUES (%b), (%b)"
        yield measured("bare INSERT", lambda _number: plain.execute(insert, (SAID.encode(), SAID.encode())))


def server_cpu():
    """Return the seconds of CPU of all processes of Postgres that run, and of the sessions that ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text().rpartition(")")
            ticks += sum(map(int, rest.split()[11:15])) if name.endswith("(postgres") else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def log_position(url):
    with psycopg.connect(url) as connection:
        return int(connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()[0])


def table(rows):
    """Return *rows* as a table in Markdown."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "| " + " | ".join("---:" for _ in names) + " |"]
    for row in rows:
        cells = (f"{value:,.1f}" if isinstance(value, float) else f"{value}" for value in row.values())
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--contexts", type=int, nargs="*", default=[100, 1_000])
    parser.add_argument("--pages", type=int, default=100)
    order = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    print(f"{commit.strip()}, {os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}")
    report = {"appends": [], "ready": [], "alone": [], "costs": [], "growth": []}
    with (
        tempfile.TemporaryDirectory(prefix="memci-") as folder,
        Server(fsync=True) as server,
        Pooler(server, sessions=16) as pooler,
    ):
        file = Path(folder, "agents.db")
        for clients in order.clients:
            for name, make in (
                ("SQLite", partial(SQLiteStorage, Path(folder, f"{clients}.db"), busy_timeout_seconds=60)),
                ("Postgres", partial(PostgresStorage, server.url, schema=f"clients_{clients}", pool_size=2)),
                ("behind PgBouncer", partial(PostgresStorage, pooler.url, schema=f"pooled_{clients}", pool_size=2)),
            ):
                make().close()
                report["appends"].append({"store": name, **rate(clients, make, order.seconds)})
                report["ready"].append({"store": name, **rate(clients, make, order.seconds, committing)})
                print(json.dumps(report["appends"][-1]), json.dumps(report["ready"][-1]), sep="\n", flush=True)
        for clients in order.clients:
            report["alone"].append(alone(server, clients, order.seconds, SAID, count, server_cpu))
        report["costs"] += costs(server)
        print(*map(json.dumps, report["alone"]), sep="\n", flush=True)
        print(*map(json.dumps, report["costs"]), sep="\n", flush=True)
        makes = {
            "SQLite": (partial(SQLiteStorage, file), lambda: file.stat().st_size),
            "Postgres": (
                partial(PostgresStorage, server.url, schema="grown"),
                lambda: size_of(server.url, "grown"),
            ),
        }
        for name, (make, size) in makes.items():
            for row in grown(make, size, order.contexts, order.pages):
                report["growth"].append({"store": name, **row})
                print(json.dumps(report["growth"][-1]), flush=True)
    for each in report.values():
        print(f"\n{table(each)}" if each else "")


def size_of(url, schema):
    """Return the bytes of all tables of *schema* with their indexes."""
    statement = """
SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE relkind = 'r' AND nspname = %s"""
    with closing(PostgresStorage(url, schema=schema)) as storage:
        return int(storage.database.read_rows(statement, schema)[0][0])


if __name__ == "__main__":
    main()
