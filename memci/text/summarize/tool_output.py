"""What is left of text that a tool printed.

    Traceback (most recent call last):                9 lines: ValueError: bad id 42
      File "/srv/app/main.py", line 3, in load    →   · Traceback (most recent call last):
      … six more lines …                              · /srv/app/main.py
    ValueError: bad id 42

Short output stands as it is. Longer output keeps how many lines it had, its errors, its first line, and the paths,
ids and numbers of the rest.

This module knows nothing of messages or of JSON.
"""

import re
from collections.abc import Sequence

from ..language.error_lines import error_lines, has_error
from ..language.salience import NAME, NUMBER, Piece, salient
from ..sanitize import one_line, width

_JOINT = " · "
_ITEM = 64
_LAST = 60
_SMALLEST = 6
_RULES = " \t\r=-_*#~"
_TOTAL = re.compile(r"\d \w|\d[sm%]")


def digest(text: str, columns: int, *, lines: int, seen: str = "") -> str:
    """Return what is left of *text*, printed in *lines* lines, in about *columns* columns. O(characters)."""
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
    # single capitalised words are mostly headings in what a tool prints
    least = NUMBER if text.isascii() else NAME
    pieces = [piece for piece in salient(text, errors=False) if piece[0] <= least]
    return packed(count + _JOINT.join(kept), pieces, columns, text=text, seen=seen)


def packed(line: str, pieces: Sequence[Piece], columns: int, *, text: str, seen: str = "", shown: str = "") -> str:
    """Return *line*, then those of *pieces* that are not in it, as many as fit, as they stand in *text*. O(pieces).

    What *seen* has comes last, what *shown* has never.
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
        cost = width(item) + len(_JOINT)
        if item in taken:
            continue
        if seen and item in seen:
            late.append(item)
        elif cost <= room:
            chosen.append(item)
            taken = f"{taken}\n{item}"
            room -= cost
    for item in late:
        cost = width(item) + len(_JOINT)
        if cost <= room and item not in chosen:
            chosen.append(item)
            room -= cost
    return _JOINT.join([line, *sorted(chosen, key=text.find)]) if chosen else line
