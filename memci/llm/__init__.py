"""Models: chat and embeddings over any OpenAI-compatible server, typed answers, and their costs.

    from memci.llm import Chat, ask

    chat = Chat("gpt-4.1-mini", base_url="http://localhost:11434/v1")    # or OPENAI_BASE_URL, OPENAI_API_KEY
    reply = chat([{"role": "user", "content": "Hi"}])
    title = ask(chat, messages, Title, step="title")                     # a pydantic model, validated

The module `model` defines the protocol of a chat model, which a function of your own can follow as well.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .model import Call, ChatModel, Reply, Usage
from .usage import Ledger, Spent

if TYPE_CHECKING:
    from .chat import Chat
    from .embeddings import Embeddings
    from .endpoint import EndpointOptions
    from .structured import ask

__all__ = ["Call", "Chat", "ChatModel", "Embeddings", "EndpointOptions", "Ledger", "Reply", "Spent", "Usage", "ask"]

_LATER = {"Chat": ".chat", "Embeddings": ".embeddings", "EndpointOptions": ".endpoint", "ask": ".structured"}


def __getattr__(name: str) -> object:
    """Load names on first use: a context without a model does not need them."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name], __name__), name)
