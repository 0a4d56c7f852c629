"""Show the shape of a structured value: its keys, and the most important values.

    [{"flight": "HAT001", "price": 120, "seats": {"economy": 9}}, {"flight": "HAT022", "price": 95, "seats": …}]
    →  2×{flight: HAT001|HAT022, price: 120|95, seats {economy: 9|4}}

Equal keys of the rows of a list make one column. A column lists the values of its rows, each once. Its key and values
decide its rank: if room is short, ids, dates, money and errors come first. Values that are not shown are counted: "|+9"
values, "14 keys". At most `_LOOKED_AT` values are read: a bound on the cost.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from ..language.salience import ERROR, FACT, ID, NAME, NUMBER, error_lines, rank_of
from ..sanitize import JOINT, one_line, plain, width

# Bounds of the cost, and columns that were chosen by reading the results of real tools.
_LOOKED_AT = 800
_FEW_LEAVES = 160
_DEPTH = 12
_FIRST = 6
_FEW = 16
_BROKEN = 200

_JSON = json.JSONDecoder(parse_int=str, parse_float=str)
_PAIR = re.compile(r'"([^"\\\n]{1,40})"\s{0,8}:\s{0,8}("(?:[^"\\\n]|\\.){0,160}"?|-?\d[\d.eE+-]{0,30}|true|false|null)')
_VALUE = 34
_RANKED = 8
_KNOWN = 10
_KEY = 24

_ERROR_KEYS = re.compile(r"error|exception|stderr|traceback|fail|warning")
_ID_KEYS = re.compile(r"(?:^|_)(?:ids?|uuid|key|code|ref|reference|sku|hash|number|status|state|success|email|phone)$")
_FACT_KEYS = re.compile(
    r"name|title|date|time|price|amount|total|cost|balance|path|file|url|command|cmd|query|message|reason|result|_at$"
)
_NOTHING = frozenset(("null", "none", "None"))
_DAY = re.compile(r"\d{4}-\d\d-\d\d$")


def parse_json(text: str) -> object:
    """Return the JSON object or list *text*, with numbers as they were written; None if it is neither."""
    if text[:1] not in "{[" or text[-1:] not in "}]":
        return None
    try:
        value, end = _JSON.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) else None


def pairs(text: str) -> dict[str, object]:
    """Return the `"key": value` pairs of *text*, JSON that is broken or too long to parse."""
    found: dict[str, object] = {}
    for key, raw in _PAIR.findall(text):
        values = found.setdefault(key, [])
        if isinstance(values, list) and len(values) < _BROKEN:
            values.append(raw.strip('"'))
    return found


def shape(value: object, columns: int, *, seen: str = "") -> str:
    """Return the shape of *value* in about *columns* columns; values that *seen* has come last. O(values read)."""
    if isinstance(value, dict) and (short := _show_all(value, columns - 2, ": ")):
        return f"{{{short}}}"
    sheet = _Sheet(value, seen)
    size = f", {len(value)} keys" if isinstance(value, dict) and len(value) > 3 else ""
    count = f"{len(value)}×" if isinstance(value, list) else ""
    room = columns - width(count) - width(size) - 2
    body = sheet.text(room, ": ")
    whole = sheet.whole or not size
    return f"{count}{{{body}{'' if whole else size}}}"


def arguments(value: dict[str, object], columns: int, *, seen: str = "") -> str:
    """Return the arguments of a call, `key=value, …`, in about *columns* columns."""
    if short := _show_all(value, columns, "="):
        return short
    sheet = _Sheet(value, seen)
    body = sheet.text(columns, "=")
    return body if sheet.whole else f"{body}, …" if body else "…"


def values(value: object, columns: int, *, seen: str = "") -> str:
    """Return the most important values of *value* in *columns* columns: ids, dates and names, without their keys.

    Values that *seen* has are left out. O(values read).
    """
    sheet = _Sheet(value, "", _FEW_LEAVES)
    found: dict[str, tuple[int, int]] = {}
    for place, column in enumerate(sheet.columns):
        rank = column.urgency("")
        for each in islice(column.values, _FIRST):
            if not each or each in _NOTHING or (len(each) > 2 and each in seen):
                continue
            own = rank_of(each)
            figure = each in ("true", "false") or (own in (None, NUMBER) and each[-1].isdigit())
            found.setdefault(f"{column.label} {each}".strip() if figure else each, (min(rank, own or rank), place))
    room, chosen = columns, []
    for text in sorted(found, key=found.__getitem__):
        if width(text) <= room:
            chosen.append(text)
            room -= width(text) + 2
    return ", ".join(sorted(chosen, key=lambda text: found[text][1]))


def _show_all(row: dict[str, object], columns: int, sign: str) -> str:
    # most calls have a few short arguments
    texts: list[str] = []
    for key, each in row.items():
        if each == "" or isinstance(each, dict | list) or len(texts) == _FEW or key == "first_name":
            return ""
        texts.append(f"{key}{sign}{each if isinstance(each, str) else _as_text(each)}")
    made = ", ".join(texts)
    return made if len(made) <= columns and plain(made) else ""


@dataclass(slots=True, eq=False)
class _Column:
    """The values at one path, and the columns below it."""

    label: str = ""
    above: "_Column | None" = None
    key_rank: int = NAME + 1
    below: dict[str, "_Column"] = field(default_factory=dict)
    values: dict[str, None] = field(default_factory=dict)
    rows: int | None = None
    rank: int = NAME + 1
    opened: bool = False  # its head is counted
    shown: int = 0
    clip: int = _VALUE  # columns for each value

    def open(self, key: str) -> "_Column":
        """Return a new column, below this one."""
        label, rank = _read_key(key[:200])
        made = self.below[key] = _Column(label, self, rank)
        return made

    def head(self) -> str:
        """Return the text in front of the columns below this one."""
        if not self.label:
            return ""
        return f"{self.label} " if self.rows is None else f"{self.label} {self.rows}×"

    def text(self, sign: str) -> str:
        """Return its label, *sign*, the shown values, and how many are not shown."""
        clip = self.clip
        texts = [
            value if 0 < len(value) <= clip and value.isascii() and value.isprintable() else one_line(value, clip)
            for value in islice(self.values, self.shown)
        ]
        more = len(self.values) - self.shown
        return f"{self.label}{sign if self.label else ''}{'|'.join(texts)}{f'|+{more}' if more else ''}"

    def urgency(self, seen: str) -> int:
        """Set the rank of its values and return it; after all other ranks if *seen* has every value. O(values)."""
        known = bool(seen) and all(len(value) > 2 and value in seen for value in self.values)
        self.rank = NAME + 1
        for value in islice(self.values, _RANKED):
            self.rank = min(self.rank, self._rank(value))
            if self.rank <= ID:
                break
        return self.rank + _KNOWN if known else self.rank

    def _rank(self, text: str) -> int:
        if not text or text == "null":
            return NAME + 1
        if self.key_rank <= ID:
            return self.key_rank
        plain = " " in text[:80] or text.replace("_", "").isalpha()
        own = None if plain else rank_of(text)
        if own is None:
            short = NAME + 1 if text in ("true", "false") else NAME if len(text) <= _VALUE else NUMBER
            return min(self.key_rank, short)
        if _DAY.match(text) and "birth" not in self.label.lower() and self.label != "dob":
            return ID
        return min(own, self.key_rank)


class _Sheet:
    """Columns of equal path, in document order."""

    def __init__(self, value: object, seen: str, most: int = _LOOKED_AT) -> None:
        self.whole = True
        self._most = most
        self._seen = seen
        self.columns: list[_Column] = []
        self._looked_at = 0
        self._walk(value, _Column(opened=True), 0)

    def _walk(self, value: object, column: _Column, depth: int) -> None:
        self._looked_at += 1
        if self._looked_at > self._most or depth > _DEPTH:
            self.whole = False
        elif isinstance(value, str):
            self._leaf(value, column)
        elif isinstance(value, dict):
            self._walk_row(value, column, depth + 1)
        elif isinstance(value, list):
            column.rows = len(value) if column.rows is None else column.rows
            for each in value[:_LOOKED_AT]:
                self._walk(each, column, depth + 1)
        else:
            self._leaf(_as_text(value), column)

    def _walk_row(self, row: dict[str, Any], column: _Column, depth: int) -> None:
        if len(row) > _LOOKED_AT:
            row = dict(islice(row.items(), _LOOKED_AT))
            self.whole = False
        self._looked_at += len(row)
        below = column.below
        if len(row) > 1 and _names_rows(row):
            column.rows = len(row)
            for key, each in row.items():
                self._leaf(key, below.get("") or column.open(""))
                self._walk({name: one for name, one in each.items() if one != key}, column, depth)
            return
        for key, each in (_with_full_name(row) if "first_name" in row else row).items():
            under = below.get(key) or column.open(key)
            if isinstance(each, str):
                self._leaf(each, under)
            else:
                self._walk(each, under, depth)

    def _leaf(self, text: str, column: _Column) -> None:
        if len(text) > _VALUE and "\n" in text:
            text = JOINT.join([*error_lines(text[-5_000:])[-1:], text])
        if not column.values:
            self.columns.append(column)
        column.values[text] = None

    def text(self, columns: int, sign: str) -> str:
        """Return the columns that fit, and set `whole` to False if one does not."""
        order = sorted(self.columns, key=lambda column: column.urgency(self._seen))
        _extend(order, _choose(order, columns, len(sign)))
        chosen = [column for column in self.columns if column.shown]
        self.whole = self.whole and len(chosen) == len(self.columns)
        return _group(chosen, sign)


def _choose(order: Sequence[_Column], room: int, sign: int) -> int:
    for column in order:
        group = column.above or column
        cost = width(column.label) + sign + 2 + (0 if group.opened else width(group.head()) + 4)
        if cost > room:
            continue
        if len(order) == 1:
            column.clip = max(_VALUE, room - cost)
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


def _extend(order: Sequence[_Column], room: int) -> None:
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


def _group(chosen: Sequence[_Column], sign: str) -> str:
    parts: list[tuple[str, list[str]]] = []
    open_groups: dict[_Column, list[str]] = {}
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


def _names_rows(row: dict[str, Any]) -> bool:
    # the keys are the rows' names: {"HAT001": {…}, "HAT022": {…}}
    return all(isinstance(each, dict) for each in row.values()) and any(rank_of(key) in (ID, FACT) for key in row)


def _with_full_name(row: dict[str, Any]) -> dict[str, Any]:
    first, last = row["first_name"], row.get("last_name")
    if not (isinstance(first, str) and isinstance(last, str)):
        return row
    full = {("name" if key == "first_name" else key): each for key, each in row.items() if key != "last_name"}
    return full | {"name": f"{first} {last}"}


def _as_text(value: object) -> str:
    """Return a value that is no text as JSON writes it."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@lru_cache(maxsize=1024)
def _read_key(key: str) -> tuple[str, int]:
    # its label, and the lowest rank of its values
    lowered = key if key.islower() else key.lower()
    label = one_line(key, _KEY) if key else ""
    if _ERROR_KEYS.search(lowered):
        rank = ERROR
    elif _ID_KEYS.search(lowered) or key.endswith(("Id", "ID")):
        rank = ID
    else:
        rank = FACT if _FACT_KEYS.search(lowered) else NAME + 1
    return label, rank
