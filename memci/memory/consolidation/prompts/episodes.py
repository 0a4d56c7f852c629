r"""Topics and episodes, as a model names and summarizes them, from raw pages and never from an earlier summary.

    #1 flight   #2 seat   #3 dog   #4 vet      ──▶   "Flight to Oslo" [1, 2]      "The dog is ill" [3, 4]
    Episode "Flight to Oslo\nSeat …" + its pages   ──▶   Retold("Mel moved OI5L9G to May 27.\nA refund …", …, 0.7)

A batch has two topics at most, and each page is in one of them: a page that the model left out, or put twice, goes to
the topic that it is most like. This module knows nothing of heat, or of where episodes are stored.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ....llm import ChatModel
from ...backend import PageKey, PageRecord
from ...tiers.episodes import LINE_COLUMNS, MOST_LINES, Episode
from ...tiers.episodes import MOST_KEYWORDS as EPISODE_KEYWORDS
from ...tiers.topics import CONTENT_LINES, MOST_KEYWORDS, THEME_COLUMNS, PageFeatures, Topic, likeness, mean, named
from .page_text import MOST, RULES, cut, framed, shown_values
from .validation import AnswerSchema, asked, share, stated, told, words

MOST_THEMES = 2
CONTENT_COLUMNS = 100
_PAGE = 300
_LEAST = 30


class ThemeAnswer(AnswerSchema):
    """A theme, and the pages that are about it."""

    theme: str
    keywords: list[str]
    content: str
    pages: list[int]


class ThemesAnswer(AnswerSchema):
    """What a batch is about."""

    themes: list[ThemeAnswer]


THEMES_PROMPT = f"""\
Sort the pages of a conversation by what they are about: one theme, or two if they clearly differ. {RULES}
{{"themes": [{{"theme": "at most 8 words", "keywords": ["at most 8 words or names"], \
"content": "what was said about it, one or two sentences", "pages": [1, 2]}}]}}
Each page stands in exactly one theme. Copy names, ids, numbers and dates as they stand."""


def themes(chat: ChatModel, batch: Sequence[PageFeatures]) -> list[Topic]:
    """Return one or two topics of *batch*, that of the first page first; none for no pages. One call."""
    if not batch:
        return []
    each = max(_LEAST, min(_PAGE, MOST // len(batch)))
    shown = shown_values(
        {"page": number, "title": page.title, "text": cut(page.text, each)} for number, page in enumerate(batch, 1)
    )

    def read(answer: ThemesAnswer) -> list[Topic]:
        given = [each for each in answer.themes if told(each.theme, THEME_COLUMNS)][:MOST_THEMES]
        if not given:
            raise ValueError("no theme is named")
        return _divided(batch, given, shown.said)

    return asked(chat, THEMES_PROMPT, shown.text, ThemesAnswer, read, step="topics", most=600 + 8 * len(batch))


def _divided(batch: Sequence[PageFeatures], given: Sequence[ThemeAnswer], said: str) -> list[Topic]:
    claims = [{number - 1 for number in each.pages if 1 <= number <= len(batch)} for each in given]
    groups = [sorted(own - set().union(*claims[:at], *claims[at + 1 :])) for at, own in enumerate(claims)]
    found = [_theme(each, [batch[at] for at in group], said) for each, group in zip(given, groups, strict=True)]
    settled = {at for group in groups for at in group}
    for at, page in enumerate(batch):
        if at not in settled:
            alike = [likeness(page, theme) for theme in found]
            groups[alike.index(max(alike))].append(at)
    topics = [named(batch, sorted(group), theme) for theme, group in zip(found, groups, strict=True) if group]
    return sorted(topics, key=lambda topic: topic.pages[0])


def _theme(answer: ThemeAnswer, pages: Sequence[PageFeatures], said: str) -> Topic:
    lines = [stated(line, CONTENT_COLUMNS, said) for line in answer.content[:8_000].splitlines()]
    return Topic(
        stated(answer.theme, THEME_COLUMNS, said),  # "": `named` names the topic by its pages
        words(answer.keywords, MOST_KEYWORDS, said),
        "\n".join(list(filter(None, lines))[:CONTENT_LINES]),
        vector=mean([page.vector for page in pages]),
    )


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


EPISODE_PROMPT = f"""\
These pages of a conversation are about one topic. Tell what happened, so that it need not be read again. {RULES}
{{"summary": ["at most 8 lines of at most 15 words, in order, the first says what the topic is"],
"keywords": ["at most 12 words or names"],
"importance": 0.5}}
Copy names, ids, numbers, dates and paths as they stand. Importance is from 0 to 1: 0.2 small talk, 0.5 plans and \
tasks, 0.9 changes a life or a business."""


def retold(chat: ChatModel, episode: Episode, pages: Sequence[PageRecord]) -> Retold:
    """Return what *chat* says of *episode* from all its raw *pages*. One call."""
    shown = framed(pages)

    def read(answer: EpisodeAnswer) -> Retold:
        given = [line for each in answer.summary[:100] for line in each[:8_000].splitlines()]
        lines = list(filter(None, dict.fromkeys(stated(each, LINE_COLUMNS, shown.said) for each in given)))
        if not lines:
            raise ValueError("the summary says nothing, or has ids that are not in the texts")
        own = words(answer.keywords, EPISODE_KEYWORDS, shown.said)
        both = tuple(dict.fromkeys((*own, *episode.keywords)))[:EPISODE_KEYWORDS]
        return Retold("\n".join(lines[:MOST_LINES]), both, share(answer.importance), shown.sent)

    return asked(chat, EPISODE_PROMPT, shown.text, EpisodeAnswer, read, step="episode", most=800)
