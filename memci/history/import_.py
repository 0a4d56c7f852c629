"""Importing: makes one transition of the lines of an export, after all of them are checked.

    lines  ──▶  rows, each checked  ──▶  a store in RAM: opened, its window counted again  ──▶  one commit

A file may have been cut, edited or made up. Then the error names the line, and nothing is stored. All rows are in
memory before they are stored.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from ..chapters.contents import Block, ListedPage
from ..errors import BudgetExceeded, InvalidSetting, LimitExceeded, MemciError, SchemaTooNew, WriteConflict
from ..rows import CONTEXT, ContextRecord, ViewRow
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.audit import audit
from ..storage.names import new, taken
from ..storage.protocol import Transition
from ..storage.validation import check_text
from ..window import snapshot as snapshots
from ..window.window import Window
from .export_format import END, ORDER, Checksum, check_header, fields_of, row_of_line, stored_text, strip_line
from .loader import OpenRequest, load_context
from .row_stream import TABLE_OF, Row, store_in_ram, transition_of
from .verify import RowChecks

_AGAIN: Final = "export the context again, or take another copy of the file"


@checked
def import_lines(
    storage: Storage,
    lines: Iterable[str],
    *,
    id: str | None = None,  # noqa: A002
    request: OpenRequest | None = None,
    key: bytes | None = None,
) -> str:
    """Store the context that *lines* hold, whole or not at all, and return its id (see `Context.import_`).

    O(lines), all of them in memory. *lines*: the lines of `export_lines`, with or without newlines, of one context. If
    *request* is given, the context is first opened with it, but for its id; errors are raised before it is stored.
    """
    found = list(read_transitions(lines, request=request, key=key))
    if len(found) != 1:
        raise InvalidSetting("file", f"expected one context, it has {len(found):,}: import each by itself")
    return commit_import(storage, found[0], id=id)


def commit_import(storage: Storage, transition: Transition, *, id: str | None = None) -> str:  # noqa: A002
    """Store a transition of `read_transitions` under the id *id*, and return its id in the store. O(rows)."""
    record = transition.record
    record = record._replace(id=new(storage, record.id if id is None else id, record.owner))
    audit(storage, "import", context=record.id, owner=record.owner, messages=record.head)
    try:
        storage.commit(transition._replace(record=record))
    except WriteConflict:
        raise taken(record.id) from None
    return record.id


def read_transitions(
    lines: Iterable[str], *, request: OpenRequest | None = None, key: bytes | None = None
) -> Iterator[Transition]:
    """Yield a checked transition for each context in *lines*; contexts follow one another. O(lines).

    Raises as `import_lines`, when a wrong line is reached.
    """
    texts = ((number, strip_line(number, line)) for number, line in enumerate(lines, 1))
    numbered = ((number, text) for number, text in texts if text.strip())
    first = next(numbered, None)
    if first is None:
        raise InvalidSetting("file", f"it is empty: {_AGAIN}")
    while first is not None:
        yield _transition(_rows(chain([first], numbered), Checksum(key)), request)
        first = next(numbered, None)


def _rows(numbered: Iterator[tuple[int, str]], checksum: Checksum) -> list[Row]:
    """Return the rows of the first context in the lines *numbered*, after checking each, and all together."""
    rows: list[Row] = []
    for number, text in numbered:
        try:
            kind, fields = _parse(text, rows)
            if kind == END:
                checksum.check(fields)
                break
            row = row_of_line(kind, fields, rows[-1] if rows else None)
            if isinstance(row, ContextRecord):
                checks = RowChecks(row)
            checks.check(row)
            rows.append(row)
            checksum.add(text)
        except LimitExceeded as error:
            raise LimitExceeded(f"file, line {number:,}: {error.limit}", error.value, error.at_most) from None
        except SchemaTooNew as error:
            raise SchemaTooNew(f"file, line {number:,}: {error}") from None
        except ValueError as error:
            reason = error.reason if isinstance(error, InvalidSetting) else error
            raise InvalidSetting("file", f"line {number:,}: {reason}: {_AGAIN}") from None
    else:
        raise InvalidSetting("file", f'it was cut: the line {{"kind":"end",…}} is missing: {_AGAIN}')
    for problem in checks.whole():
        raise InvalidSetting("file", f"{problem}: {_AGAIN}")
    return rows


def _parse(text: str, rows: Sequence[Row]) -> tuple[str, dict[str, Any]]:
    """Return the kind and the fields of the line *text*; a ValueError if it can't follow *rows*."""
    check_text("file", text)
    try:
        fields = fields_of(text)
    except ValueError as error:
        raise ValueError(f"not valid JSON ({error})") from None
    kind = fields.get("kind") if isinstance(fields, dict) else None
    if not isinstance(kind, str) or kind not in ORDER:
        raise ValueError("neither a context nor a part of one, as memci export writes them")
    if not rows:
        check_header(fields)
        return kind, {name: value for name, value in fields.items() if name != "memci"}
    before = TABLE_OF[type(rows[-1])].name
    if kind == CONTEXT.name or ORDER[kind] < ORDER[before]:
        raise ValueError(f"{kind!r} after {before!r}: lines are missing or in another order")
    return kind, fields


def _transition(rows: list[Row], request: OpenRequest | None) -> Transition:
    """Return the transition that stores *rows*, after counting the tokens of the window again. O(rows).

    InvalidSetting if the context does not open; BudgetExceeded if it leaves no room as *request* opens it.
    """
    transition = transition_of(rows)
    record, scratch = transition.record, store_in_ram(transition)
    counter = None if request is None else request.counter
    try:
        window = load_context(scratch, OpenRequest(record.id, counter=counter, read_only=True, recount=True)).window
    except BudgetExceeded:  # the program that exported it counted with a counter of its own
        recounted = transition
    except MemciError as error:
        raise InvalidSetting("file", f"context {record.id!r:.60} would not open: {error}") from None
    else:
        recounted = _recount(transition, window)
    if request is not None:
        load_context(scratch, request._replace(id=record.id, recount=True))
    return recounted


def _recount(transition: Transition, window: Window) -> Transition:
    """Return *transition* with the tokens that *window* counts, unless the context has another counter.

    Otherwise a made-up file could make a window that exceeds its budget.
    """
    if transition.record.read_settings().get("counter") != window.count.name:
        return transition
    views, history = {view[0]: view for view in transition.views}, list(transition.compactions)
    for node in window.active.messages:
        entry, shown = transition.entries[node.seq], ViewRow(node.seq, window.active.own_tokens(node), node.clip)
        if node.seq in views or (shown.tokens, shown.clip) != (entry.tokens, entry.clip):
            views[node.seq] = shown
    if history:
        text = history[-1].text
        contents = replace(window.contents, blocks=tuple(_with_costs(each, window) for each in window.contents.blocks))
        if contents != snapshots.contents(text, nonce=window.state.nonce):
            fields = {**json.loads(text), "contents": contents.to_json()}
            history[-1] = history[-1]._replace(text=stored_text("text", fields))
    return transition._replace(views=tuple(views.values()), compactions=tuple(history))


def _with_costs(block: Block, window: Window) -> Block:
    """Return *block* with the costs of its lines counted again."""
    lines = (
        ListedPage.of(line.index, line.line, line.entries, window.count, line.joined, line.day) for line in block.lines
    )
    return replace(block, lines=tuple(lines))
