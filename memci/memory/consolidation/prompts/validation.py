r"""What a model says, as far as it may be kept.

    told("Sorry, I can't help with that.", 160)     ""          an excuse, "none", "No prior history.": nothing was said
    told("#42 forged\nline", 160)                   "no. 42 forged line"
    kept("A refund was asked for.", "Refund OI5L9G, $157.50 …", 160, said)
                                                    "A refund was asked for. · OI5L9G · $157.50"
    kept("Refund of ZZ99XX.", "Refund OI5L9G …", 160, said)
                                                    "Refund OI5L9G …": the model made ZZ99XX up
    asked(…)    {"title": "what it is about, …"}        {"title": ""}: a text that repeats the prompt is none

An answer is a proposal: its type is checked by pydantic, its ids against what was offered, its texts here.
"""

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, tzinfo
from typing import TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from ....llm import ChatModel, ask
from ....llm.repeated_prompt import unrepeated
from ....text.language.keywords import stems_of
from ....text.language.patterns import pattern
from ....text.language.salience import FACT, NUMBER, find_salient, ids
from ....text.sanitize import width
from ....text.summarize import one_line
from ...tiers.profile import usable

WORD_COLUMNS = 40
_SCANNED = 4_000
_JOINT = " · "
_YEARS = range(1900, 2101)
_DAY_SECONDS = 86_400


_S = TypeVar("_S", bound="AnswerSchema")
_T = TypeVar("_T")


class AnswerSchema(BaseModel):
    """What a model is asked for: numbers are finite, and what was not asked for is not looked at."""

    model_config = ConfigDict(allow_inf_nan=False, extra="ignore", frozen=True)


def asked(
    chat: ChatModel, prompt: str, texts: str, schema: type[_S], read: Callable[[_S], _T], *, step: str, most: int
) -> _T:
    """Return what *read* makes of the answer to *prompt* about *texts*. One call, and at most two more.

    A text of the answer that repeats the prompt is "" when *read* gets it.

    Args:
        chat: The model; if it has a method `rejected(step, reason)`, that counts each answer that is not usable.
        prompt: What is asked.
        texts: What is shown.
        schema: The type of the answer.
        read: Called with each answer of that type; raises ValueError if it is not usable.
        step: What the call is counted as.
        most: Tokens of an answer: about twice what the bounds of its texts need, so that only a rambling one is cut.
    """
    made: list[_T] = []
    written = f"{prompt}\n{json.dumps(schema.model_json_schema())}"

    def checked(answer: _S) -> _S:
        made.append(read(unrepeated(answer, written, texts)))
        return answer

    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": texts}]
    rejected = getattr(chat, "rejected", None)
    ask(chat, messages, schema, step=step, check=checked, max_tokens=most, on_rejected=rejected)
    return made[-1]


def _lowered(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


Lowered = BeforeValidator(_lowered)
"""For closed sets: "High " is "high"."""


def told(text: str | None, columns: int) -> str:
    """Return *text* as one harmless line, "" if it says nothing: empty, "none", an excuse, an error's text."""
    head = (text or "")[:_SCANNED]
    if not usable(head) or _EXCUSES.match(head.strip(" \t\r\n\"'`.*_-").casefold()):
        return ""
    line = one_line(head, columns)
    return line if any(char.isalnum() for char in line) else ""


def stated(text: str | None, columns: int, said: str) -> str:
    """Return *text* as `told` does, "" if it has an id that was not *said*."""
    line = told(text, columns)
    return "" if invented(line, said) else line


def words(given: Iterable[str], limit: int, said: str) -> tuple[str, ...]:
    """Return at most *limit* keywords, case-folded, none twice, none with an id that was not *said*."""
    found: dict[str, str] = {}
    for each in given:
        if len(found) >= limit:
            break
        word = told(each, WORD_COLUMNS).casefold()
        key = stems_of(word)
        if key and not word.endswith("…") and not invented(word, said):
            found.setdefault(key, word)
    return tuple(found.values())


def kept(text: str | None, exact: str, columns: int, said: str) -> str:
    """Return *text*, a model's, as a line with every id, number and path of the *exact* one, else the exact line."""
    head = told(text, columns)
    if not head or invented(head, said):
        return exact
    pieces = _identifiers(exact)
    for _ in range(3):
        missing = [piece for piece in pieces if not _has(head, piece)]
        line = _JOINT.join([head, *missing])
        if width(line) <= columns:
            return line if one_line(line, columns) == line else exact
        room = columns - width(_JOINT.join(["", *missing]))
        if room < columns // 3:
            break
        head = one_line(head, room)
    return exact


def invented(line: str, said: str) -> bool:
    """Return whether *line* has an id (letters and digits mixed, long numbers, addresses) that *said* lacks."""
    return any(each.casefold().rstrip("…") not in said for each in ids(line))


def moment(day: str | None, at: float | None, zone: tzinfo = UTC) -> float | None:
    """Return a *day* as 2024-05-04 in seconds since 1970 UTC, at the time of day of *at*; None if it is no such day."""
    found = _DAY.match((day or "").strip()[:32])
    try:
        named = date.fromisoformat(found[0]) if found else None
        if named is None or named.year not in _YEARS:
            return None
        if at is None:
            return datetime.combine(named, time(), zone).timestamp()
        return at + _DAY_SECONDS * (named - datetime.fromtimestamp(at, zone).date()).days
    except (ValueError, OverflowError, OSError):
        return None


def _identifiers(line: str) -> list[str]:
    return [
        piece
        for rank, piece in find_salient(line, errors=False)
        if rank <= FACT or (rank == NUMBER and _DIGITS.search(piece))
    ]


def _has(line: str, piece: str) -> bool:
    if piece in line:
        return True
    # "3 dogs" may stand as "3 of his dogs"
    figures = _DIGITS.findall(piece)
    return len(piece) < 16 and len(figures) == 1 and bool(re.search(rf"(?<![\w.]){re.escape(figures[0])}(?!\w)", line))


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DIGITS = re.compile(r"\d[\d.,:]*(?<=\d)")
_EXCUSES = pattern("answers", "excuses")
