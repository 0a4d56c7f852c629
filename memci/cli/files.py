"""What `memci files` does: it writes the pages of a store as a tree of texts, once or as long as it runs.

$ memci files agent.db pages --context alice
$ memci files agent.db pages --watch

This module knows nothing of what a page's file holds.
"""

import time
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ..errors import InvalidSetting
from .app import CONTEXT, Json, Store, Str
from .output import Output, many, terminal
from .stores import choose_context, open_store

if TYPE_CHECKING:
    from ..serve.page_files import Written

WATCH_SECONDS = 1.0
"""how long a watcher waits between two looks"""


def run_files(
    store: Store,
    folder: Annotated[str, Argument(metavar="FOLDER", help="A new folder, or one that this command has written.")],
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Only this context.")] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="Only the contexts of this owner.")] = None,
    watch: Annotated[bool, Option("--watch", help="Go on until Ctrl-C: write what changes, as it changes.")] = False,
    json: Json = False,
) -> bool:
    """Write the pages as files that coding agents search. The store is only read."""
    from ..serve.page_files import PageFiles

    output = terminal(json=json)
    if watch and json:
        raise InvalidSetting("--json", "prints one object at the end, and --watch has no end: leave one of them out")
    with open_store(store) as storage:
        if context is not None:
            context = choose_context(storage, store, context, owner).id
        with closing(PageFiles(storage, folder, owner=owner, context=context)) as files, suppress(KeyboardInterrupt):
            if not watch:
                _print(output, folder, written := files.update())
                return not written.problems
            for written in files.updates(partial(time.sleep, WATCH_SECONDS)):
                _print(output, folder, written)
    return True


def _print(output: Output, folder: str, done: "Written") -> None:
    if output.json:
        output.print_json({"folder": folder, **done._asdict()})
        return
    figures = f"{many(done.contexts, 'context')}, {many(done.pages, 'page')}"
    output.line(f"{folder}: {figures}, {done.written:,} written, {done.removed:,} removed")
    for problem in done.problems:
        output.line(f"✗ {problem}", "red")
