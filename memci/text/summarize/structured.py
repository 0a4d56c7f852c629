"""The shape of a structured value: its keys, with the values that would be missed.

    [{"flight": "HAT001", "price": 120, "seats": {"economy": 9}}, {"flight": "HAT022", "price": 95, "seats": …}]
    →  2×{flight: HAT001|HAT022, price: 120|95, seats {economy: 9|4}}

Equal keys of a list's rows are one column; each column lists what its rows hold, once. When room is short, ids, dates,
money and errors go first, and what was not shown is counted: "|+9" values, "14 keys".

Looks at `_LOOKED_AT` values. This module knows nothing of messages or of plain text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice

from ..language.error_lines import error_lines
from ..language.salience import FACT, ID, rank_of
from ..sanitize import plain, width
from .columns import VALUE, Column, as_text

_LOOKED_AT = 800
_DEPTH = 12
_FIRST = 6
_FEW = 16
_BROKEN = 200
_NESTED = (dict, list, tuple, Mapping)
MAPPINGS = (dict, Mapping)  # the first, exact one is the quick one

_JSON = json.JSONDecoder(parse_int=str, parse_float=str)
_PAIR = re.compile(r'"([^"\\\n]{1,40})"\s{0,8}:\s{0,8}("(?:[^"\\\n]|\\.){0,160}"?|-?\d[\d.eE+-]{0,30}|true|false|null)')


def parsed(text: str) -> object:
    """Return the object or list that *text* is in JSON, numbers as they were written; None if it is neither."""
    if text[:1] not in "{[" or text[-1:] not in "}]":
        return None
    try:
        value, end = _JSON.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    found: object = value if end == len(text) else None
    return found


def pairs(text: str) -> dict[str, object]:
    """Return the `"key": value` pairs that can be seen in *text*, JSON that is broken or too long to parse."""
    found: dict[str, object] = {}
    for key, raw in _PAIR.findall(text):
        values = found.setdefault(key, [])
        if isinstance(values, list) and len(values) < _BROKEN:
            values.append(raw.strip('"'))
    return found


def shape(value: object, columns: int, *, seen: str = "") -> str:
    """Return the shape of *value* in about *columns* columns; what *seen* has is shown last. O(leaves looked at)."""
    if isinstance(value, dict) and (short := _whole(value, columns - 2, ": ")):
        return f"{{{short}}}"
    sheet = _Sheet(value, seen)
    size = f", {len(value)} keys" if isinstance(value, dict) and len(value) > 3 else ""
    count = f"{len(value)}×" if isinstance(value, list) else ""
    room = columns - width(count) - width(size) - 2
    body = sheet.text(room, ": ")
    whole = sheet.whole or not size
    return f"{count}{{{body}{'' if whole else size}}}"


def arguments(value: Mapping[str, object], columns: int, *, seen: str = "") -> str:
    """Return the arguments of a call, `key=value, …`, in about *columns* columns."""
    if short := _whole(value, columns, "="):
        return short
    sheet = _Sheet(value, seen)
    body = sheet.text(columns, "=")
    return body if sheet.whole else f"{body}, …" if body else "…"


def _whole(row: Mapping[str, object], columns: int, sign: str) -> str:
    # most calls have a few short arguments
    texts: list[str] = []
    for key, each in row.items():
        if each == "" or isinstance(each, _NESTED) or len(texts) == _FEW or key == "first_name":
            return ""
        texts.append(f"{key}{sign}{each if isinstance(each, str) else as_text(each)}")
    made = ", ".join(texts)
    return made if len(made) <= columns and plain(made) else ""


class _Sheet:
    """Columns of equal path, in document order."""

    def __init__(self, value: object, seen: str) -> None:
        self.whole = True
        self._seen = seen
        self._columns: list[Column] = []
        self._looked_at = 0
        self._walk(value, Column(opened=True), 0)

    def _walk(self, value: object, column: Column, depth: int) -> None:
        self._looked_at += 1
        if self._looked_at > _LOOKED_AT or depth > _DEPTH:
            self.whole = False
        elif isinstance(value, str):
            self._leaf(value, column)
        elif isinstance(value, MAPPINGS):
            self._walk_row(value, column, depth + 1)
        elif isinstance(value, list | tuple):
            column.rows = len(value) if column.rows is None else column.rows
            for each in value[:_LOOKED_AT]:
                self._walk(each, column, depth + 1)
        else:
            self._leaf(as_text(value), column)

    def _walk_row(self, row: Mapping[object, object], column: Column, depth: int) -> None:
        if len(row) > _LOOKED_AT:
            row = dict(islice(row.items(), _LOOKED_AT))
            self.whole = False
        self._looked_at += len(row)
        below = column.below
        if len(row) > 1 and _names_rows(row):
            column.rows = len(row)
            for key, each in row.items():
                name = as_text(key)
                self._leaf(name, below.get("") or column.open(""))
                self._walk(_without(each, name), column, depth)
            return
        for key, each in (_with_full_name(row) if "first_name" in row else row).items():
            under = below.get(key) or column.open(key)
            if isinstance(each, str):
                self._leaf(each, under)
            else:
                self._walk(each, under, depth)

    def _leaf(self, text: str, column: Column) -> None:
        if len(text) > VALUE and "\n" in text:
            text = " · ".join([*error_lines(text[-5_000:])[-1:], text])
        if not column.values:
            self._columns.append(column)
        column.values[text] = None

    def text(self, columns: int, sign: str) -> str:
        """Return the columns that fit; from then on `whole` is False if one does not."""
        order = sorted(self._columns, key=lambda column: column.urgency(self._seen))
        _extend(order, _choose(order, columns, len(sign)))
        chosen = [column for column in self._columns if column.shown]
        self.whole = self.whole and len(chosen) == len(self._columns)
        return _grouped(chosen, sign)


def _choose(order: Sequence[Column], room: int, sign: int) -> int:
    for column in order:
        group = column.above or column
        cost = width(column.label) + sign + 2 + (0 if group.opened else width(group.head()) + 4)
        if cost > room:
            continue
        if len(order) == 1:
            column.clip = max(VALUE, room - cost)
        for value in islice(column.values, _FIRST if column.rank <= ID else 2):
            more = min(column.clip, width(value[: column.clip])) + (1 if column.shown else 0)
            reserve = 4 if len(column.values) > column.shown + 1 else 0
            if cost + more + reserve > room:
                break
            room -= cost + more
            cost = 0
            column.shown += 1
            group.opened = True
    return room


def _extend(order: Sequence[Column], room: int) -> None:
    for column in order:
        if not column.shown:
            continue
        for value in islice(column.values, column.shown, None):
            more = min(column.clip, width(value[: column.clip])) + 1
            if more + 4 > room:
                break
            room -= more
            column.shown += 1
        if column.shown == 1 and room > 8:
            longest = width(next(iter(column.values))[:200])
            if longest > column.clip:
                longer = min(longest, column.clip + room)
                room -= longer - column.clip
                column.clip = longer


def _grouped(chosen: Sequence[Column], sign: str) -> str:
    parts: list[tuple[str, list[str]]] = []
    open_groups: dict[Column, list[str]] = {}
    for column in chosen:
        group = column.above
        text = column.text(sign)
        if group is None or group.above is None:
            parts.append(("", [text]))
        elif group in open_groups:
            open_groups[group].append(text)
        else:
            open_groups[group] = [text]
            parts.append((f"{group.head()}{{", open_groups[group]))
    return ", ".join(f"{head}{', '.join(texts)}{'}' if head else ''}" for head, texts in parts)


def _names_rows(row: Mapping[object, object]) -> bool:
    # the keys are the rows' names: {"HAT001": {…}, "HAT022": {…}}
    for each in row.values():
        if not isinstance(each, MAPPINGS):
            return False
    return any(rank_of(as_text(key)) in (ID, FACT) for key in row)


def _without(row: object, name: str) -> dict[object, object]:
    return {key: each for key, each in row.items() if each != name} if isinstance(row, Mapping) else {}


def _with_full_name(row: Mapping[object, object]) -> Mapping[object, object]:
    first, last = row["first_name"], row.get("last_name")
    if not (isinstance(first, str) and isinstance(last, str)):
        return row
    full = {("name" if key == "first_name" else key): each for key, each in row.items() if key != "last_name"}
    return full | {"name": f"{first} {last}"}
