"""LlamaIndex: `Memory`, and the older buffer that summarizes. This module knows nothing of prices."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.llms import ChatMessage, CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.memory import ChatSummaryMemoryBuffer, Memory

from ...cache.manager import Manager, Setting
from ...conversation import Message


class Scripted(CustomLLM):
    """A model that writes a summary of whatever it is asked."""

    script: Any

    @property
    def metadata(self) -> LLMMetadata:
        """What the model can do."""
        return LLMMetadata()

    def complete(self, prompt: str, *_args: Any, **_options: Any) -> CompletionResponse:
        """Write."""
        return CompletionResponse(text=self.script.write(prompt))

    def stream_complete(self, prompt: str, *_args: Any, **_options: Any) -> Any:
        """Write at once."""
        yield self.complete(prompt)


def read(message: Message) -> ChatMessage:
    """Return *message* as LlamaIndex has it: calls beside the text, where its memory counts them."""
    extra = {key: message[key] for key in ("tool_calls", "tool_call_id", "name") if message.get(key)}
    return ChatMessage(role=message["role"], content=message.get("content") or "", additional_kwargs=extra)


def written(message: ChatMessage) -> Message:
    """Return *message* as a provider is sent it."""
    return {"role": message.role.value, "content": message.content or None, **message.additional_kwargs}


@dataclass(slots=True)
class _Remembered:
    """`Memory`, put and asked on one event loop."""

    memory: Memory
    loop: asyncio.AbstractEventLoop

    def call(self, turn: Sequence[Message]) -> list[Message]:
        self.loop.run_until_complete(self.memory.aput_messages([read(message) for message in turn]))
        return [written(message) for message in self.loop.run_until_complete(self.memory.aget())]


def remembered(setting: Setting, ratio: float) -> Manager:
    """Return `Memory` that keeps a *ratio* of the room; its blocks are empty."""
    memory = Memory.from_defaults(
        token_limit=setting.room,
        chat_history_token_ratio=ratio,
        token_flush_size=max(1, min(3_000, setting.room // 4)),
        tokenizer_fn=lambda text: range(setting.count(text)),  # type: ignore[arg-type, return-value]
    )
    return _Remembered(memory, asyncio.new_event_loop())


@dataclass(slots=True)
class _Buffered:
    buffer: ChatSummaryMemoryBuffer

    def call(self, turn: Sequence[Message]) -> list[Message]:
        for message in turn:
            self.buffer.put(read(message))
        return [written(message) for message in self.buffer.get()]


def buffered(setting: Setting) -> Manager:
    """Return the buffer that summarizes what does not fit."""
    llm = Scripted(script=setting.script)
    tokenizer: Any = lambda text: range(setting.count(text))  # noqa: E731 -- only its length is asked
    return _Buffered(
        ChatSummaryMemoryBuffer.from_defaults(llm=llm, token_limit=int(0.6 * setting.room), tokenizer_fn=tokenizer)
    )


PEERS: dict[str, Callable[[Setting], Manager]] = {
    "LlamaIndex Memory, .7": lambda setting: remembered(setting, 0.7),
    "LlamaIndex Memory, .9": lambda setting: remembered(setting, 0.9),
    "LlamaIndex ChatSummaryMemoryBuffer": buffered,
}
