"""The columns of a structured value: what its equal keys hold.

    [{"flight": "HAT001", "price": 120}, {"flight": "HAT022", "price": 95}]
    →  the column flight with HAT001 and HAT022 (ids), the column price with 120 and 95 (facts)

A column knows how much its values would be missed, by its key and by the values themselves.

This module knows nothing of the line that the columns share.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from ..language.salience import ERROR, FACT, ID, NAME, NUMBER, rank_of
from ..sanitize import one_line

VALUE = 34
_RANKED = 8
_KNOWN = 10
_KEY = 24
_BITS = 4_000

_ERROR_KEYS = re.compile(r"error|exception|stderr|traceback|fail|warning")
_ID_KEYS = re.compile(r"(?:^|_)(?:ids?|uuid|key|code|ref|reference|sku|hash|number|status|state|success|email|phone)$")
_FACT_KEYS = re.compile(
    r"name|title|date|time|price|amount|total|cost|balance|path|file|url|command|cmd|query|message|reason|result|_at$"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d$")


@dataclass(slots=True, eq=False)
class Column:
    """The values at one path, and the columns below it."""

    label: str = ""
    above: "Column | None" = None
    key_rank: int = NAME + 1
    below: dict[object, "Column"] = field(default_factory=dict)
    values: dict[str, None] = field(default_factory=dict)
    rows: int | None = None
    rank: int = NAME + 1
    opened: bool = False
    """its head is paid for"""
    shown: int = 0
    clip: int = VALUE
    """columns for each value"""

    def open(self, key: object) -> "Column":
        """Return a new column, below this one."""
        label, rank = _read_key(key[:200] if isinstance(key, str) else as_text(key))
        made = self.below[key] = Column(label, self, rank)
        return made

    def head(self) -> str:
        """Return what stands before the columns below this one."""
        if not self.label:
            return ""
        return f"{self.label} " if self.rows is None else f"{self.label} {self.rows}×"

    def text(self, sign: str) -> str:
        """Return its label, *sign*, the values that are shown, and how many are not."""
        clip = self.clip
        texts = [
            value if 0 < len(value) <= clip and value.isascii() and value.isprintable() else one_line(value, clip)
            for value in islice(self.values, self.shown)
        ]
        more = len(self.values) - self.shown
        return f"{self.label}{sign if self.label else ''}{'|'.join(texts)}{f'|+{more}' if more else ''}"

    def urgency(self, seen: str) -> int:
        """Set the rank of its values and return it, past all ranks if *seen* has every value. O(values)."""
        known = bool(seen)
        for value in self.values if known else ():
            if len(value) < 3 or value not in seen:
                known = False
                break
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
            short = NAME + 1 if text in ("true", "false") else NAME if len(text) <= VALUE else NUMBER
            return min(self.key_rank, short)
        if _DATE.match(text) and "birth" not in self.label.lower() and self.label != "dob":
            return ID
        return min(own, self.key_rank)


def as_text(value: object) -> str:
    """Return a key or a value as JSON writes it, without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and value.bit_length() > _BITS:
        return "a large number"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@lru_cache(maxsize=1024)
def _read_key(key: str) -> tuple[str, int]:
    # its label, and the rank that its values have at least
    lowered = key if key.islower() else key.lower()
    label = one_line(key, _KEY) if key else ""
    if _ERROR_KEYS.search(lowered):
        rank = ERROR
    elif _ID_KEYS.search(lowered) or key.endswith(("Id", "ID")):
        rank = ID
    else:
        rank = FACT if _FACT_KEYS.search(lowered) else NAME + 1
    return label, rank
