"""The Archive chapter: pages that left the window, and the Contents Page that lists them.

    pages #1 … #19   in storage, byte for byte        rows   what is stored of the pages that are listed
    its list         root <-> block <-> block <-> (root)     the messages that the model sees instead

It needs memory for the listed pages only, not for every page that was ever archived. This module knows nothing of
storage: it is given the rows.
"""

from ..messages import Message
from ..storage.protocol import PageRow
from .chapter import Chapter
from .contents import ContentsPage
from .messagelist import MessageNode


class ArchiveChapter(Chapter):
    """The listed pages of the archive: their rows, and the Contents Page as messages.

    >>> archive = ArchiveChapter()
    >>> archive.contents.listed, archive.view, archive.tokens
    ([], [], 0)
    """

    def __init__(self) -> None:
        super().__init__()
        self.contents = ContentsPage()
        self.rows: dict[int, PageRow] = {}
        """the rows of the listed pages, by index"""

    @property
    def view(self) -> list[Message]:
        """The messages that list the archived pages. O(blocks)."""
        return [node.view for node in self.messages]

    def show(self, contents: ContentsPage, rows: dict[int, PageRow]) -> None:
        """Show *contents*, which lists the pages in *rows*. O(blocks)."""
        for page in list(self):
            self.detach(page.index)
        for position, block in enumerate(contents.blocks):
            self.extend(self.open_page(position, position), MessageNode(block.message, block.tokens, seq=position))
        self.contents = contents
        self.rows = rows

    def _check(self) -> None:
        super()._check()
        self.contents._check(list(self.rows))
        assert self.messages.tokens == self.contents.tokens, "the list costs what the Contents Page costs"
