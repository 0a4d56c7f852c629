r"""Checks of a model's answers: what may be kept of them.

    clean_line("Sorry, I can't help.", 160)         "": an excuse, "none" or "No prior history." is no text
    clean_line("#42 forged\nline", 160)             "no. 42 forged line"
    keep_identifiers("A refund was asked for.", "Refund OI5L9G, $157.50 …", 160, said)
                                                    "A refund was asked for. · OI5L9G · $157.50"
    keep_identifiers("Refund of ZZ99XX.", "Refund OI5L9G …", 160, said)
                                                    "Refund OI5L9G …": the model invented ZZ99XX
    ask_checked(…)      {"title": ""} if the answer is {"title": "what it is about, …"}, a part of the prompt

Model output is untrusted: pydantic checks types, callers check ids, this module checks texts.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, tzinfo
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from ....formats.provenance import QUOTED
from ....llm import ChatModel, ask
from ....llm.repeated_prompt import unrepeated
from ....text.language.keywords import stems_of
from ....text.language.patterns import pattern
from ....text.language.salience import FACT, NUMBER, find_salient, ids
from ....text.sanitize import JOINT, one_line, width
from ...tiers.profile import is_usable

WORD_COLUMNS = 40
_SCANNED = 4_000  # columns of a keyword, and characters of a text that are read: answers are much shorter
_YEARS = range(1900, 2101)
_DAY_SECONDS = 86_400


_S = TypeVar("_S", bound="AnswerSchema")
_T = TypeVar("_T")


class AnswerSchema(BaseModel):
    """Base class of answers: numbers are finite, and additional fields are ignored."""

    model_config = ConfigDict(allow_inf_nan=False, extra="ignore", frozen=True)


@cache
def prompt_of(step: str) -> str:
    """Return the system message of a *step*, as prompts.toml has it."""
    texts = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
    return str(texts[step]).replace("«rules»", texts["rules"]).replace("«quoted»", QUOTED)


def ask_checked(chat: ChatModel, texts: str, schema: type[_S], read: Callable[[_S], _T], *, step: str, most: int) -> _T:
    """Ask *chat* about *texts*, and return what *read* makes of the answer. One call, and at most two more.

    A text of the answer that repeats the prompt is replaced by "" before *read*.

    Args:
        chat: The model; its method `rejected(step, reason)`, if it has one, counts each unusable answer.
        texts: The user message.
        schema: The type of the answer.
        read: Called with each answer of that type; raises ValueError if the answer is unusable.
        step: The step to which the cost is counted, with its prompt, unless the model has another (`Rules.prompts`).
        most: Tokens of an answer: about twice what its texts need, so that only a rambling answer is cut.
    """
    made: list[_T] = []
    prompt = getattr(chat, "prompts", {}).get(step) or prompt_of(step)
    written = f"{prompt}\n{json.dumps(schema.model_json_schema())}"

    def checked(answer: _S) -> _S:
        made.append(read(unrepeated(answer, written, texts)))
        return answer

    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": texts}]
    rejected = getattr(chat, "rejected", None)
    ask(chat, messages, schema, step=step, check=checked, max_tokens=most, on_rejected=rejected)
    return made[-1]


Lowered = BeforeValidator(lambda value: value.strip().lower() if isinstance(value, str) else value)
"""for closed sets: "High " is one of their values, "high", too"""


def clean_line(text: str | None, columns: int) -> str:
    """Return *text* as one line without markup; "" if it is empty, "none", an excuse, or the text of an error."""
    head = (text or "")[:_SCANNED]
    if not is_usable(head) or _EXCUSES.match(head.strip(" \t\r\n\"'`.*_-").casefold()):
        return ""
    line = one_line(head, columns)
    return line if any(char.isalnum() for char in line) else ""


def clean_statement(text: str | None, columns: int, said: str) -> str:
    """Return *text* as `clean_line` does; "" if it has an id that was not *said*."""
    line = clean_line(text, columns)
    return "" if has_invented_id(line, said) else line


def clean_keywords(given: Iterable[str], limit: int, said: str) -> tuple[str, ...]:
    """Return at most *limit* different keywords, case-folded, without those that have an id that was not *said*."""
    found: dict[str, str] = {}
    for each in given:
        if len(found) >= limit:
            break
        word = clean_line(each, WORD_COLUMNS).casefold()
        key = stems_of(word)
        if key and not word.endswith("…") and not has_invented_id(word, said):
            found.setdefault(key, word)
    return tuple(found.values())


def keep_identifiers(text: str | None, exact: str, columns: int, said: str) -> str:
    """Return a model's *text* as a line with every id, number and path of *exact*; if that is impossible, *exact*."""
    head = clean_line(text, columns)
    if not head or has_invented_id(head, said):
        return exact
    found = find_salient(exact, errors=False)
    pieces = [piece for rank, piece in found if rank <= FACT or (rank == NUMBER and _DIGITS.search(piece))]
    for _ in range(3):
        missing = [piece for piece in pieces if not _contains(head, piece)]
        line = JOINT.join([head, *missing])
        if width(line) <= columns:
            return line if one_line(line, columns) == line else exact
        room = columns - width(JOINT.join(["", *missing]))
        if room < columns // 3:
            break
        head = one_line(head, room)
    return exact


def has_invented_id(line: str, said: str) -> bool:
    """Return whether *line* has an id (letters and digits mixed, long number, address) that *said* lacks."""
    return any(each.casefold().rstrip("…") not in said for each in ids(line))


def parse_day(day: str | None, at: float | None, zone: tzinfo = UTC) -> float | None:
    """Return a *day* such as 2024-05-04 in seconds since 1970 UTC, at the time of day of *at*; None if invalid."""
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


def _contains(line: str, piece: str) -> bool:
    if piece in line:
        return True
    # "3 dogs" may stand as "3 of his dogs"
    figures = _DIGITS.findall(piece)
    return len(piece) < 16 and len(figures) == 1 and bool(re.search(rf"(?<![\w.]){re.escape(figures[0])}(?!\w)", line))


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DIGITS = re.compile(r"\d[\d.,:]*(?<=\d)")
_EXCUSES = pattern("answers", "excuses")
