"""Counting tokens: of a text, of a chat message, of tools, of images.

    count = counter_for("gpt-4o")
    message_tokens({"role": "user", "content": "Hello, world"}, count)      7
    tools_tokens(tools, count) + REQUEST_TOKENS                             what a request costs besides its messages

memci carries the vocabularies, so counting needs no network. The first count loads one, not the import.
"""

from .chat import REQUEST_TOKENS, message_tokens, tools_tokens
from .counter import TokenCounter, counter_for
from .images import image_tokens

__all__ = ["REQUEST_TOKENS", "TokenCounter", "counter_for", "image_tokens", "message_tokens", "tools_tokens"]
