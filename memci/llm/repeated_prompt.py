"""Answers that repeat their prompt: a small model copies the words that stand there in place of an answer.

    prompt      {"title": "what it is about, at most 10 words", …}
    refused     "What it is about"        "Oslo: what it is about, at most 10 words"        "Describe this page of it"

Refused is what stands in a quotation of the prompt, and what has four words of a quotation, or five of the prompt, in a
row that the texts which the model was shown do not have. This module knows nothing of what is asked.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T", bound="BaseModel")

_RUN = 5  # words in a row that nobody writes by chance; in a quotation, one fewer
_FEW = 2  # words that many texts may have in common with a quotation; only a whole one is refused then
_SCANNED = 4_000
_QUOTED = re.compile(r'"([^"\n]*)"')


def unrepeated(answer: T, prompt: str, shown: str) -> T:
    """Return *answer* with "" for each text in it that repeats *prompt*; see `repeats`. O(characters)."""
    return type(answer).model_validate(_blanked(answer.model_dump(), prompt, shown))


def repeats(text: str, prompt: str, shown: str) -> bool:
    """Return whether *text* repeats *prompt*, and not what the model was *shown*. O(characters)."""
    quotations, runs = _phrases(prompt)
    words = _words(text[:_SCANNED])
    found = _runs(words, _RUN - 1) | _runs(words, _RUN)
    whole = " ".join(words)
    if whole in quotations or (len(words) > _FEW and any(f" {whole} " in f" {each} " for each in quotations)):
        return True
    copied = found & runs
    return bool(copied) and not all(map(" ".join(_words(shown)).__contains__, copied))


def _blanked(value: Any, prompt: str, shown: str) -> Any:
    if isinstance(value, str):
        return "" if repeats(value, prompt, shown) else value
    if isinstance(value, dict):
        return {key: _blanked(each, prompt, shown) for key, each in value.items()}
    return [_blanked(each, prompt, shown) for each in value] if isinstance(value, list) else value


@lru_cache(maxsize=64)
def _phrases(prompt: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the quotations of *prompt* with their parts, of two words or more, and its runs of words."""
    parts = {part for text in _QUOTED.findall(prompt) for part in (text, *re.split("[,:;]", text))}
    quotations = frozenset(" ".join(words) for words in map(_words, parts) if len(words) > 1)
    runs = _runs(_words(prompt), _RUN).union(*(_runs(each.split(), _RUN - 1) for each in quotations))
    return quotations, frozenset(runs)


def _runs(words: list[str], count: int) -> set[str]:
    return {" ".join(words[at : at + count]) for at in range(len(words) - count + 1)}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
