"""Statements on the file of a store, behind its back, and changes by several processes."""

import pickle
import subprocess
import sys
from pathlib import Path

import apsw

from memci.storage import EphemeralStorage, Storage
from memci.testing.storage.rows import append


def execute(path: Path, statement: str, *bindings: int | str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement, bindings).fetchall()
    finally:
        connection.close()


def committed_at_once(store_class: type[Storage], path: Path, count: int) -> list[int]:
    """Commit *count* changes of a context each in four processes that open *path* at once; return how these ended."""
    program = (
        f"import pickle, sys; from memci.storage import {store_class.__name__} as Store\n"
        "changes = pickle.load(sys.stdin.buffer)\n"
        "storage = Store(sys.argv[1], busy_timeout_seconds=20)\n"
        "for each in changes: storage.commit(each)"
    )
    known = EphemeralStorage()
    changes = [pickle.dumps([append(known, f"p{at}", b"%d" % n) for n in range(count)]) for at in range(4)]
    children = [subprocess.Popen([sys.executable, "-c", program, path], stdin=subprocess.PIPE) for _ in changes]
    for child, each in zip(children, changes, strict=True):
        assert child.stdin is not None
        child.stdin.write(each)
        child.stdin.close()
    return [child.wait() for child in children]
