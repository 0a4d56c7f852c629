"""What every store must keep exactly: each field, each byte, each id.

This is the part of `memci.testing.storage.StorageConformance` that is about values; inherit that one.
This module knows nothing of how a store keeps its rows.
"""

from typing import Any

import pytest

from ...errors import InvalidSetting
from ...storage.codec import ORJSON, STDLIB, digest
from ...storage.protocol import ContextRecord, EntryRow, OpRow, PageRow, PageState, Storage, Transition
from .model import ModelledStore
from .rows import Reread, append, appended, current, entry

TWINS = (*"aA%_", "a ", " a", "a\x00", "a_b", "aXb", "a%", "'; --", "ä", "a\u0308", "\U0001f600", "", "x" * 10_000)
"""ids that a careless store takes for one another"""

BODIES = (b"", b"{}", b"\x00", b'"\x00"', b'"\xed\xa0\xbd"', b"9" * 600, b"\xff\xfe", b"x" * 5_000, b"x" * 300_000)
"""bytes that a careless store changes: nothing, NUL, half a surrogate pair, a big integer, no UTF-8, large ones"""


class StorageExactness:
    """What is read is what was committed, whatever was committed."""

    @pytest.fixture
    def pair(self, storage: Storage) -> ModelledStore:
        """Give the empty store beside a model of it."""
        return ModelledStore(storage)

    def test_every_field_comes_back(self, pair: ModelledStore, reread: Reread) -> None:
        """The last record and compaction, entries, bodies and pages come back as they were committed, in order."""
        record = ContextRecord("id", "owner ä", '{"a":1}', '{"b":"\x00"}', head=0, next_page=7, turn=3, open_page=6)
        later = ContextRecord("id", "b", "[1]", "[2]" * 9_000, head=0, next_page=8, turn=9, open_page=None, revision=2)
        rows = (
            EntryRow(0, ORJSON, b"0", digest(ORJSON, b"0"), 0),
            EntryRow(1, STDLIB, b"1", digest(STDLIB, b"1"), 2**31, clip=5, quotes=(3, 4), at="2031-01-01T00:00:00Z"),
            EntryRow(2, ORJSON, b"2", digest(ORJSON, b"2"), 9, quotes=(3, None), at=""),
            EntryRow(3, ORJSON, b"3", digest(ORJSON, b"3"), 9, quotes=(0, 0), at="ü\x00"),
        )
        pages = (
            PageRow(1, 0, 4, 0),
            PageRow(2, 4, None, 1, cut=(0, 9)),
            PageRow(3, 5, 6, 2, PageState.ARCHIVED, (5, 6), 2, 0, 0, 0),
            PageRow(4, 6, 7, 3, PageState.UNLOADED, None, 1, 8, 2**31, 9),
            PageRow(5, 7, 7, 4, PageState.UNDONE),
        )
        pair.commit(Transition(0, record, compaction='{"blocks":["\U0001f600"]}'))
        pair.check()
        pair.commit(Transition(0, later))
        pair.commit(Transition(0, pair.following("a")._replace(head=4), rows))
        pair.append("bodies", b"before", *BODIES, b"after")
        pair.commit(Transition(4, pair.following("a"), pages=pages[::-1]))

        pair.check(reread())
        assert all(type(page.state) is PageState for page in pair.store.pages("a"))

    def test_contexts_with_like_ids_are_apart(self, pair: ModelledStore, reread: Reread) -> None:
        """Ids that look alike are not alike."""
        for i, context in enumerate(TWINS):
            pair.append(context, b"%d" % i, compaction=f"{i}")

        pair.check(reread())

    @pytest.mark.parametrize("name", ["id", "owner", "settings", "state", "compaction", "op_id", "at"])
    def test_text_with_half_a_surrogate_pair_is_refused(self, storage: Storage, name: str) -> None:
        """A text that has no UTF-8 form is refused by its name, and nothing is kept."""
        half, good = "a\ud83d", appended(current(storage, "a"), b"1")
        named: dict[str, Any] = {name: half}
        changes: dict[str, dict[str, Any]] = {
            "compaction": named,
            "op_id": {"op": OpRow(half, b"", 0, ())},
            "at": {"entries": (entry(0, b"1", at=half),)},
        }

        with pytest.raises(InvalidSetting) as caught:
            storage.commit(good._replace(**changes.get(name) or {"record": good.record._replace(**named)}))

        assert caught.value.name == name
        assert storage.contexts() == []

    def test_reading_an_id_with_half_a_surrogate_pair_is_refused(self, storage: Storage) -> None:
        """No such context can be, and asking for one is an error of the caller."""
        reads = (storage.load, storage.revision, storage.pages, storage.entries, storage.compactions, storage.ops)
        for read in (*reads, storage.tickets):
            with pytest.raises(InvalidSetting):
                read("a\ud83d")

    def test_entries_containing_are_found_by_bytes(self, storage: Storage) -> None:
        """Only bodies with these very bytes are given: no wildcards, no case folding, no end at a NUL."""
        append(storage, "a", b"needle", b"NEEDLE", b"a%b", b"aXb", b"x\x00needle", b"\xff", b"")
        append(storage, "b", b"needle")

        for containing, bounds, seqs in (
            (b"needle", (), [0, 4]),
            (b"needle", (1,), [4]),
            (b"needle", (0, 4), [0]),
            (b"a%b", (), [2]),
            (b"\xff", (), [5]),
            (b"\x00", (), [4]),
            (b"", (), [0, 1, 2, 3, 4, 5, 6]),
            (b"nowhere", (), []),
        ):
            assert [row.seq for row in storage.entries("a", *bounds, containing=containing)] == seqs
