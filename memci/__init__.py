"""memci: a context window that never overflows and never loses a message.

    >>> from memci import Context, EphemeralStorage
    >>> context = Context.open(EphemeralStorage(), id="alice", system="You are a travel agent.", window=8_000)
    >>> receipt = context.append_turn("Book me a flight to Oslo.", {"role": "assistant", "content": "When?"})
    >>> [message["role"] for message in context.render("Tomorrow.")]
    ['system', 'user', 'assistant', 'user']
    >>> context.recall_page(1)[0]["content"]
    'Book me a flight to Oslo.'

An agent calls `render` before each call of its model and `append_turn` after it. Recent pages stay verbatim, older ones
are archived and listed, and the model reads any of them again by `recall_page`, byte for byte.
"""

from typing import TYPE_CHECKING, Any

from .chapters.unload import NeverRecalled, Stale
from .context.context import Context
from .context.report import Receipt, Report
from .errors import BudgetExceeded, InvalidMessage, MemciError, OpenToolGroup, PageNotFound, StorageError
from .history.events import Event
from .storage import EphemeralStorage, SQLiteStorage

if TYPE_CHECKING:
    from .context.async_context import AsyncContext

__version__ = "0.1.0"

__all__ = [
    "AsyncContext",
    "BudgetExceeded",
    "Context",
    "EphemeralStorage",
    "Event",
    "InvalidMessage",
    "MemciError",
    "NeverRecalled",
    "OpenToolGroup",
    "PageNotFound",
    "Receipt",
    "Report",
    "SQLiteStorage",
    "Stale",
    "StorageError",
]


def __getattr__(name: str) -> Any:
    """Load `AsyncContext` when it is first asked for: asyncio takes a third of the time of `import memci`."""
    if name == "AsyncContext":
        from .context.async_context import AsyncContext

        return AsyncContext
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
