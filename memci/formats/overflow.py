r"""Overflow: a provider's answer that a request was too long, with the numbers that it names.

    "This model's maximum context length is 8000 tokens. However, your messages resulted in 8412 tokens."
    "This endpoint's maximum context length is 9000 tokens. However, you requested about 12000 tokens
        (8000 of text input, 1000 of tool input, 3000 in the output)."
    "Your input exceeds the context window of this model."
        ──▶  Overflow(8412, 8000)   Overflow(9000, 6000, answer=3000)   Overflow(None, None)

Words tell that it was too long, which number is the limit, and which is the answer's. Arithmetic tells the rest: what
was asked for is more than the limit, as one number or as the sum of its parts.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

_NUMBER: Final = r"(?<![\w.,-])(?P<n>\d[\d,]{3,9})(?![\w-]|,\d|\.\d)"
"""a number of tokens: no window has fewer than a thousand, and status codes have three digits"""
_ANY: Final = r"(?<![\w.,-])(?P<n>\d[\d,]{0,9})"
_NUMBERS: Final = re.compile(rf"(?<!id)(?<!code)\W{{0,4}}{_NUMBER}")


def _patterns(number: str, *texts: str) -> list[re.Pattern[str]]:
    """Return the patterns *texts*, in which <n> stands for a *number*."""
    return [re.compile(text.replace("<n>", number), re.IGNORECASE) for text in texts]


_WORDS: Final[Mapping[str, list[str]]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_LIMITS, _ANSWERS = _patterns(_NUMBER, *_WORDS["limits"]), _patterns(_ANY, *_WORDS["answers"])
_SAID, _OTHERWISE, _ALONE = _patterns("", *("|".join(_WORDS[each]) for each in ("said", "otherwise", "alone")))


class Overflow(NamedTuple):
    """What a provider said of a request that was too long, in its tokens; None for a number that it did not say."""

    asked: int | None  # the tokens of the request
    most: int | None  # the most that a request may have, beside the *answer* if that is known
    answer: int | None = None  # the tokens of the answer that the request asked for

    def room(self, reply: int) -> int:
        """Return the tokens of a request that fits beside an answer of *reply* tokens, 0 if that is not known."""
        return (self.most or 0) - (0 if self.answer else reply)


def overflow(error: object) -> Overflow | None:
    """Return what *error*, an exception or its text, says of a request that was too long; None if it is another error.

    O(its text, at most 4,000 characters).
    """
    text = str(error)[:4_000]
    if not _SAID.search(text) or (_OTHERWISE.search(text) and not _ALONE.search(text)):
        return None
    found, answered = (next(filter(None, (each.search(text) for each in table)), None) for table in (_LIMITS, _ANSWERS))
    if found is None:
        return Overflow(None, None)
    most, answer = _number(found), answered and _number(answered)
    others = {*map(_number, _NUMBERS.finditer(text)), answer or 0} - {most}
    total = max(others)
    if total <= most:
        total = sum(others)
    elif total - (answer or 0) not in {*others, sum(others) - total - (answer or 0)}:  # the answer is not in it
        total += answer or 0
    if total <= most:
        lone_code = text[found.end() :].startswith(")") and others == {0}  # "exceeds limit (2013)" names an error
        return Overflow(None, None if lone_code else most)
    return Overflow(total - (answer or 0), max(0, most - (answer or 0)), answer)


def _number(found: re.Match[str]) -> int:
    return int(found["n"].replace(",", ""))
