"""What stays in RAM of the owners of a store: those that were used last, up to a number of bytes.

    used: ann, ben, cem, ann     cem 3 MB · ann 5 MB      ben was used longest ago, and is read again at its next use

    size_of([array, {"oslo"}])   the bytes of all objects that they refer to: arrays, texts, dicts, each counted once

The owner that was used last always stays, however large.
"""

import gc
import sys
from collections import OrderedDict
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, Protocol

_OUTSIDE: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""what all objects of a kind share"""


class Weighed(Protocol):
    """Something whose size in RAM is known."""

    @property
    def size(self) -> int:
        """In bytes."""


class OwnerCache:
    """Owners by name. Not thread-safe: the caller holds the store's lock.

    Args:
        most: Bytes in total, the owner that was used last not counted in if it alone has more.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, Weighed] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self.size = 0
        """bytes of all owners, as of when another one was used after them"""

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, name: str) -> Weighed | None:
        """Return what is kept of the owner *name*, which is used now; None if nothing is. O(1), amortised."""
        if name in self._kept and next(reversed(self._kept)) != name:
            self._settle()
            self._kept.move_to_end(name)
        return self._kept.get(name)

    def add(self, name: str, owner: Weighed) -> None:
        """Keep *owner*, which is used now. O(1), amortised."""
        self._settle()
        self._kept[name] = owner
        self._kept.move_to_end(name)

    def drop(self, name: str) -> None:
        """Keep nothing of the owner *name*."""
        self._kept.pop(name, None)
        self.size -= self._sizes.pop(name, 0)

    def clear(self) -> None:
        """Keep nothing."""
        self._kept.clear()
        self._sizes.clear()
        self.size = 0

    def _settle(self) -> None:
        """Weigh the owner that was used until now, and drop those used longest ago that do not fit beside it."""
        if self._kept:
            name = next(reversed(self._kept))
            size = self._kept[name].size
            self.size += size - self._sizes.get(name, 0)
            self._sizes[name] = size
        while self.size > self._most and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))


def size_of(roots: Iterable[object], *, without: Iterable[object] = ()) -> int:
    """Return the bytes in RAM of *roots* and of all that they refer to, but for what is *without*. O(objects)."""
    import numpy as np  # loaded when a memory is first used

    seen = {id(each) for each in without}
    size, left = 0, list(roots)
    while left:
        each: Any = left.pop()
        if id(each) in seen or isinstance(each, _OUTSIDE):
            continue
        seen.add(id(each))
        size += sys.getsizeof(each)  # of an array, with its numbers, if they are its own
        left.extend([each.base] if isinstance(each, np.ndarray) else gc.get_referents(each))
    return size
