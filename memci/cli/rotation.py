"""What `memci rotate` does: the keys of an encrypted store are changed.

    $ MEMCI_KEY="NEW OLD" memci rotate agents.db
    412 data keys wrapped with the new key

This module knows nothing of how a data key is wrapped.
"""

from ..history.rotation import rotate
from .app import Json, Store
from .output import many, terminal
from .stores import open_store


def run_rotate(store: Store, *, json: Json = False) -> None:
    """Change the key of an encrypted store.

    All data keys are wrapped with the first key of the environment. No message is encrypted again.
    """
    output = terminal(json=json)
    with open_store(store, write=True) as storage:
        count = rotate(storage)
    if output.json:
        output.print_json({"store": store, "wrapped": count})
        return
    output.line(f"{many(count, 'data key')} wrapped with the new key" if count else "all data keys have the new key")
