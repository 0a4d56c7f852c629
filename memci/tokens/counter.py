"""Counters of the tokens of a text.

    count = counter_for("gpt-4o")
    count("Hello, world")            3
    count.name, count.exact          ("o200k_base", True)

A counter is cheap to make; it loads its vocabulary with the first text. `name` is the vocabulary, by which a stored
count can be checked later. `exact` is False if the number is an estimate on the safe side. Counting is the most
expensive step of most calls: keep the result.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol, runtime_checkable

from ..errors import InvalidSetting, brief
from ..model_catalog import facts_of
from . import vocabulary

# A run of a million spaces overflows the stack of tiktoken's pattern; 300,000 do not.
_LONG = 100_000
_LONG_BLANK = re.compile(rf"\s{{{_LONG}}}")


@runtime_checkable
class TokenCounter(Protocol):
    """A counter of the tokens of a text. `counter_for` makes one of any callable."""

    @property
    def name(self) -> str:
        """The vocabulary, or the rule, of the counter."""

    @property
    def exact(self) -> bool:
        """Whether the counts are those of the model itself, not an estimate."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens of *text*; special tokens in it count as ordinary text. O(length)."""


def counter_for(model: str | None = None, counter: Callable[[str], int] | TokenCounter | None = None) -> TokenCounter:
    """Return *counter* if one is given, else the counter for *model* (see `memci.model_catalog`).

    Args:
        model: A model's name, with or without its provider; None counts with o200k_base.
        counter: Counts instead. Its attributes `name` and `exact` are used, if it has them.

    Raises:
        InvalidSetting: If *counter* can't be called, or (later, when it counts) does not return an int >= 0.
    """
    if counter is not None:
        return counter if isinstance(counter, _Named) else CustomCounter(counter)
    facts = facts_of(model)
    base = VocabularyCounter(facts.vocabulary, exact=facts.exact)
    return base if facts.percent == 100 else ScaledCounter(base, facts.percent)


class _Named:
    """A counter that memci made."""

    name: str
    exact: bool

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class VocabularyCounter(_Named):
    """A counter with a vocabulary that memci includes."""

    def __init__(self, name: str, *, exact: bool = True) -> None:
        self.name = name
        self.exact = exact
        self._encode: Callable[[str], Sequence[int]] = self._load
        self._pack: Callable[[str], bytes] | None = None

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens of *text*; special tokens in it are ordinary text. O(length)."""
        if len(text) > _LONG:
            ends = [0, *(blank.end() for blank in _LONG_BLANK.finditer(text)), len(text)]
            return sum(self._short(text[start:end]) for start, end in pairwise(ends))
        return self._short(text)

    def _short(self, text: str) -> int:
        try:
            if self._pack is None or vocabulary.SPECIAL in text:
                return len(self._encode(text))
            return len(self._pack(text)) // 4
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 -- a lone surrogate, a panic in Rust: tiktoken encodes such texts
            return len(vocabulary.encoding(self.name).encode_ordinary(text))

    def _load(self, text: str) -> Sequence[int]:
        quick = vocabulary.quick(self.name)
        self._encode, self._pack = quick or (vocabulary.encoding(self.name).encode_ordinary, None)
        return self._encode(text)


class ScaledCounter(_Named):
    """A counter of *percent* of the tokens of *base*, rounded up."""

    def __init__(self, base: TokenCounter, percent: int) -> None:
        self.name = f"{base.name}×{percent / 100:g}"
        self.exact = False
        self._base = base
        self._percent = percent

    def __call__(self, text: str, /) -> int:
        """Return the scaled number of tokens of *text*. O(length)."""
        return -(-self._base(text) * self._percent // 100)


class CustomCounter(_Named):
    """A counter with a callable of the user, whose results are checked."""

    def __init__(self, count: Callable[[str], int]) -> None:
        if not callable(count):
            raise InvalidSetting("counter", f"a callable that takes a text is needed, not {brief(count)}")
        plain = getattr(count, "__name__", type(count).__name__)
        name = getattr(count, "name", None)
        self.name = name if isinstance(name, str) and name else f"custom:{plain}"
        self.exact = bool(getattr(count, "exact", True))
        self._count = count

    def __call__(self, text: str, /) -> int:
        """Return the result of the callable for *text*; InvalidSetting if it is not an int >= 0."""
        tokens = self._count(text)
        if not isinstance(tokens, int) or isinstance(tokens, bool) or not 0 <= tokens < 2**63:
            raise InvalidSetting("counter", f"{self.name} returned {brief(tokens)}: an int >= 0, as len(encode(text))")
        return tokens
