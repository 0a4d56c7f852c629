"""What `memci show` prints: one page, each message as it was appended.

    $ memci show agent.db --context alice --page 12
    alice #12, archived: What does the flight on day 12 cost?

Looking does not count as use. This module knows nothing of how a store keeps what is printed.
"""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ..errors import CorruptRecord
from ..messages import text_of
from .app import CONTEXT, Json, Store, Str, command
from .output import terminal
from .stores import choose_context, open_store
from .tables import print_messages

if TYPE_CHECKING:
    from ..context.context import Context
    from ..history.reader import PageInfo


@command("show")
def run_show(
    store: Store,
    *,
    page: Annotated[int, Option("--page", "-p", metavar="N", help="The number of the page.")],
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Of this context; default: the only one.")] = None,
    json: Json = False,
) -> None:
    """Print a page, each message as it was appended. Changes nothing."""
    from ..context.context import Context

    output = terminal(json=json)
    with open_store(store) as storage:
        record = choose_context(storage, store, context)
        name = record.id
        with Context.view(storage, name, owner=record.owner) as seen:
            messages = seen.recall_page(page)
            info = titled(seen, next(each for each in seen.pages() if each.index == page))
    if output.json:
        output.print_json({"context": name, "page": asdict(info), "messages": messages})
        return
    output.line(f"{name} #{page}, {info.where}: {info.title or 'no text'}\n", "bold")
    print_messages(output, messages)


def titled(context: "Context", page: "PageInfo") -> "PageInfo":
    """Return *page* with a title: the text of its first message, if it has no line in the contents. O(messages)."""
    title = page.title
    if title is None and page.where not in {"undone", "erased"}:
        try:
            title = " ".join(text_of(context.recall_page(page.index)[0])[:400].split())
        except CorruptRecord as error:
            title = f"can't be read: {error.reason}"
    return replace(page, title=title)
