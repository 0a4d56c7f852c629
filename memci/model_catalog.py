"""Which vocabulary a model is counted with, by its name.

    "gpt-4o-2024-11-20"          o200k_base     exact: the model's own vocabulary
    "azure/gpt-4"                cl100k_base    exact: what stands before the last "/" is the provider's
    "gpt-oss-120b"               o200k_harmony  exact
    "gpt-9"                      o200k_base     a later model of OpenAI: the latest vocabulary that is public
    "claude-sonnet-4-5"          o200k_base     × 1.35: no vocabulary is public, or none of it is carried here
    "anything-else"              o200k_base     × 1.35

The last two are estimates on the safe side. What is known of other tokenizers: those with vocabularies of 100,000
tokens and more (Llama 3, Qwen, DeepSeek, Gemini, Mistral's later ones) stay within about 1.2 of o200k on English and
code, those with 32,000 and Anthropic's up to 4.6 within about 1.3. Anthropic's from 4.7 on takes up to 1.35 times,
measured up to 1.47 times, as many as the one before it: × 1.6. For Chinese and other scripts than Latin an old, small
vocabulary may take two tokens a character or more, and no fixed factor covers that: give the model's own counter, or
let the usage that it reports correct the counts. This module knows only names: it loads no vocabulary.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_O200K = re.compile(r"(?:chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|o1|o3|o4)(?:$|[-:.@])")
_CL100K = re.compile(
    r"(?:gpt-4|gpt-3\.5|gpt-35)(?:$|[-:@])|text-embedding-(?:3-|ada-002)|(?:davinci|babbage)-002(?:$|:)"
)
_HARMONY = re.compile(r"gpt-oss(?:$|[-:@])")
_OTHER_OPENAI = re.compile(r"gpt-(?:[4-9]|[1-9]\d)(?!\d|all)|chatgpt-|codex-|computer-use-|o[1-9](?:$|-)")
_EARLIER_ANTHROPIC = re.compile(
    r"claude-(?:instant|v?[123](?!\d)|(?:opus|sonnet|haiku)-4(?:$|[-.](?:[0-6](?!\d)|\d{6,})|[-@:](?:latest|\d{6,})))"
)


@dataclass(frozen=True, slots=True)
class Tally:
    """How a model's text is counted: *percent* of the tokens of *vocabulary*, rounded up."""

    vocabulary: str
    percent: int = 100
    exact: bool = True


def plain_name(model: str) -> str:
    """Return the name of *model* as its maker writes it.

    >>> plain_name("OpenRouter/openai/GPT-4o"), plain_name("ft:gpt-4o-mini:us::x")
    ('gpt-4o', 'gpt-4o-mini:us::x')
    """
    name = model.strip().lower().rpartition("/")[2]
    return name.removeprefix("ft:").removeprefix("openai:").removeprefix("openai.").removeprefix("azure:")


@lru_cache(maxsize=256)
def tally_of(model: str | None) -> Tally:
    """Return how the text of *model* is counted; None is o200k_base as it is."""
    if model is None:
        return Tally("o200k_base")
    name = plain_name(model)
    for pattern, vocabulary in ((_O200K, "o200k_base"), (_CL100K, "cl100k_base"), (_HARMONY, "o200k_harmony")):
        if pattern.match(name):
            return Tally(vocabulary)
    if _OTHER_OPENAI.match(name):
        return Tally("o200k_base", exact=False)
    return Tally("o200k_base", percent=160 if is_later_anthropic(name) else 135, exact=False)


def is_openai(model: str | None) -> bool:
    """Say whether *model* is OpenAI's, or None, which is taken for one."""
    tally = tally_of(model)
    return tally.percent == 100


def is_later_anthropic(name: str) -> bool:
    """Say whether *name* is one of Anthropic's from 4.7 on: those have another tokenizer and larger images."""
    at = name.find("claude")
    return at >= 0 and not _EARLIER_ANTHROPIC.match(name, at)
