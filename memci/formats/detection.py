"""Detection of a value's format by its keys and types.

    {"role": "user", "parts": […]}                                            gemini
    {"role": "user", "content": [{"type": "tool_result", …}]}                 anthropic
    {"type": "function_call", "call_id": "c1", …}                             openai_responses
    {"role": "user", "content": "Hi"}                                         None: all formats but Gemini's share it
    {"object": "response", "output": […]}                                     openai_responses, and its items

A whole answer of a client's call is taken apart into its items; fields that are not sent again (its id, its usage) are
left out.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from ..messages import Item
from . import anthropic, gemini, openai_chat, openai_responses

_ITEM = re.compile(
    r"(.+_call|.+_call_output|tool_search_output|reasoning|compaction|compaction_summary|compaction_trigger"
    r"|image_generation|mcp_list_tools|mcp_approval_(request|response)|item_reference|program|program_output"
    r"|additional_tools|configuration_update)"
)
"""types of items of Responses"""
_BLOCK = re.compile(
    r"(image|document|search_result|thinking|redacted_thinking|tool_use|tool_result|server_tool_use|.+_tool_use"
    r"|.+_tool_result|container_upload|tool_reference|compaction|mid_conv_system|fallback|advisor_.+)"
)
"""types of blocks that only Anthropic has"""
_PART = re.compile(r"(input_text|output_text|input_image|input_file|summary_text|reasoning_text|computer_screenshot)")
"""types of parts of Responses"""
_NOT_SENT: Final = frozenset({"parsed", "parsed_arguments", "parsed_output"})
"""fields that the SDKs' helpers add to an answer"""


def format_of(item: Mapping[str, Any]) -> str | None:
    """Return the format of *item*, None if it may as well be a message of Chat Completions. O(parts)."""
    kind, content = item.get("type"), item.get("content")
    if isinstance(item.get("parts"), list):
        return gemini.NAME
    if kind == "message":
        return openai_responses.NAME
    if isinstance(kind, str) and _ITEM.fullmatch(kind):
        return openai_responses.NAME
    kinds = [part.get("type") for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    types = [each for each in kinds if isinstance(each, str)]
    if any(map(_PART.fullmatch, types)):
        return openai_responses.NAME
    return anthropic.NAME if any(map(_BLOCK.fullmatch, types)) else None


def unwrapped(value: Item) -> tuple[str | None, list[Item]]:
    """Return the format of *value* and its items: the items of a whole answer, else *value* itself. O(parts)."""
    output, content, choices = value.get("output"), value.get("content"), value.get("choices")
    if value.get("object") == "response" and isinstance(output, list):
        return openai_responses.NAME, [_sent(each) for each in output if isinstance(each, dict)]
    if value.get("type") == "message" and isinstance(content, list) and "stop_reason" in value:
        return anthropic.NAME, [{"role": value.get("role"), "content": [_sent(block) for block in content]}]
    if isinstance(candidates := value.get("candidates"), list) and candidates and isinstance(candidates[0], dict):
        return gemini.NAME, [candidates[0].get("content") or {}]
    if value.get("object") == "chat.completion" and isinstance(choices, list) and choices:
        return openai_chat.NAME, [_sent(choices[0].get("message") or {})]
    return format_of(value), [value]


def _sent(item: Item) -> Item:
    """Return *item*, with its parts, without fields that are not sent again."""
    if not isinstance(item, dict):
        return item
    kept = {key: value for key, value in item.items() if key not in _NOT_SENT}
    if isinstance(kept.get("content"), list):
        kept["content"] = [_sent(part) for part in kept["content"]]
    return kept
