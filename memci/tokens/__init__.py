"""Count the tokens of texts, chat messages, tools and media.

    count = counter_for("gpt-4o")
    message_tokens({"role": "user", "content": "Hello, world"}, count)      7
    tools_tokens(tools, count) + REQUEST_TOKENS                             the tokens of a request beside its messages

memci includes the vocabularies, so counting needs no network. The first count loads one, not the import.
"""

from .chat import REQUEST_TOKENS, message_tokens, tools_tokens
from .counter import TokenCounter, counter_for

__all__ = ["REQUEST_TOKENS", "TokenCounter", "counter_for", "message_tokens", "tools_tokens"]
