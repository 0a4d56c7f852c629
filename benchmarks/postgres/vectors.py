"""Vectors of passages by numpy, after their rows were read, beside pgvector: exact, and by an HNSW index.

    $ .venv-postgres/bin/python -m benchmarks.postgres.vectors --passages 1000 10000 100000

Groups of made-up vectors of unit length with 384 numbers, in half precision. CPU of the worker and of the one session
of the server, in ms, with no parallel workers. The questions lie in the groups; recall is that of the nearest ten.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import psycopg

from tests.postgres.server import Server

NUMBERS = 384
QUESTIONS = 50


def made(count, centres, random):
    """Return so many vectors around *centres*."""
    near = centres[random.integers(0, len(centres), count)]
    vectors = near + random.standard_normal((count, NUMBERS)) * (0.9 / NUMBERS**0.5)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def text(vector):
    return f"[{','.join(f'{number:.6g}' for number in vector)}]"


class Comparison:
    """So many passages in two tables: rows of bytes, and halfvec."""

    def __init__(self, url, passages):
        random = np.random.default_rng(3)
        centres = random.standard_normal((max(20, passages // 50), NUMBERS))
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        self.vectors, self.questions = made(passages, centres, random), made(QUESTIONS, centres, random)
        self._connection = connection = psycopg.connect(url, autocommit=True)
        self._session = Path(f"/proc/{connection.info.backend_pid}/schedstat")
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("SET max_parallel_workers_per_gather = 0; SET max_parallel_maintenance_workers = 0")
        connection.execute("SET maintenance_work_mem = '1GB'; DROP TABLE IF EXISTS bytes, half")
        connection.execute(
            f"CREATE TABLE bytes (nr bigint, row bytea); CREATE TABLE half (nr bigint, row halfvec({NUMBERS}))"
        )
        with connection.cursor() as cursor:
            with cursor.copy("COPY bytes FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int8", "bytea"])
                for number, vector in enumerate(self.vectors):
                    copy.write_row((number, vector.astype(np.float16).tobytes()))
            with cursor.copy("COPY half FROM STDIN") as copy:
                for number, vector in enumerate(self.vectors):
                    copy.write_row((number, text(vector)))
        connection.execute("ANALYZE bytes, half")

    def spent(self, name, calls, call):
        """Print what *call* costs, called so many times with a question; return its results."""
        worker, server = time.process_time(), self._served()
        results = [call(question) for question in self.questions[:calls]]
        worker, server = time.process_time() - worker, self._served() - server
        print(f"| {name} | {1e3 * worker / calls:.2f} | {1e3 * server / calls:.2f} |", flush=True)
        return results

    def read(self, _question=None):
        """Return the matrix of all rows, as a memory reads it."""
        rows = self._connection.execute("SELECT nr, row FROM bytes WHERE nr >= %s", (0,), binary=True).fetchall()
        return np.frombuffer(b"".join(row for _, row in rows), np.float16).reshape(-1, NUMBERS).astype(np.float32)

    def asked(self, statement, *values):
        """Return what calls *statement* with a question and *values*."""
        return lambda question: self._connection.execute(statement, (text(question), *values), binary=True).fetchall()

    def recall(self, results):
        """Return the share of the nearest ten that the first rows of *results* have."""
        hits = 0
        for question, rows in zip(self.questions, results, strict=True):
            cosines = self.vectors @ question
            best = sorted((number for (number,) in rows), key=lambda number: -cosines[number])[:10]
            hits += len({*best} & {*np.argsort(-cosines)[:10].tolist()})
        return hits / (10 * len(results))

    def size(self, name):
        """Return the MiB of a table or an index."""
        return self._connection.execute("SELECT pg_relation_size(%s::regclass)", (name,)).fetchone()[0] / 2**20

    def run(self, statement):
        """Execute *statement*."""
        self._connection.execute(statement)

    def _served(self):
        return int(self._session.read_text().split()[0]) / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--passages", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    order = parser.parse_args()
    with Server(settings={"shared_buffers": "256MB", "max_wal_size": "4GB"}) as server:
        for passages in order.passages:
            print(f"\n| {passages:,} passages | worker, ms | server, ms |\n| --- | ---: | ---: |")
            both = Comparison(server.url, passages)
            matrix = both.spent("numpy: read the rows", 3, both.read)[0]
            both.spent("numpy: a product", QUESTIONS, matrix.__matmul__)
            both.spent("pgvector: all cosines", 5, both.asked("SELECT nr, -(row <#> %s::halfvec) FROM half"))
            near = "SELECT nr FROM half ORDER BY row <#> %s::halfvec LIMIT %s"
            both.spent("pgvector: the nearest 100", 5, both.asked(near, 100))
            index = "CREATE INDEX near ON half USING hnsw (row halfvec_ip_ops)"
            both.spent("HNSW: make the index", 1, lambda _question: both.run(index))  # noqa: B023 -- it is called at once
            for most in (40, 100):
                both.run(f"SET hnsw.ef_search = {most}")
                found = both.spent(f"HNSW: the nearest {most}", QUESTIONS, both.asked(near, most))
                print(f"| recall of the nearest 10 | {both.recall(found):.3f} | |")
            print(f"| MiB: rows, index | {both.size('half'):.1f} | {both.size('near'):.1f} |", flush=True)


if __name__ == "__main__":
    main()
