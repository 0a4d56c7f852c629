"""Asks a model to name and summarize the topics of pages; of an earlier summary, it only says
whether they go on from it.

    #1 flight   #2 seat   #3 dog   #4 vet      ──▶   "Flight to Oslo" [1, 2]      "The dog is ill" [3, 4]

Ten pages have at most two topics, and each page is in one of them: a page that the model leaves out, or names twice,
goes to the topic that it is most like.
"""

from collections.abc import Sequence
from dataclasses import replace

from ....llm import ChatModel
from ...tiers.topics import CONTENT_LINES, MOST_KEYWORDS, THEME_COLUMNS, PageFeatures, Topic, likeness, mean, name_topic
from .page_text import MOST, frame_values, shorten
from .validation import AnswerSchema, ask_checked, clean_keywords, clean_line, clean_statement

# limits of an answer, as the prompt asks for: two themes, lines as long as titles of pages
MOST_THEMES = 2
CONTENT_COLUMNS = 100
_PAGE = 300
_LEAST = 30  # tokens of the text of a page at most, and at least, if there are many pages


class ThemeAnswer(AnswerSchema):
    """A theme and its pages."""

    theme: str
    keywords: list[str]
    content: str
    pages: list[int]
    importance: float = 0.5


class ThemesAnswer(AnswerSchema):
    """The answer about a batch."""

    themes: list[ThemeAnswer]
    continues: bool | None = None


def ask_for_themes(chat: ChatModel, batch: Sequence[PageFeatures], before: str = "") -> list[Topic]:
    """Return one or two topics of *batch*, that of the first page first; none for no pages. One call.

    The model also says whether the first page goes on with the talk whose overview is *before*.
    """
    if not batch:
        return []
    each = max(_LEAST, min(_PAGE, MOST // len(batch)))
    shown = frame_values(
        {"page": number, "title": page.title, "text": shorten(page.text, each)}
        | ({"before": before} if before and number == 1 else {})
        for number, page in enumerate(batch, 1)
    )

    def read(answer: ThemesAnswer) -> list[Topic]:
        given = [each for each in answer.themes if clean_line(each.theme, THEME_COLUMNS)][:MOST_THEMES]
        if not given:
            raise ValueError("no theme is named")
        first, *others = _divide(batch, given, shown.said)
        return [replace(first, goes_on=answer.continues if before else None), *others]

    return ask_checked(chat, shown.text, ThemesAnswer, read, step="topics", most=600 + 8 * len(batch))


def _divide(batch: Sequence[PageFeatures], given: Sequence[ThemeAnswer], said: str) -> list[Topic]:
    claims = [{number - 1 for number in each.pages if 1 <= number <= len(batch)} for each in given]
    groups = [sorted(own - set().union(*claims[:at], *claims[at + 1 :])) for at, own in enumerate(claims)]
    found = [_theme(each, [batch[at] for at in group], said) for each, group in zip(given, groups, strict=True)]
    settled = {at for group in groups for at in group}
    for at, page in enumerate(batch):
        if at not in settled:
            alike = [likeness(page, theme) for theme in found]
            groups[alike.index(max(alike))].append(at)
    topics = [name_topic(batch, sorted(group), theme) for theme, group in zip(found, groups, strict=True) if group]
    return sorted(topics, key=lambda topic: topic.pages[0])


def _theme(answer: ThemeAnswer, pages: Sequence[PageFeatures], said: str) -> Topic:
    lines = [clean_statement(line, CONTENT_COLUMNS, said) for line in answer.content[:8_000].splitlines()]
    return Topic(
        clean_statement(answer.theme, THEME_COLUMNS, said),  # "": `named` names the topic by its pages
        clean_keywords(answer.keywords, MOST_KEYWORDS, said),
        "\n".join(list(filter(None, lines))[:CONTENT_LINES]),
        vector=mean([page.vector for page in pages]),
        importance=min(1.0, max(0.0, answer.importance)),
    )
