"""The plain clients of OpenAI, Anthropic and Google, in one form: how each is called, and what a stream of it comes to.

    openai_chat(OpenAI(), model="gpt-4o-mini")          anthropic(Anthropic(), model="…", max_tokens=4_096)
    openai_responses(OpenAI(), model="gpt-4o-mini")     gemini(genai.Client(), model="…")

The other arguments go along with each call. Asynchronous clients are wrapped alike. This module knows nothing of
contexts.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from .items import Item


@dataclass(frozen=True)
class Client:
    """A provider's client: how it is called, and how a stream of it becomes text and a whole answer."""

    format: str
    create: Callable[..., Any]
    given: Mapping[str, Any]
    """arguments of each call"""
    streamed: Callable[..., Any]
    """the call that streams"""
    piece: Callable[[Any], str | None]
    """the text in an event of a stream"""
    whole: Callable[[Sequence[Any]], Any]
    """the answer that the events of a stream came to"""


def openai_chat(client: Any, **given: Any) -> Client:
    """Wrap a client of OpenAI for Chat Completions; *given* goes along with each call: `model`, `temperature`, …."""
    from openai.lib.streaming.chat import ChatCompletionStreamState

    def whole(events: Sequence[Any]) -> Any:
        state = ChatCompletionStreamState()
        for event in events:
            state.handle_chunk(event)
        return state.get_final_completion()

    create = client.chat.completions.create
    streamed = partial(create, stream=True, stream_options={"include_usage": True})
    return Client(
        "openai_chat", create, given, streamed, lambda e: e.choices[0].delta.content if e.choices else "", whole
    )


def openai_responses(client: Any, **given: Any) -> Client:
    """Wrap a client of OpenAI for Responses. Nothing is kept by the provider; its encrypted thoughts are kept here."""
    create = client.responses.create
    kept = {"store": False, "include": ["reasoning.encrypted_content"], **given}

    def piece(event: Any) -> str | None:
        return event.delta if event.type == "response.output_text.delta" else None

    return Client("openai_responses", create, kept, partial(create, stream=True), piece, lambda e: e[-1].response)


def anthropic(client: Any, **given: Any) -> Client:
    """Wrap a client of Anthropic; *given* goes along with each call, and needs `model` and `max_tokens`."""

    def piece(event: Any) -> str | None:
        return getattr(event.delta, "text", None) if event.type == "content_block_delta" else None

    def whole(events: Sequence[Any]) -> Item:
        message: Item = {}
        for event in (each.model_dump(mode="json", exclude_none=True) for each in events):
            if event["type"] == "message_start":
                message = event["message"]
            elif event["type"] == "content_block_start":
                message["content"].append(event["content_block"])
            elif event["type"] == "content_block_delta":
                _grow(message["content"][event["index"]], event["delta"])
            elif event["type"] == "message_delta":
                message |= event["delta"] | {"usage": message["usage"] | event["usage"]}
        for block in message["content"]:
            if "partial_json" in block:
                block["input"] = json.loads(block.pop("partial_json") or "{}")
        return message

    create = client.messages.create
    return Client("anthropic", create, given, partial(create, stream=True), piece, whole)


def gemini(client: Any, **given: Any) -> Client:
    """Wrap a client of Google, or its `aio`; *given* goes along with each call, and needs `model`."""

    def whole(events: Sequence[Any]) -> Item:
        dumped = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in events]
        parts: list[Item] = []
        for part in (part for each in dumped for part in each["candidates"][0]["content"].get("parts", ())):
            if parts and part.keys() == parts[-1].keys() == {"text"}:
                parts[-1]["text"] += part["text"]
            else:
                parts.append(part)
        usage = {"usageMetadata": dumped[-1]["usageMetadata"]} if "usageMetadata" in dumped[-1] else {}
        return {"candidates": [{"content": {"role": "model", "parts": parts}}], **usage}

    def create(**request: Any) -> Any:  # keeps the client: its models stop when it goes
        return client.models.generate_content(**request)

    def streamed(**request: Any) -> Any:
        return client.models.generate_content_stream(**request)

    return Client("gemini", create, given, streamed, lambda event: event.text, whole)


def _grow(block: Item, delta: Item) -> None:
    """Add *delta* to the *block* of a streamed answer."""
    for key, value in delta.items():
        if key == "citation":
            block.setdefault("citations", []).append(value)
        elif key != "type":
            block[key] = block.get(key, "") + value
