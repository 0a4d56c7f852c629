"""A stand-in for a model: answers as long as those of a model, made of the request's own words.

    page      a title of 8 words, 16 words of each message that is asked for, 6 keywords, an event now and then
    topics    one theme for the batch        analysis   two facts of the user, one of the assistant, a trait …

Its answers mean nothing, so that nothing is measured but how much is sent and how much comes back. Tokens are counted
with the vocabulary o200k. This module knows nothing of memories.
"""

import json
from collections.abc import Sequence
from typing import Any

from memci.llm import Reply, Usage
from memci.messages import Message
from memci.tokens import counter_for, message_tokens

_COUNT = counter_for("gpt-4o-mini", None)
_TITLE, _LINE, _SENTENCE = 8, 16, 14
"""words"""


class StandIn:
    """A `memci.llm.ChatModel` that answers each step of a memory."""

    def __call__(
        self,
        messages: Sequence[Message],
        /,
        *,
        step: str = "chat",
        tools: Sequence[Message] = (),  # noqa: ARG002
        answer: type | None = None,  # noqa: ARG002
        attempt: int = 0,  # noqa: ARG002
        max_tokens: int | None = None,  # noqa: ARG002
    ) -> Reply:
        """Return an answer for *step*."""
        text = json.dumps(_ANSWERS[step](_shown(messages)), ensure_ascii=False)
        prompt = sum(message_tokens(message, _COUNT, "gpt-4o-mini") for message in messages) + 3
        return Reply({"role": "assistant", "content": text}, Usage(prompt, _COUNT(text)))


def _shown(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the JSON lines that the model is shown."""
    lines = str(messages[-1]["content"]).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def _text(line: dict[str, Any]) -> str:
    return next((line[role] for role in ("user", "assistant", "tool", "text", "other") if role in line), "")


def _words(text: str, most: int) -> str:
    return " ".join(text.split()[:most]) or "A short remark"


def _first(shown: list[dict[str, Any]]) -> str:
    return next((text for line in shown if (text := _text(line))), "")


def _key(text: str) -> list[str]:
    return sorted({word.strip(".,!?'\"").lower() for word in text.split() if len(word) > 4})[:6]


def _page(shown: list[dict[str, Any]]) -> dict[str, Any]:
    first = _first(shown)
    return {
        "title": _words(first, _TITLE),
        "lines": [{"entry": line["entry"], "line": _words(_text(line), _LINE)} for line in shown if "entry" in line],
        "keywords": _key(first),
        "events": [{"what": _words(first, _SENTENCE), "who": "user", "when": None, "importance": 0.6}]
        if len(first) % 4 == 0
        else [],
    }


def _topics(shown: list[dict[str, Any]]) -> dict[str, Any]:
    first = _first(shown)
    pages = [line["page"] for line in shown if "page" in line]
    theme = {"theme": _words(first, _TITLE), "keywords": _key(first), "content": _words(first, 2 * _SENTENCE)}
    return {"themes": [{**theme, "pages": pages}]}


def _analysis(shown: list[dict[str, Any]]) -> dict[str, Any]:
    sentences = [_words(_text(line), _SENTENCE) for line in shown if _text(line)]
    return {
        "traits": [{"dimension": "formality", "level": "low", "reason": "short, casual messages", "page": 1}],
        "user": [{"fact": each, "page": 1} for each in sentences[:2]],
        "assistant": [{"fact": each, "page": 1} for each in sentences[2:3]],
    }


def _concepts(shown: list[dict[str, Any]]) -> dict[str, Any]:
    words = _key(_first(shown)) or ["talk"]
    relations = [{"subject": "user", "relation": "mentions", "object": word, "page": 1, "date": None} for word in words]
    return {"relations": relations[:4]}


def _day(shown: list[dict[str, Any]]) -> dict[str, Any]:
    return {"summary": _words(_first(shown), 2 * _SENTENCE), "mood": "neutral"}


def _conversation(shown: list[dict[str, Any]]) -> dict[str, Any]:
    first = _first(shown)
    return {
        "summary": _words(first, 3 * _SENTENCE),
        "topics": _key(first)[:4],
        "sentiment": "neutral",
        "moments": [_words(first, _SENTENCE)],
    }


def _strategy(shown: list[dict[str, Any]]) -> dict[str, Any]:
    first = _first(shown)
    return {"strategy": _words(first, 3 * _SENTENCE), "tags": _key(first)[:3]}


_ANSWERS = {
    "page": _page,
    "topics": _topics,
    "analysis": _analysis,
    "concepts": _concepts,
    "day": _day,
    "conversation": _conversation,
    "strategy": _strategy,
}
