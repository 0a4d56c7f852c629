"""Plain copies of the messages of each context, one line each, for an editor, grep and git.

    contexts/0f3a….jsonl     {"context":"alice","base":0}
                             {"seq":0,"page":1,"at":"2031-05-01T09:30:00+00:00","message":{"role":"user","content":"Hi"}}

The store never reads a copy. New lines are added if the copy ends with the message before them; otherwise the copy is
written again. Links are not followed: a link, a pipe or another user's file in place of a copy is refused.
"""

import os
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import orjson

from .files import Files, append

CONTEXTS: Final = "contexts"
_CHUNK: Final = 4096


def copy_of(context: str) -> str:
    """Return the path of the copy of *context*: a digest of its id, so any id is valid and unique."""
    return f"{CONTEXTS}/{blake2b(context.encode(), digest_size=16).hexdigest()}.jsonl"


class Copies:
    """The copies among *files*. Each method raises a StorageError if the disk is full, or a file is not ours."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def append(self, context: str, first: int, lines: Iterable[bytes]) -> bool:
        """Add *lines*, from seq *first* on, if the copy ends before *first*; return whether it does. O(bytes).

        Otherwise the copy is not changed.
        """
        try:
            with self._files.opened(copy_of(context), os.O_RDWR | os.O_APPEND) as file:
                if _end(file) != first:
                    return False
                append(file, b"".join(lines))
        except FileNotFoundError:
            return False
        return True

    def write(self, context: str, lines: Iterable[bytes]) -> None:
        """Write the copy of *context* with *lines*. O(bytes)."""
        self._files.make_folder(CONTEXTS)
        self._files.write(copy_of(context), lines, lasts=False)

    def remove(self, contexts: Iterable[str]) -> None:
        """Remove the copies of *contexts* and sync, so that no power cut brings one back."""
        for path in map(copy_of, contexts):
            self._files.remove(path)
            self._files.remove(path.replace("/", "/.") + ".tmp")
        if self._files.names(CONTEXTS, hidden=True):
            self._files.sync(CONTEXTS)


def _end(file: int) -> int | None:
    """Return the seq after the last line of a copy, None if that line is not whole. O(bytes of the line)."""
    end, size, tail = os.fstat(file).st_size, _CHUNK, b""
    while b"\n" not in tail[:-1] and len(tail) < end:
        tail = os.pread(file, size, max(0, end - size))
        size *= 2
    try:
        fields = orjson.loads(tail.splitlines()[-1])
        found = fields["seq"] + 1 if "seq" in fields else fields["base"]
    except (ValueError, TypeError, KeyError, IndexError):
        return None
    return found if tail.endswith(b"\n") and isinstance(found, int) else None
