"""The lines of what has left pages that are still shown: what was done, and the identifiers, errors and results of it.

    #1 entries 2–31: sed ×5, pytest ×2 · TypeError: unsupported operand · src/app.py

A line is made of terms, the most useful first, so that it is shortened at its end. What stands on an earlier line, or
is still shown, is not said again.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..chapters.contents import ListedPart
from ..chapters.messagelist import MessageNode
from ..messages import Message, call_body, call_name, text_of, tool_calls
from ..text.language.identifiers import identifiers
from ..text.language.salience import has_error
from ..text.summarize import one_line
from .page_text import said

TOKENS, SHARE = 600, 0.5  # tokens of all such lines at most, and their share of the ceiling of the Contents Page
MOST = 8  # lines at most: the oldest two become one
_JOIN = " · "
_ACTS, _ERROR_COLUMNS, _TERM_COLUMNS = 4, 80, 100
"""acts on a line, columns of an error, and of an identifier: longer ones are rarely said again"""
_CALLED = 4  # how much more an identifier counts that a call names: what was used is used again
_ESCAPED = re.compile(r"(?<!\\)\\[nrt](?=\w)")  # the end of a line in the arguments of a call: no beginning of a word
_COMMAND = re.compile(r"(?:^|[;&|]\s*)(?:sudo\s+)?([a-z][\w.+-]{1,20})")


def add_part(
    parts: Sequence[ListedPart],
    new: ListedPart,
    nodes: Sequence[MessageNode],
    shown: str,
    room: int,
    count: Callable[[str], int],
) -> list[ListedPart]:
    """Return *parts* with *new*, which says what *nodes* did, in *room* tokens; *shown* is what the window still says.

    O(characters).
    """
    listed = list(parts)
    while len(listed) >= MOST:
        listed = fewer(listed)
    known = {term for part in listed for term in _terms(part)}
    terms = [term for term in _told(nodes) if term not in known and term not in shown]
    listed.append(replace(new, line=_fit(terms, room // 2, count)))
    over = sum(count(part.text) for part in listed) - room
    for at, part in enumerate(listed[:-1]):
        if over > 0:
            size = count(part.text)
            listed[at] = replace(part, line=_fit(_terms(part), max(0, size // 2 - over // 2), count))
            over -= size - count(listed[at].text)
    return listed


def fewer(parts: Sequence[ListedPart]) -> list[ListedPart]:
    """Return *parts* with the oldest two as one line; of two pages, the oldest goes. The last loses words first."""
    first, *others = parts
    if not others:
        return [replace(first, line="")] if first.line else []
    second, *rest = others
    line = _JOIN.join([*_terms(first), *_terms(second)][: 2 * _ACTS])
    return [replace(first, last=second.last, line=line), *rest] if first.page == second.page else others


def _terms(part: ListedPart) -> list[str]:
    return part.line.split(_JOIN) if part.line else []


def _fit(terms: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """Return the first of *terms* that cost at most *room* tokens, as a line."""
    kept: list[str] = []
    for term in terms:
        room -= count(_JOIN + term)
        if room < 0:
            break
        kept.append(term)
    return _JOIN.join(kept)


def _told(nodes: Sequence[MessageNode]) -> Iterator[str]:
    """Yield the terms of a line about *nodes*: what was done, the last error, identifiers, the most used first."""
    acts: Counter[str] = Counter()
    weights: defaultdict[str, float] = defaultdict(float)
    error = ""
    for age, node in enumerate(nodes):
        recent = 1 + age / len(nodes)
        for call in tool_calls(node.message):
            acts.update([_act(call)])
        called = _CALLED if tool_calls(node.message) else 1
        for word in dict.fromkeys(identifiers(_ESCAPED.sub(" ", said(node.message)))):
            if len(word) <= _TERM_COLUMNS:
                weights[word] += called * recent
        if node.message["role"] == "tool":
            short = (line for line in reversed(text_of(node.message).splitlines()) if len(line) < 2 * _ERROR_COLUMNS)
            error = next(filter(has_error, short), error)
    done = ", ".join(f"{act} ×{times}" if times > 1 else act for act, times in acts.most_common(_ACTS))
    for term in (done, error and one_line(error, _ERROR_COLUMNS)):
        if term:
            yield term.replace(_JOIN, ", ")
    for word in sorted(weights, key=lambda word: -weights[word]):
        if (term := one_line(word, _TERM_COLUMNS)) == word:
            yield term


def _act(call: Message) -> str:
    """Return what *call* does: the command that it runs, or the name of its tool."""
    name = one_line(call_name(call), 24)
    try:
        arguments = json.loads(call_body(call).get("arguments", ""))
        command = _COMMAND.search(arguments["command"])
    except (ValueError, TypeError, LookupError, RecursionError):
        command = None
    return command[1] if command else name
