"""Commands that serve a store until a signal comes: `memci serve`, `memci mcp` and `memci ui`."""

import json
import os
import secrets
import socket
from contextlib import ExitStack, closing, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from ..errors import CorruptRecord, InvalidSetting
from ..storage import Storage
from ..storage.opening import is_url
from .options import CONTEXT, WINDOW, Int, Names, NewStore, Preset, Store, Str, needs_extra, tokens
from .stores import open_store

_IDLE = 75
"""seconds that a connection may be idle: longer than clients keep theirs, so that no request meets one that closes"""
_BACKLOG = 1_024  # connections that wait to be accepted: those of a thousand agents that begin at once
_TOKEN_BYTES = 24  # of a new token: 192 random bits can't be guessed
Port = Annotated[int, Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")]
Host = Annotated[str, Option(metavar="NAME", help="Address to listen at; outside this machine it needs a token.")]
AllowHost = Annotated[Names, Option(metavar="NAME", help="A name by which programs and browsers call it.")]


def run_serve(
    store: NewStore,
    *,
    upstream: Annotated[str, Option(metavar="URL", help="The provider's base URL, as the clients used it before.")],
    port: Port = 8765,
    host: Host = "127.0.0.1",
    allow_host: AllowHost = None,
    token: Annotated[
        Str, Option(metavar="TEXT", envvar="MEMCI_GATEWAY_TOKEN", help="What clients send as x-memci-token.")
    ] = None,
    identity: Annotated[
        Str, Option(metavar="WHAT", help="Who shares a memory: header:NAME, field:NAME or credential; default: nobody.")
    ] = None,
    credential: Annotated[Names, Option(metavar="NAME", help="A header or query field that is a credential.")] = None,
    window: Annotated[Int, tokens(*WINDOW, help="The context length; default: the model's.")] = None,
    model: Annotated[
        Str, Option(metavar="NAME", help="Count tokens for this model; default: the first one asked for.")
    ] = None,
    preset: Preset = None,
    format: Annotated[  # noqa: A002
        Names, Option(metavar="NAME", help="A format to manage; default: all. Others pass through.")
    ] = None,
    workers: Annotated[int, Option(min=1, help="How many processes serve the store.")] = 1,
) -> None:
    """Keep the windows of agents whose code is not yours: a gateway. It stands between them and their provider."""
    with needs_extra("serve"):
        import uvicorn  # noqa: F401 -- _listen needs it

        from ..serve.door import LOOPBACK
        from ..serve.gateway import ENVIRONMENT, from_environment
    if host not in LOOPBACK and not token:
        raise InvalidSetting("--host", f"{host!r:.60} is open to other machines: set a token, which clients must send")
    given: dict[str, Any] = {"upstream": upstream, "window": window, "model": model, "token": token, "preset": preset}
    given |= {"identity": identity, "credentials": credential or ()}
    hosts = [*(allow_host or ()), host]
    arguments = {**given, "store": _absolute(store), "hosts": hosts, **({"formats": format} if format else {})}
    os.environ[ENVIRONMENT] = json.dumps(arguments)
    with open_store(store, write=True, make=True):  # what is wrong is said before anything listens
        told = from_environment().state.identity
    application = f"{from_environment.__module__}:{from_environment.__name__}"
    options = {"factory": True, "workers": workers, "timeout_keep_alive": _IDLE, "date_header": False}
    _listen(application, host, port, f" ──▶ {upstream}\n{told}", **options)


def run_mcp(
    store: NewStore,
    *,
    owner: Annotated[Str, Option(metavar="NAME", help="Only the contexts of this owner.")] = None,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Only this context; calls need not name it.")] = None,
    window: Annotated[Int, tokens(*WINDOW, help="Let append_turn make contexts, of this size.")] = None,
    read_only: Annotated[bool, Option("--read-only", help="Offer no append_turn, and write nothing.")] = False,
    http: Annotated[Int, Option(metavar="PORT", help="Serve over HTTP on 127.0.0.1; default: standard input.")] = None,
    token: Annotated[
        Str, Option(envvar="MEMCI_TOKEN", help="Token for --http; default: a new one, which is printed.")
    ] = None,
) -> None:
    """Serve a store to programs that speak MCP.

    They get the tools recall_page, search_memory, contents, list_contexts and append_turn, and pages as resources.
    """
    with needs_extra("mcp"):
        from ..serve.mcp_server import http_app, page_server
        from ..serve.store_tools import StoreTools
    if read_only and window is not None:
        raise InvalidSetting("--window", "is for contexts that append_turn makes: leave out --read-only")
    with ExitStack() as stack:

        def open_again() -> Storage:
            return stack.enter_context(open_store(store, write=not read_only, make=window is not None))

        tools = StoreTools(open_again, owner=owner, context=context, window=window, read_only=read_only)
        server = page_server(stack.enter_context(closing(tools)), version=version("memci"))
        if http is None:
            server.run("stdio")
            return
        secret = token or secrets.token_urlsafe(_TOKEN_BYTES)
        behind = "/mcp" if token else f"/mcp\ntoken: {secret}"
        _listen(http_app(server, token=secret), "127.0.0.1", http, behind)


def run_ui(
    store: Store,
    *,
    port: Port = 8766,
    host: Host = "127.0.0.1",
    allow_host: AllowHost = None,
    token: Annotated[
        Str, Option(envvar="MEMCI_UI_TOKEN", help="Token that browsers give; default with --host: a new one.")
    ] = None,
) -> None:
    """Look inside a store with a browser. It shows what the model saw at a turn, and why. Changes nothing."""
    with needs_extra("ui"):
        import uvicorn  # noqa: F401 -- _listen needs it

        from ..serve.door import LOOPBACK
        from ..serve.inspector.application import app
    with open_store(store) as storage, suppress(CorruptRecord):  # what is wrong is said before anything listens
        for record in storage.contexts(limit=1):
            record.read_settings()
    secret = token or (None if host in LOOPBACK else secrets.token_urlsafe(_TOKEN_BYTES))
    application = app(store, token=secret, hosts=[*(allow_host or ()), host])
    _listen(application, host, port, f"\ntoken: {secret}" if secret and not token else "")


def _listen(application: Any, host: str, port: int, behind: str, **options: Any) -> None:
    """Serve *application* at *host* until a signal comes. Print its address, with the text *behind* it."""
    import uvicorn

    from ..serve.connection import Connection

    with _socket(host, port) as place:
        shown = f"[{host}]" if ":" in host else host
        typer.echo(f"memci: http://{shown}:{place.getsockname()[1]}{behind}", err=True)
        fixed = {"log_level": "warning", "access_log": False, "server_header": False, "http": Connection, "ws": "none"}
        uvicorn.run(application, fd=place.fileno(), **{**fixed, **options})


def _socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at *host*, whose connections send small parts of a stream at once."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        found.close()
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidSetting("--port", f"{host!r:.60} can't be opened on port {port}: {reason}") from None
    return found


def _absolute(store: str) -> str:
    """Return the path of *store* from the root; a / at its end stays, which means a folder. A URL stays."""
    if is_url(store):
        return store
    return str(Path(store).absolute()) + ("/" if store.endswith("/") else "")
