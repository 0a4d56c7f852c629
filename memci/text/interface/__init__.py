"""What memci says to a model: the notice, the tools and what a companion adds, in each language that has a file here.

    en.toml    [notice]  [recall_page]  [search_memory]  [companion]  [attp]        ja.toml    [companion] …

The texts are constant, so that a provider's cache keeps them.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

Language = Literal["en", "zh", "ja", "ko"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)


@cache
def section(name: str, language: str = "en") -> Mapping[str, str]:
    """Return the texts of one section; those that *language* lacks are English."""
    path = Path(__file__).with_name(f"{language}.toml")
    texts: Mapping[str, str] = tomllib.loads(path.read_text("utf-8")).get(name, {})
    return texts if language == "en" else {**section(name), **texts}


@cache
def tool(name: str, language: str = "en") -> dict[str, Any]:
    """Return the tool *name* as an OpenAI function, described in *language*. Copy it before you change it."""
    properties: dict[str, dict[str, Any]] = {}
    for argument, kind in _ARGUMENTS[name].items():
        text = section(name, language).get(argument)
        properties[argument] = {"type": kind} | ({} if text is None else {"description": text})
    parameters = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    described = {"name": name, "description": section(name, language)["description"], "strict": True}
    return {"type": "function", "function": described | {"parameters": parameters}}


_WHOLE, _TEXT = ["integer", "null"], ["string", "null"]
_ARGUMENTS: Mapping[str, Mapping[str, str | list[str]]] = {
    "recall_page": {"index": "integer", "entry": _WHOLE, "offset": _WHOLE, "last": _WHOLE},
    "search_memory": {"query": "string", "since": _TEXT, "until": _TEXT, "skip": _WHOLE},
}
"""the JSON types of the arguments of each tool"""
