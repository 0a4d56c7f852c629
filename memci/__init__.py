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

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .errors import BudgetExceeded, InvalidMessage, MemciError, OpenToolGroup, PageNotFound, StorageError

if TYPE_CHECKING:
    from .chapters.active import ActiveChapter
    from .chapters.chapter import Chapter, Entry, Page
    from .chapters.contents import ArchiveChapter, ContentsPage
    from .chapters.messagelist import MessageList, MessageNode
    from .chapters.unload import NeverRecalled, Stale
    from .context.async_context import AsyncContext
    from .context.context import Context
    from .context.report import Receipt, Report
    from .history.events import Event
    from .model_catalog import CachePricing
    from .segments.common import CommonSegment
    from .segments.system import SystemSegment
    from .settings import Policy
    from .storage import EphemeralStorage, SQLiteStorage

__version__ = "0.2.0"

__all__ = [
    "ActiveChapter",
    "ArchiveChapter",
    "AsyncContext",
    "BudgetExceeded",
    "CachePricing",
    "Chapter",
    "CommonSegment",
    "ContentsPage",
    "Context",
    "Entry",
    "EphemeralStorage",
    "Event",
    "InvalidMessage",
    "MemciError",
    "MessageList",
    "MessageNode",
    "NeverRecalled",
    "OpenToolGroup",
    "Page",
    "PageNotFound",
    "Policy",
    "Receipt",
    "Report",
    "SQLiteStorage",
    "Stale",
    "StorageError",
    "SystemSegment",
]

_LATER: Final = {
    "ActiveChapter": "chapters.active",
    "ArchiveChapter": "chapters.contents",
    "AsyncContext": "context.async_context",
    "CachePricing": "model_catalog",
    "Chapter": "chapters.chapter",
    "CommonSegment": "segments.common",
    "ContentsPage": "chapters.contents",
    "Context": "context.context",
    "Entry": "chapters.chapter",
    "EphemeralStorage": "storage",
    "Event": "history.events",
    "MessageList": "chapters.messagelist",
    "MessageNode": "chapters.messagelist",
    "NeverRecalled": "chapters.unload",
    "Page": "chapters.chapter",
    "Policy": "settings",
    "Receipt": "context.report",
    "Report": "context.report",
    "SQLiteStorage": "storage",
    "Stale": "chapters.unload",
    "SystemSegment": "segments.system",
}
"""The module of each name that is loaded when it is first asked for: a part of memci is loaded without the rest."""


def __getattr__(name: str) -> Any:
    """Load a public name that `import memci` has not loaded."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    """Return all names of the module, those that are not loaded yet among them."""
    return sorted({*globals(), *_LATER})
