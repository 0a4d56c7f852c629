"""A sheet: the columns of an owner's passages for ranking, of which some blocks are in RAM.

    number     1 … 2047 │ 2048 … 4095 │ 4096 … 6143 │ …         the position of a passage is its number
    in RAM     yes      │ –           │ yes         │

A passage is stored as one value of fixed width, `PASSAGE`, with links to its neighbours, and a block as the values of
its passages. A number whose passage was removed, or whose block is not in RAM, has zeros in all columns, and no
postings.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..retrieval.layout import FLAGS, REACH, ROLES, Integers, Layout, PassageColumns, Row, name_terms, room

BLOCK_BITS: Final = 11
BLOCK: Final = 2**BLOCK_BITS  # numbers of a block: some 500 KB, a good size for one read
NUMBERS: Final = 2**32  # an id is the owner's number times this, plus the number of the passage
AROUND: Final = 2 * REACH
"""neighbours on each side of a change that determine the shares of those next to it that borrow across it"""

PASSAGE: Final = np.dtype(
    [
        ("number", "<u4"), ("context", "<i8"), ("page", "<i8"), ("entry", "<i4"), ("part", "<i2"), ("role", "i1"),
        ("flags", "u1"), ("speaker", "<i8"), ("at", "<f8"), ("zone", "<i2"), ("length", "<f4"), ("whole", "<f4"),
        ("lecture", "<f4"), ("links", "<i4", (2 * REACH,)), ("lent", "<f4", (2 * REACH,)),
    ]
)  # fmt: skip
POSTING: Final = np.dtype([("number", "<u4"), ("times", "<u2"), ("kind", "u1")])

_KEPT: Final = frozenset(PASSAGE.names or ())


class BlockState(NamedTuple):
    """The summary of a block, which is known without reading the block."""

    alive: int
    others: int  # number of passages that are not the user's
    lecture: float  # sum of their column with this name
    standing: int  # number of passages with lasting instructions
    counted: float  # number of passages of which the length counts (`length_counts`)
    extent: float  # sum of their lengths


class Sheet(Layout):
    """The columns of an owner's passages, filled block by block. Not thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[int, BlockState] = {}
        self.loaded: set[int] = set()
        self._filled: set[int] = set()
        """blocks that were ever in RAM"""
        self._said: dict[int, int] = {}
        """number of passages of each speaker"""
        self._base: dict[int, int] = {}

    def __len__(self) -> int:
        return sum(each.alive for each in self.states.values())

    @property
    def columns(self) -> PassageColumns:
        """The columns of all passages: views of all blocks."""
        return self._columns

    @property
    def lecturing(self) -> float:
        """From 0 to 1, how much the assistant answers in long texts."""
        others = sum(each.others for each in self.states.values())
        return sum(each.lecture for each in self.states.values()) / others if others else 0.0

    def _mean_length(self, counts: NDArray[np.float64]) -> float:  # noqa: ARG002 -- of all blocks, also those not in RAM
        states = self.states.values()
        return sum(each.extent for each in states) / max(sum(each.counted for each in states), 1e-6)

    def _passages_by(self, speaker: int) -> int:
        return self._said.get(speaker, 0)

    def only(self, people: Collection[int]) -> bool:
        """Return whether all passages are by *people*. O(people)."""
        return sum(self._said.get(each, 0) for each in people) == len(self)

    def know(self, states: Mapping[int, BlockState], speakers: Sequence[tuple[int, str, int]]) -> None:
        """Update the states of changed blocks, drop these blocks from RAM, and update all speakers. O(blocks)."""
        self.states.update(states)
        self._excess = self._lending = None
        self.loaded.difference_update(states)
        size = (max(self.states, default=0) + 1) * BLOCK
        if size > len(self._columns.page):
            self._columns = room(size, self._columns)
        before = 0
        for block, state in sorted(self.states.items()):
            if block in self.loaded and before != self._base[block]:
                self._columns.nth[block * BLOCK : (block + 1) * BLOCK] += before - self._base[block]
            self._base[block] = before
            before += state.alive
        self._named, self._said = {}, {number: passages for number, _, passages in speakers}
        self.speakers = {name: number for number, name, _ in speakers}
        for number, name, _ in speakers:
            for term in name_terms(name):
                self._named.setdefault(term, []).append(number)

    def load(self, block: int, packed: bytes) -> None:
        """Load the passages of a block. O(block)."""
        read = np.frombuffer(packed, PASSAGE)
        rows = slice(block * BLOCK, (block + 1) * BLOCK)
        if block in self._filled:
            for column in self._columns:
                column[..., rows] = 0
        self._filled.add(block)
        self._columns.role[rows] = -1
        numbers = read["number"].astype(np.int64)
        at: Integers | slice = numbers
        if len(read) and numbers[-1] - numbers[0] == len(read) - 1:  # a slice is three times as fast
            at = slice(int(numbers[0]), int(numbers[-1]) + 1)
        for name, column in self._columns._asdict().items():
            if name in _KEPT:
                column[..., at] = read[name].T
        self._columns.nth[at] = self._base[block] + np.arange(len(read))
        for name, flag in FLAGS.items():
            getattr(self._columns, name)[at] = read["flags"] & flag != 0
        self.loaded.add(block)
        self._excess = self._lending = None


def pack_passages(
    numbers: Integers,
    rows: Sequence[Row],
    speakers: Mapping[str, int],
    *,
    before: Any,
    after: Any,
) -> tuple[Any, Any, Any]:
    """Return new passages as `PASSAGE`, and the neighbours that they change: as they are, and as they were. O(rows).

    Args:
        numbers: The numbers of the new passages.
        rows: The new passages, in order; none if passages between the neighbours were removed.
        speakers: The number of each speaker's name.
        before: Up to `AROUND` passages before the new ones, in order, as `PASSAGE`.
        after: Those after them: at least `AROUND`, and the whole next message; or all that exist.
    """
    own = np.zeros(len(rows), PASSAGE)
    if rows:
        context, page, entry, part, role, speaker, length, at, flags, zone = zip(*rows, strict=True)
        own["number"], own["context"], own["page"], own["entry"], own["part"] = numbers, context, page, entry, part
        own["role"] = [ROLES.get(each, ROLES["tool"]) for each in role]
        own["speaker"] = [speakers[each] for each in speaker]
        own["at"] = [np.nan if each is None else each for each in at]
        own["length"], own["flags"], own["zone"] = length, flags, zone
        _, message = np.unique(own["entry"], return_inverse=True)
        own["whole"] = np.bincount(message, own["length"])[message]
    every = np.concatenate([before, own, after])
    layout = Layout()
    fields: dict[str, Any] = {name: every[name] for name in Row._fields}
    fields["part"] = np.minimum(every["part"], np.arange(len(every)))  # the first parts may lie before these neighbours
    fields["speaker"] = [str(each) for each in every["speaker"]]
    layout.fill(fields.values(), whole=every["whole"], lecture=before["lecture"])
    linked, was = layout.columns, every.copy()
    numbered = np.append(every["number"].astype(np.int64), -1)
    first, last = len(before), len(before) + len(own)
    every["links"], every["lent"] = numbered[linked.links].T, linked.lent.T
    every["lecture"][first:] = linked.lecture[first:]
    # Neighbours that are too far from the change keep their values.
    far = np.arange(len(every)) >= last + REACH
    far[: max(0, first - REACH)] = True
    every["links"][far], every["lent"][far] = was["links"][far], was["lent"][far]
    if len(after):
        beyond = (every["entry"] != every["entry"][last]) | (every["page"] != every["page"][last])
        beyond[: last + 2] = False
        every["lecture"][beyond] = was["lecture"][beyond]
    changed = np.array([now.tobytes() != old.tobytes() for now, old in zip(every, was, strict=True)], bool)
    changed[first:last] = False
    return every[first:last], every[changed], was[changed]
