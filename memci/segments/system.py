"""The System segment: the beginning of every rendering. It never changes while a context is open.

[ the developer's prompt + the notice that explains recall ]
"""

from collections.abc import Callable

from ..chapters.system import SystemChapter
from ..messages import Message


class SystemSegment:
    """The segment of the System chapter: one system message, or none.

    >>> segment = SystemSegment("You are a travel agent.", notice=None, weigh=lambda message: 9)
    >>> segment.view, segment.tokens
    ([{'role': 'system', 'content': 'You are a travel agent.'}], 9)

    A *notice* (`memci.chapters.system.notice`) tells the model how to recall and search what was archived.
    """

    def __init__(self, prompt: str | None, *, notice: str | None, weigh: Callable[[Message], int]) -> None:
        self.chapter = SystemChapter(prompt, notice=notice, weigh=weigh)
        self.view: list[Message] = [node.view for node in self.chapter.messages]
        """the messages that the segment shows"""
        self.prompt = prompt
        """the developer's prompt, None if there is none"""
        self.tokens = self.chapter.tokens
        """tokens of the segment, framing included"""
