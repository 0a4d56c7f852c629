"""Memory: what the window forgets is kept here, warmed by use, and found again.

    observe(page)  ──▶  searchable          admit(page)  ──▶  short-term ──▶  episodes ──▶  what is known
    search(query)  ──▶  Recollection

`memci.memory.backend` is the protocol, all that a context knows of it; `TieredMemory` is the backend that is made when
none is passed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend import MemoryBackend, NullMemory, PageRecord, Recollection
    from .tiered_memory import TieredMemory

__all__ = ["MemoryBackend", "NullMemory", "PageRecord", "Recollection", "TieredMemory"]


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is asked for: numpy takes longer than the rest of memci."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name != "TieredMemory":
        from . import backend

        return getattr(backend, name)
    from .tiered_memory import TieredMemory

    return TieredMemory
