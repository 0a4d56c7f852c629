"""How a context uses its past, as the cache policy counts it: from how far back the arguments of tool calls come.

    tool       {"reservation": "HAT136", …}          ◀─── a use of what was said before the call
    ───── gap: the prompt cache expired ─────             far, if it was said only before the gap
    assistant  bash("cancel.sh HAT136 | tee log")

Uses are counted now and then, at a compaction at the latest: all messages since are in the window then. The gaps since
are kept until then. Of pages that left, the words with digits are kept with the compaction, as numbers.
"""

from binascii import a2b_base64, b2a_base64
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from struct import iter_unpack, pack

from ..chapters.chapter import Page
from ..chapters.messagelist import MessageNode
from ..messages import Message, text_of, tool_calls
from ..segments.cache_policy import SOON, CacheUse
from ..text.language.identifiers import identifiers, needed
from ..text.language.questions import is_question
from ..text.language.sentences import greets
from ..text.summarize.extractive import tells
from ..workers import cached_property
from .page_text import WORD, marks, said
from .window import Window

CALLS = 64  # tool calls that one count considers, the newest ones: as many as messages between two counts
WORDS = 512  # words that are kept of the pages of one compaction, the newest ones: about 2.7 kB
_THANKS = 60  # tokens of each of the two messages of a page of thanks, at most
_PACE = 0.05  # the weight of one model call in the moving mean: about the last twenty count
NAMES = 16  # of what a call names, so much is looked for: a command or a text of code may name more
Marks = tuple[int, frozenset[int]]  # numbers of words, and the seq before which those were said


def count_uses(window: Window, use: CacheUse, behind: Callable[[], Iterable[Marks]]) -> CacheUse:
    """Return *use* with what *window* used of its past since. O(text in the window since the gap before, at most).

    *behind* returns the marks of pages that left the window.
    """
    new: list[MessageNode] = []
    """the messages up to the last answer, newest first"""
    for node in reversed(window.active.messages):
        if node.seq < use.counted:
            break
        if new or node.message["role"] == "assistant":
            new.append(node)
    if not new:
        return use if window.record.head < use.counted + SOON else use._replace(counted=window.record.head)
    grow, added, calls = use.grow, 0, []
    for node in reversed(new):
        added += node.tokens
        if node.message["role"] == "assistant":
            grow, added = grow + _PACE * (added - grow) if grow else float(added), 0
            calls += [(node.seq, call) for call in tool_calls(node.message)]
    past = _Past(window, use.breaks, behind) if calls else None
    found = [far for seq, call in calls[-CALLS:] if past is not None and (far := past.is_far(seq, call)) is not None]
    found += [quotes[0] not in window.rows for node in new if (quotes := node.quotes) is not None]
    counted = new[0].seq + 1
    breaks = use.breaks[bisect_right(use.breaks, counted) - 1 :]
    uses, behind_gap = use.uses + len(found), use.far + sum(found)
    return use._replace(grow=round(grow, 2), uses=uses, far=behind_gap, counted=counted, breaks=breaks)


def begins_task(window: Window, message: Message) -> bool:
    """Return whether *message*, of the user, begins another task: it greets, or follows thanks, with a new request.

    If it names something that was said since the last gap, it goes on with the same task. A wrong end costs little: it
    drops nothing before three of them, and only while hardly anything from before an end is needed again.
    O(1); after thanks, or with a greeting, O(text since the last gap).
    """
    opened = window.active.open
    if opened is None or message["role"] != "user":
        return False
    text = text_of(message)
    if not (greets(text) or _thanks(opened)) or not tells(text):
        return False
    names = set(identifiers(text))
    return not names or not any(
        name in told for _, told in _said_since(window, window.state.cache.gap) for name in names
    )


def _said_since(window: Window, seq: int) -> Iterator[tuple[int, str]]:
    """Yield what each message from *seq* on says, behind its seq. O(their text), once."""
    for page in window.active:
        if page.tail is not None and page.tail.seq >= seq:
            text = window.text_of(page)
            yield from [(node.seq, told) for node, told in zip(text.nodes, text.said, strict=True) if node.seq >= seq]


def _thanks(page: Page) -> bool:
    """Return whether *page* is a short one on which the user only thanks, or says goodbye, and asks nothing."""
    head, tail = page.head, page.tail
    if head is None or tail is None or not (head is tail or head.next is tail):
        return False
    if head.tokens >= _THANKS or tail.tokens >= _THANKS:  # known without reading
        return False
    text = text_of(head.message)
    return not (is_question(text) or tells(text))


class _Past:
    """All text in a window, to be searched. *breaks*: the gap in front of the calls, and those between them."""

    def __init__(self, window: Window, breaks: Sequence[int], behind: Callable[[], Iterable[Marks]]) -> None:
        self._nodes, self._behind, self._breaks = window.active.messages, behind, breaks
        since = list(_said_since(window, breaks[0]))
        self._seqs = [seq for seq, _ in since]
        """of the messages behind the first gap"""
        self._text = "\n".join([told for _, told in since])
        self._starts = list(accumulate([len(told) + 1 for _, told in since], initial=0))
        """where each of them begins in their text, and where it ends"""
        self._constant = f"{window.system.prompt or ''}\n{window.schemas}"

    def is_far(self, seq: int, call: Message) -> bool | None:
        """Return whether *call* needs something from before the last gap; None if it uses nothing that was said."""
        gap = self._breaks[bisect_right(self._breaks, seq) - 1]
        found, start, end = None, self._place(gap), self._place(seq)
        arguments = str((call.get("function") or {}).get("arguments", ""))
        for leaf in islice(dict.fromkeys(needed(arguments)), NAMES):
            if found is False and not gap:
                break
            near = self._text.rfind(leaf, start, end) >= 0
            if not (near or gap) or leaf in self._constant:
                continue
            if near:
                found = False
            elif self._text.rfind(leaf, 0, start) >= 0 or self._was_said_earlier(leaf, gap):
                return True
        return found

    def _place(self, seq: int) -> int:
        """Return where the message *seq* begins in the text."""
        return self._starts[bisect_left(self._seqs, seq)]

    @cached_property
    def _earlier(self) -> str:
        """What was said in the window before the first gap."""
        return "\n".join([said(node.message) for node in self._nodes if node.seq < self._breaks[0]])

    def _was_said_earlier(self, leaf: str, gap: int) -> bool:
        if leaf in self._earlier:
            return True
        if not WORD.fullmatch(leaf):
            return False
        mark = next(iter(marks(leaf)), None)
        return mark is not None and any(mark in words for until, words in self._behind() if until <= gap)


def pack_marks(pages: Iterable[Sequence[int]], until: int) -> str | None:
    """Return the marks of *pages*, which leave the window, as text; None if there are none. *until*: the seq behind."""
    found = list(dict.fromkeys(mark for page in pages for mark in page))[-WORDS:]
    return f"{until} {b2a_base64(pack(f'<{len(found)}I', *found), newline=False).decode()}" if found else None


def unpack_marks(text: str) -> Marks:
    """Return what `pack_marks` wrote. ValueError if it did not write *text*."""
    until, _, marks = text.partition(" ")
    raw = a2b_base64(marks, strict_mode=True)
    if len(raw) % 4:
        raise ValueError("marks: expected numbers of four bytes")
    return int(until), frozenset(mark for (mark,) in iter_unpack("<I", raw))
