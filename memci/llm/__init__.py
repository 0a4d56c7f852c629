"""Models: chat and embeddings over any OpenAI-compatible server, structured answers, what they cost.

    from memci.llm import Chat, ask

    chat = Chat("gpt-4.1-mini", base_url="http://localhost:11434/v1")    # or OPENAI_BASE_URL, OPENAI_API_KEY
    reply = chat([{"role": "user", "content": "Hi"}])
    title = ask(chat, messages, Title, step="title")                     # a pydantic model, validated

`model` says what a model is to the rest of memci. This package knows nothing of pages, windows or memories.
"""

from typing import TYPE_CHECKING

from .model import ChatModel, Reply, Usage
from .usage import Ledger, Spent

if TYPE_CHECKING:
    from .async_chat import AsyncChat
    from .chat import Chat
    from .embeddings import Embeddings
    from .structured import ask, ask_async
    from .tracing import Call

__all__ = [
    "AsyncChat",
    "Call",
    "Chat",
    "ChatModel",
    "Embeddings",
    "Ledger",
    "Reply",
    "Spent",
    "Usage",
    "ask",
    "ask_async",
]


def __getattr__(name: str) -> object:
    """Load what is first asked for: a context without a model needs none of it."""
    if name in {"ask", "ask_async"}:
        from . import structured as answers

        return answers.ask if name == "ask" else answers.ask_async
    if name == "Chat":
        from .chat import Chat

        return Chat
    if name == "AsyncChat":
        from .async_chat import AsyncChat

        return AsyncChat
    if name == "Embeddings":
        from .embeddings import Embeddings

        return Embeddings
    if name == "Call":
        from .tracing import Call

        return Call
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
