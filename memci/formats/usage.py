"""The cost of a request, as a provider reports it in one of the four formats.

{"prompt_tokens": 900, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 640}}
{"input_tokens": 260, "cache_read_input_tokens": 640, "output_tokens": 20}     Anthropic counts cached tokens apart
{"promptTokenCount": 900, "cachedContentTokenCount": 640, "candidatesTokenCount": 20}
    ──▶  CallsCost(calls=1, input=900, cached_read=640, cached_written=0, output=20)
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..errors import InvalidSetting, brief

_INPUT: Final = ("prompt_tokens", "input_tokens", "promptTokenCount", "prompt_token_count")
_OUTPUT: Final = ("completion_tokens", "output_tokens", "candidatesTokenCount", "candidates_token_count")
_THOUGHTS: Final = ("thoughtsTokenCount", "thoughts_token_count")
"""Gemini counts them beside the candidates; the other providers' number of output tokens includes them"""
_DETAILS: Final = ("prompt_tokens_details", "input_tokens_details")
_READ: Final = ("cachedContentTokenCount", "cached_content_token_count", "prompt_cache_hit_tokens", "cached_tokens")
_WRITTEN: Final = ("cache_write_tokens",)
_READ_BESIDE: Final = ("cache_read_input_tokens",)
_WRITTEN_BESIDE: Final = ("cache_creation_input_tokens",)
"""Anthropic's keys: these tokens are not among the input tokens"""
_MOST: Final = 3 * 10**11
"""tokens under one key, at most: an export can hold the sum of three of them"""


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
    """Return the cost of one call that *usage*, a dict or an SDK's object, reports.

    Raises:
        InvalidSetting: If it has no number of input tokens, or a number that can't be one.
    """
    fields = _fields(usage)
    if all(fields.get(key) is None for key in _INPUT):
        raise InvalidSetting("usage", f"expected the usage of a reply, with one of {', '.join(_INPUT)} (an int)")
    for key in _DETAILS:
        fields = _fields(fields.get(key)) | fields
    read, written = _tokens(fields, _READ_BESIDE), _tokens(fields, _WRITTEN_BESIDE)
    return CallsCost(
        1,
        _tokens(fields, _INPUT) + read + written,
        read or _tokens(fields, _READ),
        written or _tokens(fields, _WRITTEN),
        _tokens(fields, _OUTPUT) + _tokens(fields, _THOUGHTS),
    )


def _fields(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items()}
    extra = getattr(value, "__pydantic_extra__", None)  # fields that an SDK's object does not declare
    return {**getattr(value, "__dict__", {}), **(extra if isinstance(extra, dict) else {})}


def _tokens(fields: Mapping[str, Any], keys: tuple[str, ...]) -> int:
    """Return the number of *fields* under the first of *keys* that it has, 0 if it has none."""
    key, tokens = next(((key, fields[key]) for key in keys if fields.get(key) is not None), ("", 0))
    if type(tokens) is not int or not 0 <= tokens <= _MOST:
        raise InvalidSetting("usage", f"expected {key} to be an int from 0, got {brief(tokens)}")
    return tokens
