"""Query planning, the first step of a turn: the query for the memory, and the fact of a message to keep.

    "What was the name of that hotel again?"
        ──▶ {"thinking": "…", "need_memory_search": true, "memory_search_query": "hotel in Oslo", …}
    "By the way, I am allergic to nuts."
        ──▶ {…, "should_save_memory": true, "memory_to_save": {"type": "fact", "content": "The user is …"}}

It takes one call of the model, over quotations of the last turns and the message. A failure never fails the turn: no
fact is kept then, and if the model can't be reached, the message itself is the query.
"""

import logging
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel

from ..context.context import Context
from ..errors import AnswerRejected
from ..formats.provenance import parts_of
from ..llm import ask
from ..llm.model import ChatModel
from ..llm.repeated_prompt import unrepeated
from ..memory.tiers.facts import is_of_others
from ..messages import Message, text_of
from ..text.interface import section
from ..text.sanitize import frame, one_line, quote
from .memory_prompt import fit

TURNS = 6  # turns that the analysis sees: enough to resolve "he" and "there", and cheap
LONGEST_QUERY = 400  # characters of a query that a model writes: a few sentences
LONGEST_FACT = 400  # columns of a fact: one sentence, with room
SHARE = 0.25  # the largest share of a request's budget for the last turns, and again for the message
TURNS_TOKENS = 3_000  # tokens that the last turns, and the message, cost at most, even in a large window
MOST = 500  # tokens of an answer at most: a reason, a query and a fact fit well
TRIES = 2  # attempts at most: the user is waiting, so there is one repetition only

_LOG = logging.getLogger(__name__)


class MemoryToSave(BaseModel):
    """A statement of the user that is worth keeping."""

    type: Literal["fact", "relationship"]
    content: str


class AnalysisResult(BaseModel):
    """The analysis of a message, as the model gives it."""

    thinking: str
    need_memory_search: bool
    memory_search_query: str | None = None
    should_save_memory: bool
    memory_to_save: MemoryToSave | None = None

    @property
    def query(self) -> str | None:
        """The query for the memory; None if there is nothing to search for."""
        wanted = (self.memory_search_query or "").strip()
        return wanted[:LONGEST_QUERY] if self.need_memory_search and wanted else None

    @property
    def fact(self) -> str | None:
        """The fact to keep, on one line; None if there is none."""
        kept = self.memory_to_save if self.should_save_memory else None
        return one_line(kept.content, LONGEST_FACT) if kept and kept.content.strip() else None


def analyse(
    chat: ChatModel, text: str, context: Context, *, role: str, language: str = "en"
) -> tuple[AnalysisResult | None, str | None]:
    """Return the analysis of the message *text*, and the query. An error of the model is never raised.

    *role* is the assistant's; *language* is that of the prompt.
    """
    words = section("companion", language)
    request = _messages(text, context, role, words)
    try:
        result = ask(
            chat,
            request,
            AnalysisResult,
            step="analysis",
            tries=TRIES,
            max_tokens=MOST,
            check=lambda given: unrepeated(given, words["analysis"], str(request[-1]["content"])),
        )
    except AnswerRejected:
        return None, None
    except Exception as error:  # noqa: BLE001 -- a caller's model may raise anything; the user gets an answer anyway
        _LOG.debug("no analysis, the memory is searched for the message itself: %s", type(error).__name__)
        return None, text
    kept = result.memory_to_save
    if kept and is_of_others(kept.content, [{"role": "user", "content": text}]):
        result = result.model_copy(update={"memory_to_save": None})
    return result, result.query


def _messages(text: str, context: Context, role: str, words: Mapping[str, str]) -> list[Message]:
    """Return the request. Long turns and messages are shortened to stay within the budget."""
    count = context.count
    room = int(min(TURNS_TOKENS, SHARE * context.budget))
    share = max(1, room // (2 * TURNS))
    body: list[str] = []

    def lines(parts: Mapping[str, str], most: int) -> list[str]:
        return [f"{words.get(who, who)}: {quote(fit(part, most, count))}" for who, part in parts.items()]

    for messages in context.turns(TURNS):
        said = {message["role"]: message for message in messages if text_of(message)}
        for message in filter(None, map(said.get, ("user", "assistant"))):
            body += lines(parts_of(message), share)
    body.insert(0, words["turns" if body else "no_turns"])
    parts = parts_of({"role": "user", "content": text}) or {"user": text}
    body += [words["message"], *lines(parts, room // len(parts))]
    system = words["analysis"]
    if role:
        system += f"\n\n{words['role']}: {quote(fit(role, room // 2, count))}"
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": frame("turns", context.nonce, "\n".join(body))},
    ]
