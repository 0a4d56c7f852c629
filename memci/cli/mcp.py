"""What `memci mcp` does: it serves a store to programs that speak the Model Context Protocol.

$ memci mcp agent.db --owner ada
$ memci mcp agent.db --http 8765

This module knows nothing of the protocol.
"""

import secrets
import sys
from contextlib import ExitStack, closing
from typing import Annotated

from typer import Option

from .. import __version__
from ..errors import InvalidSetting
from ..storage import Storage
from .app import CONTEXT, WINDOW, Int, NewStore, Str, tokens
from .stores import open_store


def run_mcp(
    store: NewStore,
    *,
    owner: Annotated[Str, Option(metavar="NAME", help="Only the contexts of this owner.")] = None,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Only this context; calls need not name it.")] = None,
    window: Annotated[Int, tokens(*WINDOW, help="Let append_turn make contexts, of this size.")] = None,
    read_only: Annotated[bool, Option("--read-only", help="Offer no append_turn, and write nothing.")] = False,
    http: Annotated[Int, Option(metavar="PORT", help="Serve over HTTP on 127.0.0.1; default: standard input.")] = None,
    token: Annotated[Str, Option(envvar="MEMCI_TOKEN", help="For --http; default: a new one, printed.")] = None,
) -> None:
    """Serve a store to programs that speak MCP.

    They get the tools recall_page, search_memory, contents, list_contexts and append_turn, and pages as resources.
    """
    try:
        from ..serve.mcp_server import page_server, serve_http
        from ..serve.store_tools import StoreTools
    except ModuleNotFoundError as error:
        raise InvalidSetting("mcp", f"the server of MCP needs {error.name}: pip install 'memci[mcp]'") from error
    if read_only and window is not None:
        raise InvalidSetting("--window", "is for contexts that append_turn makes: leave out --read-only")
    with ExitStack() as stack:

        def opened() -> Storage:
            return stack.enter_context(open_store(store, write=not read_only, make=window is not None))

        tools = StoreTools(opened, owner=owner, context=context, window=window, read_only=read_only)
        server = page_server(stack.enter_context(closing(tools)), version=__version__)
        if http is None:
            server.run("stdio")
            return
        secret = token or secrets.token_urlsafe(24)

        def say(url: str) -> None:
            sys.stderr.write(f"memci: {url}\n" + ("" if token else f"token: {secret}\n"))
            sys.stderr.flush()

        serve_http(server, port=http, token=secret, opened=say)
