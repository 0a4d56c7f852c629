"""The inspector in other languages: a table of phrases, by which templates and sentences are translated.

    <h2>Locks</h2>                              ──▶   <h2>锁</h2>
    "Page #2 left the window in turn 11 …"      ──▶   "页 #2 在第 11 轮离开窗口 …"       {a} in a phrase is any text

What the table lacks stays English, and texts of a store are never translated.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader

LANGUAGES: Final = {"en": "English", "zh": "中文"}
_FOLDER: Final = Path(__file__).parent
_PIECES: Final = re.compile(
    r"(?s)(?P<code>\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\})|(?P<tag><[^>]*>)|(?P<text>[^<{]+|\{)"
)  # of a template: code of Jinja, tags of HTML, and text
_LITERAL: Final = re.compile(r'"([^"]*)"')
_LABEL: Final = re.compile(r'(?<=(?:label|older)=")[^"{]+(?=")|(?<= title=")[^"{]+(?=")')
_HOLE: Final = re.compile(r"\{(\w+)\}")


class TranslatedLoader(FileSystemLoader):
    """Loads the templates in a *language*."""

    def __init__(self, language: str) -> None:
        super().__init__(_FOLDER / "templates")
        self._language = language

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Return the source of *template*, translated."""
        source, path, fresh = super().get_source(environment, template)
        table = phrases(self._language)
        return _PIECES.sub(lambda piece: _translate(piece, table), source) if table else source, path, fresh


@cache
def phrases(language: str) -> Mapping[str, str]:
    """Return the table of a *language*; {} for English."""
    path = _FOLDER / "static" / f"{language}.json"
    return dict(json.loads(path.read_text("utf-8"))) if language in LANGUAGES and path.is_file() else {}


def choose(wanted: str) -> str:
    """Return the first known language of *wanted*, a header `Accept-Language` or the name of one."""
    names = (each.split(";")[0].strip()[:2].lower() for each in wanted.split(","))
    return next((name for name in names if name in LANGUAGES), "en")


def say(text: str, language: str) -> str:
    """Return a sentence of the inspector in a *language*."""
    table = phrases(language)
    if text in table or not table:
        return table.get(text, text)
    for pattern, phrase in _patterns(language):
        if found := pattern.fullmatch(text):
            return phrase.format(**found.groupdict())
    return text


@cache
def _patterns(language: str) -> list[tuple[re.Pattern[str], str]]:
    holed = [(each, phrase) for each, phrase in phrases(language).items() if _HOLE.search(each)]
    return [(re.compile(_HOLE.sub(r"(?P<\1>.+?)", re.sub(r"[().?]", r"\\\g<0>", each))), to) for each, to in holed]


def _is_said(literal: str) -> bool:
    """Return whether a *literal* of the code is a text: lower-case words alone are values."""
    return literal[:1].isupper() or " " in literal


def _translate(piece: re.Match[str], table: Mapping[str, str]) -> str:
    whole = piece[0]
    if piece["code"]:
        return _LITERAL.sub(
            lambda found: f'"{table.get(found[1], found[1])}"' if _is_said(found[1]) else found[0], whole
        )
    if piece["tag"]:
        return _LABEL.sub(lambda found: table.get(found[0], found[0]), whole)
    text = whole.strip()
    return whole.replace(text, table[text]) if text in table else whole
