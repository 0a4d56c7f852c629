"""What the tests of plain files share: whole stores, and lines to find or spoil. It tests nothing."""

from pathlib import Path

from memci.storage import FilesystemStorage
from memci.storage.filesystem.context_file import folder_name
from memci.storage.protocol import OpRow, PageRow, PageState
from memci.testing.storage.rows import appended, called, current


class Killed(BaseException):
    """The process ends here."""


def line_of(path: Path, context: str, seq: int) -> tuple[Path, bytes]:
    """The file, and the line in it, that holds an entry."""
    for file in (path / "contexts" / folder_name(context)).rglob("*.jsonl"):
        for line in file.read_bytes().split(b"\n"):
            if b'","seq":%d,' % seq in line:
                return file, line
    raise AssertionError(f"no entry {seq}")


def flip(path: Path, context: str, seq: int) -> None:
    file, line = line_of(path, context, seq)
    file.write_bytes(file.read_bytes().replace(line, line[:-3] + bytes([line[-3] ^ 1]) + line[-2:]))


def everything(storage: FilesystemStorage, *contexts: str) -> list[object]:
    reads = (storage.load, storage.revision)
    lists = (storage.entries, storage.pages, storage.compactions, storage.ops, storage.calls)
    return [[*(read(each) for read in reads), *(list(read(each)) for read in lists)] for each in contexts]


def fill(storage: FilesystemStorage, context: str, turns: int) -> None:
    """Commit *turns* of three messages each; ops, compactions, views and archived pages come with them."""
    for turn in range(turns):
        record = current(storage, context)
        made = appended(record, *(b'{"content":"%d %d %b"}' % (turn, i, b"word " * 9) for i in range(3)))
        op = OpRow(f"op {turn}", b"d" * 16, record.head, tuple((record.next_page, i) for i in range(3)))
        if turn:
            archived = PageRow(record.next_page - 1, record.head - 3, record.head, turn, PageState.ARCHIVED)
            view = ((record.head - 1, 5, 64),)
            made = made._replace(pages=(archived, *made.pages), views=view, compaction=f'["compaction {turn}"]')
        storage.commit(called(made._replace(op=op), "[]"))


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
