"""Summarise a page without a model: its title, and a line of facts for each message.

    user        Hi! I'd like to move OI5L9G to May 27.    →  Hi! I'd like to move OI5L9G to May 27.
    assistant   (calls find_booking)                      →  find_booking(id=OI5L9G)
    tool        {"id": "OI5L9G", "flights": [… 2 …], …}   →  find_booking → {flights 2×{no: HAT1|HAT2}, 9 keys}
    assistant   (a recall's answer is never summarised)   →  recalled #42 entry 3

An answer that stands alone in a title has a "· " before it. A message that fits on its line is not changed. A longer
one keeps its first sentence with content, and the ids, dates, money, paths, commands, numbers and names of the rest;
those that an earlier line of the page has come last. Longer output of a tool keeps its number of lines, its errors,
its first line, and paths, ids and numbers.

The same messages give the same lines in every process: no model, clock, locale or hash order. At most the first 20,000
and the last 5,000 characters of a message are read. Columns and bounds were chosen by reading lines of real
conversations (airline, LoCoMo, SWE-agent).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from ...errors import InvalidMessage
from ..language.salience import FACT, NAME, NUMBER, Piece, error_lines, find_salient, has_error
from ..language.sentences import is_small_talk, point, request
from ..language.telling import telling_keys
from ..sanitize import JOINT, SCANNED, harmless, one_line, plain, width
from .bounds import clip
from .gists import gists, read_text, weight
from .observations import command, drop_wordless, without_commands
from .parts import Message
from .said import TAIL, Part, clean, content_of, is_observation, parts_of, shorten, speech, split_quotations
from .structured import arguments, pairs, parse_json, shape, values

TITLE_COLUMNS = 120
LINE_COLUMNS = 160
SAID_COLUMNS = 92  # columns of a title for both sides of a dialogue

_Call = tuple[str, str, str]  # id, name and arguments of a call
_Answered = tuple[str, str, str, list[Message]]  # the same, and its results

_SEEN = 4_000
_HEAD_COLUMNS = 76
_ACTS_COLUMNS = 80
_GIVEN_COLUMNS = 32
_COMMAND_COLUMNS = 52
_LEAST_ANSWER = 24
_ACTS = 3  # most calls that a title names
_ASIDE = 40
_ACKNOWLEDGES = 3.5  # the largest weight of a gist that is only an acknowledgement ("Thanks!")
_LONGEST_THANKS = 120  # characters of an acknowledgement: the longest of 2,800 messages has 112
_LEAST_HEAD = 44
_WANTED = 16
_CALL_COLUMNS = 100
_NAME_COLUMNS = 48
_CALLS = 16
_LONGER = 24  # columns that a head may be longer where its end would turn it into its opposite
_ITEM = 64
_LAST = 60
_SMALLEST = 6
_UNANSWERED = "no result"  # of a call that was interrupted: it may not have been done
_RULES = " \t\r=-_*#~"
_TOTAL = re.compile(r"\d \w|\d[sm%]")
_BROKEN_JSON = re.compile(r'[{\[]\s{0,40}["{\[]')
_READS = re.compile(
    r"(?:get|list|find|search|read|view|calculate|think|recall|look|query"
    r"|fetch|check|describe|open|show|retrieve|count)(?:_|[A-Z]|$)"
)
_THINKS = re.compile(r"(?:think|calculate)(?:_|[A-Z]|$)")


class Title(NamedTuple):
    """The text of a page's own line, and whether it is more than an acknowledgement."""

    text: str
    tells: bool


class Summary(NamedTuple):
    """A title of at most 120 columns, and a line of at most 160 for each message (a wide character is 2 columns).

    The lines have neither role nor number: the list that shows them adds those.
    """

    title: str
    lines: tuple[str, ...]  # one per message, in the same order; none is empty


def extract(messages: Sequence[Message], quotes: Sequence[tuple[int, int | None] | None] = ()) -> Summary:
    """Return the title and the lines of one page. O(characters), of at most 25,000 for each message.

    Args:
        messages: One page in OpenAI chat form.
        quotes: For each message the page (and entry) that it quotes, or None; missing ones are None.

    Raises:
        InvalidMessage: If a message is in another form.
    """
    try:
        return Summary(titled([messages], [quotes])[0].text, lines(messages, quotes))
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidMessage("messages", f"give messages in the form of Chat Completions ({error!r})") from error


def lines(messages: Sequence[Message], quotes: Sequence[tuple[int, int | None] | None] = ()) -> tuple[str, ...]:
    """Return the lines of one page, without its title. O(characters)."""
    names = _pair_results(messages)[1]
    made: list[str] = []
    seen = ""
    for index, message in enumerate(messages):
        quote = quotes[index] if index < len(quotes) else None
        if quote is None:
            made.append(_line(message, _calls(message), names.get(index, ""), seen))
        else:
            page, entry = quote
            made.append(f"recalled #{page}" if entry is None else f"recalled #{page} entry {entry}")
        seen = f"{seen}\n{made[-1]}"[-_SEEN:]
    return tuple(made)


def titled(
    pages: Sequence[Sequence[Message]],
    quotes: Sequence[Sequence[tuple[int, int | None] | None]] = (),
    columns: int = SAID_COLUMNS,
) -> list[Title]:
    """Return the titles of *pages*, of about *columns* columns. O(characters).

    Words that many of these pages have weigh little.
    """
    return titles([read_page(page, quotes[at] if at < len(quotes) else (), columns) for at, page in enumerate(pages)])


def titles(pages: Sequence[TitleParts]) -> list[Title]:
    """Return the titles of *pages*, as `read_page` returned them. O(words)."""
    found = gists(
        [[part.reading for part in each.parts] for each in pages],
        [each.room - sum(width(part.show("")) for part in each.parts) for each in pages],
        [each.shown for each in pages],
    )
    made: list[Title] = []
    for each, gist in zip(pages, found, strict=True):
        said = [part.show(span) for part, span in zip(each.parts, gist.spans, strict=True) if span]
        answers = sum(map(bool, gist.spans[: each.answers]))
        asked, answered = JOINT.join(said[:answers]), JOINT.join(said[answers:])
        parts = (asked, each.act, answered)
        if each.thought:
            room = each.columns - sum(width(part) + len(JOINT) for part in (asked, each.act) if part)
            parts = (asked, one_line(request(each.thought), max(_LEAST_ANSWER, room)), each.act)
        if each.act or gist.weight > _ACKNOWLEDGES:
            text = JOINT.join(filter(None, parts)) or each.frame.format(
                clip(request(each.first), each.columns, TITLE_COLUMNS)
            )
            alone = answered == text  # or an answer would read as what was asked
            made.append(Title(one_line(JOINT.lstrip() * alone + text, TITLE_COLUMNS), tells=True))
        else:
            made.append(Title(each.frame.format(clip(request(each.first), _ASIDE, SAID_COLUMNS)), tells=False))
    return made


class TitleParts(NamedTuple):
    """The parts of a title that do not depend on other pages."""

    act: str  # calls and their results
    shown: Collection[str]  # the keys of the words of `act`
    parts: Sequence[Part]  # what the users say, and behind it what the assistant says
    answers: int  # number of the first part of the assistant
    thought: str  # the words in front of the command, of an agent without tools
    first: str  # the title of a page without telling words
    frame: str  # "“{}”" where these are quoted, else "{}", behind the name of who said it
    columns: int
    room: int  # columns for the parts


def tells(text: str) -> bool:
    """Return whether what a user says is more than an acknowledgement ("Thanks!"); a long text is. O(1)."""
    return len(text) > _LONGEST_THANKS or _outweighs_thanks(text)


@lru_cache(maxsize=64)
def _outweighs_thanks(text: str) -> bool:
    """Return whether *text* has more weight than thanks: of a greeting, when it comes, and when its page closes."""
    return weight(text) > _ACKNOWLEDGES


def read_page(messages: Sequence[Message], quotes: Sequence[tuple[int, int | None] | None], columns: int) -> TitleParts:
    """Return the parts of the title of a page; messages that quote another page are left out. O(characters)."""
    own = [each for at, each in enumerate(messages) if at >= len(quotes) or quotes[at] is None]
    act, asked, answered, thought = _show_acts(own, min(_ACTS_COLUMNS, columns)), speech(own, "user"), None, ""
    printed = any(map(is_observation, own))
    if printed and not act:
        text = shorten("\n".join(content_of(each)[0] for each in own if each.get("role") == "assistant"))
        if act := command(text, min(_COMMAND_COLUMNS, columns // 2)):
            answered, thought = "", clean(without_commands(text)).strip()
    if answered is None:
        answered = speech(own, "assistant")
    room = columns // 4 if thought else max(columns // 3, columns - width(act))
    parts = parts_of(own, asked, columns, printed=printed)
    told = "\n".join([part.said for part in parts if not part.quoted])
    first = told or asked or answered or (_line(messages[0], _calls(messages[0]), "", "") if messages else "")
    answers = [Part(read_text(answered, columns), answered)] if answered.strip() and not is_small_talk(answered) else []
    speaker = next((f"{part.speaker}: " for part in parts if not part.quoted and part.speaker), "")
    frame = "“{}”" if asked and not told else speaker.replace("{", "{{").replace("}", "}}") + "{}"
    return TitleParts(act, telling_keys(act), [*parts, *answers], len(parts), thought, first, frame, columns, room)


def _show_acts(messages: Sequence[Message], room: int) -> str:
    """Return the last calls that changed something, else the last calls, as many as fit *room*.

    Results follow them if there is room left, the newest first; the result of a single call always does, and that there
    is none.
    """
    done = [(name, given, results) for _, name, given, results in _pair_results(messages)[0]]
    changes = [each for each in done if not reads(each[0])]
    acts: dict[str, tuple[str, list[Message]]] = {}
    for name, given, results in reversed(changes or [each for each in done if not _THINKS.match(each[0])] or done):
        act = f"{one_line(name, _NAME_COLUMNS)}{_show_given(given)}"
        if acts and (width(act) > room or len(acts) == _ACTS):
            break
        if act not in acts:
            acts[act] = given, results
            room -= width(act) + 2
    shown = []
    for act, (given, results) in acts.items():
        left = max(room - 1, _LEAST_ANSWER if len(acts) == 1 else 0)
        answer = _show_answer(results[0], left, given) if results and left >= _SMALLEST else ""
        answer = answer if results else _UNANSWERED
        shown.append(f"{act} → {answer}" if answer else act)
        room -= width(answer) + 3 if answer else 0
    return "; ".join(shown[::-1])


def _show_given(given: str) -> str:
    named = _named_arguments(given) or {}
    said = values(named, _GIVEN_COLUMNS) or next((each for each in named.values() if isinstance(each, str)), "")
    return f" {one_line(said, _COMMAND_COLUMNS)}" if said.strip() else ""


def _show_answer(message: Message, columns: int, given: str) -> str:
    text, others = content_of(message)
    body = shorten(text).strip()
    value = parse_json(body)
    if value is None and _BROKEN_JSON.match(body):
        value = pairs(body)
    if value:
        return one_line(values(value, columns, seen=given) or "ok", columns)
    errors = error_lines(body)
    said = errors[-1] if errors else _digest(clean(body), columns, lines=body.count("\n") + 1)
    said = said or " ".join(others)
    return one_line(said, columns) if said else ""


def reads(name: str) -> bool:
    """Return whether the *name* of a tool says that it only reads."""
    return _READS.match(name) is not None


def _line(message: Message, calls: Sequence[_Call], name: str, seen: str) -> str:
    text, others = content_of(message)
    user = message.get("role") == "user"
    if refusal := message.get("refusal"):
        others.append(f"refused: {refusal[:SCANNED]}")
    if message.get("role") == "tool":
        line = _show_result(text, others, name, seen)
    elif is_observation(message):
        line = _show_result(drop_wordless(clean(text)), others, name, seen)
    elif calls or others:
        line = _show_mixed("" if text.isspace() else text, others, calls, seen, user=user)
    elif len(text) <= LINE_COLUMNS and "**" not in text and plain(text):
        return text
    else:
        line = _show_said(text, LINE_COLUMNS, seen, user=user)
    return one_line(line, LINE_COLUMNS)


def _show_mixed(text: str, others: Sequence[str], calls: Sequence[_Call], seen: str, *, user: bool) -> str:
    aside = " ".join(others)
    room = LINE_COLUMNS - (width(one_line(aside, _HEAD_COLUMNS)) + 1 if aside else 0)
    if not calls:
        return f"{_show_said(text, max(_LEAST_HEAD, room), seen, user=user)} {aside}"
    if not text:
        return JOINT.join(each for each in (aside, _show_calls(calls, room, seen)) if each)
    called = _show_calls(calls, max(_CALL_COLUMNS, room - len(text) - len(JOINT)), seen)
    said = _show_text(text, max(_LEAST_HEAD, min(_CALL_COLUMNS, room - width(called) - len(JOINT))), seen, called)
    return JOINT.join(each for each in (said, aside, called) if each)


def _show_said(text: str, columns: int, seen: str, *, user: bool) -> str:
    """Return what fits of *text*: of a *user*, what is quoted in whole sentences behind the rest, as a quotation."""
    apart = user and (width(text[: columns + 1]) > columns or "\n" in text)
    own, quoted = split_quotations(text, inline=False) if apart else (text, "")
    if not quoted:
        return _show_text(text, columns, seen)
    least = max(columns // 2, columns * len(own) // len(own + quoted))
    shown = [_show_text(own, max(least, columns - width(quoted[:columns])), seen)] if own.strip() else []
    room = max(_LEAST_HEAD, columns - sum(width(each) + len(JOINT) for each in shown) - len("“”"))
    return JOINT.join([*shown, f"“{_show_text(quoted, room, seen)}”"])


def _show_text(text: str, columns: int, seen: str, shown: str = "") -> str:
    if len(text) <= columns:
        flat = " ".join(harmless(text).replace("**", "").split())
        if width(flat) <= columns:
            return flat
    text = clean(text)
    start, end = point(text)
    # only runs of blanks become shorter in a line
    if len(text) - start <= columns + 2 * (text.count("\n") + text.count("  ")):
        flat = " ".join(text[start:].split())
        if width(flat) <= columns:
            return flat
    pieces = find_salient(text)
    wanted = width("".join([f"{piece}   " for rank, piece in pieces[:_WANTED] if rank <= FACT]))
    most, least = min(_HEAD_COLUMNS, columns * 2 // 3), min(_LEAST_HEAD, columns // 2)
    room = max(least, min(most, columns - wanted))
    head = clip(text[start:end], room, room + _LONGER)
    line = _pack(head, pieces, columns, text=text, seen=seen, shown=shown)
    room = columns - width(line)
    if room < 24:
        return line
    # few salient pieces: use the room for more of the text
    longer = clip(text[start : start + 6 * columns], width(head) + room, columns)
    items = [item for item in line[len(head) :].split(JOINT) if item and item not in longer]
    return JOINT.join([longer, *items])


def _show_result(text: str, others: Sequence[str], name: str, seen: str) -> str:
    lead = f"{one_line(name, _NAME_COLUMNS)} → " if name else ""
    aside = " ".join(others)
    room = LINE_COLUMNS - width(lead)
    scanned = shorten(text)
    body = scanned.strip()
    if not body or body in ("{}", "[]", "null", '""'):
        return lead + (aside or "empty result")
    value = parse_json(body) if scanned is text else None
    if value is None and _BROKEN_JSON.match(body):
        found = pairs(body)
        value = found if len(found) > 1 else None
    if value is not None:
        made = shape(value, room, seen=seen)
    else:
        made = _digest(clean(body), room, lines=text.strip().count("\n") + 1, seen=seen)
    return f"{lead}{made}{' ' if aside else ''}{aside}"


def _digest(text: str, columns: int, *, lines: int, seen: str = "") -> str:
    """Return a digest of *text*, which had *lines* lines, in about *columns* columns. O(characters)."""
    flat = " ".join(text[: 4 * columns].split())
    if len(text) <= 2 * columns and width(flat) <= columns:
        return flat
    rows = text.split("\n")
    head = next((bare for row in rows if (bare := row.strip(_RULES))), "")
    last = next((bare for row in reversed(rows) if (bare := row.strip(_RULES))), "")
    count = f"{lines:,} lines: " if lines > 1 else ""
    errors = error_lines(text)
    lead = [one_line(error, columns // 2) for error in reversed(errors)]
    lead.append(one_line(head, max(24, (columns - len(count)) // 2)))
    if len(last) <= _LAST and (_TOTAL.search(last) or has_error(last)):
        lead.append(last)
    kept = list(dict.fromkeys(lead))
    # in output of tools, single capitalised words are mostly headings
    least = NUMBER if text.isascii() else NAME
    pieces = [piece for piece in find_salient(text, errors=False) if piece[0] <= least]
    return _pack(count + JOINT.join(kept), pieces, columns, text=text, seen=seen)


def _pack(line: str, pieces: Sequence[Piece], columns: int, *, text: str, seen: str = "", shown: str = "") -> str:
    """Return *line* and as many of *pieces* as fit, in the order of *text*, without repetitions. O(pieces).

    Pieces that *seen* has come last; those that *shown* has are left out.
    """
    room = columns - width(line)
    chosen: list[str] = []
    late: list[str] = []
    taken = f"{line}\n{shown}"
    for _, piece in pieces:
        if room < _SMALLEST:
            break
        # 32 characters are at most 64 columns
        item = piece if len(piece) <= _ITEM // 2 else one_line(piece, _ITEM)
        cost = width(item) + len(JOINT)
        if item in taken:
            continue
        if seen and item in seen:
            late.append(item)
        elif cost <= room:
            chosen.append(item)
            taken = f"{taken}\n{item}"
            room -= cost
    for item in late:
        cost = width(item) + len(JOINT)
        if cost <= room and item not in chosen:
            chosen.append(item)
            room -= cost
    return JOINT.join([line, *sorted(chosen, key=text.find)]) if chosen else line


def _show_calls(calls: Sequence[_Call], columns: int, seen: str) -> str:
    shown = calls[:_CALLS]
    made: list[str] = []
    room = columns
    for index, (_, name, given) in enumerate(shown):
        share = max(24, room // (len(shown) - index) - 2)
        label = one_line(name, _NAME_COLUMNS)
        made.append(f"{label}({_arguments(given, max(8, share - width(label) - 2), seen)})")
        room -= width(made[-1]) + 2
    more = len(calls) - len(shown)
    return ", ".join(made) + (f", +{more} calls" if more else "")


def _arguments(given: str, columns: int, seen: str) -> str:
    found = _named_arguments(given)
    if found is None:
        return one_line(given, columns) if given.strip() else ""
    return arguments(found, columns, seen=seen) if found else ""


def _named_arguments(given: str) -> dict[str, object] | None:
    """Return the arguments of a call by name, also of broken JSON; None if there are none."""
    value = parse_json(given.strip()) if len(given) <= SCANNED + TAIL else None
    return value if isinstance(value, dict) else pairs(shorten(given)) or None


def _calls(message: Message) -> list[_Call]:
    found: list[_Call] = []
    for call in message.get("tool_calls") or ():
        custom = call.get("type") == "custom"
        body = call["custom" if custom else "function"]
        found.append((call["id"], body["name"][:200] or "unnamed", body["input" if custom else "arguments"]))
    return found


def _pair_results(messages: Sequence[Message]) -> tuple[list[_Answered], dict[int, str]]:
    """Return the calls of *messages* with their results, and the name of the call of each result, by its place.

    Ids may repeat within a page: a result takes the oldest open call with its id.
    """
    done: list[_Answered] = []
    waiting: dict[str, list[_Answered]] = {}
    answered: dict[str, str] = {}
    names: dict[int, str] = {}
    for index, message in enumerate(messages):
        calls = _calls(message)
        for call_id, name, given in calls:
            done.append((call_id, name, given, []))
            waiting.setdefault(call_id, []).append(done[-1])
        if message.get("role") == "tool":
            key, named = message["tool_call_id"], message.get("name") or ""
            if waiting.get(key):
                call = waiting[key].pop(0)
                call[3].append(message)
                answered[key] = call[1]
            if not calls:
                names[index] = named[:200] if named.strip() else answered.get(key, "")
    return done, names
