"""A socket that a command listens at, and the address that it prints.

    with listening("127.0.0.1", 8765) as place:
        address("127.0.0.1", place)                  http://127.0.0.1:8765

This module knows nothing of what is served.
"""

import socket

from ..errors import InvalidSetting

_BACKLOG = 1_024


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at *host*, whose connections send small parts of a stream at once.

    Raises:
        InvalidSetting: If it can't.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        raise InvalidSetting("--port", f"{host!r:.60} can't be listened at on port {port}: {error.strerror}") from None
    return found


def address(host: str, place: socket.socket) -> str:
    """Return the address of *place*, which listens at *host*, as a browser takes it."""
    return f"http://{f'[{host}]' if ':' in host else host}:{place.getsockname()[1]}"
