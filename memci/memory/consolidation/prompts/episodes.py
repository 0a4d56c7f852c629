"""Topics, as a model names and summarizes them, from raw pages and never from an earlier summary.

    #1 flight   #2 seat   #3 dog   #4 vet      ──▶   "Flight to Oslo" [1, 2]      "The dog is ill" [3, 4]

A batch has two topics at most, and each page is in one of them: a page that the model left out, or put twice, goes to
the topic that it is most like.
"""

from collections.abc import Sequence

from ....llm import ChatModel
from ...tiers.topics import CONTENT_LINES, MOST_KEYWORDS, THEME_COLUMNS, PageFeatures, Topic, likeness, mean, named
from .page_text import MOST, RULES, cut, shown_values
from .validation import AnswerSchema, asked, stated, told, words

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
