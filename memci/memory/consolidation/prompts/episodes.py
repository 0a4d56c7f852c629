r"""The summary of an episode by a model, from the raw pages and never from an earlier summary.

    Episode "Flight to Oslo\nSeat …"  + its pages   ──▶   Retold("Mel moved OI5L9G to May 27.\nA refund …", …, 0.7)

This module knows nothing of heat, or of where episodes are stored.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ....llm import ChatModel
from ...backend import PageRecord
from ...tiers.episodes import LINE_COLUMNS, MOST_KEYWORDS, MOST_LINES, Episode
from .page_text import RULES, PageKey, framed
from .validation import AnswerSchema, asked, share, stated, words


class Retold(NamedTuple):
    """What a model says of an episode, within all bounds."""

    summary: str
    """lines, as an episode has them; never empty"""
    keywords: tuple[str, ...]
    """the model's, then those that the episode had"""
    importance: float
    """from 0 to 1"""
    sent: tuple[PageKey, ...] = ()
    """the pages that the model has read; if some are missing, it knows nothing of those"""


class EpisodeAnswer(AnswerSchema):
    """What is asked of an episode."""

    summary: list[str]
    keywords: list[str]
    importance: float


PROMPT = f"""\
These pages of a conversation are about one topic. Tell what happened, so that it need not be read again. {RULES}
{{"summary": ["at most 8 lines of at most 15 words, in order, the first says what the topic is"],
"keywords": ["at most 12 words or names"],
"importance": 0.5}}
Copy names, ids, numbers, dates and paths as they stand. Importance is from 0 to 1: 0.2 small talk, 0.5 plans and \
tasks, 0.9 changes a life or a business."""


def retold(chat: ChatModel, episode: Episode, pages: Sequence[PageRecord]) -> Retold:
    """Return what *chat* says of *episode* from all its raw *pages*. One call.

    Raises:
        ModelError: If there is no usable answer.
    """
    shown = framed(pages)

    def read(answer: EpisodeAnswer) -> Retold:
        given = [line for each in answer.summary[:100] for line in each[:8_000].splitlines()]
        lines = list(filter(None, dict.fromkeys(stated(each, LINE_COLUMNS, shown.said) for each in given)))
        if not lines:
            raise ValueError("the summary says nothing, or has ids that are not in the texts")
        own = words(answer.keywords, MOST_KEYWORDS, shown.said)
        both = tuple(dict.fromkeys((*own, *episode.keywords)))[:MOST_KEYWORDS]
        return Retold("\n".join(lines[:MOST_LINES]), both, share(answer.importance), shown.sent)

    return asked(chat, PROMPT, shown.text, EpisodeAnswer, read, step="episode")
