"""Moments: when something was said, as it is stored, computed with, and shown.

    "2026-11-24T07:30:00+08:00"    ──▶   the aware datetime    ──▶   "Tue 24 Nov 2026, 07:30 +08:00"

A day is that of the clock on the wall where it was said: 07:30 in Shanghai is not the day before, as in London. Names
are English, like all that memci says to a model, and do not depend on the locale.
"""

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from ..errors import InvalidSetting, brief

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SESSION = timedelta(hours=6)
"""a time that was told stands for this long: as long as a silence after which a talk is another one"""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def zone_named(name: str) -> tzinfo:
    """Return the zone *name*, as "Europe/Berlin", "+08:00" or "UTC"; InvalidSetting if there is none."""
    try:
        if fixed := re.fullmatch(r"([+-])(\d\d):?([0-5]\d)", name):
            shift = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
            return timezone(-shift if fixed[1] == "-" else shift)
        return UTC if name == "UTC" else ZoneInfo(name)
    except (TypeError, ValueError, OSError, KeyError):
        raise InvalidSetting("zone", f'expected one as "Europe/Berlin" or "+08:00", got {brief(name)}') from None


def is_told(told: datetime | None, now: datetime) -> bool:
    """Return whether *told*, a time that was shown before, tells of *now* as well: the same day, zone and session."""
    if told is None or not -SESSION < now - told < SESSION:
        return False
    zoned = told.tzinfo is now.tzinfo or told.utcoffset() == now.utcoffset()
    return zoned and told.day == now.day  # the month is the same, since a session is short


@lru_cache(4_096)
def moment(at: str) -> datetime:
    """Return a stored time (ISO 8601) as an aware datetime. A time without a zone counts as UTC."""
    when = datetime.fromisoformat(at)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def local(at: float, zone: int) -> datetime:
    """Return *at* (seconds since 1970 UTC) in the zone *zone* (minutes east of UTC)."""
    return datetime(1970, 1, 1, tzinfo=UTC).astimezone(timezone(timedelta(minutes=zone))) + timedelta(seconds=at)


def zone_of(when: datetime) -> int:
    """Return the zone of *when*, in minutes east of UTC."""
    return int((when.utcoffset() or timedelta()).total_seconds() // 60)


def day(when: date, *, year: bool = True) -> str:
    """Return the day of *when*: "24 Nov 2026", or "24 Nov"."""
    return f"{when.day} {MONTHS[when.month - 1]}" + (f" {when.year}" if year else "")


def dated(first: date, last: date, told: date | None) -> str:
    """Return the days from *first* to *last* behind the day *told*: "24 Nov 2026", "24 Nov–3 Dec".

    A year is named where it changes. Return "" for the day that was told.
    """
    if first == last:
        return "" if first == told else day(first, year=told is None or told.year != first.year)
    return f"{day(first, year=told is None or told.year != first.year)}–{day(last, year=last.year != first.year)}"


def full(when: datetime) -> str:
    """Return *when* with its weekday and zone: "Tue 24 Nov 2026, 07:30 +08:00"."""
    shift = when.strftime("%z")
    zone = f"{shift[:3]}:{shift[3:5]}" if zone_of(when) else "UTC"
    return f"{WEEKDAYS[when.weekday()]} {day(when)}, {when:%H:%M} {zone}"


def further(when: datetime, told: datetime | None) -> str:
    """Return of *when* what differs from *told*, a time that is shown before: "Wed 25 Nov", "15:20"."""
    if told is None or when.utcoffset() != told.utcoffset():
        return full(when)
    if when.date() == told.date():
        return f"{when:%H:%M}"
    return f"{WEEKDAYS[when.weekday()]} {day(when, year=when.year != told.year)}"
