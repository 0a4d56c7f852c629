"""Erasing: the bytes of messages are removed from every place in the store.

    a page, an entry   a tombstone replaces it, also in forks that share it, and replaces the answers that quote it
                       lines of the Contents Page are rebuilt; earlier snapshots and digests of ops are removed
    a context          all its rows are removed
    an owner           all contexts of the owner are removed

What other contexts of the owner show of it, found for their open turn, goes along. Then the store scrubs its own
files. Each erasure is a job (`erasures`), which a kill can't lose, and whose receipt can be asked for again. A
paraphrase by a model is a message of its own: erase it, too. Backups, exports and a provider's cache are out of reach.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..chapters.contents import Block, ContentsPage, ListedPage, ListedRange, begun, told_in
from ..errors import Erased, InvalidSetting, MemciError, PageNotFound, StorageError, Undone, WriteConflict, hint
from ..messages import Message
from ..rows import ContextRecord, EntryRow, PageRow, PageState
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.audit import audit, mark
from ..storage.codec import ERASED, decode, digest
from ..storage.names import beside, owned
from ..storage.protocol import Erasure, Transition
from ..storage.validation import check_filled, check_forks, without_digests
from ..window import snapshot as snapshots
from ..window.compaction import entries_of, list_pages
from ..window.draft import StoredPage
from ..window.state import WindowState
from ..window.state import alone as own_record
from ..window.window import Window
from .erasures import (
    ErasureReceipt,
    begin_erasure,
    end_erasure,
    find_erasure,
    owners_before,
    unfinished_erasures,
    was_erasure_killed,
)
from .loader import OpenRequest, load_context
from .page_reader import as_nodes
from .quotations import Shown, Spread, kin, pages_with
from .reader import Reader
from .row_stream import readable_at, readable_entries, tombstone


@checked
def erase(store: Storage, *, context: str | None = None, owner: str | None = None) -> ErasureReceipt:
    """Erase from *store* the whole *context* (the one of *owner*, if both are given), or all contexts of *owner*.

    An owner goes with all that is remembered of theirs, also of contexts that another has now.
    O(entries of the owners' contexts and of their forks).

    Raises:
        InvalidSetting: If neither is given, or if there is no such context or owner. Also if a fork shares the messages
            and is not erased with them: the error names the fork. `SeveralOwners` if several owners have the context.
        StorageError: If the store could not erase it; nothing has changed.
    """
    from ..memory.forgetting import remembers, texts_of  # imports numpy, which takes long

    for name, value in (("context", context), ("owner", owner)):
        if value is not None:
            check_filled(name, value)
    if context is None and owner is None:
        raise InvalidSetting("context", "name a context or an owner")
    if context is not None and (found := owned(store, context, owner)) is not None:
        records = [found[0]]
        context, owner = records[0].id, records[0].owner
    elif context is not None:
        records = []
    else:
        records = list(store.contexts(owner=owner))
    if not records and not (context is None and remembers(store, owner or "")):
        return _erased_before(store, context, owner)
    whole = records
    gone = [record.id for record in whole]
    check_forks(((fork.id, name) for name in gone for fork in store.forks(name)), gone)
    owners = _owners_of(store, records)
    _forget_found(store, owners, but=gone)
    records = kin(store, [*records, *_contexts_of(store, owners)])
    left = [record for record in records if record.id not in gone]
    # a message that can't be read must not keep the others from being erased
    read = ((each.base, row) for each in whole for row in readable_entries(store, each))
    rows = (row for base, row in read if isinstance(row, EntryRow) and row.seq >= base)
    messages = [decode(row.codec, row.body) for row in rows if row.codec != ERASED]
    shown = Spread(store, left).of_quotations(messages, owners, texts_of(store, dict.fromkeys(gone)))
    erasure, pages = _plan_erasure(store, shown, {}, None)
    erasure = erasure._replace(contexts=tuple(gone))
    job = begin_erasure(store, _foresee(store, erasure, whole), context=context, owner=owner)
    # first: if the store then fails, the memory is fed the pages again
    forget_pages(store, dict.fromkeys(gone), [] if context is not None else [mark(owner or "")])
    return _perform(store, job, erasure, pages, owners)


@checked
def finish_erasures(store: Storage) -> ErasureReceipt:
    """Finish pending erasures: the memory forgets what was erased, and the files lose the bytes of deleted rows.

    This rewrites whole files: about 5 s for each GB. Meanwhile nobody else can write.
    """
    jobs = list(unfinished_erasures(store))
    if jobs:
        records = store.contexts()
        _forget_found(store, {record.owner for record in records})
        posted = {record.id: pages for record in records if (pages := _posted(record))}
        whole = [line for _, killed, line in jobs if killed and not {"context", "page"} & line.keys()]
        forget_pages(store, posted, [line["owner"] for line in whole if not _is_there(store, line)])
    receipt = _erase(store, Erasure())
    receipt = receipt if scrub_memories(store, whole=True) else replace(receipt, memory="pending")
    ended = []
    for job, killed, line in jobs:
        if killed and _is_there(store, line):
            audit(store, "refused", job=job)
        else:
            ended.append(end_erasure(store, job, receipt))
    return next((each for each in ended if not each.done), receipt)


def _is_there(store: Storage, job: Mapping[str, Any]) -> bool:
    """Return whether *store* has what the line of a *job* names: a kill came before its transaction. O(contexts)."""
    context, owner, page, entry = map(job.get, ("context", "owner", "page", "entry"))
    for record in store.contexts():
        if context not in (None, mark(record.id)) or owner not in (None, mark(record.owner)):
            continue
        if page is None:
            return True
        with suppress(Erased, PageNotFound):
            seqs = _seqs_of(store, record, Reader(store, record.id), page, entry)
            partly = "last" in job and _unerased(store, record.id, seqs) != seqs
            return not partly  # of a retention, pages keep their later messages
    return False


def finish_killed_erasures(store: Storage) -> None:
    """Finish the erasures that a kill left unfinished; if that fails, they stay so. O(log) once for each handle."""
    with suppress(StorageError):
        if was_erasure_killed(store):
            finish_erasures(store)


def erase_messages(
    storage: Storage,
    window: Window,
    reader: Reader,
    index: int,
    entry: int | None,
    *,
    counter: Callable[[str], int] | None,
) -> ErasureReceipt:
    """Erase page *index* of the context of *window*, or its one *entry*.

    O(entries of the owner's contexts and of the forks). *counter*: the program's own counter of tokens, if it has one;
    it counts the windows of other contexts that change.
    PageNotFound if there is no such page or entry. `Erased` if another erasure removed it.
    """
    record = window.record
    try:
        seqs = _seqs_of(storage, record, reader, index, entry)
    except Erased as error:
        found = find_erasure(storage, context=record.id, owner=record.owner, page=index, entry=entry)
        return _receipt_again(storage, found, error)
    subject: dict[str, str | int | None] = {"context": record.id, "owner": record.owner, "page": index, "entry": entry}
    return _erase_seqs(storage, window, seqs, subject, counter)


def find_messages(storage: Storage, record: ContextRecord, index: int, entry: int | None) -> list[Message]:
    """Return the messages of page *index*, or its one *entry*, as `erase_messages` finds and refuses them."""
    seqs = _seqs_of(storage, record, Reader(storage, record.id), index, entry)
    return [_message(row) for row in readable_at(storage, record.id, seqs).values()]


def erase_seqs(storage: Storage, context: str, seqs: Collection[int]) -> ErasureReceipt:
    """Erase the messages *seqs* of *context* in one job, without those that are erased already.

    The job names the first and the last page that held one.
    """
    left = _unerased(storage, context, seqs)
    if not left:
        return ErasureReceipt(0, 0, 0, 0, 0, "done")
    window = load_context(storage, OpenRequest(context, read_only=True, exact=True)).window
    pages = [row.index for row in pages_with(storage, window.record, left)]
    subject: dict[str, str | int | None] = {"context": context, "owner": window.record.owner}
    subject |= {"page": pages[0], "last": pages[-1]}
    receipt = _erase_seqs(storage, window, left, subject, None)
    return receipt if scrub_memories(storage) else replace(receipt, memory="pending")


def _erase_seqs(
    storage: Storage,
    window: Window,
    seqs: set[int],
    subject: Mapping[str, str | int | None],
    counter: Callable[[str], int] | None,
) -> ErasureReceipt:
    from ..memory.forgetting import texts_of  # imports numpy, which takes long

    record = window.record
    sharing = kin(storage, [record])
    owners = _owners_of(storage, sharing)
    _forget_found(storage, owners, but=[record.id])
    others = [each for each in kin(storage, [*sharing, *_contexts_of(storage, owners)]) if each.id != record.id]
    spread = Spread(storage, [*others, record])
    shown = spread.of_messages(record, seqs, owners, texts_of(storage, spread.pages_of(record, seqs)))
    erasure, pages = _plan_erasure(storage, shown, {record.id: window}, counter)
    job = begin_erasure(storage, _foresee(storage, erasure), **subject)
    # the outboxes name these pages: the memory is fed their remaining messages
    return _perform(storage, job, erasure, pages, owners)


def _seqs_of(storage: Storage, record: ContextRecord, reader: Reader, index: int, entry: int | None) -> set[int]:
    """Return the seqs of page *index*, also of one that was undone, or of its one *entry*.

    It raises as `erase_messages`.
    """
    try:
        row = reader.page(index, record)
    except Undone:  # its bytes are in the store
        row = reader.row(index)
    seqs = {seq for span in row.spans(record.head) for seq in range(*span)}
    if entry is not None:
        seq = reader.base(row) + entry - 1 if type(entry) is int else -1
        if seq not in seqs:
            raise PageNotFound(index, (1, record.next_page - 1), entry=entry)
        seqs = {seq}
    if seqs and not _unerased(storage, record.id, seqs):
        raise Erased(f"page #{index}" if entry is None else f"page #{index}, entry {entry}")
    return seqs


def _unerased(storage: Storage, context: str, seqs: Collection[int]) -> set[int]:
    """Return which of the messages *seqs* of *context* are not erased. O(these)."""
    rows = readable_at(storage, context, seqs)
    return {seq for seq, row in rows.items() if row is None or row.codec != ERASED}


def _erased_before(storage: Storage, context: str | None, owner: str | None) -> ErasureReceipt:
    """Return the receipt of an earlier erasure; InvalidSetting if there was none."""
    if context is None:
        near = hint(owner, [each.owner for each in storage.contexts(limit=1_000)])
        error = InvalidSetting("owner", f"there is no owner {owner!r:.60} in this store{near}")
        return _receipt_again(storage, find_erasure(storage, context=None, owner=owner), error)
    whose = "" if owner is None else f" of {owner!r:.60}"
    error = InvalidSetting("context", f"there is no context {context!r:.60}{whose} in this store")
    names = [{"context": context}]
    if owner is not None:  # whose context may have been stored beside that of another owner
        names = [{"context": name, "owner": owner} for name in (context, beside(context, owner))]
    jobs = (find_erasure(storage, page=None, **name) for name in names)
    return _receipt_again(storage, next(filter(None, jobs), None), error)


def _receipt_again(storage: Storage, found: tuple[str, ErasureReceipt] | None, error: MemciError) -> ErasureReceipt:
    """Return the receipt of the job *found*, after finishing it; raise *error* if there is none."""
    if found is None:
        raise error
    _, receipt = found
    if not receipt.done:
        now = finish_erasures(storage)
        receipt = replace(receipt, physical=now.physical, memory=now.memory)
    return receipt


def _perform(
    storage: Storage, job: str, erasure: Erasure, pages: Mapping[str, Collection[int]], owners: Collection[str]
) -> ErasureReceipt:
    """Do the *job*: from its one transaction on nothing is taken back, and what fails is pending."""
    try:
        receipt = _erase(storage, erasure)
    except (InvalidSetting, WriteConflict):  # of another handle, meanwhile
        audit(storage, "refused", job=job)
        raise
    try:
        forget_pages(storage, pages)
        if _forget_found(storage, owners):  # it was found in the moment before the memory forgot it
            receipt = replace(receipt, physical=_erase(storage, Erasure()).physical)
        scrubbed = scrub_memories(storage)
    except StorageError:
        scrubbed = False
    receipt = receipt if scrubbed else replace(receipt, memory="pending")
    return end_erasure(storage, job, receipt)


def _forget_found(storage: Storage, owners: Collection[str], but: Collection[str] = ()) -> bool:
    """Remove from the contexts of *owners* what each shows of others; return whether one did. It is found again.

    O(contexts of the owners).
    """
    changed = False
    for found in [each for each in _contexts_of(storage, owners) if each.id not in but]:
        record: ContextRecord | None = found
        while record is not None and (bare := own_record(record)) != record:
            try:
                storage.commit(Transition(record.head, bare._replace(revision=record.revision + 1)))
                changed, record = True, None
            except WriteConflict:
                again = storage.load(found.id)
                record = None if again is None else again[0]
    return changed


def _owners_of(storage: Storage, records: Collection[ContextRecord]) -> set[str]:
    """Return the owners of *records*, and the owners before, by the log, or whose memories still know the contexts."""
    from ..memory.forgetting import owners_of  # imports numpy, which takes long

    names, before = [record.id for record in records], owners_before(storage)
    logged = {owner for name in names for owner in before.get(mark(name), ())}
    return {record.owner for record in records} | owners_of(storage, names) | logged


def _contexts_of(storage: Storage, owners: Collection[str]) -> list[ContextRecord]:
    return [each for owner in sorted(owners) for each in storage.contexts(owner=owner)]


def _posted(record: ContextRecord) -> list[int]:
    """Return the pages of which the memory is yet to be told. O(these)."""
    runs = () if record.encrypted else WindowState.loads(record.state).outbox
    return [index for first, last in runs for index in range(first, last + 1)]


def _foresee(storage: Storage, erasure: Erasure, whole: Collection[ContextRecord] = ()) -> ErasureReceipt:
    """Return what *erasure* removes, as far as it can be read; *whole* contexts first. O(compactions + ops)."""
    changed = [transition.record.id for transition in erasure.transitions]
    ops = sum(_count(storage.ops(record.id)) for record in whole)
    for context in changed:
        seqs = {row.seq for name, row in erasure.entries if name == context}
        with suppress(MemciError):
            ops += len(without_digests(storage.ops(context), seqs)) if seqs else 0
    return ErasureReceipt(
        len(whole),
        sum(record.next_page - 1 for record in whole) + _count_marked(erasure),
        sum(record.head - record.base for record in whole) + len(erasure.entries),
        sum(_count(storage.compactions(name)) for name in [*erasure.contexts, *changed]),
        ops,
        "pending",
    )


def _count(rows: Iterable[object]) -> int:
    number = 0
    with suppress(MemciError):
        for _ in rows:
            number += 1
    return number


def forget_pages(storage: Storage, gone: Mapping[str, Collection[int] | None], owners: Collection[str] = ()) -> None:
    """Make the memories in *storage* forget the pages *gone*, by context; None: the whole context.

    And all that is known of the *owners* with these marks.
    """
    from ..memory.forgetting import forget_everywhere, forget_owners

    forget_everywhere(storage, gone)
    if owners:
        forget_owners(storage, owners)


def scrub_memories(storage: Storage, *, whole: bool = False) -> bool:
    """Remove the bytes that the memories in *storage* forgot, and return whether all are surely removed."""
    from ..memory.forgetting import scrub

    return scrub(storage, whole=whole)


def _plan_erasure(
    storage: Storage, shown: Shown, windows: Mapping[str, Window], counter: Callable[[str], int] | None
) -> tuple[Erasure, dict[str, tuple[int, ...]]]:
    """Return the erasure of the messages in *shown*, and for each context the pages that held one of them.

    *windows*: those that are open already, by context.
    """
    transitions: list[Transition] = []
    tombstones: list[tuple[str, EntryRow]] = []
    pages: dict[str, tuple[int, ...]] = {}
    for record, gone in shown.values():
        window = (
            windows.get(record.id)
            or load_context(storage, OpenRequest(record.id, counter=counter, read_only=True, exact=True)).window
        )
        transition, pages[record.id] = _remove(storage, window, record, gone)
        transitions.append(transition)
        # entries before the base belong to the contexts from which it was forked
        rows = readable_at(storage, record.id, [seq for seq in gone if seq >= record.base])
        tombstones += [(record.id, _tombstone(window, seq, _message(row))) for seq, row in rows.items()]
    return Erasure(entries=tuple(tombstones), transitions=tuple(transitions)), pages


def _erase(storage: Storage, erasure: Erasure) -> ErasureReceipt:
    gone = storage.erase(erasure)
    pages, physical = gone.pages + _count_marked(erasure), "done" if gone.scrubbed else "pending"
    return ErasureReceipt(gone.contexts, pages, gone.entries, gone.compactions, gone.ops, physical)


def _count_marked(erasure: Erasure) -> int:
    """Return how many pages are without a message after *erasure*, counted in each context that showed them."""
    return sum(row.state is PageState.ERASED for each in erasure.transitions for row in each.pages)


def _message(row: EntryRow | None) -> Message:
    """Return the message of *row*; None: it can't be read, and its role is not known, either."""
    return decode(ERASED, b"user") if row is None else decode(row.codec, row.body)


def _tombstone(window: Window, seq: int, message: Message) -> EntryRow:
    """Return the tombstone that replaces *message*."""
    role = message["role"]
    body = str("user" if role == "tool" else role).encode()  # a result without its id answers no call
    return EntryRow(seq, ERASED, body, digest(ERASED, body), window.weigh(decode(ERASED, body)))


def _remove(
    storage: Storage, window: Window, record: ContextRecord, seqs: set[int]
) -> tuple[Transition, tuple[int, ...]]:
    """Return the transition of *window* that removes *seqs*, and the pages that held one of them. O(pages)."""
    reader = Reader(storage, record.id)
    gone: dict[int, PageRow] = {}
    changed: dict[int, StoredPage] = {}
    for row in pages_with(storage, record, seqs):
        own = readable_at(storage, record.id, [seq for span in row.spans(record.head) for seq in range(*span)])
        entries = [(entry or tombstone(seq, 1), _message(entry)) for seq, entry in own.items()]
        taken_back = row.state is PageState.UNDONE  # it stays undone: a list passed to `sync` lacks its messages
        if not taken_back and all(entry.seq in seqs or entry.codec == ERASED for entry, _ in entries):
            end = record.head if row.end is None else row.end
            gone[row.index] = row._replace(state=PageState.ERASED, end=end, away=None)
            continue
        for at, (entry, message) in enumerate(entries):
            if entry.seq in seqs:
                left = _tombstone(window, entry.seq, message)
                entries[at] = left, decode(ERASED, left.body)
        changed[row.index] = as_nodes(window, reader, row, entries, recount=True)
    active = [page for page in changed.values() if page.row.state is PageState.ACTIVE]
    views = tuple((node.seq, node.tokens, node.clip) for page in active for node in page.text.nodes)
    contents = _list_again(window, frozenset(gone), changed)
    pages = (*gone, *changed)
    learned = tuple(each for each in window.state.learned if each[0] not in changed)  # of the words that go, perhaps
    erased, erasures = window.state.erased + len(gone), window.state.erasures + 1
    state = window.state._replace(waiting=(), erased=erased, erasures=erasures, since=record.head, learned=learned)
    after = record._replace(
        state=state.without(gone).posting(pages).alone().dumps(),
        revision=record.revision + 1,
        open_page=None if record.open_page in gone else record.open_page,
    )
    rows = [row for row in storage.pages(record.id, state=PageState.ACTIVE) if row.index not in gone]
    made = (snapshots.compaction_of(contents, after, rows, (*window.views, *views)),)
    return Transition(record.head, after, pages=tuple(gone.values()), views=views, compactions=made), pages


def _list_again(window: Window, gone: frozenset[int], changed: Mapping[int, StoredPage]) -> ContentsPage:
    """Return the Contents Page without the pages *gone*, and with new lines for the pages *changed*.

    Without the words of their parts and terms, too.
    """
    nonce, weigh = window.state.nonce, window.weigh
    contents, days = window.contents.without(gone, nonce, weigh), {at: page.text.day for at, page in changed.items()}
    blocks = []
    for block in contents.pages_only.blocks:
        lines = [_line_again(window, old, changed[old.index]) if old.index in changed else old for old in block.lines]
        ranges = [
            ListedRange(
                old.pages,
                tuple((index, term) for index, term in old.terms if index not in changed),
                begun(old.pages, {**old.known_days(), **days}),
            )
            for old in block.ranges
        ]
        same = (tuple(lines), tuple(ranges)) == (block.lines, block.ranges)
        blocks.append(block if same else Block.of(lines, ranges, nonce, weigh))
    told = {each for index, page in changed.items() for each in told_in((index, node) for node in page.text.nodes)}
    blocks += [Block.of_told(each, weigh) for each in contents.told if each.page not in changed or each in told]
    left = {(index, sentence) for index, page in changed.items() for sentence, _ in page.text.clauses}
    instructions = tuple(each for each in contents.instructions if each[0] not in changed or each in left)
    if instructions:
        blocks.append(Block.of_instructions(instructions, nonce, weigh))
    if parts := [replace(part, line="") if part.page in changed else part for part in contents.parts]:
        blocks.append(Block.of_parts(parts, nonce, weigh))
    return ContentsPage(tuple(blocks))


def _line_again(window: Window, old: ListedPage, page: StoredPage) -> ListedPage:
    """Return a new line for *page*, with the entries that *old* shows."""
    (new,) = list_pages(window, [page], {}, window.settings.contents_tokens)
    shown = {entry.ordinal for entry in old.entries}
    entries = [each for each in entries_of(window, page, None, new.line, window.limits.budget) if each.ordinal in shown]
    return ListedPage.of(old.index, new.line, entries, window.count, old.joined, new.day)
