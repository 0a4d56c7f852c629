"""What `memci serve` is: the gateway, run by uvicorn.

    $ memci serve agents.db --upstream https://api.anthropic.com
    $ ANTHROPIC_BASE_URL=http://127.0.0.1:8765 claude

This module knows nothing of what the gateway does.
"""

import json
import logging
import os
from pathlib import Path
from typing import Annotated

from typer import Option

from ..errors import InvalidSetting
from ..storage.opening import is_url
from .app import WINDOW, Int, NewStore, Str, tokens

_IDLE = 75
"""seconds that a connection may be idle: longer than clients keep theirs, so that no request meets one that closes"""
_MISSING = "the gateway needs httpx2, starlette and uvicorn: pip install 'memci[serve]'"


def run_serve(
    store: NewStore,
    *,
    upstream: Annotated[str, Option(metavar="URL", help="The provider's base URL, as the client had it.")],
    port: Annotated[int, Option(min=0, max=65535, help="The port to listen on.")] = 8765,
    host: Annotated[str, Option(metavar="NAME", help="Where to listen; elsewhere a token is needed.")] = "127.0.0.1",
    allow_host: Annotated[list[str] | None, Option(metavar="NAME", help="A name by which clients call it.")] = None,
    token: Annotated[
        Str, Option(metavar="TEXT", envvar="MEMCI_GATEWAY_TOKEN", help="What clients send as x-memci-token.")
    ] = None,
    window: Annotated[Int, tokens(*WINDOW, help="The context length; default: the model's.")] = None,
    model: Annotated[Str, Option(metavar="NAME", help="Whose rules count tokens; default: that asked first.")] = None,
    preset: Annotated[Str, Option(metavar="NAME", help="balanced, economy, verbatim or original.")] = None,
    format: Annotated[  # noqa: A002
        list[str] | None, Option(metavar="NAME", help="A format that is read; default: all. Others are passed on.")
    ] = None,
    workers: Annotated[int, Option(min=1, help="How many processes serve the store.")] = 1,
) -> None:
    """Keep the windows of agents whose code is not yours: a gateway. It stands between them and their provider."""
    try:
        from ..serve.door import LOOPBACK
        from ..serve.gateway import ENVIRONMENT, from_environment
        from .listening import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"httpx2", "starlette", "uvicorn"}:
            raise
        raise InvalidSetting("serve", _MISSING) from None
    if host not in LOOPBACK and not token:
        raise InvalidSetting("--host", f"{host!r:.60} is more than this machine: set a token, which clients must send")
    given = {"upstream": upstream, "window": window, "model": model, "token": token, "preset": preset}
    hosts = [*(allow_host or ()), host]
    arguments = {**given, "store": _absolute(store), "hosts": hosts, **({"formats": format} if format else {})}
    os.environ[ENVIRONMENT] = json.dumps(arguments)
    from_environment()  # what is wrong is said before anything listens
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # its lines name addresses, which may hold keys
    application = f"{from_environment.__module__}:{from_environment.__name__}"
    options = {"factory": True, "workers": workers, "timeout_keep_alive": _IDLE, "date_header": False}
    serve(application, host, port, f" ──▶ {upstream}", **options)


def _absolute(store: str) -> str:
    """Return the path of *store* from the root; a / at its end stays, which means a folder. A URL stays."""
    if is_url(store):
        return store
    return str(Path(store).absolute()) + ("/" if store.endswith("/") else "")
