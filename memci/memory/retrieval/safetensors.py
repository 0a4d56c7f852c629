"""Reading weights: the safetensors format, as float32 arrays.

    8 bytes: length n │ n bytes of JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}} │ numbers

The file is mapped, not read: float32 weights take memory when they are used, once for all processes. This module knows
nothing of what the numbers mean.
"""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSetting

_TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}
_LONGEST_HEADER = 100_000_000
"""bytes; the format's own bound"""


def read(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the arrays of floating-point numbers in the file, by name; others (positions, masks) are left out.

    Raises:
        InvalidSetting: If it is not a whole file of this format.
    """
    try:
        data = np.memmap(path, np.uint8, "r")
        header, numbers = _opened(data)
        return {name: _array(numbers, entry) for name, entry in header.items() if entry["dtype"] in _TYPES}
    except OSError as error:
        raise InvalidSetting("folder", f"can't read {path.name!r}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidSetting("folder", f"{path.name!r} is not a whole safetensors file: {error}") from error


def _opened(data: NDArray[np.uint8]) -> tuple[dict[str, dict[str, object]], NDArray[np.uint8]]:
    size = int.from_bytes(bytes(data[:8]), "little")
    if not 2 <= size <= min(_LONGEST_HEADER, len(data) - 8):
        raise ValueError(f"a header of {size:,} bytes")
    header = json.loads(bytes(data[8 : 8 + size]))
    header.pop("__metadata__", None)
    return header, data[8 + size :]


def _array(numbers: NDArray[np.uint8], entry: dict[str, object]) -> NDArray[np.float32]:
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not isinstance(offsets, list):
        raise TypeError("a shape or offsets that are no list")
    begin, end = offsets
    stored = np.dtype(_TYPES[str(kind)])
    if not 0 <= begin <= end <= len(numbers):
        raise ValueError(f"numbers from {begin:,} to {end:,} of {len(numbers):,}")
    array = numbers[begin:end].view(stored).reshape(shape)
    if kind == "BF16":  # the upper half of a float32
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array.astype(np.float32, copy=False)
