"""Rotating the keys of an encrypted store: the data keys of contexts and of memories are wrapped with a new key.

Messages are not encrypted again: data keys stay the same.
"""

from contextlib import closing

from ..errors import InvalidSetting
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.protocol import KeyedStorage
from ..storage.validation import has_memory


@checked
def rotate(store: Storage) -> int:
    """Wrap each data key of *store* with the first of its keys; return how many had been wrapped with another key.

    Each data key is committed by itself. A handle that has the context open must `refresh()` before it writes. After an
    interruption or an error, call it again: keys that were rotated stay so. O(contexts + owners).

    Raises:
        InvalidSetting: If the store is not encrypted.
        KeyMissing: If a key that is needed to unwrap was not given.
    """
    if not isinstance(store, KeyedStorage):
        raise InvalidSetting("store", "it is not encrypted: memci copy makes an encrypted one")
    count = store.rotate()
    if has_memory(store):
        from ..memory.repository.home import tables_of
        from ..memory.repository.store import OwnerKey

        with closing(tables_of(store)) as tables:
            count += sum(OwnerKey(tables, name).rotate() for name in tables.owner_names())
    return count
