"""Statements on the file of a store, behind its back."""

from pathlib import Path

import apsw


def execute(path: Path, statement: str, *bindings: int | str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement, bindings).fetchall()
    finally:
        connection.close()
