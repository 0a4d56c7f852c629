"""Dates: which days a text names, in any of the languages of the tables, and the terms by which a day is searched.

    "What did I say yesterday?"    asked on 24 November 2026    ──▶   23 November 2026
    "letzte Woche", 先週           asked on 24 November 2026    ──▶   16 to 22 November 2026
    "on 12/31/2023", 4月5日        the numbers are tried as month and day, and as day and month

    date_terms(datetime(2023, 5, 19))      ["@2023", "@may", "@2023-05", "@may-19"]
    asked_dates("… in May 2023?")          ["@2023", "@may", "@2023-05"]
    tells_time("We met last Friday.")      True

What depends on the day of the question is found only if that is given. The @ keeps these terms apart from words of a
text. A day is that of the zone in which something was said.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache
from typing import Final, NamedTuple, get_args

from ..moments import MONTHS
from .numerals import dated
from .patterns import Writing, has, pattern, section
from .sentences import lower_case

_UNSPACED: Final = frozenset({"han", "kana", "hangul"})
_YEAR = r"(?:19|20)\d\d"
_NUMBERED = tuple(
    re.compile(form)
    for form in (
        rf"(?<![\d.])(?P<year>{_YEAR})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?:(?P=mark)(?P<day>\d{{1,2}}))?(?![\d.]\d|\d)",
        rf"(?<![\d.])(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.\s?(?P<year>{_YEAR})(?!\d)",
        rf"(?<![\d/-])(?P<one>\d{{1,2}})(?P<mark>[/-])(?P<two>\d{{1,2}})(?P=mark)(?P<year>{_YEAR})(?!\d)",
        rf"(?:(?P<year>{_YEAR})\s*[年년]\s*)?(?P<month>\d{{1,2}})\s*[月월](?:\s*(?P<day>\d{{1,2}})\s*[日号號일])?",
    )
)
_LONE_YEAR = re.compile(rf"(?<![\d/.-]){_YEAR}(?![\d/-]|\.\d)")
_AMBIGUOUS: Final = frozenset({"may", "mar", "march", "mars", "jan", "mai", "august", "май"})
"""names of months that are other words, too"""
_LEADS = re.compile(
    r"(?<!\w)(?:in|on|of|since|until|till|during|before|after|by|last|this|next|early|late|mid|im|seit|ab|en|au|mois de"
    r"|depuis|в|с|до)[ -]$"
)
_PARTS = r"(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th|er|[.º°])?(?: of| de|)? (?:d['’])?)?(?P<month>{0})(?!\w)\.?"
_REST = r"(?: (?P<after>\d{{1,2}})(?:st|nd|rd|th)?(?![\w:]))?(?:,? (?:of |de |del )?(?P<year>{0})(?!\w))?"
_WHEN = pattern("dates", "when", flags=re.IGNORECASE)
_EITHER_WAY = re.compile(r"(?:on|am|во?) \w+$")


class Named(NamedTuple):
    """Days that a text names. What is None was not said: a month of any year, a day of any year."""

    year: int | None
    month: int | None = None
    day: int | None = None
    first: date | None = None  # the first of several days that were named together
    last: date | None = None

    def days(self, now: date | None) -> tuple[date, date] | None:
        """Return the first and the last day. A year that was not said is the latest that began before *now*."""
        if self.first is not None and self.last is not None:
            return self.first, self.last
        if self.year is None and (now is None or self.month is None):
            return None
        month, day = self.month or 1, self.day or 1
        year = self.year if self.year is not None else now.year if now is not None else 0
        try:
            if self.year is None and now is not None and date(year, month, day) > now:
                year -= 1
            first = date(year, month, day)
        except ValueError:
            return None
        last = self.month or 12
        return first, first if self.day is not None else date(year, last, monthrange(year, last)[1])

    def terms(self) -> list[str]:
        """Return the terms by which its days are searched. O(days)."""
        if self.first is not None and self.last is not None:
            days = [date_terms(self.first + timedelta(days=at)) for at in range((self.last - self.first).days + 1)]
            return days[0] if len(days) == 1 else [day for *_, day in days]
        found = []
        if self.month is not None:
            name = MONTHS[self.month - 1].lower()
            found.append(f"@{name}")
            if self.day is not None:
                found.append(f"@{name}-{self.day}")
            if self.year is not None:
                found.append(f"@{self.year}-{self.month:02}")
        return found if self.year is None else [*found, f"@{self.year}"]


def named_days(text: str, now: date | None = None) -> list[Named]:
    """Return what *text*, asked on the day *now*, names. O(length)."""
    lower = dated(text.lower())
    years = (Named(int(year)) for year in _LONE_YEAR.findall(lower))
    relative = () if now is None else (each for _, each in _relative(lower, now))
    return list(dict.fromkeys([*years, *_months(lower), *_numbered(lower), *relative]))


def without_days(text: str) -> str:
    """Return *text*, asked on any day, without what `named_days` finds, and in lower case. O(length)."""
    lower = dated(text.lower())
    forms = (*_NUMBERED, _month_names()[0], _LONE_YEAR, *(_words(each).form for each in get_args(Writing)))
    for form in forms:
        lower = form.sub(" ", lower)
    return lower


def date_terms(day: date) -> list[str]:
    """Return the terms of *day*: year, month, year and month, month and day."""
    month = MONTHS[day.month - 1].lower()
    return [f"@{day.year}", f"@{month}", f"@{day.year}-{day.month:02}", f"@{month}-{day.day}"]


def asked_dates(text: str, now: date | None = None) -> list[str]:
    """Return the terms of the dates that *text*, asked on the day *now*, names, each once. O(length)."""
    return list(dict.fromkeys(term for each in named_days(text, now) for term in each.terms()))


def meant(text: str, said: date) -> dict[str, date]:
    """Return the words of *text*, said on the day *said*, that name another day by it, with that day. O(length).

    "Tomorrow I fly", on 18 March 2026  ──▶  {"tomorrow": 19 March 2026}; "on Friday" may be the last or the next one,
    and "next Friday", said on a Wednesday, that of this week or of the next
    """
    lower = lower_case(text)
    found = {words: named.first for words, named in _relative(lower, said) if named.first == named.last != said}
    for language in get_args(Writing):
        words = _words(language)
        for days, form in enumerate(words.coming, 1):
            found |= {each[0]: said + timedelta(days=days) for each in form.finditer(lower)}
        for match in words.ahead.finditer(lower) if words.ahead else ():
            if shift := _days_ahead(match, words, said):
                found[match[match.lastgroup or 0]] = said + timedelta(days=shift)
    return {words: day for words, day in found.items() if day is not None and not _EITHER_WAY.match(words)}


def tells_time(text: str) -> bool:
    """Return whether *text* says when something is, was or will be. O(length)."""
    return has("dates", "timed", lower_case(text))


def asks_time(text: str) -> bool:
    """Return whether *text* asks when."""
    return _WHEN.search(text) is not None


def _months(lower: str) -> Iterator[Named]:
    form, names = _month_names()
    for match in form.finditer(lower):
        name, day, year = match["month"], match["before"] or match["after"], match["year"]
        start = match.start("month")
        if name in _AMBIGUOUS and not (day or year or _LEADS.search(lower, max(0, start - 10), start)):
            continue
        number = next(number for number, form in names if form.fullmatch(name))
        yield from _checked(year, number, day)


def _numbered(lower: str) -> Iterator[Named]:
    for form in _NUMBERED:
        for match in form.finditer(lower):
            found = match.groupdict()
            if "one" in found:
                one, two = int(found["one"]), int(found["two"])
                for month, day in dict.fromkeys([(one, two), (two, one)]):
                    yield from _checked(found["year"], month, str(day))
            else:
                yield from _checked(found["year"], int(found["month"]), found["day"])


def _checked(year: str | None, month: int, day: str | None) -> Iterator[Named]:
    """Yield the day, the month, or nothing if there is none such."""
    if 1 <= month <= 12 and (day is None or 1 <= int(day) <= 31):
        yield Named(int(year) if year else None, month, int(day) if day else None)


def _relative(lower: str, now: date) -> Iterator[tuple[str, Named]]:
    """Yield what is said in relation to *now*, and what it names: "yesterday", "last Friday", "two weeks ago"."""
    for language in get_args(Writing):
        words = _words(language)
        for match in words.form.finditer(lower):
            kind = match.lastgroup or ""
            if kind == "days":
                yield match[0], _span(now - timedelta(days=words.days[match[0]]))
            elif kind == "weekday":
                number = words.weekday(match[0])
                back = (now.weekday() - number - 1) % 7 + 1
                if language in _UNSPACED:
                    back = now.weekday() + 7 - number
                yield match[0], _span(now - timedelta(days=back))
            elif kind == "week":
                monday = now - timedelta(days=now.weekday() + 7)
                yield match[0], _span(monday, monday + timedelta(days=6))
            elif kind == "month":
                last = now.replace(day=1) - timedelta(days=1)
                yield match[0], Named(last.year, last.month)
            elif kind == "year":
                yield match[0], Named(now.year - 1)
            elif kind == "ago":
                yield from ((match[0], each) for each in _ago(match[0], words, now))


def _ago(said: str, words: "_Words", now: date) -> Iterator[Named]:
    count = words.count(said)
    unit = next((n for n, form in enumerate(words.units) if form.search(said)), 0)
    try:
        if unit < 2:
            yield _span(now - timedelta(days=count * (1, 7)[unit]))
        else:
            year, month = divmod(now.year * 12 + now.month - 1 - count * (1, 12)[unit - 2], 12)
            yield _span(date(year, month + 1, min(now.day, monthrange(year, month + 1)[1])))
    except (ValueError, OverflowError):
        return


def _days_ahead(match: re.Match[str], words: "_Words", said: date) -> int | None:
    """Return how many days after *said* what *match* names is; None if that may be one of two days."""
    if match.lastgroup not in {"this", "next", "week"}:
        return words.count(match[match.lastgroup or 0])
    number, today = words.weekday(match[0]), said.weekday()
    if match.lastgroup == "this":
        return number - today if number > today else None  # "this Monday", said on a Wednesday, may be the next one
    if (number == 6) is not (today == 6) or (match.lastgroup == "next" and number > today):
        return None  # a week begins on Monday or on Sunday; the next such day may be in this week
    return 7 + number - today


def _span(first: date, last: date | None = None) -> Named:
    return Named(None, first=first, last=last or first)


class _Words(NamedTuple):
    """The words of one language for what is relative."""

    form: re.Pattern[str]
    days: dict[str, int]
    weekdays: list[str]
    units: list[re.Pattern[str]]
    numbers: dict[str, int]
    number: re.Pattern[str]
    coming: list[re.Pattern[str]]  # tomorrow, the day after it
    ahead: re.Pattern[str] | None  # in two days, next Monday, Monday next week

    def count(self, said: str) -> int:
        """Return the number in *said*, or 1."""
        digits, named = re.search(r"\d+", said), self.number.search(said)
        return int(digits[0]) if digits else self.numbers[named[0]] if named else 1

    def weekday(self, said: str) -> int:
        """Return the number of the weekday in *said*, from Monday on."""
        return next(n for n, form in enumerate(self.weekdays) if re.search(form, said))


@cache
def _month_names() -> tuple[re.Pattern[str], list[tuple[int, re.Pattern[str]]]]:
    """Return the form of a date with the name of a month, and the names of each month in all languages."""
    names: list[list[str]] = [[] for _ in range(12)]
    for language in get_args(Writing):
        for number, forms in enumerate(_text(language, "months").split()):
            names[number] += forms.split("/")
    every = "|".join(sorted({form for own in names for form in own}, key=len, reverse=True))
    dated = re.compile(r"(?<!\w)" + _PARTS.format(every) + _REST.format(_YEAR))
    return dated, [(number, re.compile("|".join(own))) for number, own in enumerate(names, 1)]


@cache
def _words(language: Writing) -> _Words:
    """Return the words of *language*."""
    table = section("calendar", language)
    days, numbers = _pairs(_text(language, "days")), _pairs(_text(language, "numbers"))
    weekdays = [each.replace("/", "|") for each in _text(language, "weekdays").split()]
    units = list(table["units"])
    number = "|".join(sorted(numbers, key=len, reverse=True))
    parts = {"{n}": rf"(?:\d{{1,3}}|{number})", "{u}": f"(?:{'|'.join(units)})", "{w}": f"(?:{'|'.join(weekdays)})"}
    forms = {
        "ago": _filled(_text(language, "ago"), parts),
        "weekday": _filled(_text(language, "weekday"), parts),
        "days": "|".join(sorted(map(re.escape, days), key=len, reverse=True)),
        **dict(zip(("week", "month", "year"), table["last"], strict=True)),
    }
    every = "|".join(f"(?P<{kind}>{form})" for kind, form in forms.items())
    start, end = ("", "") if language in _UNSPACED else (r"(?<!\w)", r"(?!\w)")
    edged = [f"{start}(?:{each}){end}" for each in (*units, number)]
    *made, counted = map(re.compile, edged)
    coming = [re.compile(f"{start}(?:{each}){end}") for each in table.get("coming", ())]
    ahead = _filled(re.sub(r"\n\s*", "", _text(language, "ahead")).lstrip(), {**parts, "{u}": f"(?:{units[0]})"})
    later = re.compile(f"{start}(?:{ahead}){end}") if ahead else None
    return _Words(re.compile(f"{start}(?:{every}){end}"), days, weekdays, made, numbers, counted, coming, later)


def _filled(form: str, parts: dict[str, str]) -> str:
    return re.sub(r"\{[nuw]\}", lambda part: parts[part[0]], form)


def _text(language: Writing, key: str) -> str:
    entry = section("calendar", language).get(key, "")
    return entry if isinstance(entry, str) else ""


def _pairs(entry: str) -> dict[str, int]:
    pairs = (each.split("=") for each in entry.split())
    return {word.replace("_", " "): int(number) for word, number in pairs}
