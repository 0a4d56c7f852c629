"""Drafts: messages that are checked, counted, placed and dated, but not yet stored.

    ("Book me a flight", assistant's reply)   ──▶   Draft: two nodes, the first opens page #12

All that can be wrong with an append is found here, before anything changes.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, tzinfo

from orjson import dumps

from .. import formats
from ..chapters.messagelist import MessageNode
from ..chapters.toolgroups import NO_CALLS, OpenCalls, late_result
from ..errors import InvalidMessage, InvalidSetting, LimitExceeded, brief
from ..messages import Message, call_name, check, is_plain_chat, plain, tool_calls
from ..model_catalog import undated_name
from ..segments.gate import digest_spans
from ..storage.codec import encode
from ..storage.validation import MAX_PAGE
from ..text.moments import is_told, moment
from .draft import Draft, DraftMessage
from .window import Window

BATCH = 10_000  # messages that one append takes at most, since all of them are one transaction


def draft(
    window: Window,
    values: Sequence[object],
    *,
    opens_page: bool | None,
    made: Callable[[Collection[str]], set[str]],
    costs: Mapping[bytes, int],
    gate: bool = True,
    at: str | None = None,
    said: Mapping[bytes, str] | None = None,
) -> Draft:
    """Return *values* (messages, texts of the user, SDK objects, items of any format) as a draft for *window*.

    With *opens_page* a user's message opens a page; None: unless it is directly behind results, which the model has
    not answered. *made* returns those of the given ids that a tool call ever had: O(the context). *costs*: the tokens
    of messages that were counted before, by their bytes. *gate*: whether large results are shown as digests, if the
    settings say so. *at*: when they were said. With *said*, that is only the time of the append: *said* has the times
    at which messages were shown before, by their bytes, and of several interactions only the last one gets a time,
    since the others may be old.

    Raises:
        InvalidMessage: If a message is not what a provider accepts, or not exact JSON.
        LimitExceeded: If one is too large to store, or there are too many.
    """
    if len(values) > BATCH:
        raise LimitExceeded("messages in one append", len(values), BATCH)
    record = window.record
    page, next_page, seq = record.open_page, record.next_page, record.head
    base = window.active.open.base if window.active.open is not None else seq
    unanswered = window.active.unanswered
    waiting = OpenCalls(unanswered) if unanswered else NO_CALLS
    given = _read(window, values, unanswered)
    messages: list[DraftMessage] = []
    known: set[str] = set()
    """ids that a call is known to have"""
    interrupted: list[str] = []
    for position, value in enumerate(given):
        codec, body, message = _exact(value, f"messages[{position}]")
        role = message["role"]
        opens = opens_page or (opens_page is None and not (messages and _is_result(messages[-1])))
        starts = page is None or (role == "user" and opens and not formats.continues(message))
        if page is None or starts:
            page, base, next_page = next_page, seq, next_page + 1
        quotes, late, taken, spans = None, False, None, None
        if role == "tool":
            taken = None if starts else waiting.take(message["tool_call_id"])
            if taken is not None:
                quotes = _quotes(taken[1])
            else:
                late = True
                if message["tool_call_id"] not in known:
                    known |= _made(message["tool_call_id"], given, position, made)
        elif waiting.left or "tool_calls" in message:
            if waiting.left:
                interrupted += waiting.ids
            waiting = OpenCalls(tool_calls(message))
            known.update(waiting.positions)
        whole = tokens = costs.get(body) or window.weigh(message)
        ordinal = seq - base + 1
        if taken is not None and gate and 0 < window.gate < whole and call_name(taken[1]) not in window.tools:
            spans = digest_spans(message, window.gate, taken[1], _task(window, messages, page), window.count)
        view = window.shown(message, 0, page, ordinal, spans)
        if late or view is not message:
            tokens = window.weigh(late_result(view, window.state.nonce) if late else view)
        clip = 0
        if tokens > window.clip_limit:
            view, tokens, clip = window.clip(message, window.clip_limit, page, ordinal, late=late, spans=spans)
        node = MessageNode(message, tokens, seq=seq, clip=clip, quotes=quotes, spans=spans, view=view)
        node.full = whole
        messages.append(DraftMessage(node, starts, (page, ordinal), (codec, body), whole, late))
        seq += 1
    if at is not None:
        _date(messages, at, said)
    return Draft(tuple(messages), tuple(interrupted))


def _date(messages: Sequence[DraftMessage], at: str, said: Mapping[bytes, str] | None) -> None:
    """Set the times of *messages* as `draft` says. O(messages)."""
    last_only, said = said is not None, said or {}
    for each in reversed(messages):
        shown = said.get(each.body[1])
        each.node.at = shown if shown is not None and is_told(moment(shown), moment(at)) else at
        if each.opens and last_only:
            break


def _task(window: Window, messages: Sequence[DraftMessage], page: int) -> list[Message]:
    """Return the user's messages of *page* so far. O(messages of the page)."""
    opened = window.active.open
    nodes = [*(opened if opened is not None and opened.index == page else ())]
    nodes += [each.node for each in messages if each.place[0] == page]
    return [node.message for node in nodes if node.message["role"] == "user"]


def _read(window: Window, values: Sequence[object], waiting: Sequence[Message]) -> list[Message]:
    """Return *values* as messages; those of another provider's format are enveloped."""
    messages = [plain(value, f"messages[{position}]") for position, value in enumerate(values)]
    if all(map(is_plain_chat, messages)):
        return messages
    made = formats.read(messages, window.settings.format, waiting=waiting, first=window.record.head)
    model = window.settings.model
    return made if model is None else [formats.made_by(message, undated_name(model)) for message in made]


def _exact(message: Message, path: str) -> tuple[int, bytes, Message]:
    """Check *message*, and return its codec, its bytes and a copy."""
    check(message, path)
    try:
        return encode(message)
    except InvalidMessage as error:
        where = path if error.path == "message" else f"{path}.{error.path}"
        raise InvalidMessage(where, error.reason) from None


def clip_draft(window: Window, draft: Draft, limits: Mapping[int, int]) -> Draft:
    """Return *draft* with messages clipped as *limits* (seq to tokens) says: they are shown so, but stored whole."""
    for node, _, place, _, _, late in draft.messages:
        if node.seq in limits:
            node.view, node.tokens, _ = window.clip(node.message, limits[node.seq], *place, late=late, spans=node.spans)
    return draft


def costs_of(draft: Draft) -> dict[bytes, int]:
    """Return the tokens of the messages of *draft* by their bytes, so that a later append need not count them."""
    whole = (each for each in draft.messages if each.node.view is each.node.message and not each.late)
    return {each.body[1]: each.node.tokens for each in whole}


def timestamp(at: datetime | str | None, zone: tzinfo = UTC) -> str | None:
    """Return *at* as the ISO 8601 text that is stored, in *zone* if it names none; None stays None.

    InvalidSetting if it is no point in time.
    """
    if at is None:
        return None
    if type(at) is datetime and at.tzinfo is UTC:
        return dumps(at).decode()[1:-1]  # the same text in a fifth of the time
    try:
        when = at if isinstance(at, datetime) else datetime.fromisoformat(at)
        when = when if when.tzinfo else when.replace(tzinfo=zone)
        when.astimezone(UTC)  # the memory reads it in UTC
    except (TypeError, ValueError, OverflowError):
        raise InvalidSetting("at", f"expected a datetime or ISO 8601, got {brief(at)}") from None
    return when.isoformat()


def _made(
    call_id: str, messages: Sequence[Message], position: int, made: Callable[[Collection[str]], set[str]]
) -> set[str]:
    """Return those ids that a call ever had, of the ones that *messages* name from *position* on.

    One read finds all of them, however many late results there are. InvalidMessage if no call has *call_id*.
    """
    named = (each.get("tool_call_id") for each in messages[position:])
    found = made({call_id, *(each for each in named if isinstance(each, str))})
    if call_id not in found:
        raise InvalidMessage(f"messages[{position}].tool_call_id", f"no tool call has the id {call_id!r:.80}")
    return found


def _is_result(each: DraftMessage) -> bool:
    """Return whether the message answers a call that waited for it."""
    return each.node.message["role"] == "tool" and not each.late


def _quotes(call: Message) -> tuple[int, int | None] | None:
    """Return the page and entry that the answer to *call* quotes, None if it is no recall."""
    if call_name(call) != "recall_page" or "function" not in call:
        return None
    try:
        arguments = json.loads(call["function"]["arguments"])
        index, entry = arguments["index"], arguments.get("entry")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if any(type(number) is not int or not 1 <= number < MAX_PAGE for number in (index, 1 if entry is None else entry)):
        return None  # there is no such page, so nothing is quoted
    return index, entry
