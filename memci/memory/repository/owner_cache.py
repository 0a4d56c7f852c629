"""The cache of owners: keeps the most recently used ones in RAM, up to a number of bytes.

    used: ann, ben, cem, ann     cem 3 MB · ann 5 MB      ben was used longest ago, and is read again on the next use

    size_of([array, {"oslo"}])   bytes of all objects that they refer to: arrays, texts, dicts, each counted once

The owner that was used last always stays.
"""

import gc
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

_OUTSIDE: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""objects that are shared and not counted"""


class OwnerCache:
    """Owners by name, the one used last at the end. Not thread-safe: the caller holds the store's lock.

    Args:
        most: Bytes in total. The owner that was used last stays even if it alone has more.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        self.size = 0
        """bytes of all owners, measured when another owner was used after them"""

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, name: str) -> Any:
        """Return the owner *name* and mark it as used; None if it is not cached. O(1), amortised."""
        if name in self._kept and next(reversed(self._kept)) != name:
            self.add(name, self._kept.pop(name))
        return self._kept.get(name)

    def add(self, name: str, owner: Any) -> None:
        """Add *owner*, which tells its size in bytes, and mark it as used. O(1), amortised."""
        self._settle()
        self._kept[name] = owner

    def drop(self, name: str) -> None:
        """Remove the owner *name*."""
        self._kept.pop(name, None)
        self.size -= self._sizes.pop(name, 0)

    def clear(self) -> None:
        """Remove all owners."""
        self._kept.clear()
        self._sizes.clear()
        self.size = 0

    def _settle(self) -> None:
        """Measure the owner that was used until now, and remove those used longest ago that do not fit beside it."""
        if self._kept:
            name = next(reversed(self._kept))
            size = self._kept[name].size
            self.size += size - self._sizes.get(name, 0)
            self._sizes[name] = size
        while self.size > self._most and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))


def size_of(roots: Iterable[object], *, without: Iterable[object] = ()) -> int:
    """Return the bytes in RAM of *roots* and all that they refer to, except the objects *without*. O(objects)."""
    import numpy as np  # imported when a memory is first used

    seen = {id(each) for each in without}
    size, left = 0, list(roots)
    while left:
        each: Any = left.pop()
        if id(each) in seen or isinstance(each, _OUTSIDE):
            continue
        seen.add(id(each))
        size += sys.getsizeof(each)  # includes the numbers of an array that owns them
        left.extend([each.base] if isinstance(each, np.ndarray) else gc.get_referents(each))
    return size
