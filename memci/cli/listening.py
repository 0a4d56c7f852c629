"""Serving over HTTP: a socket that a command listens at, the address that it prints, and uvicorn, which serves.

    serve(application, "127.0.0.1", 8765)            memci: http://127.0.0.1:8765

This module knows nothing of what is served.
"""

import socket
from typing import Any

import typer
import uvicorn

from ..errors import InvalidSetting

_BACKLOG = 1_024


def serve(application: Any, host: str, port: int, told: str = "", **options: Any) -> None:
    """Serve *application* at *host* until a signal comes. Print its address, with what is *told* behind it."""
    with _listening(host, port) as place:
        shown = f"[{host}]" if ":" in host else host
        typer.echo(f"memci: http://{shown}:{place.getsockname()[1]}{told}", err=True)
        fixed = {"log_level": "warning", "access_log": False, "server_header": False, "ws": "none"}
        uvicorn.run(application, fd=place.fileno(), **{**fixed, **options})


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at *host*, whose connections send small parts of a stream at once."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        raise InvalidSetting("--port", f"{host!r:.60} can't be listened at on port {port}: {error.strerror}") from None
    return found
