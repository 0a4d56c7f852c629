"""Repeated prompts: a small model may copy words of its prompt instead of an answer.

    prompt      {"title": "what it is about, at most 10 words", …}
    refused     "What it is about"        "Oslo: what it is about, at most 10 words"        "Describe this page of it"

A text is refused if it is in a quotation of the prompt. It is also refused if it has four words of a quotation in a
row, or five of the prompt, that the texts shown to the model do not have.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T", bound="BaseModel")

_RUN = 5  # words in a row that two texts rarely share by chance; in a quotation, one fewer
_FEW = 2  # words that many texts share with a quotation: so few are refused only if they are a whole one
_SCANNED = 4_000  # characters of a text that are compared: a repetition is at its beginning
_QUOTED = re.compile(r'"([^"\n]*)"')


def unrepeated(answer: T, prompt: str, shown: str) -> T:
    """Return *answer* with "" in place of each text that repeats *prompt*; see `repeats`. O(characters)."""
    return type(answer).model_validate(_blank(answer.model_dump(), prompt, shown))


def repeats(text: str, prompt: str, shown: str) -> bool:
    """Return whether *text* repeats *prompt* and not the texts that the model was *shown*. O(characters)."""
    quotations, runs = _phrases(prompt)
    words = _words(text[:_SCANNED])
    found = _runs(words, _RUN - 1) | _runs(words, _RUN)
    whole = " ".join(words)
    if whole in quotations or (len(words) > _FEW and any(f" {whole} " in f" {each} " for each in quotations)):
        return True
    copied = found & runs
    return bool(copied) and not all(map(" ".join(_words(shown)).__contains__, copied))


def _blank(value: Any, prompt: str, shown: str) -> Any:
    if isinstance(value, str):
        return "" if repeats(value, prompt, shown) else value
    if isinstance(value, dict):
        return {key: _blank(each, prompt, shown) for key, each in value.items()}
    return [_blank(each, prompt, shown) for each in value] if isinstance(value, list) else value


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
