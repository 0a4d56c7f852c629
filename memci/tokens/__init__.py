"""Counting tokens: of a text, of a chat message, of tools, of images.

    count = counter_for("gpt-4o")
    message_tokens({"role": "user", "content": "Hello, world"}, count)      7
    tools_tokens(tools, count) + REQUEST_TOKENS                             what a request costs besides its messages

The vocabularies are carried along: counting needs no network. Importing this loads none of them; the first count does.
Nothing in here knows of pages, budgets or storage.
"""

from .chat import REQUEST_TOKENS, message_tokens, tools_tokens
from .counter import TokenCounter, counter_for
from .images import image_tokens

__all__ = ["REQUEST_TOKENS", "TokenCounter", "counter_for", "image_tokens", "message_tokens", "tools_tokens"]
