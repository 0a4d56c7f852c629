"""Erasing: bytes that do not exist any more, and nothing left that tells of them.

    a page, an entry   its bytes become a tombstone, for every fork that shares them; so do answers that quoted them
                       lines of the Contents Page are made again, earlier compactions and digests of ops go
    a context          all its rows go
    an owner           all contexts go that are theirs

Then the store scrubs its own files. What a model wrote of it in its own words is a message of its own: erase that too.
Copies in backups, exports and a provider's cache are out of reach. This module knows nothing of the window's rules.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ..chapters.contents import Block, ContentsPage, ListedPage, ListedRange
from ..chapters.toolgroups import late_result
from ..errors import CorruptRecord, Erased, InvalidSetting, PageNotFound, brief
from ..messages import Message, tool_calls
from ..storage import Storage
from ..storage.codec import ERASED, decode, digest
from ..storage.protocol import ContextRecord, EntryRow, Erasure, PageRow, PageState, SidecarStorage, Transition
from ..window import snapshot as snapshots
from ..window.compaction import instruction_sentences, line
from ..window.draft import StoredPage
from ..window.window import Window
from . import quotations as quoting
from .loader import OpenRequest, loaded
from .page_reader import read_back
from .reader import Reader


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """How many rows an erasure removed, by kind."""

    contexts: int
    """removed whole"""
    pages: int
    """in each of the contexts that had them; their numbers will not be used again"""
    entries: int
    """messages, answers that quoted them included"""
    compactions: int
    """earlier states of Contents Pages"""
    ops: int
    """digests of appends"""
    physical: str
    """"done": no byte is left in the store's own files; "pending": somebody still reads an older state from them, erase
    again (nothing but the scrubbing is left to do)"""
    memory: Literal["done", "pending"] = "done"
    """whether the memory has forgotten it; "pending": it could not be reached, and is told with the next change"""


def erase(store: Storage, *, context: str | None = None, owner: str | None = None) -> ErasureReceipt:
    """Erase the whole *context*, or all contexts of *owner*, from *store*. O(their rows, and contexts in the store).

    Raises:
        InvalidSetting: If neither or both are named, there is no such context or owner, or a fork that is not erased
            along shares the past of one; it names the fork.
        StorageError: If it could not be done; nothing has changed then.
    """
    if (context is None) == (owner is None):
        raise InvalidSetting("context", "name a context or an owner, one of them")
    if context is not None:
        gone = [context] if store.load(context) is not None else []
    else:
        gone = [record.id for record in store.contexts() if record.owner == owner]
    if not gone:
        name, value = ("context", context) if context is not None else ("owner", owner)
        raise InvalidSetting(name, f"there is no {name} {value!r:.60} in this store")
    left = [record for record in store.contexts() if record.id not in gone]
    emptied = _Emptied((), (), {})
    if {record.parent for record in left}.isdisjoint(gone):
        emptied = _emptied(store, _echoes(store, gone, left), {}, None)
        forgotten(store, dict.fromkeys(gone))  # first: a memory can be told again of what is there still
    receipt = _receipt(store, Erasure(tuple(gone), emptied.tombstones, emptied.transitions))
    forgotten(store, emptied.pages)
    return receipt if forgotten(store, {}) else replace(receipt, memory="pending")


def erased(
    storage: Storage,
    window: Window,
    reader: Reader,
    index: int,
    entry: int | None,
    *,
    counter: Callable[[str], int] | None,
) -> ErasureReceipt:
    """Erase page *index* of the context of *window*, or its one *entry*. O(entries + contexts in the store).

    Forks are counted by *counter* too, if the program has one of its own.

    Raises:
        PageNotFound: If there is no such page or entry; `Erased` if it is gone already.
    """
    record = window.record
    row = reader.page(index, record)
    seqs = {seq for span in row.spans(record.head) for seq in range(*span)}
    if entry is not None:
        seq = reader.base(row, record) + entry - 1 if type(entry) is int else -1
        if seq not in seqs:
            raise PageNotFound(f"{index}, entry {brief(entry)}", (1, record.next_page - 1))
        if next(iter(storage.entries(record.id, seq, seq + 1))).codec == ERASED:
            raise Erased(f"page #{index}, entry {entry}")
        seqs = {seq}
    emptied = _emptied(storage, _spread(storage, record, seqs), {record.id: window}, counter)
    receipt = _receipt(storage, Erasure(entries=emptied.tombstones, transitions=emptied.transitions))
    forgotten(storage, emptied.pages)  # what is left of these pages stands in their outboxes
    return receipt


def forgotten(storage: Storage, gone: Mapping[str, Collection[int] | None]) -> bool:
    """Let all memories beside *storage* forget contexts, or pages of them; return whether no byte is left of any.

    Bytes are left while another reader holds an older state of the file.
    """
    if not isinstance(storage, SidecarStorage):
        return True  # it has no memory
    from ..memory.forgetting import forget_everywhere

    return forget_everywhere(storage, gone)


class _Emptied(NamedTuple):
    """What contexts are without some messages."""

    transitions: tuple[Transition, ...]
    tombstones: tuple[tuple[str, EntryRow], ...]
    pages: Mapping[str, tuple[int, ...]]
    """pages of each that held one of them"""


def _emptied(
    storage: Storage,
    shown: Mapping[str, tuple[ContextRecord, set[int]]],
    windows: Mapping[str, Window],
    counter: Callable[[str], int] | None,
) -> _Emptied:
    """Return what each context of *shown* is without the messages named there; *windows* of some are open already."""
    transitions: list[Transition] = []
    tombstones: list[tuple[str, EntryRow]] = []
    pages: dict[str, tuple[int, ...]] = {}
    for each, gone in shown.values():
        seen = windows.get(each.id) or loaded(storage, OpenRequest(each.id, counter=counter, read_only=True)).window
        transition, pages[each.id] = _without(storage, seen, each, gone)
        transitions.append(transition)
        for seq in sorted(seq for seq in gone if seq >= each.base):  # the rest are its parent's
            for stored in storage.entries(each.id, seq, seq + 1):
                role = str(decode(stored.codec, stored.body)["role"])
                tombstones.append((each.id, _tombstone(seen, seq, role)))
    return _Emptied(tuple(transitions), tuple(tombstones), pages)


def _echoes(
    storage: Storage, gone: Collection[str], left: Sequence[ContextRecord]
) -> dict[str, tuple[ContextRecord, set[int]]]:
    """Return the contexts of *left* whose answers to searches quote one of the contexts *gone*, with those answers.

    O(entries of the owners' contexts).
    """
    owners = {record.owner for record in storage.contexts() if record.id in gone}
    kin = [record for record in left if record.owner in owners]
    if not kin:
        return {}
    said = [message for name in gone for message in _readable(storage, name)]
    records = {record.id: record for record in left}
    found = {(_holder(records, each.id, seq), seq) for each in kin for seq in quoting.searches(storage, each, said, ())}
    return _shown(storage, records, left, found) if found else {}


def _readable(storage: Storage, context: str) -> Iterator[Message]:
    """Yield the messages of *context* that can be read: one that can't is no reason to keep the others."""
    found = storage.load(context)
    for seq in range(found[0].head if found else 0):
        with suppress(CorruptRecord):
            for each in storage.entries(context, seq, seq + 1):
                if each.codec != ERASED:
                    yield decode(each.codec, each.body)


def _receipt(storage: Storage, erasure: Erasure) -> ErasureReceipt:
    gone = storage.erase(erasure)
    marked = sum(row.state is PageState.ERASED for each in erasure.transitions for row in each.pages)
    return ErasureReceipt(
        gone.contexts,
        gone.pages + marked,
        gone.entries,
        gone.compactions,
        gone.ops,
        "done" if gone.scrubbed else "pending",
    )


def _tombstone(window: Window, seq: int, role: str) -> EntryRow:
    body = ("user" if role == "tool" else role).encode()  # a result without its id answers no call
    return EntryRow(seq, ERASED, body, digest(ERASED, body), window.weigh(decode(ERASED, body)))


def _spread(storage: Storage, record: ContextRecord, seqs: set[int]) -> dict[str, tuple[ContextRecord, set[int]]]:
    """Return each context that shows one of *seqs* of *record*, or an answer that quoted it, with what goes there.

    O(contexts in the store + entries of those that were forked from one another, or belong to the same owner).
    """
    records = {each.id: each for each in storage.contexts()} | {record.id: record}
    root = _holder(records, record.id)
    family = {name for name in records if _holder(records, name) == root}
    known = [each for each in records.values() if each.id in family or each.owner == record.owner]
    said = [decode(each.codec, each.body) for seq in sorted(seqs) for each in storage.entries(record.id, seq, seq + 1)]
    gone = {(_holder(records, record.id, seq), seq) for seq in seqs}
    for each in known:
        pages = _pages_of(storage, each, seqs) if each.id in family else frozenset()
        found = quoting.searches(storage, each, said, pages)
        gone |= {(_holder(records, each.id, seq), seq) for seq in found}
    return _shown(storage, records, known, gone)


def _holder(records: Mapping[str, ContextRecord], context: str, seq: int = -1) -> str:
    """Return the context that holds *seq* for *context*, which may share it; of -1, the one that it comes from."""
    each = records[context]
    while each.parent is not None and seq < each.base and each.parent in records:
        each = records[each.parent]
    return each.id


def _shown(
    storage: Storage, records: Mapping[str, ContextRecord], known: Sequence[ContextRecord], gone: set[tuple[str, int]]
) -> dict[str, tuple[ContextRecord, set[int]]]:
    """Return which of *known* show one of *gone* (holder, seq), or an answer that recalled it, with what goes there."""
    while True:
        shown = {
            each.id: (each, {seq for kept, seq in gone if seq < each.head and _holder(records, each.id, seq) == kept})
            for each in known
        }
        shown = {name: found for name, found in shown.items() if found[1]}
        more = {
            (_holder(records, name, seq), seq)
            for name, found in shown.items()
            for seq in quoting.recalls(storage, *found)
        } - gone
        if not more:
            return shown
        gone = gone | more


def _pages_of(storage: Storage, record: ContextRecord, seqs: set[int]) -> frozenset[int]:
    """Return the pages of *record* that hold one of *seqs*. O(pages)."""
    return frozenset(
        row.index
        for row in storage.pages(record.id)
        if any(not seqs.isdisjoint(range(*span)) for span in row.spans(record.head))
    )


def _without(
    storage: Storage, window: Window, record: ContextRecord, seqs: set[int]
) -> tuple[Transition, tuple[int, ...]]:
    """Return what the context of *window* is once *seqs* are gone, and the pages that held one of them. O(pages)."""
    reader = Reader(storage, record.id)
    gone: dict[int, PageRow] = {}
    touched: list[PageRow] = []
    for row in storage.pages(record.id, last=record.next_page - 1):
        held = {seq for span in row.spans(record.head) for seq in range(*span)}
        if not held or held.isdisjoint(seqs):
            continue
        left = (each for span in row.spans(record.head) for each in storage.entries(record.id, *span))
        if all(each.seq in seqs or each.codec == ERASED for each in left):
            gone[row.index] = row._replace(state=PageState.ERASED, end=record.head if row.end is None else row.end)
        else:
            touched.append(row)
    contents = window.contents.without(frozenset(gone), window.state.nonce, window.weigh)
    pages = [_tombstones(window, read_back(window, reader, row), seqs) for row in touched]
    contents = _retold(window, contents, {page.row.index: page for page in pages})
    views = tuple(view for page in pages if page.row.state is PageState.ACTIVE for view in _reweighed(window, page))
    state = replace(
        window.state,
        pins=tuple(index for index in window.state.pins if index not in gone),
        relist=tuple(index for index in window.state.relist if index not in gone),
        task=None if window.state.task in gone else window.state.task,
        waiting=(),
        erased=window.state.erased + len(gone),
        since=record.head,
    ).posting([*gone, *(row.index for row in touched)])
    after = record._replace(
        state=state.dumps(),
        revision=record.revision + 1,
        open_page=None if record.open_page in gone else record.open_page,
    )
    active = [row for row in storage.pages(record.id, state=PageState.ACTIVE) if row.index not in gone]
    compaction = snapshots.dumps(contents, after, active)
    transition = Transition(record.head, after, pages=tuple(gone.values()), views=views, compaction=compaction)
    return transition, (*gone, *(row.index for row in touched))


def _tombstones(window: Window, page: StoredPage, seqs: set[int]) -> StoredPage:
    """Return *page* as it reads once *seqs* are gone."""
    for node in page.nodes:
        if node.seq in seqs:
            body = _tombstone(window, node.seq, node.message["role"]).body
            node.message = node.view = decode(ERASED, body)
            node.quotes, node.clip = None, 0
    return page


def _reweighed(window: Window, page: StoredPage) -> Iterator[tuple[int, int, int]]:
    """Yield (seq, tokens, clip) of the messages of *page*: a result whose call is gone is shown as a late one."""
    waiting: list[str] = []
    for node in page.nodes:
        late = False
        if node.message["role"] != "tool":
            waiting = [call["id"] for call in tool_calls(node.message)]
        elif node.message["tool_call_id"] in waiting:
            waiting.remove(node.message["tool_call_id"])
        else:
            late = True
        view = late_result(node.view, window.state.nonce) if late else node.view
        yield node.seq, window.weigh(view), node.clip


def _retold(window: Window, contents: ContentsPage, pages: dict[int, StoredPage]) -> ContentsPage:
    """Return *contents* with what it tells of *pages* made again, and without their titles in range lines."""
    left = {(index, sentence) for index, page in pages.items() for sentence in instruction_sentences(page)}

    def retold(old: ListedPage) -> ListedPage:
        page = pages.get(old.index)
        return old if page is None else line(window, page).at(old.level)

    def untitled(old: ListedRange) -> ListedRange:
        return ListedRange(old.pages, tuple((index, title) for index, title in old.titles if index not in pages))

    blocks: Sequence[Block] = contents.blocks
    made = []
    for block in blocks:
        if block.instructions:
            instructions = tuple(each for each in block.instructions if each[0] not in pages or each in left)
            made += [Block.of_instructions(instructions, window.state.nonce, window.weigh)] if instructions else []
            continue
        lines, ranges = tuple(map(retold, block.lines)), tuple(map(untitled, block.ranges))
        same = lines == block.lines and ranges == block.ranges
        made.append(block if same else Block.of(lines, ranges, window.state.nonce, window.weigh))
    return ContentsPage(tuple(made))
