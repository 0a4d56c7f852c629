"""Asks a model how to treat the user, by the last messages.

The model does not see the output of tools: a web page must not influence how the user is treated.
"""

from collections.abc import Sequence

from ....llm import ChatModel
from ....messages import Message
from .page_text import frame_values, message_text, shorten
from .validation import AnswerSchema, ask_checked, clean_line, clean_statement, has_invented_id

# limits of an answer: the prompt asks for at most three sentences and six single words
STRATEGY_COLUMNS = 400
TAG_COLUMNS = 24
MOST_TAGS = 8
_USER = 200
_ASSISTANT = 60  # tokens of a message: the manner shows in what the user writes


class StrategyAnswer(AnswerSchema):
    """The answer about the last messages."""

    strategy: str
    tags: list[str]


def ask_for_strategy(chat: ChatModel, messages: Sequence[Message]) -> tuple[str, tuple[str, ...]]:
    """Return a strategy and tags by the last *messages*; "" and none if no user speaks in them. One call at most."""
    bounds = {"user": _USER, "assistant": _ASSISTANT}
    said = [
        {role: shorten(message_text(each), bounds[role])}
        for each in messages
        if (role := str(each.get("role"))) in bounds
    ]
    if not any("user" in each for each in said):
        return "", ()
    return ask_checked(chat, frame_values(said).text, StrategyAnswer, _strategy, step="strategy", most=400)


def _strategy(answer: StrategyAnswer) -> tuple[str, tuple[str, ...]]:
    line = clean_statement(answer.strategy, STRATEGY_COLUMNS, "")
    if not line or "[:]//" in line:
        raise ValueError("the strategy says nothing, or names ids or addresses")
    tags = dict.fromkeys(clean_line(each, TAG_COLUMNS).casefold() for each in answer.tags[:100])
    named = [tag for tag in tags if tag and not tag.endswith("…") and not has_invented_id(tag, "")]
    return line, tuple(named[:MOST_TAGS])
