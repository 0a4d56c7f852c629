"""Compactions: the next state of the Contents Page, and of the window with it, as a value.

    pages #1 … #9 leave the window        their lines become a new block
    units leave pages that stay           unused pages are unloaded, recalled ones listed again

`make_compaction` builds the value from a plan. Nothing has changed until it is committed and the window takes it in.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from ..chapters.chapter import Entry
from ..chapters.contents import Block, ContentsPage, ListedPage, ListedPart, told_in
from ..chapters.folding import OverCeiling, Revision, last_used
from ..chapters.instructions import Instruction, Instructions, choose_newest, id_of, mark_of, standing_with
from ..chapters.messagelist import MessageNode
from ..chapters.toolgroups import late_result
from ..chapters.unload import UnloadRule, told
from ..messages import Message, tool_calls
from ..rows import PageRow, PageState
from ..segments.budget import Plan
from ..text.language.telling import telling_keys
from ..text.moments import dated
from ..text.summarize import SAID_COLUMNS, Summary, titles
from .cache_use import pack_marks
from .draft import Basis, Compaction, LeavingPart, Prepared, StoredPage
from .page_text import Line, PageText, extract_lines, said
from .parts import SHARE, TOKENS, add_part, fewer
from .window import WORDS, Window

LEAST_COLUMNS = 24  # of the line of a page: about four words
CEILING_PER_COLUMN = 25
"""tokens of the ceiling for which a line of a page is a column longer: a large Contents Page has room for long lines"""
LEAST_LINE = 16  # tokens that the line of an entry costs, about


def make_compaction(
    window: Window,
    plan: Plan,
    *,
    rules: Sequence[UnloadRule],
    recalled: Sequence[StoredPage],
    pinned: Sequence[StoredPage],
    summaries: Mapping[int, Summary],
    prepared: deque[Prepared],
    cold: bool,
) -> Compaction:
    """Return the compaction of *window* that *plan* asks for; the window is not changed.

    The *rules* say which archived pages leave the Contents Page. Pages that were *recalled* are listed again on a line
    of their own, *pinned* ones come back. *summaries* are a model's; others are extracted. A Contents Page that is made
    now is added to those *prepared* before. *cold*: the provider's cache has nothing of the window, so that blocks need
    not keep their bytes. O(messages that leave the window + lines).
    """
    turn, nonce = window.record.turn, window.state.nonce
    rows = dict(window.listed)
    changed: dict[int, PageRow] = {}
    gone: set[int] = set()
    again = {page.row.index for page in recalled}
    back = {page.row.index for page in pinned}
    unloaded: dict[str, tuple[int, ...]] = {}
    for rule in rules:
        named = set(rule([row for index, row in rows.items() if index not in gone], turn))
        if leaves := tuple(sorted(index for index in rows.keys() - again - back - gone if index in named)):
            unloaded[told(rule)] = leaves
            gone.update(leaves)
    before = window.contents
    pages_only = before.pages_only
    improves = plan.archive and not window.settings.every_entry
    better = _improve_lines(window, pages_only, rows, summaries, gone | again | back) if improves else []
    worse = {index for line in better for index in line.pages}
    contents = pages_only.without(frozenset(gone | again | back | worse), nonce, window.weigh)
    pairs = enumerate(zip(pages_only.blocks, contents.blocks, strict=False))
    kept = 0 if cold else next((at for at, (old, new) in pairs if old != new), len(contents.blocks))
    contents = contents.joined(kept, nonce, window.weigh)
    for index in gone:
        changed[index] = rows.pop(index)._replace(state=PageState.UNLOADED)
    for page in pinned:
        rows.pop(page.row.index, None)
        changed[page.row.index] = page.row._replace(state=PageState.ACTIVE)

    leaving: list[StoredPage] = []
    for index in plan.archive:
        view = window.active.page(index)
        assert view is not None, "a plan archives pages of the window"
        leaving.append(StoredPage(window.rows[index], view.base, window.text_of(view)))
    parts = _parts(window, plan)
    for part in parts:
        changed[part.page.index] = window.rows[part.page.index].leaving(part.nodes[0].seq, part.nodes[-1].seq + 1)

    opened = window.active.open
    worked = tuple(each for each in parts if each.page is opened or any(tool_calls(one.message) for one in each.nodes))
    basis = Basis(
        contents,
        before.instructions,
        dict(rows),
        tuple(leaving),
        tuple(recalled),
        better,
        summaries,
        plan,
        worked,
        window.state.dropped,
        before.parts,
        tuple(each for each in before.told if each.page not in back),
    )
    for page in leaving:
        rows[page.row.index] = page.row._replace(state=PageState.ARCHIVED, archived_turn=turn, away=None)
    for page in recalled:
        rows[page.row.index] = page.row._replace(state=PageState.ARCHIVED)
    changed.update((page.row.index, rows[page.row.index]) for page in (*leaving, *recalled))
    made = _next(window, basis, rows, prepared)
    for index in made.unloaded:
        changed[index] = rows.pop(index)._replace(state=PageState.UNLOADED)
    if made.unloaded:
        unloaded[str(OverCeiling(plan.contents))] = made.unloaded
    gave = [*(page.text for page in leaving), *(part.text for part in parts)]
    keeps = gave and window.levels.cold is not None and window.state.cache.uses
    until = max((text.nodes[-1].seq + 1 for text in gave), default=0)
    return Compaction(
        contents=made.contents,
        listed=rows,
        changed=tuple(changed.values()),
        archived=plan.archive,
        leaving={part.page.index: (part.nodes[0], part.nodes[-1]) for part in parts},
        restored=tuple(page._replace(row=changed[page.row.index]) for page in pinned),
        views=clip_views(window, plan),
        lead=_lead(window, plan, made.contents, parts),
        unloaded=unloaded,
        marks=pack_marks([text.marks for text in gave], until) if keeps else None,
    )


def _lead(window: Window, plan: Plan, contents: ContentsPage, leaving: Sequence[LeavingPart]) -> int:
    """Return the seq before which messages stand in front of *contents*: the first page.

    It is the oldest, and a longer beginning that stays is cached. Of a page that loses messages it is what is before
    them, and of an open page nothing as long as it loses none: it still grows.
    """
    page = window.active.page(window.state.task or 0)
    if page is None or page.head is None or page.index in plan.archive or not contents.blocks:
        return 0
    ends = [part.nodes[0].seq for part in leaving if part.page is page]
    if window.state.lead > page.head.seq:
        ends.append(window.state.lead)
    if page is not window.active.open and page.tail is not None:
        ends.append(page.tail.seq + 1)
    return min(ends, default=0)


def _next(window: Window, basis: Basis, rows: Mapping[int, PageRow], prepared: deque[Prepared]) -> Prepared:
    """Return the next Contents Page and what it unloads: a prepared one, or one that is made now.

    *rows*: the rows of all pages that are to be listed. Those that were not used for longest are unloaded first.
    """
    turn = window.record.turn
    for known in prepared:
        if known.basis == basis and (known.turn == turn or known.settled):
            return known
    nonce, count, weigh = window.state.nonce, window.count, window.weigh
    shown = _told(window, basis)
    room = basis.plan.contents
    if instructions := _instructions(window, basis):
        block = Block.of_instructions(instructions, nonce, weigh)
        if block.tokens <= room:
            shown.append(block)
            room -= block.tokens
    parts = _listed_parts(window, basis)
    while parts:
        block = Block.of_parts(parts, nonce, weigh)
        if block.tokens <= room:
            shown.append(block)
            room -= block.tokens
            break
        parts = fewer(parts)
    ceiling = OverCeiling(room)
    stored = {page.row.index: page for page in (*basis.leaving, *basis.recalled)}
    fitting = {
        index: summary
        for index, page in stored.items()
        # a summary of another length is of the page with what has left it
        if (summary := basis.summaries.get(index)) is not None and len(summary.lines) == len(page.text.nodes)
    }
    lines = sorted(
        [*list_pages(window, list(stored.values()), fitting, window.settings.contents_tokens), *basis.better],
        key=lambda line: line.index,
    )
    texts = {line.index: line.line for line in lines}
    revision = Revision(
        basis.contents,
        lines,
        ceiling,
        entries=lambda index, room: (
            entries_of(window, stored[index], fitting.get(index), texts[index], room) if index in stored else []
        ),
        order=lambda indexes: ceiling.order([rows[index] for index in indexes]),
        nonce=nonce,
        count=count,
        weigh=weigh,
    )
    contents, unloaded = revision.keep_entries() if window.settings.every_entry else revision.fold()
    before = (*basis.listed.values(), *(page.row for page in (*basis.leaving, *basis.recalled)))
    settled = all(last_used(row)[0] < turn for row in before)
    made = Prepared(basis, turn, settled, ContentsPage((*contents.blocks, *shown)), unloaded)
    prepared.append(made)
    return made


def clip_views(window: Window, plan: Plan) -> tuple[tuple[int, Message, int, int], ...]:
    """Return (seq, view, tokens, clip) of what *plan* clips, and of long words of the user on condensed pages."""
    limits = dict(plan.clips)
    views = []
    pages = [(page, [page.head]) for page in map(window.active.page, plan.condense) if page is not None]
    limits |= {head.seq: WORDS for page, (head,) in pages if head and page.index != window.state.task}
    opened = window.active.open
    for page, node in [(page, node) for page, nodes in [*pages, (opened, opened or ())] for node in nodes]:
        if node is not None and node.seq in limits and page is not None:
            late = node.view["role"] != node.message["role"]
            place = page.index, page.ordinal(node)
            view, tokens, clip = window.clip(node.message, limits[node.seq], *place, late=late, spans=node.spans)
            if tokens >= node.tokens - node.dated:
                continue  # it can't get smaller
            views.append((node.seq, late_result(view, window.state.nonce) if late else view, tokens, clip))
    return tuple(views)


def _parts(window: Window, plan: Plan) -> tuple[LeavingPart, ...]:
    """Return what leaves pages that stay: the answers of those that *plan* condenses, units of the open page."""
    active = window.active
    leaving = [(page, list(page)[1:]) for page in map(active.page, plan.condense) if page is not None]
    if plan.leave and active.open is not None:
        first = int(active.task is not None)
        units = islice(active.units(active.open), first, first + plan.leave)
        leaving.append((active.open, [node for unit in units for node in unit]))
    return tuple(LeavingPart(page, tuple(nodes), PageText(nodes)) for page, nodes in leaving)


def _listed_parts(window: Window, basis: Basis) -> list[ListedPart]:
    """Return the lines of what has left the open page, and work on pages that are still shown."""
    archived = {page.row.index for page in basis.leaving}
    parts = [part for part in basis.before if part.page not in archived]
    room = min(TOKENS, int(SHARE * basis.plan.contents))
    for leaving in basis.parts:
        first, last = (leaving.page.ordinal(node) for node in (leaving.nodes[0], leaving.nodes[-1]))
        gone = {node.seq for node in leaving.nodes}
        shown = "\n".join(said(node.view) for node in window.active.messages if node.seq not in gone)
        new = ListedPart(leaving.page.index, first, last, "")
        parts = add_part(parts, new, leaving.nodes, shown, room, window.count)
    return parts


def _told(window: Window, basis: Basis) -> list[Block]:
    """Return what the program told the model, before and on pages that leave, each in its role: the newest that fit.

    What it told again on a page that stays is not shown twice.
    """
    gone = [(page.row.index, node) for page in basis.leaving for node in page.text.nodes]
    gone += [(part.page.index, node) for part in basis.parts for node in part.nodes]
    left = {node.seq for _, node in gone}
    stays = {each[2:] for each in told_in([(0, node) for node in window.active.messages if node.seq not in left])}
    newest = {each[2:]: each for each in reversed([*basis.told, *told_in(gone)]) if each[2:] not in stays}
    room, shown = basis.plan.told, list[Block]()
    for each in newest.values():
        block = Block.of_told(each, window.weigh)
        if (room := room - block.tokens) < 0:
            break
        shown.insert(0, block)
    return shown


def _instructions(window: Window, basis: Basis) -> Instructions:
    """Return the user's instructions of the next compaction: the earlier ones, and those on pages that leave.

    They take at most a quarter of the Contents Page. What takes one back stands behind an earlier one.
    """
    before, budget = basis.instructions, min(window.settings.instruction_tokens, basis.plan.contents // 4)
    gave = [(page.row.index, page.text) for page in basis.leaving] + [(p.page.index, p.text) for p in basis.parts]
    new = ((index, clause) for index, text in gave for clause in text.clauses)
    standing = [each for each in standing_with(before, new) if mark_of(*each) not in basis.dropped]
    return choose_newest(standing, budget, window.count) if budget and standing else ()


def instructions_of(window: Window) -> list[Instruction]:
    """Return the user's instructions that stand, and those on the pages of *window*, oldest first. O(its messages)."""
    standing = window.contents.instructions
    new = [(page.index, clause) for page in window.active for clause in window.text_of(page).clauses]
    found = dict.fromkeys(standing_with(standing, new))
    return [
        Instruction(id_of(*each), *each, each in standing)
        for each in found
        if mark_of(*each) not in window.state.dropped
    ]


def list_pages(
    window: Window, pages: Sequence[StoredPage], summaries: Mapping[int, Summary], ceiling: int
) -> list[ListedPage]:
    """Return the lines of *pages*, by index and without entries, as long as the *ceiling* of the Contents Page allows.

    A page that only acknowledges joins the line of the page before it, unless each entry is listed. O(characters).
    """
    every = window.settings.every_entry
    columns = min(SAID_COLUMNS, LEAST_COLUMNS + ceiling // CEILING_PER_COLUMN)
    pages = sorted(pages, key=lambda page: page.row.index)
    plain = [page for page in pages if page.row.index not in summaries]
    made = titles([page.text.read_page(columns) for page in plain])
    extracted = {page.row.index: title for page, title in zip(plain, made, strict=True)}
    days = {page.row.index: page.text.day for page in pages}
    lines: list[tuple[int, str, list[int]]] = []
    for page in pages:
        index = page.row.index
        title = extracted.get(index)
        joins = title is not None and not (title.tells or page.row.recall_count or every)
        after = lines and index == max(lines[-1][0], *lines[-1][2], 0) + 1
        if joins and after and days[index] in (None, days[lines[-1][0]]):
            lines[-1][2].append(index)
        else:
            text = title.text if title is not None else summaries[index].title
            lines.append((index, _line(page.row, text, every=every), []))
    if every:  # with a day of its own, a line does not depend on the one before
        lines = [(at, f"({dated(day, day, None)}) {text}" if (day := days[at]) else text, []) for at, text, _ in lines]
        days = dict.fromkeys(days)
    return [ListedPage.of(index, text, (), window.count, joined, days[index]) for index, text, joined in lines]


def entries_of(window: Window, page: StoredPage, summary: Summary | None, line: str, room: int) -> list[Entry]:
    """Return those entries of *page* that say more than its *line*, in about *room* tokens; in a *window* that lists
    each entry, all. O(characters).

    If there is no room for every message, only the user's and the last one of the assistant get an entry, or none does.
    """
    nodes, every = list(page.text.nodes), window.settings.every_entry
    if LEAST_LINE * len(nodes) > (room if every else room // 4):
        last = [node for node in nodes if node.message["role"] == "assistant"][-1:]
        nodes = [node for node in nodes if node.message["role"] == "user" or node in last]
    if LEAST_LINE * len(nodes) > room:
        return []
    if summary is not None:
        said_of: Mapping[MessageNode, Line] = {
            node: (line, telling_keys(line)) for node, line in zip(page.text.nodes, summary.lines, strict=True)
        }
    else:
        said_of = page.text.lines if len(nodes) == len(page.text.nodes) else extract_lines(nodes)
    known = telling_keys(line)
    return [
        Entry(page.row.index, node.seq - page.base + 1, node.message["role"], said_of[node][0])
        for node in nodes
        if every or not known.issuperset(said_of[node][1])
    ]


def improvable(window: Window, plan: Plan) -> list[int]:
    """Return the pages whose lines the compaction of *plan* may still improve: those that were archived last.

    If pages leave the window, everything behind that block changes in any case.
    """
    blocks = window.contents.pages_only.blocks
    return [line.index for line in blocks[-1].lines] if blocks and plan.archive else []


def _improve_lines(
    window: Window,
    contents: ContentsPage,
    rows: Mapping[int, PageRow],
    summaries: Mapping[int, Summary],
    gone: Collection[int],
) -> list[ListedPage]:
    """Return new lines for the newest block of *contents*, where a model's summary came after the page had left."""
    found = []
    for old in contents.blocks[-1].lines if contents.blocks else ():
        if old.index not in summaries or old.index in gone:
            continue
        text = _line(rows[old.index], summaries[old.index].title, every=False)
        if text != old.line:
            found.append(ListedPage.of(old.index, text, (), window.count, old.without(frozenset(gone)).joined, old.day))
    return found


def _line(row: PageRow, title: str, *, every: bool) -> str:
    """Return *title* with how often its page was recalled, and when last; of *every* page, or of those that were."""
    if every and not row.recall_count:
        title += " (never recalled)"
    elif row.recall_count:
        times = "once" if row.recall_count == 1 else f"{row.recall_count} times"
        title += f" (recalled {times}, last in turn {row.last_recalled_turn})"
    return title
