"""Contexts as text: out of one store, into any other, and nothing lost on the way.

    exported(store, "alice")      ──▶  lines of JSON, every byte that is known      ──▶  imported(other, lines)
    exported(…, chat=True)        ──▶  a chat message per line, for other programs
    a chat as other programs have it                                                ──▶  imported_chat(other, …)

What the lines are is told in `lines`. This package knows nothing of files or of how a window is made.
"""

from .export import exported
from .import_ import check_free, committed, imported, transitions
from .lines import is_native
from .plain_chat import Appending, chat_of, imported_chat

__all__ = [
    "Appending",
    "chat_of",
    "check_free",
    "committed",
    "exported",
    "imported",
    "imported_chat",
    "is_native",
    "transitions",
]
