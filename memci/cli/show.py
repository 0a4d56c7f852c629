"""What `memci show` prints or writes: one page, each message as it was appended; or a conversation as a file of HTML.

    $ memci show agent.db --context alice --page 12
    alice #12, archived: What does the flight on day 12 cost?
    $ memci show agent.db --context alice -o alice.html
    alice.html: alice, 60 pages, 189,157 bytes

Looking does not count as use. This module knows nothing of how a store keeps what is printed.
"""

import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ..errors import CorruptRecord, InvalidSetting
from ..messages import text_of
from ..rows import ContextRecord
from ..storage import Storage
from .app import CONTEXT, Int, Json, Store, Str
from .output import Output, many, new_file, terminal
from .stores import choose_context, open_store
from .tables import print_messages

if TYPE_CHECKING:
    from ..context.context import Context
    from ..history.reader import PageInfo


def run_show(
    store: Store,
    *,
    page: Annotated[Int, Option("--page", "-p", metavar="N", help="Print the page of this number.")] = None,
    target: Annotated[Str, Option("-o", "--output", metavar="FILE", help="Write a new file of HTML.")] = None,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Of this context; default: the only one.")] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="Of this owner's context.")] = None,
    turn: Annotated[list[int] | None, Option(min=0, metavar="N", help="With -o: the request of this turn.")] = None,
    memory: Annotated[bool, Option("--memory", help="With -o: all that its owner's memory holds, as well.")] = False,
    json: Json = False,
) -> None:
    """Print a page, or write a conversation as one HTML file. Each message is as it was appended. Changes nothing."""
    output = terminal(json=json)
    if (page is None) == (target is None):
        raise InvalidSetting("show", "say which page to print, by --page N, or which file to write, by -o FILE")
    with open_store(store) as storage:
        record = choose_context(storage, store, context, owner=owner)
        if target is not None:
            _write(output, storage, record, target, turns=turn or (), memory=memory)
        elif page is not None:
            _print(output, storage, record, page)


def _print(output: Output, storage: Storage, record: ContextRecord, page: int) -> None:
    from ..context.context import Context

    with Context.view(storage, record.id, owner=record.owner) as seen:
        messages = seen.recall_page(page)
        info = titled(seen, next(each for each in seen.pages() if each.index == page))
    if output.json:
        output.print_json({"context": record.id, "page": asdict(info), "messages": messages})
        return
    output.line(f"{record.id} #{page}, {info.where}: {info.title or 'no text'}\n", "bold")
    print_messages(output, messages)


def _write(
    output: Output, storage: Storage, record: ContextRecord, target: str, *, turns: Iterable[int], memory: bool
) -> None:
    try:
        from ..serve.inspector.standalone import standalone
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"jinja2", "markupsafe"}:
            raise
        raise InvalidSetting("-o", "a file of HTML needs jinja2: pip install 'memci[ui]'") from None
    with new_file(target) as stream:
        made = standalone(storage, record.id, turns=turns, memory=memory, at=time.time())
        stream.write(made.html)
    if output.json:
        figures = {"pages": made.pages, "left_out": made.left_out, "bytes": len(made.html)}
        output.print_json({"file": target, "context": record.id, **figures})
        return
    older = f" ({made.left_out:,} older ones are left out)" if made.left_out else ""
    output.line(f"{target}: {record.id}, {many(made.pages, 'page')}{older}, {len(made.html):,} bytes")


def titled(context: "Context", page: "PageInfo") -> "PageInfo":
    """Return *page* with a title: the text of its first message, if it has no line in the contents. O(messages)."""
    title = page.title
    if title is None and page.where not in {"undone", "erased"}:
        try:
            title = " ".join(text_of(context.recall_page(page.index)[0])[:400].split())
        except CorruptRecord as error:
            title = f"can't be read: {error.reason}"
    return replace(page, title=title)
