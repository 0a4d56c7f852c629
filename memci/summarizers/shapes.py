"""The shape of a structured value: its keys, with the values that would be missed.

    [{"flight": "HAT001", "price": 120, "seats": {"economy": 9}}, {"flight": "HAT022", "price": 95, "seats": …}]
    →  2×{flight: HAT001|HAT022, price: 120|95, seats {economy: 9|4}}

Equal keys of a list's rows are one column; each column lists what its rows hold, once. When room is short, ids, dates,
money and errors go first, and what was not shown is counted: "|+9" values, "14 keys".

Looks at `_LEAVES` leaves. This module knows nothing of messages or of plain text.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .hygiene import one_line, width
from .salience import ERROR, FACT, ID, NAME, NUMBER, error_lines, rank_of

_LEAVES = 600
_DEPTH = 12
_VALUE = 34
_FIRST = 6
_BROKEN = 200
_BITS = 4_000

_ERROR_KEYS = re.compile(r"error|exception|stderr|traceback|fail|warning")
_ID_KEYS = re.compile(
    r"(?:^|_)(?:ids?|uuid|key|code|ref|reference|sku|hash|number|status|state|success|email|phone)$|Id$"
)
_FACT_KEYS = re.compile(
    r"name|title|date|time|price|amount|total|cost|balance|path|file|url|command|cmd|query|message|reason|result|_at$"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d$")
_PAIR = re.compile(r'"([^"\\\n]{1,40})"\s{0,8}:\s{0,8}("(?:[^"\\\n]|\\.){0,160}"?|-?\d[\d.eE+-]{0,30}|true|false|null)')


@dataclass(slots=True)
class _Column:
    label: str
    rank: int
    values: dict[str, None] = field(default_factory=dict)
    shown: int = 0
    clip: int = _VALUE
    """columns for each value"""

    def text(self, sign: str) -> str:
        texts = [one_line(value, self.clip) for value in list(self.values)[: self.shown]]
        more = len(self.values) - self.shown
        return f"{self.label}{sign}{'|'.join(texts)}" + (f"|+{more}" if more else "")


def parsed(text: str) -> object:
    """Return the object or list that *text* is in JSON, numbers as they were written; None if it is neither."""
    if text[:1] not in "{[" or text[-1:] not in "}]":
        return None
    try:
        value: object = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return value


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
    sheet = _Sheet(seen)
    sheet.walk(value)
    size = f", {len(value)} keys" if isinstance(value, dict) and len(value) > 3 else ""
    count = f"{len(value)}×" if isinstance(value, list) else ""
    room = columns - width(count) - width(size) - 2
    body = sheet.text(room, ": ")
    whole = sheet.whole or not size
    return f"{count}{{{body}{'' if whole else size}}}"


def arguments(value: Mapping[str, object], columns: int, *, seen: str = "") -> str:
    """Return the arguments of a call, `key=value, …`, in about *columns* columns."""
    sheet = _Sheet(seen)
    sheet.walk(value)
    body = sheet.text(columns, "=")
    return body if sheet.whole else f"{body}, …" if body else "…"


class _Sheet:
    """Columns of equal path, in document order."""

    def __init__(self, seen: str) -> None:
        self.whole = True
        self._seen = seen
        self._columns: dict[tuple[str, ...], _Column] = {}
        self._counts: dict[tuple[str, ...], int] = {}
        self._leaves = 0

    def walk(self, value: object, path: tuple[str, ...] = (), depth: int = 0) -> None:
        if self._leaves >= _LEAVES or depth > _DEPTH:
            self.whole = False
        elif isinstance(value, Mapping):
            self._walk_dict(value, path, depth)
        elif isinstance(value, list | tuple):
            if path not in self._counts:
                self._counts[path] = len(value)
            for each in value[:_LEAVES]:
                self.walk(each, path, depth + 1)
        else:
            self._leaf(value, path)

    def _walk_dict(self, value: Mapping[str, object], path: tuple[str, ...], depth: int) -> None:
        rows = {_text(key): row for key, row in value.items() if isinstance(row, Mapping)}
        if 1 < len(rows) == len(value) and any(rank_of(key) in (ID, FACT) for key in rows):
            # the keys are the rows' names
            self._counts[path] = len(rows)
            for key, row in rows.items():
                self._leaf(key, (*path, ""))
                self.walk({name: each for name, each in row.items() if each != key}, path, depth + 1)
            return
        first, last = value.get("first_name"), value.get("last_name")
        named = isinstance(first, str) and isinstance(last, str)
        for key, each in value.items():
            if named and key == "first_name":
                self._leaf(f"{first} {last}", (*path, "name"))
            elif not (named and key == "last_name"):
                self.walk(each, (*path, _text(key)), depth + 1)

    def _leaf(self, value: object, path: tuple[str, ...]) -> None:
        self._leaves += 1
        text = _text(value)
        label = path[-1] if path else ""
        rank = _rank(label, value, text)
        if len(text) > _VALUE and (rank == ERROR or "\n" in text):
            text = " · ".join([*error_lines(text[-5_000:])[-1:], text]) if "\n" in text else text
        column = self._columns.get(path)
        if column is None:
            column = self._columns[path] = _Column(one_line(label, 24) if label else "", rank)
        column.rank = min(rank, column.rank)
        column.values[text] = None

    def text(self, columns: int, sign: str) -> str:
        room = self._choose(columns, len(sign))
        self._extend(room)
        chosen = {path: column for path, column in self._columns.items() if column.shown}
        self.whole = self.whole and len(chosen) == len(self._columns)
        return ", ".join(self._grouped(chosen, sign))

    def _choose(self, room: int, sign: int) -> int:
        opened: set[tuple[str, ...]] = {()}
        for path, column in sorted(self._columns.items(), key=self._urgency):
            group = path[:-1]
            cost = width(column.label) + sign + 2 + (0 if group in opened else len(self._head(group)) + 4)
            alone = len(self._columns) == 1
            for value in list(column.values)[: _FIRST if column.rank <= ID else 2]:
                column.clip = max(_VALUE, room - cost) if alone else column.clip
                more = min(column.clip, width(value[: column.clip])) + (1 if column.shown else 0)
                reserve = 4 if len(column.values) > column.shown + 1 else 0
                if cost + more + reserve > room:
                    break
                room -= cost + more
                cost = 0
                column.shown += 1
                opened.add(group)
        return room

    def _extend(self, room: int) -> None:
        for _, column in sorted(self._columns.items(), key=self._urgency):
            values = list(column.values)
            while 0 < column.shown < len(values):
                more = min(column.clip, width(values[column.shown][: column.clip])) + 1
                if more + 4 > room:
                    break
                room -= more
                column.shown += 1
            longest = max((width(value[:200]) for value in values[: column.shown]), default=0)
            if longest > column.clip and room > 8 and column.shown == 1:
                longer = min(longest, column.clip + room)
                room -= longer - column.clip
                column.clip = longer

    def _urgency(self, item: tuple[tuple[str, ...], _Column]) -> tuple[bool, int]:
        column = item[1]
        known = bool(self._seen) and all(len(value) > 2 and value in self._seen for value in column.values)
        return known, column.rank

    def _head(self, group: tuple[str, ...]) -> str:
        count = self._counts.get(group)
        label = one_line(group[-1], 24) if group and group[-1] else ""
        return f"{label} {count}×" if count is not None and label else f"{label} " if label else ""

    def _grouped(self, chosen: dict[tuple[str, ...], _Column], sign: str) -> Iterable[str]:
        groups: dict[tuple[str, ...], list[str]] = {}
        for path, column in chosen.items():
            group = path[:-1]
            text = column.text(sign if column.label else "")
            if group:
                groups.setdefault(group, []).append(text)
            else:
                groups[path] = [text]
        for group, texts in groups.items():
            if group in chosen and len(texts) == 1:
                yield texts[0]
            else:
                yield f"{self._head(group)}{{{', '.join(texts)}}}"


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and value.bit_length() > _BITS:
        return "a large number"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _rank(label: str, value: object, text: str) -> int:
    if value is None or text == "":
        return NAME + 1
    key = label if label.islower() else label.lower()
    if _ERROR_KEYS.search(key) or _ID_KEYS.search(key):
        return ERROR if _ERROR_KEYS.search(key) else ID
    plain = " " in text[:80] or text.replace("_", "").isalpha()
    own = None if plain else rank_of(text)
    if own is not None and _DATE.match(text) and "birth" not in key and key != "dob":
        return ID
    if _FACT_KEYS.search(key):
        return min(own, FACT) if own is not None else FACT
    short = NAME + 1 if isinstance(value, bool) else NAME
    return own if own is not None else short if len(text) <= _VALUE else NUMBER
