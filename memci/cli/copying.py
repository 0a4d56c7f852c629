"""What `memci copy` does: all contexts of one store go to another one.

    $ memci copy agents.db postgresql://ada@db.example/agents
    412 contexts copied, 3 were there already
    $ MEMCI_KEY_FILE=key memci copy agents.db sealed.db             the copy is encrypted; --decrypt goes back

This module knows nothing of how a context is copied.
"""

from typing import Annotated

from typer import Option

from ..errors import InvalidSetting
from ..history.copying import copied
from .app import Json, NewStore, Store
from .output import many, terminal
from .stores import open_store


def run_copy(
    source: Store,
    target: NewStore,
    *,
    decrypt: Annotated[bool, Option("--decrypt", help="Do not encrypt the copy, although there is a key.")] = False,
    json: Json = False,
) -> None:
    """Copy all contexts of a store to another one, exactly. After an interruption, run it again."""
    output = terminal(json=json)
    if source == target:
        raise InvalidSetting("target", "name another store than the one that is copied")
    new = old = messages = 0
    renamed: dict[str, str] = {}
    with open_store(source) as storage, open_store(target, write=True, make=True, plain=decrypt) as into:
        sizes = {record.id: record.head for record in storage.contexts()}
        with output.progress("messages", sizes) as done:
            for each in copied(storage, into):
                new, old = new + each.new, old + (not each.new)
                messages += each.messages if each.new else 0
                renamed |= {each.id: each.stored} if each.stored != each.id else {}
                done(each.id, each.messages)
    if output.json:
        figures = {"copied": new, "there": old, "messages": messages, "renamed": renamed}
        output.print_json({"source": source, "target": target, **figures})
        return
    there = f", {many(old, 'context')} there already" if old else ""
    output.line(f"{many(new, 'context')} with {many(messages, 'message')} copied{there}")
    for name, stored in renamed.items():
        output.line(f"  {name} is {stored} there, where another owner has a context {name}")
