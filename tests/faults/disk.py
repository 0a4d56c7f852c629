"""A disk whose power may fail: what was synced is there, of all else any part.

    log of calls   create  write  write  sync  rename  write ╎ …         cut here ╎
    a file         what was synced; of the writes since then any subset, each torn between sectors of 512 bytes
    a folder       the names as of its last sync; of the changes since then the first few

A file's bytes belong to its inode, its names to the folders, each of which forgets for itself: a file that was synced
is lost if the folder that names it was not. What a sync failed to keep no later one keeps, unless the same page of
memory is written to again. Pessimistic throughout: ext4, for one, keeps more. This module knows nothing of stores.
"""

import os
import random
import struct
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .inode import File

_HEAD = struct.Struct("<cQQII")

Image = dict[str, bytes | None]
"""what is on a disk: bytes by path, None for a folder"""


Names = list[tuple[str, "File | Folder | None"]]


@dataclass(slots=True)
class Folder:
    """An inode with names."""

    names: dict[str, "File | Folder"] = field(default_factory=dict)
    """as they are while the power is on"""
    changes: list[tuple[int, Names]] = field(default_factory=list)
    syncs: list[int] = field(default_factory=list)

    def change(self, at: int, *names: tuple[str, "File | Folder | None"]) -> None:
        """Name, rename, or forget: all of it or nothing."""
        self.changes.append((at, list(names)))
        for name, node in names:
            if node is None:
                del self.names[name]
            else:
                self.names[name] = node

    def survives(self, cut: int, draw: random.Random, under: str = "") -> Iterator[tuple[str, bytes | None]]:
        """Yield what is there after a cut of the power, by path."""
        synced = self.syncs[bisect_left(self.syncs, cut) - 1] if self.syncs and self.syncs[0] < cut else -1
        first = bisect_left(self.changes, synced, key=lambda each: each[0])
        last = bisect_left(self.changes, cut, key=lambda each: each[0])
        kept = draw.choice((first, last, draw.randint(first, last)))
        names: dict[str, File | Folder] = {}
        for _, change in self.changes[:kept]:
            for name, node in change:
                if node is None:
                    del names[name]
                else:
                    names[name] = node
        for name, node in names.items():
            if isinstance(node, Folder):
                yield under + name, None
                yield from node.survives(cut, draw, f"{under}{name}/")
            else:
                yield under + name, node.survives(cut, draw)


class Disk:
    """All that happened to a folder, as `shim.c` logged it."""

    def __init__(self, log: bytes, folder: str) -> None:
        self._root = Folder()
        self._folder = folder
        self._inodes: dict[int, File] = {}
        self.notes: list[tuple[int, str]] = []
        """what the program said, and when"""
        self.end = 0
        """how many calls and notes there are; the power may be cut before each of them"""
        place = 0
        while place < len(log):
            kind, inode, number, one, two = _HEAD.unpack_from(log, place)
            place += _HEAD.size
            first, second = log[place : place + one], log[place + one : place + one + two]
            place += one + two
            self._take(self.end, kind.decode(), inode, number, first, second)
            self.end += 1

    def cut(self, at: int, draw: random.Random) -> Image:
        """Return what is there if the power is cut before call *at*; *draw* decides what it takes."""
        found = self._root.survives(at, draw)
        return {path: content for path, content in found if not path.endswith("-shm")}  # shared memory, not a file

    def first(self, *words: str) -> int | None:
        """Return when the program first said something that begins with one of *words*."""
        return next((at for at, note in self.notes if note.partition(" ")[0] in words), None)

    def _take(self, at: int, kind: str, inode: int, number: int, first: bytes, second: bytes) -> None:
        if kind == "w":
            self._inodes[inode].change(at, number, first)
        elif kind == "t":
            self._inodes[inode].change(at, number, None)
        elif kind == "n":
            self.notes.append((at, first.decode()))
        elif kind in "sf":
            self._sync(at, inode, first.decode(), failed=kind == "f")
        else:
            self._name(at, kind, inode, first.decode(), second.decode())

    def _sync(self, at: int, inode: int, path: str, *, failed: bool) -> None:
        if inode in self._inodes:
            self._inodes[inode].sync(at, failed=failed)
        elif not failed:
            node = self._node(path)
            assert isinstance(node, Folder), f"{path!r} was synced, and is neither a file nor a folder"
            node.syncs.append(at)

    def _name(self, at: int, kind: str, inode: int, path: str, other: str) -> None:
        above, name = self._above(path)
        if kind == "c":
            self._inodes[inode] = File()
            above.change(at, (name, self._inodes[inode]))
        elif kind == "m":
            above.change(at, (name, Folder()))
        elif kind == "u":
            above.change(at, (name, None))
        else:
            beside, new = self._above(other)
            if beside is not above:
                raise NotImplementedError(f"{path!r} was renamed to another folder: {other!r}")
            node = above.names[name]
            above.change(at, *([(name, None)] if kind == "r" else []), (new, node))

    def _above(self, path: str) -> tuple[Folder, str]:
        folder, _, name = path.rpartition("/")
        node = self._node(folder)
        assert isinstance(node, Folder), f"{folder!r} is no folder"
        return node, name

    def _node(self, path: str) -> File | Folder:
        node: File | Folder = self._root
        for name in filter(None, path.removeprefix(self._folder).split("/")):
            assert isinstance(node, Folder), f"{path!r} leads through a file"
            node = node.names[name]
        return node


def first_call(log: bytes) -> tuple[str, str]:
    """Return the kind of the first call of *log*, and the name of its file if it has one (`shim.c`)."""
    kind, _, _, size, _ = _HEAD.unpack_from(log)
    named = kind not in b"wt"
    return kind.decode(), log[_HEAD.size : _HEAD.size + size].decode().rpartition("/")[2] if named else ""


def put(image: Image, folder: Path) -> None:
    """Write *image* into *folder*, which is empty."""
    base = str(folder)
    for path, content in image.items():
        if content is None:
            os.mkdir(f"{base}/{path}")  # noqa: PTH102 -- thousands of times a second
            continue
        file = os.open(f"{base}/{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(file, content)
        os.close(file)


def taken(folder: Path) -> Image:
    """Return what is in *folder*."""
    found = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in found}
