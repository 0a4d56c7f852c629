"""Summaries of a page: a title, and one line per message.

    from memci.text.summarize import extract

    summary = extract(messages)             # needs no model, gives the same lines on every machine
    summary.title                           # "Change my flight to May 27 · OI5L9G"
    summary.lines[2]                        # "find_booking → {id: OI5L9G, date: 2024-05-27, 9 keys}"

`extractive` makes the lines of what each person `said`; `gists` finds what says most, within its `bounds`;
`structured` shortens JSON values, and `observations` reads the shells of agents without tools.
"""

from ..sanitize import one_line as one_line
from .extractive import LINE_COLUMNS as LINE_COLUMNS
from .extractive import SAID_COLUMNS as SAID_COLUMNS
from .extractive import TITLE_COLUMNS as TITLE_COLUMNS
from .extractive import Summary as Summary
from .extractive import Title as Title
from .extractive import extract as extract
from .extractive import lines as lines
from .extractive import reads as reads
from .extractive import titled as titled
from .extractive import titles as titles
