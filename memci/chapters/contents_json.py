"""The Contents Page as JSON: how it is stored, so that a context that is opened again renders the same bytes.

    [[lines, ranges], [lines, ranges], …]    one pair per block

Only what cannot be computed is kept: messages and their tokens are made again from it. This module knows nothing of
where the JSON goes.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..messages import Message
from .contents import Block, ContentsPage, Level, ListedPage, ListedRange
from .pages import Entry


def dumps(contents: ContentsPage) -> str:
    """Return *contents* as JSON."""
    return json.dumps(
        [
            {
                "tokens": block.tokens,
                "lines": [
                    [
                        line.index,
                        line.title,
                        int(line.level),
                        line.costs,
                        [[entry.ordinal, entry.role, entry.summary] for entry in line.entries],
                    ]
                    for line in block.lines
                ],
                "ranges": [[each.pages, each.titles] for each in block.ranges],
                **({"said": block.instructions} if block.instructions else {}),
            }
            for block in contents.blocks
        ],
        ensure_ascii=False,
        separators=(",", ":"),
    )


def loads(text: str, *, nonce: str, weigh: Callable[[Message], int] | None) -> ContentsPage:
    """Return the Contents Page that `dumps` wrote; *weigh* counts its blocks again; None trusts the stored counts."""
    return from_json(json.loads(text), nonce=nonce, weigh=weigh)


def from_json(blocks_json: list[dict[str, Any]], *, nonce: str, weigh: Callable[[Message], int] | None) -> ContentsPage:
    """Return the Contents Page whose JSON was read already (see `loads`)."""
    blocks = []
    for block in blocks_json:
        lines = [
            ListedPage(
                index,
                title,
                tuple(Entry(index, ordinal, role, summary) for ordinal, role, summary in entries),
                tuple(costs),
                Level(level),
            )
            for index, title, level, costs, entries in block["lines"]
        ]
        ranges = [ListedRange(tuple(pages), tuple(tuple(each) for each in titles)) for pages, titles in block["ranges"]]
        instructions = tuple((index, sentence) for index, sentence in block.get("said", ()))
        weighed = weigh if weigh is not None else _unweighed
        new = (
            Block.of_instructions(instructions, nonce, weighed)
            if instructions
            else Block.of(lines, ranges, nonce, weighed)
        )
        blocks.append(new if weigh is not None else replace(new, tokens=block["tokens"]))
    return ContentsPage(tuple(blocks))


def _unweighed(_message: Message) -> int:
    return 0
