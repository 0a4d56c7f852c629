"""HTML: templates that escape every text, and exact texts with hidden characters made visible.

Text from a store is untrusted.
"""

import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import ChoiceLoader, DictLoader, Environment, StrictUndefined, pass_context
from markupsafe import Markup, escape

from ..query_words import find_words
from .language import LANGUAGES, TranslatedLoader, say

FOLDER: Final = Path(__file__).parent
SHOWN: Final = 20_000  # characters of a message on a page, at most: browsers stay quick; `raw` has all
_PLAIN: Final = 120  # characters: browsers cut titles earlier
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""characters that are invisible, or change the direction of the text"""


def exact(text: object, most: int = SHOWN) -> Markup:
    """Return *text* as HTML with hidden characters shown; after *most* characters, only their number. O(most)."""
    whole = str(text)
    shown = _show_hidden(whole[:most])
    if len(whole) > most:
        shown += Markup('<span class="more">… and {} more characters</span>').format(f"{len(whole) - most:,}")
    return shown


def brief(text: object, most: int = 160) -> Markup:
    """Return the first *most* characters of *text* as `exact` does, on one line."""
    start = str(text)[: most + 1]
    return exact(" ".join(start[:most].split()) + ("…" if len(start) > most else ""), most + 1)


def plain(text: object) -> str:
    """Return the start of *text* for a place without markup; a mark replaces each hidden character."""
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text)[:_PLAIN])


def mark_words(text: str, query: str, most: int = SHOWN) -> Markup:
    """Return *text* as `exact` does, with the words of *query* marked, also where they have another form."""
    shown, last = Markup(), 0
    for start, end in find_words(text[:most], query):
        if start >= last:  # pairs of characters may overlap
            shown += _show_hidden(text[last:start]) + Markup("<mark>{}</mark>").format(text[start:end])
            last = end
    return shown + exact(text[last:], max(0, most - last))


def day(seconds: float | None) -> str:
    """Return the time *seconds* since 1970 as 2024-05-04 09:30."""
    if seconds is None:
        return "not known"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return "not known"


def link(path: str, **query: object) -> str:
    """Return an address of the inspector, without the values that are None."""
    given = {name: str(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, errors='surrogatepass')}" if given else path


def template(name: str, language: str, **values: Any) -> str:
    """Return the template *name* with *values*, in a *language*."""
    text: str = _in_language(language).get_template(name).render(**values)
    return text


@cache
def _in_language(language: str) -> Environment:
    made = _ENVIRONMENT.overlay(loader=TranslatedLoader(language), cache_size=50)
    made.globals = {**made.globals, "language": language, "languages": LANGUAGES}
    made.filters = {**made.filters, "say": partial(say, language=language)}
    if language != "en":  # without a plural
        made.filters["many"] = lambda count, noun: f"{count:,} {say(f'{noun}s', language)}"
    return made


def offline(link: Callable[..., str], most: int) -> Environment:
    """Return templates for a file: only the main part of each page, with up to *most* characters of a text."""
    middle = DictLoader({"base.html": "{% block main %}{% endblock %}"})
    made = _ENVIRONMENT.overlay(loader=ChoiceLoader([middle, _LOADER]))
    made.globals = {**made.globals, "link": link, "live": False}
    made.filters = {**made.filters, "exact": lambda text, most=most: exact(text, most)}
    return made


def asset(name: str) -> str:
    """Return the text of a file in the folder `static`."""
    return (FOLDER / "static" / name).read_text("utf-8")


def _show_hidden(text: str) -> Markup:
    parts, last = Markup(), 0
    for found in _HIDDEN.finditer(text):
        code = Markup('<span class="hidden-char" title="a character without a picture">U+{}</span>')
        parts += escape(text[last : found.start()]) + code.format(f"{ord(found[0]):04X}")
        last = found.end()
    return parts + escape(text[last:])


_LOADER: Final = TranslatedLoader("en")
_ENVIRONMENT: Final = Environment(
    loader=_LOADER,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {
    "exact": exact,
    "brief": brief,
    "plain": plain,
    "mark_words": mark_words,
    "say": partial(say, language="en"),
    "day": day,
    "place": {"whole": "whole", "line": "a line", "folded": "in a range", "unlisted": "nowhere"}.get,
    "n": lambda value: f"{value:,}",
    "many": lambda count, noun: f"{count:,} {noun}{'' if count == 1 else 's'}",
}


@pass_context
def _command(values: Any, name: str, *arguments: object) -> str:
    """Return a command of `memci` about the store, to be copied into a shell."""
    return shlex.join(["memci", name, str(values["store"]), *map(str, arguments)])


_ENVIRONMENT.globals |= {"link": link, "live": True, "anchor": "", "store": "STORE", "command": _command}
