"""Overflow: a provider's answer that a request was too long, with the numbers that it names.

    "This model's maximum context length is 8000 tokens. However, your messages resulted in 8412 tokens."
    "prompt is too long: 213462 tokens > 200000 maximum"
    "Your input exceeds the context window of this model."
        ──▶  Overflow(asked=8412, most=8000)   Overflow(213462, 200000)   Overflow(None, None)

The wordings are those of OpenAI, Anthropic, Google, Mistral, Alibaba, vLLM, SGLang, llama.cpp and Bedrock.
"""

import re
from typing import Final, NamedTuple

_NUMBERED: Final = [
    re.compile(re.sub(r"<(\w+)>", r"\\(?(?P<\1>[\\d,]{2,12})\\)?", pattern), re.IGNORECASE)
    for pattern in (
        r"maximum context length is <most> tokens?.{0,120}?\(<asked> in the (?:messages|prompt).{0,20}? <reply> in",
        r"maximum context length is <most> tokens?.{0,80}?(?:resulted in|requested|has|contains) <asked>",
        r"prompt is too long: <asked> tokens > <most>",
        r"exceed context limit: <asked> \+ <reply> > <most>",
        r"input token count <asked> exceeds the maximum number of tokens allowed <most>",
        r"\b(?:contains|request|input|prompt)\b.{0,30}?<asked> tokens?\b.{0,60}?(?:context|maximum)[^\d]{0,40}?<most>",
        r"\b(?:contains|request|input|prompt)\b.{0,30}?<asked> tokens?\b.{0,60}?<most> (?:tokens|maximum)",
        r"input length should be \[\d+, ?<most>\]",
        r"context (?:length|window|size)[^\d]{0,40}<most>",
    )
]
"""the wordings with numbers, the surest first"""
_SAID: Final = re.compile(
    r"context_length_exceeded|(?:prompt|input|request|messages?)\b.{0,20}\b(?:is|are) too (?:long|large)"
    r"|maximum context length"
    r"|exceeds?(?: the)?(?: model's| available| maximum)* (?:context|number of tokens|input|prompt length)"
    r"|context (?:window|length|limit|size)\b.{0,40}\bexceed|(?:exceed\w*|longer than)\b.{0,30}\bcontext"
    r"|input length should be"
    r"|上下文.{0,12}(?:超|长)|输入.{0,12}(?:超|过长)",
    re.IGNORECASE,
)
_OTHERWISE: Final = re.compile(r"rate.?limit|per (?:minute|hour|day)|\bTPM\b|quota", re.IGNORECASE)
"""words of a limit on many requests together"""


class Overflow(NamedTuple):
    """What a provider said of a request that was too long, in its tokens; None for a number that it did not say."""

    asked: int | None  # the tokens of the request
    most: int | None  # the most that a request may have, beside the answer that it asked for


def overflow(error: object) -> Overflow | None:
    """Return what *error*, an exception or its text, says of a request that was too long; None if it is another error.

    O(its text, at most 4,000 characters).
    """
    text = str(error)[:4_000]
    if not _SAID.search(text) or _OTHERWISE.search(text):
        return None
    found = next((found for pattern in _NUMBERED if (found := pattern.search(text))), None)
    if found is None:
        return Overflow(None, None)
    said = {key: int(value.replace(",", "") or 0) for key, value in found.groupdict().items()}
    return Overflow(said.get("asked"), max(0, said["most"] - said.get("reply", 0)))
