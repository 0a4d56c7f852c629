"""Each field that can hold text names its eraser: a new one fails here until somebody says whose words it holds."""

import dataclasses
import re
import typing
from pathlib import Path

import numpy as np
import pytest

from memci import rows
from memci.memory import repository
from memci.memory.repository.items import KINDS
from memci.window.state import ELSEWHERE, WindowState
from memci.window.stored import SnapshotJson

from .holders import HOLDERS

ROWS = [each.row for each in vars(rows).values() if isinstance(each, rows.Table)]
CLASSES = [*ROWS, WindowState, SnapshotJson, *KINDS.values()]
COLUMN = re.compile(r"\b(\w+) (?:TEXT|BLOB)\b")


def holds_text(hint):
    """Tell whether a value of this type may hold words, or what is derived of them."""
    if hint in (str, bytes) or hint is typing.Any or getattr(hint, "__origin__", hint) is np.ndarray:
        return True
    if typing.get_origin(hint) is typing.Literal:
        return False
    inner = [*typing.get_args(hint)]
    if dataclasses.is_dataclass(hint) or hasattr(hint, "_fields") or hasattr(hint, "model_fields"):
        inner += [value for name, value in hints_of(hint).items() if not name.startswith("_")]
    return any(holds_text(each) for each in inner if each is not hint)


def hints_of(kind):
    hints = typing.get_type_hints(kind)
    return {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not typing.ClassVar}


def fields_of_text(kinds):
    """Return (class, field) of each field that may hold words."""
    own = {(kind.__name__, name) for kind in kinds for name, hint in hints_of(kind).items() if holds_text(hint)}
    return {(kind, name) for kind, name in own if not name.startswith(("_", "model_c"))}


def columns_of_text():
    """Return (table, column) of the memory's tables."""
    sql = (Path(repository.__path__[0]) / "tables.sql").read_text(encoding="utf-8")
    tables = re.findall(r"CREATE TABLE (\w+)\((.*?)\) STRICT", sql, re.DOTALL)
    return {(table, column) for table, body in tables for column in COLUMN.findall(re.sub(r"/\*.*?\*/", "", body))}


def test_every_field_of_text_names_its_eraser():
    """Rows, the window's state, snapshots, items and tables of the memory; and none is named that is not there."""
    assert fields_of_text(CLASSES) | columns_of_text() == set(HOLDERS)


def test_fields_with_words_of_other_contexts_are_those_that_the_state_drops():
    """What is registered as dropped is what `WindowState.alone` leaves out."""
    assert {name for (_, name), holder in HOLDERS.items() if holder.eraser == "drop"} == set(ELSEWHERE)
    words = WindowState("00000000", **dict.fromkeys(ELSEWHERE, (1, "said elsewhere")))
    assert words.alone() == WindowState("00000000")


@pytest.mark.parametrize("hint", [str, bytes | None, tuple[tuple[int, str], ...], dict[str, int], list[rows.EntryRow]])
def test_field_that_nobody_registered_is_caught(hint):
    """A field of text that is added to a row is found, whatever is around the text; a number is not."""
    mutant = dataclasses.make_dataclass("WindowState", [("memo", hint), ("count", int | None)])

    assert fields_of_text([mutant]) - set(HOLDERS) == {("WindowState", "memo")}
