"""Keys from the environment, for stores that are named by a path or a URL.

    MEMCI_KEY            the key: 64 hexadecimal digits; or several, of which the first one encrypts
    MEMCI_KEY_FILE       a file that holds them

Nothing is run to get a key: MEMCI_KEY=$(pass show memci) does that. This module knows nothing of what keys are for.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...errors import InvalidSetting

_VALUE: Final = "MEMCI_KEY"
_FILE: Final = "MEMCI_KEY_FILE"


def keys_of_environment() -> Sequence[bytes] | None:
    """Return the keys that the environment names, None if it names none.

    Raises:
        InvalidSetting: If it names them in two ways, if they can't be read, or if they are no keys.
    """
    value, path = os.environ.get(_VALUE), os.environ.get(_FILE)
    if not value and not path:
        return None
    if value and path:
        raise InvalidSetting(_FILE, f"{_VALUE} is set, too: set one of them")
    name = _FILE if path else _VALUE
    try:
        words = (Path(path).read_text("ascii") if path else value or "").split()
    except (OSError, ValueError) as error:
        raise InvalidSetting(name, f"the key can't be read: {type(error).__name__}") from None
    if not words or any(len(word) != 64 or not set(word) <= set("0123456789abcdefABCDEF") for word in words):
        raise InvalidSetting(name, "expected 64 hexadecimal digits, as from secrets.token_hex(32)")
    return [bytes.fromhex(word) for word in words]
