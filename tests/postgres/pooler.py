"""A pooler of transactions before a server: Debian's PgBouncer, on a socket in the server's folder.

    with Pooler(server) as pooler:
        pooler.url                  as that of the server, through the pooler

Each transaction may run in another session of the server, and sessions are few. This module knows nothing of stores.
"""

import shutil
import subprocess
import time

import psycopg

from .server import WAIT_SECONDS, _end_with_parent

PORT = 6543
SESSIONS = 3
"""few, so that tests change them all the time"""
_CONFIGURATION = """
[databases]
postgres = host={folder} dbname=postgres user=postgres
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
unix_socket_mode = 0777
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
server_reset_query =
server_login_retry = 0.2
"""


def program():
    """The path of PgBouncer, None if it is not installed."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


class Pooler:
    """PgBouncer before *server*, until the block ends, with so many *sessions* of the server for all clients."""

    def __init__(self, server, *, sessions=SESSIONS):
        self._server, self._sessions = server, sessions
        self.url = f"{server.url}&port={PORT}"

    def __enter__(self):
        path = self._server.folder / "pgbouncer.ini"
        path.write_text(_CONFIGURATION.format(folder=self._server.folder, port=PORT, sessions=self._sessions))
        path.chmod(0o644)
        with (self._server.folder / "pgbouncer.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program(), "--quiet", str(path)],
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 -- it takes no lock
                **self._server.user,
            )
        until = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return self

    def __exit__(self, *_error):
        self._process.kill()
        self._process.wait()
