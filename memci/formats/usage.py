"""The cost of a request, as a provider or a framework reports it.

{"prompt_tokens": 900, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 640}}
{"input_tokens": 260, "cache_read_input_tokens": 640, "output_tokens": 20}     Anthropic counts cached tokens apart
{"promptTokenCount": 900, "cachedContentTokenCount": 640, "candidatesTokenCount": 20}
{"inputTokens": 260, "cacheReadInputTokens": 640, "outputTokens": 20, "totalTokens": 920}          Bedrock, too
    ──▶  CallsCost(calls=1, input=900, cached_read=640, cached_written=0, output=20)

Gateways repeat Anthropic's keys beside an OpenAI-like count that includes them: they count once. Where conventions
differ, arithmetic decides: cached tokens that are more than the input stand beside it, and reasoning without which the
total is too small stands beside the answer, as with xAI. Keys in camelCase are read as in snake_case.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..errors import InvalidSetting, brief

_KEYS: Final[Mapping[str, list[str]]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_INPUT: Final = [*_KEYS["with_cached"], *_KEYS["without_cached"]]
_MOST: Final = 3 * 10**11  # tokens under one key, at most: an export can hold the sum of three of them


class CallsCost(NamedTuple):
    """The cost of calls of a model together, in tokens, as their provider reported it."""

    calls: int = 0
    input: int = 0
    """all tokens of the requests, with those that were read from or written to the provider's cache"""
    cached_read: int = 0
    cached_written: int = 0
    output: int = 0
    """tokens of the answers, with their reasoning"""


def reported(usage: object) -> CallsCost:
    """Return the cost of one call that *usage* reports: a dict, an SDK's object, or a cost that was read before.

    InvalidSetting if it has no number of input tokens, or a number that can't be one.
    """
    if isinstance(usage, CallsCost) and all(type(each) is int and 0 <= each <= 3 * _MOST for each in usage):
        return usage
    fields = _fields(usage)
    if fields.keys().isdisjoint(_INPUT):
        raise InvalidSetting(
            "usage", f"expected the usage of a reply (reply.usage), with one of {', '.join(_INPUT)} (an int)"
        )
    for key in _KEYS["details"]:
        fields = _fields(fields.get(key)) | fields
    read, written = _tokens(fields, _KEYS["read_beside"]), _tokens(fields, _KEYS["written_beside"])
    given = _tokens(fields, _INPUT)
    said, total = _tokens(fields, _KEYS["output"]), _tokens(fields, _KEYS["total"])
    included = not fields.keys().isdisjoint(_KEYS["with_cached"]) or total == given + said > 0
    beside = 0 if included and read + written <= given else read + written
    thoughts = [_tokens(_fields(fields.get(key)), _KEYS["reasoning"]) for key in _KEYS["output_details"]]
    said += next((each for each in thoughts if each and total == given + said + each), 0)
    steps = fields.get("iterations")
    others = [
        reported({**step, "iterations": None})  # a compaction, another model's advice: not in the numbers above them
        for step in map(_fields, steps if isinstance(steps, list) else ())
        if step.get("type") != "message"
    ]
    own = CallsCost(
        1,
        given + beside + _tokens(fields, _KEYS["tools"]),
        read or _tokens(fields, _KEYS["read"]),
        written or _tokens(fields, _KEYS["written"]),
        said + _tokens(fields, _KEYS["thoughts"]),
    )
    whole = CallsCost(*(min(sum(each), 3 * _MOST) for each in zip(own, *others, strict=True)))
    return whole._replace(calls=1)


def usage_in(reply: object) -> Any:
    """Return the usage of a whole *reply*, a dict or an SDK's object; None if it has none."""
    names = ("usage", "usageMetadata", "usage_metadata")
    found = (reply.get(name) if isinstance(reply, Mapping) else getattr(reply, name, None) for name in names)
    return next(filter(None, found), None)


def usages_in(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the usages in *event*, a piece of a streamed answer, from each place where a provider puts one.

    Anthropic's is in the message, that of Responses in the response; Groq and Moonshot have places of their own.
    """
    choices = event.get("choices")
    places = (
        event,
        *map(event.get, ("message", "response", "x_groq")),
        *(choices if isinstance(choices, list) else ()),
    )
    for place in places:
        usage = place.get("usage") if isinstance(place, Mapping) else None
        if isinstance(usage, dict) and usage:
            yield usage


def if_readable(usage: object) -> CallsCost | None:
    """Return what `reported` reads of *usage*, None if it can't: the answer beside it is paid for all the same."""
    try:
        return reported(usage)
    except InvalidSetting:
        return None


def _fields(value: object) -> dict[str, Any]:
    """Return the fields of *value* that are not None, by their keys in snake_case."""
    if not isinstance(value, Mapping):
        extra = getattr(value, "__pydantic_extra__", None)  # fields that an SDK's object does not declare
        value = {**getattr(value, "__dict__", {}), **(extra if isinstance(extra, dict) else {})}
    return {snake_case(str(key)): each for key, each in value.items() if each is not None}


@lru_cache(maxsize=1_000)
def snake_case(key: str) -> str:
    """Return a *key* in camelCase as it is in snake_case; other keys stay."""
    return re.sub("(?<=[a-z])[A-Z]", r"_\g<0>", key).lower()


def _tokens(fields: Mapping[str, Any], keys: Sequence[str]) -> int:
    """Return the number of *fields* under the first of *keys* that it has, 0 if it has none."""
    key, tokens = next(((key, fields[key]) for key in keys if key in fields), ("", 0))
    if type(tokens) is float and tokens.is_integer():
        tokens = int(tokens)
    if type(tokens) is not int or not 0 <= tokens <= _MOST:
        raise InvalidSetting("usage", f"expected {key} to be an int from 0, got {brief(tokens)}")
    return tokens
