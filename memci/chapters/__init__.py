"""Chapters: ordered runs of pages, each with a list of messages. Internal: the model never sees them.

    system    the prompt and the notice         never changes
    archive   the Contents Page                 changes at a compaction
    active    recent pages, verbatim            grows at its tail

`contents` has the Contents Page, a value; `folding` and the rules of `unload` make it smaller.
"""

from .active import ActiveChapter as ActiveChapter
from .chapter import Chapter as Chapter
from .chapter import Entry as Entry
from .chapter import Page as Page
from .contents import ArchiveChapter as ArchiveChapter
from .contents import ContentsPage as ContentsPage
from .messagelist import MessageList as MessageList
from .messagelist import MessageNode as MessageNode
from .unload import NeverRecalled as NeverRecalled
from .unload import Stale as Stale
