"""How to treat a user, as a model reads it from the last messages.

    20 messages   ──▶   "Answer briefly and in French; explain why, with figures.", ("brief", "curious", "precise")

What tools printed is not shown: how somebody is treated is not for a web page to say.
"""

from collections.abc import Sequence

from ....llm import ChatModel
from ....messages import Message
from ...tiers.profile import STRATEGY_MESSAGES
from .page_text import RULES, cut, shown, shown_values
from .validation import AnswerSchema, asked, invented, stated, told

STRATEGY_COLUMNS = 400
TAG_COLUMNS = 24
MOST_TAGS = 8
_USER = 200
_ASSISTANT = 60


class StrategyAnswer(AnswerSchema):
    """What is asked of the last messages."""

    strategy: str
    tags: list[str]


PROMPT = f"""\
Say how an assistant should treat this user, by the way the user writes and reacts. {RULES}
{{"strategy": "language, length, tone, how much to explain: at most 3 sentences",
"tags": ["at most 6 single words for the user's manner"]}}
Manner only: no tasks, no facts, no names, no addresses."""


def treated(chat: ChatModel, messages: Sequence[Message]) -> tuple[str, tuple[str, ...]]:
    """Return a strategy and tags from the last 20 *messages*; "" and none, without a call, if no user speaks in them.

    One call.
    """
    bounds = {"user": _USER, "assistant": _ASSISTANT}
    said = [
        {role: cut(shown(each), bounds[role])}
        for each in messages[-STRATEGY_MESSAGES:]
        if (role := str(each.get("role"))) in bounds
    ]
    if not any("user" in each for each in said):
        return "", ()
    return asked(chat, PROMPT, shown_values(said).text, StrategyAnswer, _strategy, step="strategy", most=400)


def _strategy(answer: StrategyAnswer) -> tuple[str, tuple[str, ...]]:
    line = stated(answer.strategy, STRATEGY_COLUMNS, "")
    if not line or "[:]//" in line:
        raise ValueError("the strategy says nothing, or names ids or addresses")
    tags = dict.fromkeys(told(each, TAG_COLUMNS).casefold() for each in answer.tags[:100])
    named = [tag for tag in tags if tag and not tag.endswith("…") and not invented(tag, "")]
    return line, tuple(named[:MOST_TAGS])
