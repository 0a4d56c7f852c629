"""Dates as search terms: when something was said, and which time a question names.

    date_terms(datetime(2023, 5, 19))      ["@2023", "@may", "@2023-05", "@may-19"]
    asked_dates("… in May 2023?")          ["@2023", "@may", "@2023-05"]
    tells_time("We met last Friday.")      True

The @ keeps these terms apart from words of a text. A day is that of the zone in which something was said.
"""

import re
from datetime import date, timedelta

from .calendar import Named, named_days
from .patterns import pattern

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIMED = pattern("dates", "timed", flags=re.IGNORECASE)
_WHEN = pattern("dates", "when", flags=re.IGNORECASE)


def date_terms(day: date) -> list[str]:
    """Return the terms of *day*: year, month, year and month, month and day."""
    month = _MONTHS[day.month - 1]
    return [f"@{day.year}", f"@{month}", f"@{day.year}-{day.month:02}", f"@{month}-{day.day}"]


def asked_dates(text: str, now: date | None = None) -> list[str]:
    """Return the terms of the dates that *text*, asked on the day *now*, names, each once. O(length)."""
    found: list[str] = []
    for each in named_days(text, now):
        if each.first is None or each.last is None:
            found += _terms_of(each)
        else:
            days = range((each.last - each.first).days + 1)
            terms = [date_terms(each.first + timedelta(days=number)) for number in days]
            found += terms[0] if len(terms) == 1 else [day for *_, day in terms]
    return list(dict.fromkeys(found))


def tells_time(text: str) -> bool:
    """Return whether *text* says when something is, was or will be. O(length)."""
    return _TIMED.search(text) is not None


def asks_time(text: str) -> bool:
    """Return whether *text* asks when."""
    return _WHEN.search(text) is not None


def _terms_of(named: Named) -> list[str]:
    found = []
    if named.month is not None:
        name = _MONTHS[named.month - 1]
        found.append(f"@{name}")
        if named.day is not None:
            found.append(f"@{name}-{named.day}")
        if named.year is not None:
            found.append(f"@{named.year}-{named.month:02}")
    return found if named.year is None else [*found, f"@{named.year}"]
