"""Files that a command reads or writes: conversations, keys, new files.

A file that can't be read or is of another kind raises an error of one sentence that names it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..errors import InvalidSetting, StorageFull

if TYPE_CHECKING:
    from ..history.plain_chat import PlainChat

_SIGNATURES = {
    b"SQLite format 3\0": "a SQLite file, not a conversation: if it is a store, look at it with memci inspect",
    b"\x1f\x8b": "compressed: unpack it first",
    b"PK\x03\x04": "a zip archive: unpack it first",
    b"%PDF": "a PDF, not a conversation in JSON",
}


class Source:
    """The text of *file*; "-" is standard input, which is kept in memory, as it can be read only once."""

    def __init__(self, file: str) -> None:
        self.name = "standard input" if file == "-" else Path(file).name
        self._file = file
        self._kept = sys.stdin.buffer.read() if file == "-" else None

    def lines(self) -> Iterator[str]:
        """Yield its lines, from the first one on. O(characters)."""
        try:
            with Path(self._file).open("rb") if self._kept is None else BytesIO(self._kept) as stream:
                for number, line in enumerate(stream, 1):
                    yield self._decode(number, line)
        except InvalidSetting:
            raise
        except FileNotFoundError:
            raise InvalidSetting(self._file, "there is no such file: check the path") from None
        except IsADirectoryError:
            raise InvalidSetting(self._file, "is a folder: name one file in it") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise InvalidSetting(self._file, f"can't be read: {reason}") from None

    def is_export(self) -> bool:
        """Return whether memci export wrote it."""
        from ..history.export_format import is_native

        first = next((line for line in self.lines() if line.strip()), None)
        if first is None:
            raise InvalidSetting(self.name, "it is empty: expected what memci export wrote, or a chat in JSON")
        return is_native(first)

    def _decode(self, number: int, line: bytes) -> str:
        kind = next((kind for signature, kind in _SIGNATURES.items() if line.startswith(signature)), None)
        if number == 1 and kind is not None:
            raise InvalidSetting(self.name, f"is {kind}")
        try:
            return line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            found = f"line {number:,}, byte {error.start:,} is 0x{line[error.start]:02x}"
            raise InvalidSetting(self.name, f"is not text in UTF-8 ({found}): save it as UTF-8") from None


def read_conversation(source: Source) -> "PlainChat":
    """Return the conversations in *source*, joined: those of an export, or of chats. O(characters), all in memory."""
    from ..history.export import export_lines
    from ..history.import_ import commit_import, read_transitions
    from ..history.plain_chat import read_chat
    from ..storage import EphemeralStorage

    if not source.is_export():
        return read_chat(source.lines(), source.name)
    scratch = EphemeralStorage()
    ids = [commit_import(scratch, each) for each in read_transitions(source.lines())]
    return read_chat((line for each in ids for line in export_lines(scratch, each, chat=True)), source.name)


def read_key(file: str | None) -> bytes | None:
    """Return the bytes of *file*, None if no file is named."""
    try:
        return None if file is None else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidSetting("--key", f"{file!r} can't be read: {error}") from None


@contextmanager
def new_file(target: str) -> Iterator[BinaryIO]:
    """Yield the new file *target*, which only its owner may read. If writing fails, it is removed."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except FileExistsError:
        raise InvalidSetting(target, "is there already, and is unchanged: name a new file") from None
    except (OSError, ValueError) as error:
        raise InvalidSetting(target, f"can't be made: {error}") from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException as error:
        with suppress(OSError):
            Path(target).unlink()
        if isinstance(error, OSError) and not hasattr(error, "retryable"):
            raise StorageFull(f"{target!r} can't be written: {error}") from error
        raise
