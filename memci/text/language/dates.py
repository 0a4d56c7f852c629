"""Dates as search terms: when something was said, and which time a question names.

    date_terms(datetime(2023, 5, 19))      ["@2023", "@may", "@2023-05", "@may-19"]
    asked_dates("… in May 2023?")          ["@2023", "@may", "@2023-05"]
    tells_time("We met last Friday.")      True

The @ keeps these terms apart from words of a text. A day is that of the zone in which something was said.
"""

import re
from datetime import date

from .patterns import pattern

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_YEAR = r"(?:19|20)\d\d"
_DATED = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? )?(?P<month>{_MONTH})\b\.?"
    rf"(?: (?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,? (?:of )?(?P<year>{_YEAR})\b)?"
)
_ISO = re.compile(rf"\b(?P<year>{_YEAR})[-/](?P<month>\d{{1,2}})(?:[-/](?P<day>\d{{1,2}}))?\b")
_TIED = re.compile(
    rf"(?:(?P<year>{_YEAR})\s*[年년]\s*)?(?P<month>\d{{1,2}})\s*[月월](?:\s*(?P<day>\d{{1,2}})\s*[日号號일])?"
)
_LEADS_TO_MONTH = re.compile(
    r"\b(?:in|on|of|since|until|till|during|before|after|by|last|this|next|early|late|mid)[ -]$"
)
_TIMED = pattern("dates", "timed", flags=re.IGNORECASE)
_WHEN = pattern("dates", "when", flags=re.IGNORECASE)


def date_terms(day: date) -> list[str]:
    """Return the terms of *day*: year, month, year and month, month and day."""
    month = _MONTHS[day.month - 1]
    return [f"@{day.year}", f"@{month}", f"@{day.year}-{day.month:02}", f"@{month}-{day.day}"]


def asked_dates(text: str) -> list[str]:
    """Return the terms of the dates that *text* names, each once, as `date_terms` writes them. O(length)."""
    lower = text.lower()
    found = [f"@{year}" for year in re.findall(rf"\b{_YEAR}\b", lower)]
    for match in _DATED.finditer(lower):
        month, day, year = match["month"][:3], match["before"] or match["after"], match["year"]
        # "may" and "march" are verbs, too
        start = match.start("month")
        if month in {"may", "mar"} and not (day or year or _LEADS_TO_MONTH.search(lower, max(0, start - 8), start)):
            continue
        found += _terms_of(year, _MONTHS.index(month) + 1, day)
    for form in (_ISO, _TIED):
        for match in form.finditer(lower):
            found += _terms_of(match["year"], int(match["month"]), match["day"])
    return list(dict.fromkeys(found))


def tells_time(text: str) -> bool:
    """Return whether *text* says when something is, was or will be. O(length)."""
    return _TIMED.search(text) is not None


def asks_time(text: str) -> bool:
    """Return whether *text* asks when."""
    return _WHEN.search(text) is not None


def _terms_of(year: str | None, month: int, day: str | None) -> list[str]:
    if not 1 <= month <= 12:
        return []
    name = _MONTHS[month - 1]
    found = [f"@{name}"]
    if day:
        found.append(f"@{name}-{int(day)}")
    if year:
        found += [f"@{year}", f"@{year}-{month:02}"]
    return found
