"""Numerals of Chinese and Japanese as figures, so that 六千人, 6千人 and 6000人 are found by one another.

figures("来了六千人，一万五千元")     ["6000", "15000"]
"""

import re
from collections.abc import Iterator

_DIGITS = {
    numeral: value
    for value, forms in enumerate(("〇零", "一", "二两兩", "三", "四", "五", "六", "七", "八", "九"))
    for numeral in forms
}
_UNITS = {"十": 10, "百": 100, "千": 1_000}
_GROUPS = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}
_NUMERAL = re.compile(f"(\\d+(?:\\.\\d+)?)?([{''.join(_DIGITS)}{''.join(_UNITS)}{''.join(_GROUPS)}]+)")
_DATED = re.compile(f"[{''.join(_DIGITS)}十]{{1,3}}(?=[月日号])")


def dated(text: str) -> str:
    """Return *text* with the numerals of months and days as figures: "四月五日" becomes "4月5日". O(length)."""
    return _DATED.sub(lambda match: f"{_value('', match[0]):.0f}", text)


def figures(text: str) -> Iterator[str]:
    """Yield the numerals of *text* as figures; a single character tells no number ("一起", "十分"). O(length)."""
    for head, numeral in _NUMERAL.findall(text):
        units = any(letter in _UNITS or letter in _GROUPS for letter in numeral)
        if len(head) + len(numeral) > 1 and (head or numeral[0] not in _GROUPS) and (units or not head):
            if units:
                value = _value(head, numeral)
                yield f"{value:g}" if value % 1 else str(int(value))
            else:
                yield "".join(str(_DIGITS[letter]) for letter in numeral).lstrip("0") or "0"


def _value(head: str, numeral: str) -> float:
    whole = group = 0.0
    digit = float(head) if head else None
    for letter in numeral:
        if letter in _DIGITS:
            digit = _DIGITS[letter]
            continue
        if letter in _UNITS:
            group += (1 if digit is None else digit) * _UNITS[letter]
        else:
            here, size = group + (digit or 0), _GROUPS[letter]
            whole = whole + here * size if whole >= size else (whole + here) * size
            group = 0
        digit = None
    return whole + group + (digit or 0)
