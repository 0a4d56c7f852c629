"""Read the linguistic tables, one file for each language, and make patterns of them.

    # tables/korean.toml
    [facts]
    question = '나요|까요?|습니까'         a pattern: a regular expression, most of its alternatives are words
    [instructions]
    direct = ['…', '…']                 a list of patterns: any of them

    pattern("facts", "question")                  finds questions in any language
    pattern("instructions", "asks", "hangul")     only in Korean

A language without an entry adds nothing. If no language has one, the pattern matches nothing. «name» stands for an
entry of [parts]. Line breaks, the blanks around them and those at the beginning are not part of a pattern.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, get_args

Writing = Literal["latin", "han", "kana", "hangul", "german", "french", "spanish", "italian", "portuguese", "russian"]
"""a language, named by its writing if only one language uses it; "latin" is English"""

LATIN: tuple[Writing, ...] = ("latin", "german", "french", "spanish", "italian", "portuguese")
"""languages in Latin letters: a text without any common word may be in each of them"""

_FILES: Mapping[Writing, str] = {
    "latin": "english",
    "han": "chinese",
    "kana": "japanese",
    "hangul": "korean",
    **{each: each for each in get_args(Writing)[4:]},
}
WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_OTHER = re.compile(rf"[\u0400-\u04ff]|{WIDE.pattern}")
_BREAK = re.compile(r"\s*\n\s*")
_PART = re.compile("«([a-z_]+)»")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]|[^\\\[()|]+", re.DOTALL)
"""of a regular expression: what is escaped, a set of characters, a mark of groups, or other characters"""


@cache
def pattern(section: str, key: str, language: Writing | None = None, *, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of an entry: of one language, or of all. O(its length): use it for module constants."""
    return re.compile(alternatives(section, key, language) or "(?!)", flags)


@cache
def finder(section: str, *keys: str, languages: tuple[Writing, ...] | None = None) -> re.Pattern[str]:
    """Return a pattern that finds whether the `pattern` of any entry is in a text, but not where. O(its length).

    Alternatives that begin alike share the beginning, so that it is tried once at each place.
    """
    languages = languages or get_args(Writing)
    listed = [_listed(one, section, key) for key in keys for one in languages]
    found, shared = [each for parts in listed for part in parts for each in _branches(part)], []
    for begin in (*filter(None, (_entry(one, "parts", "lead") for one in languages)), r"\b", "^"):
        if rest := [each.removeprefix(begin) for each in found if each.startswith(begin)]:
            shared.append(f"{begin}(?:{'|'.join(rest)})")
            found = [each for each in found if not each.startswith(begin)]
    return re.compile("|".join([*found, *shared]) or "(?!)")


def has(section: str, key: str, text: str) -> bool:
    """Return whether the `pattern` of an entry is in *text*. O(length).

    A text in Latin letters alone is searched for the languages of these: each alternative of the others has a letter of
    its own script.
    """
    foreign = not text.isascii() and _OTHER.search(text) is not None
    return finder(section, key, languages=None if foreign else LATIN).search(text) is not None


def _branches(expression: str) -> list[str]:
    """Return the alternatives of *expression* that stand in no group."""
    found, depth = [""], 0
    for piece in _TOKEN.findall(expression):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and not depth:
            found.append("")
        else:
            found[-1] += piece
    return found


def alternatives(section: str, key: str, language: Writing | None = None) -> str:
    """Return the regular expression of an entry, without a group around its alternatives; "" if there is none."""
    found = [each for one in (_FILES if language is None else [language]) if (each := _entry(one, section, key))]
    return "|".join(found)


def words(section: str, key: str, language: Writing = "latin") -> list[str]:
    """Return the words of an entry, which blanks or bars separate."""
    entry = _table(language).get(section, {}).get(key, "")
    assert isinstance(entry, str), "the words of an entry are one text"
    return [word.strip() for word in _BREAK.sub("", entry).split("|")] if "|" in entry else entry.split()


def section(name: str, language: Writing) -> Mapping[str, str | Sequence[str]]:
    """Return the entries of a section of one language, as they are written; {} if there is none."""
    return _table(language).get(name, {})


def _entry(language: Writing, section: str, key: str) -> str:
    listed = isinstance(_table(language).get(section, {}).get(key), list)
    return "|".join(f"(?:{each})" if listed else each for each in _listed(language, section, key))


def _listed(language: Writing, section: str, key: str) -> list[str]:
    """Return the patterns of an entry."""
    entry = _table(language).get(section, {}).get(key, [])
    return [_complete(language, each) for each in ([entry] if isinstance(entry, str) else entry)]


def _complete(language: Writing, text: str) -> str:
    return _PART.sub(lambda name: _entry(language, "parts", name[1]), _BREAK.sub("", text).lstrip())


@cache
def _table(language: Writing) -> Mapping[str, Mapping[str, str | Sequence[str]]]:
    path = Path(__file__).with_name("tables") / f"{_FILES[language]}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


STOPS = "।॥؟۔։።፧។៕။"
"""marks that end a sentence, also without a blank behind them, of scripts that have a full stop of their own"""


GRAMMAR = pattern("keywords", "grammar")
PARTICLE = re.compile(f"(?:{alternatives('keywords', 'particle')})$")
PREDICATE = re.compile(f"(?:{alternatives('keywords', 'predicate')})$")
HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff"
HIRAGANA = re.compile("[\u3041-\u309f]")
LETTER = r"[^\W_\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
"""a letter or digit of a script that puts spaces between words"""
