"""The form of a question: what kind of answer it wants.

    "Which cities did I visit, in order?"     order: what was said, from the first to the last
    "Sum up what we said about the move."     summary: all of it
    "How do I write a cover letter?"          request: something is to be done now, as the user wants such things done
    "When did I move?"                        none of them: what was said once

Patterns decide, in English, Chinese and Japanese.
"""

from functools import cache
from typing import Literal

from .patterns import pattern, words
from .terms import terms

Form = Literal["order", "summary", "request", ""]

LONGEST = 600
"""characters that are looked at, of the beginning and of the end: a long request asks in one of them"""

_SUMMARY, _ORDER, _REQUEST, _PAST, _OWN, _ASSISTANT = (
    pattern("questions", key) for key in ("summary", "order", "request", "past", "own", "assistant")
)


def form_of(text: str) -> Form:
    """Return which kind of answer *text* wants. O(1)."""
    if len(text) > 2 * LONGEST:
        text = f"{text[:LONGEST]}\n{text[-LONGEST:]}"
    text = " ".join(text.lower().replace("’", "'").split())
    if _SUMMARY.search(text):
        return "summary"
    if _ORDER.search(text):
        return "order"
    return "request" if _REQUEST.search(text) and not _PAST.search(text) else ""


def asks_own(text: str) -> bool:
    """Return whether *text* asks about the one who asks: "I", "my". O(length)."""
    return _OWN.search(text.lower()) is not None


def asks_assistant(text: str) -> bool:
    """Return whether *text* asks about something that the assistant wrote. O(length)."""
    return _ASSISTANT.search(text.lower()) is not None


@cache
def framing() -> frozenset[str]:
    """Return the terms by which an order or a summary is asked for: what was said does not have them."""
    return frozenset(
        term
        for language in ("latin", "han", "kana")
        for word in words("questions", "framing", language)
        for term in terms(word)
    )
