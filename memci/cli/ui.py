"""What `memci ui` is: the inspector, run by uvicorn.

    $ memci ui agents.db
    memci: http://127.0.0.1:8766

This module knows nothing of what the inspector shows.
"""

import secrets
from contextlib import suppress
from typing import Annotated

from typer import Option

from ..errors import CorruptRecord, InvalidSetting
from .app import Store, Str
from .stores import open_store

MISSING = "the inspector needs jinja2, starlette and uvicorn: pip install 'memci[ui]'"


def run_ui(
    store: Store,
    *,
    port: Annotated[int, Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8766,
    host: Annotated[str, Option(metavar="NAME", help="Where to listen; elsewhere a token is asked for.")] = "127.0.0.1",
    allow_host: Annotated[list[str] | None, Option(metavar="NAME", help="A name by which browsers call it.")] = None,
    token: Annotated[
        Str, Option(metavar="TEXT", envvar="MEMCI_UI_TOKEN", help="What a browser must give; default with --host: new.")
    ] = None,
) -> None:
    """Look inside a store with a browser. It shows what the model saw at a turn, and why. Changes nothing."""
    try:
        from ..serve.door import LOOPBACK
        from ..serve.inspector.application import app
        from .listening import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"jinja2", "markupsafe", "starlette", "uvicorn"}:
            raise
        raise InvalidSetting("ui", MISSING) from None
    with open_store(store) as storage, suppress(CorruptRecord):  # what is wrong is said before anything listens
        for record in storage.contexts(limit=1):
            record.read_settings()
    secret = token or (None if host in LOOPBACK else secrets.token_urlsafe(24))
    application = app(store, token=secret, hosts=[*(allow_host or ()), host])
    serve(application, host, port, f"\ntoken: {secret}" if secret and not token else "")
