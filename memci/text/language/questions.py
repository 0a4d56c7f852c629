"""Find out what kind of answer a question wants.

    "Which cities did I visit, in order?"     order: all mentions, from the first to the last
    "Sum up what we said about the move."     summary: all of it
    "How do I write a cover letter?"          request: a task for now; past wishes of the user matter
    "When did I move?"                        none: a single fact

"How many books did I read?" and "What happened in May?" ask for many messages, each with a part of the answer. Patterns
decide: about many in all languages of the tables, about the form in English, Chinese and Japanese.
"""

import re
from functools import cache
from typing import Literal, get_args

from .patterns import LATIN, Writing, has, pattern, words
from .sentences import languages, simplify
from .terms import query_terms, terms

Form = Literal["order", "summary", "request", ""]

LONGEST = 600  # characters of the beginning and of the end that are read: a long request asks in one of them

_QUESTIONS = 4  # in one text that are asked one by one, at most
_SHORTEST = 4  # characters of one
_BEHIND = re.compile(r"(?<=[?？])\s+|(?<=？)")


def is_question(text: str) -> bool:
    """Return whether *text* ends with a question. O(1)."""
    return text.rstrip(" \t\n\"'”’)*_").endswith(("?", "？"))


def form_of(text: str) -> Form:
    """Return which kind of answer *text* wants. O(1)."""
    if len(text) > 2 * LONGEST:
        text = f"{text[:LONGEST]}\n{text[-LONGEST:]}"
    text = " ".join(text.lower().replace("’", "'").split())
    if has("questions", "summary", text):
        return "summary"
    if has("questions", "order", text):
        return "order"
    return "request" if has("questions", "request", text) and not has("questions", "past", text) else ""


def asks_many(text: str) -> bool:
    """Return whether *text* asks for many messages: a list, a count, an order, what changed, or a talk. O(1)."""
    lowered = text.lower() if len(text) <= LONGEST else ""
    return has("questions", "order", lowered) or has("questions", "many", simplify(lowered)) or asks_talk(text)


def asks_own(text: str) -> bool:
    """Return whether *text* asks about its own author: "I", "my". O(length)."""
    return has("questions", "own", text.lower())


def asks_assistant(text: str) -> bool:
    """Return whether *text* asks about something that the assistant wrote. O(length)."""
    return has("questions", "assistant", text.lower())


def asks_talk(text: str) -> bool:
    """Return whether *text* asks what a talk was about, or what happened. O(1)."""
    asks = len(text) <= LONGEST and any(has("questions", key, _plain(text)) for key in ("talk", "who"))
    return asks or asks_last(text)


def asks_who(text: str) -> bool:
    """Return whether *text* asks who the one who asks is, or what is known of them. O(1)."""
    return len(text) <= LONGEST and has("questions", "who", _plain(text))


def asks_last(text: str) -> bool:
    """Return whether *text* asks for the last conversation, whatever it was about. O(1)."""
    if len(text) > LONGEST or not has("questions", "last", plain := _plain(text)):
        return False
    rest = pattern("questions", "talk").sub(" ", pattern("questions", "last").sub(" ", plain))
    return (form_terms("talked") | form_terms("framing")).issuperset(query_terms(rest, languages(text, LATIN)))


def split_questions(text: str) -> list[str]:
    """Return the questions of a *text* that asks several, each with the statements before it; else none. O(length)."""
    if text.count("?") + text.count("？") < 2:
        return []
    parts = [part.strip() for part in _BEHIND.split(text[: 2 * LONGEST]) if len(part) >= _SHORTEST]
    return parts if 1 < len(parts) <= _QUESTIONS and all(part[-1] in "?？" for part in parts) else []


def _plain(text: str) -> str:
    return simplify(text.lower().replace("’", "'"))


@cache
def form_terms(key: Literal["framing", "talked"]) -> frozenset[str]:
    """Return the terms that ask for an order or a summary ("framing"), or what was said or happened ("talked").

    They tell nothing of what is searched.
    """
    every = (word for language in get_args(Writing) for word in words("questions", key, language))
    return frozenset(term for word in every for term in terms(word))
