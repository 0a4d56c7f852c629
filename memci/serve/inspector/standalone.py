"""One conversation as one HTML file, to send or keep: it opens without a server or a network.

The views and their templates are those of the server. A link leads to a place in the file; what is not in it is plain
text, and a list at the end says what that is. A script of its own finds words in the pages; nothing else needs one.
"""

import base64
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from ...errors import InvalidSetting
from ...storage import Storage
from . import markup
from .inspected import InspectedContext
from .views import View, Views

PAGES: Final = 500  # pages in a file, at most: browsers still open it at once
ROOM: Final = 4_000_000
"""stored bytes of the messages in a file, at most, so that it can be mailed; the newest page is always included"""
LETTERS: Final = 200_000  # characters of one text in a file; the file says how many more there are
TURNS: Final = 480  # turns in the picture of the window: columns of two pixels on a wide screen
_NOWHERE: Final = "left-out:"  # the address of what is not in the file: such links become plain text


class Standalone(NamedTuple):
    """A conversation as a file."""

    html: bytes  # the file, UTF-8
    pages: int  # number of pages in it, the newest ones
    left_out: int  # number of older pages that are left out


def standalone(
    storage: Storage,
    id: str,  # noqa: A002
    *,
    turns: Iterable[int] = (),
    memory: bool = False,
    at: float | None = None,
) -> Standalone:
    """Return the context that is stored as *id* as one file. O(what it shows, and log of the others for each page).

    Args:
        storage: The store; it is only read, and nothing counts as use.
        id: What the context is stored as.
        turns: Of which turns the exact request is shown; default: the last.
        memory: Whether the memory of its owner is in the file, which knows the owner's other conversations as well.
        at: When this is, in seconds since 1970: the file says it.

    Raises:
        InvalidSetting: If there is no such context, or no such turn.
        StorageError: If it can't be read.
    """
    context = InspectedContext(storage, id)
    views = Views(storage, only=context, turns=TURNS)
    first = _first_page(context)
    chosen = sorted({*turns}) or [context.last_turn]
    for turn in chosen:
        if not 0 <= turn <= context.last_turn:
            raise InvalidSetting("turn", f"{turn} is not one of its turns, 0 to {context.last_turn}")

    def link(path: str, **query: Any) -> str:
        if path == "/memory":
            return "#memory" if memory and query.get("owner") == context.owner else _NOWHERE
        if query.get("id") != id:
            return _NOWHERE
        if path == "/request":
            return f"#request-{query['turn']}" if query.get("turn") in chosen else _NOWHERE
        if path == "/page":
            return f"#page-{query['n']}" if first <= query["n"] <= context.last_page else _NOWHERE
        return "#window" if path == "/window" and "last" not in query else _NOWHERE

    environment = markup.offline(link, most=LETTERS)

    def drawn(view: View, **more: Any) -> Markup:
        return Markup(environment.get_template(view.template).render(**view.values, **more))  # noqa: S704 -- escaped

    sections = [("window", "Window", drawn(views.window({"id": id})))]
    for turn in chosen:
        word = "Request" if len(chosen) == 1 else f"Request {turn:,}"
        sections.append((f"request-{turn}", word, drawn(views.request({"id": id, "turn": str(turn)}))))
    sections.append(("costs", "Cost", drawn(views.costs({"id": id}))))
    if memory:
        sections.append(("memory", "Memory", drawn(views.memory({"owner": context.owner}))))
    pages = []
    for page in [*context.pages(first=first)][::-1]:
        query = {"id": id, "n": str(page.index)}
        view = views.page(query)
        text = drawn(view, anchor=f"page-{page.index}-")
        pages.append((page, view.values["title"], text, views.raw(query)))
    inline = {"style": Markup(markup.asset("inspector.css")), "script": Markup(markup.asset("file.js"))}  # noqa: S704 -- its own
    values = {"context": context, "turns": chosen, "sections": sections, "pages": pages, "first": first}
    values |= {"memory": memory, "columns": TURNS, "letters": LETTERS, "at": at, "digest": _digest}
    whole = environment.get_template("standalone.html").render(**inline, **values)
    whole = whole.replace(f' href="{_NOWHERE}"', "")  # no text of others holds these quotes: they are escaped
    return Standalone(whole.encode("utf-8", "backslashreplace"), len(pages), first - 1)


def _digest(text: str) -> str:
    """Return the digest by which a content security policy allows *text* in a file."""
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def _first_page(context: InspectedContext) -> int:
    """Return the index of the oldest page that fits. O(messages of the pages shown)."""
    room, first = ROOM, context.last_page + 1
    for index in range(context.last_page, max(0, context.last_page - PAGES), -1):
        room -= sum(len(entry.body) for entry in context.rows_of(context.row(index)))
        if room < 0 and first <= context.last_page:
            break
        first = index
    return first
