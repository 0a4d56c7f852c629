"""Base class for wrappers of stores: calls that are not overridden go to the inner store.

A wrapper has an optional protocol (`memci.storage.protocol`) if the inner store has it.
"""

from typing import TYPE_CHECKING, Any, Final

from .protocol import Storage

_METHODS: Final = frozenset(name for name in vars(Storage) if not name.startswith("_"))
_CAPABILITIES: Final = ("audit_log", "damage", "database", "sidecar", "keys", "rotate")


class StorageAround:
    """A store with the methods of *storage*; subclasses override some of them."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        for name in (*_METHODS, *_CAPABILITIES):
            if hasattr(storage, name) and not hasattr(type(self), name):
                setattr(self, name, getattr(storage, name))
