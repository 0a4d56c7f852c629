"""The Archive chapter: pages that left the window, and the Contents Page that lists them.

    pages #1 … #19   in storage, byte for byte        rows   what is known of the ones that are listed
    its list         root <-> block <-> block <-> (root)     the messages that the model sees instead

Memory goes with what is listed, not with what was ever archived. This module knows nothing of storage: the rows that it
holds are what the store holds, told by who reads it.
"""

from ..storage.protocol import PageRow
from .chapter import Chapter
from .contents import ContentsPage
from .messagelist import MessageNode


class ArchiveChapter(Chapter):
    """The listed pages of the archive."""

    def __init__(self) -> None:
        super().__init__()
        self.contents = ContentsPage()
        self.rows: dict[int, PageRow] = {}
        """the listed pages, by index"""

    def show(self, contents: ContentsPage, rows: dict[int, PageRow]) -> None:
        """Show the compaction *contents*, which lists the pages in *rows*. O(blocks)."""
        for page in list(self):
            self.detach(page.index)
        for position, block in enumerate(contents.blocks):
            self.extend(self.open_page(position, position), MessageNode(block.message, block.tokens, seq=position))
        self.contents = contents
        self.rows = rows

    def _check(self) -> None:
        super()._check()
        self.contents._check(list(self.rows))
        assert self.messages.tokens == self.contents.tokens, "the list costs what the compaction costs"
