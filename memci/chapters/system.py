"""The System chapter: the developer's prompt and the constant notice of how to recall. It never changes.

    "You are a travel agent."  +  "Older parts of this conversation are archived. …"  =  one system message

No text of a user, a tool or a model ever enters it.
"""

from collections.abc import Callable

from ..messages import Message
from ..text.interface import section
from .chapter import Chapter
from .messagelist import MessageNode


def notice(*, searchable: bool, language: str = "en") -> str:
    """Return the notice for the model in *language*; *searchable* if there is a memory that it can search."""
    said = section("notice", language)
    return f"{said['heading']}{said['search'] if searchable else ''}{said['window']}"


class SystemChapter(Chapter):
    """One page with one message, or no page. See `SystemSegment` for the arguments."""

    def __init__(self, prompt: str | None, *, notice: str | None, weigh: Callable[[Message], int]) -> None:
        super().__init__()
        text = "\n\n".join(part for part in (prompt, notice) if part)
        if text:
            message: Message = {"role": "system", "content": text}
            self.extend(self.open_page(0, 0), MessageNode(message, weigh(message)))
