"""Memory: keeps the pages that leave the window, derives facts from them, and finds them again.

    observe(page)  ──▶  searchable          admit(page)  ──▶  short-term ──▶  episodes ──▶  facts, profile, graph
    search(query)  ──▶  Recollection

A context uses only the protocol in `memci.memory.backend`. `TieredMemory` is the default backend.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend import MemoryBackend, NullMemory, PageRecord, Recollection
    from .tiered_memory import TieredMemory
    from .tiers.rules import Rules

__all__ = ["MemoryBackend", "NullMemory", "PageRecord", "Recollection", "Rules", "TieredMemory"]


def __getattr__(name: str) -> Any:
    """Import a name on first use: importing numpy takes longer than the rest of memci."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = {"Rules": "tiers.rules", "TieredMemory": "tiered_memory"}.get(name, "backend")
    return getattr(import_module(f".{home}", __name__), name)
