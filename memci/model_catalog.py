"""What is known of a model by its name: how its text, tools, images and sound are counted, window and prompt cache.

    facts_of("gpt-4o-2024-11-20")        o200k_base, exact          window 128,000
    facts_of("azure/gpt-4")              cl100k_base, exact         window 8,192      the part behind the last "/"
    facts_of("gpt-oss-120b")             o200k_harmony, exact       window unknown    its server decides
    facts_of("gpt-9")                    o200k_base, an estimate    window unknown    a later model of OpenAI
    facts_of("claude-sonnet-4-5")        o200k_base × 1.35          window 200,000
    facts_of("anything-else")            o200k_base × 1.35          window unknown

**Text.** "Exact" is the model's own vocabulary. For other models the count is an estimate on the safe side. Tokenizers
with 100,000 tokens and more (Llama 3, Qwen, DeepSeek, Gemini, Mistral's later ones) stay within about 1.2 of o200k on
English and code; those with 32,000, and Anthropic's up to 4.6, within about 1.3. Anthropic's from 4.7 on takes up to
1.35 times (measured: 1.47 times) as many as the one before it: × 1.6. For Chinese and other scripts than Latin, an old,
small vocabulary may take two tokens a character or more. No fixed factor covers that: give the model's own counter, or
let the usage that it reports correct the counts.

**Windows** are from the makers' pages up to May 2026: OpenAI's "Models", Anthropic's "Models overview", Google's
"Gemini models". Where input has a limit of its own below the window (gpt-5: 272,000 of 400,000), that limit is given.
Open models have none here: the server that runs them sets it. **Images, tools and sound** name their sources where they
are counted, in `memci.tokens`. This module knows only names: it loads no vocabulary and asks no server.
"""

import re
from dataclasses import dataclass, fields
from functools import lru_cache

from .errors import InvalidSetting, brief

_O200K = re.compile(r"(?:chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|o1|o3|o4)(?:$|[-:.@])")
_CL100K = re.compile(
    r"(?:gpt-4|gpt-3\.5|gpt-35)(?:$|[-:@])|text-embedding-(?:3-|ada-002)|(?:davinci|babbage)-002(?:$|:)"
)
_HARMONY = re.compile(r"gpt-oss(?:$|[-:@])")
_OTHER_OPENAI = re.compile(r"gpt-(?:[4-9]|[1-9]\d)(?!\d|all)|chatgpt-|codex-|computer-use-|o[1-9](?:$|-)")
_EARLIER_ANTHROPIC = re.compile(
    r"claude-(?:instant|v?[123](?!\d)|(?:opus|sonnet|haiku)-4(?:$|[-.](?:[0-6](?!\d)|\d{6,})|[-@:](?:latest|\d{6,})))"
)

_BREAKPOINTS = re.compile(r"gpt-(?:5\.(?:[6-9]|[1-9]\d)|[6-9]|[1-9]\d)(?!\d)")
_NO_CHAT = re.compile(r"audio|embedding|image|live|realtime|transcribe|tts|vision")
"""models for something else than text, whose windows are smaller"""
_WINDOWS = (
    (r"gpt-4\.1(?:$|[-:@])", 1_047_576),
    (r"(?:gpt-4o|chatgpt-4o|gpt-4\.5|gpt-4-turbo|gpt-4-1106|gpt-4-0125)(?:$|[-:@])", 128_000),
    (r"gpt-4-32k", 32_768),
    (r"gpt-4(?:$|[:@]|-0314|-0613)", 8_192),
    (r"gpt-3\.5-turbo-(?:instruct|0301|0613)", 4_096),
    (r"gpt-3\.5-turbo(?:$|[-:@])", 16_385),
    (r"gpt-5(?:\.\d)?-(?:chat|codex-spark)", 128_000),
    (r"gpt-5\.4(?:$|[:@]|-pro|-\d)", 922_000),
    (r"gpt-5(?:\.[1-4])?(?:$|[-:@])", 272_000),
    (r"o1-(?:mini|preview)", 128_000),
    (r"(?:o1|o3|o4-mini|codex-mini)(?:$|[-:@])", 200_000),
    (r".*claude-(?:instant|v?1|v?2(?!\.1))", 100_000),
    (r".*claude-(?:opus|sonnet)-4[-.][67](?!\d)", 1_000_000),
    (r".*claude-", 200_000),
    (r".*gemini-1\.0", 30_720),
    (r".*gemini-1\.5-pro", 2_097_152),
    (r".*gemini-(?:1\.5|2|3)", 1_048_576),
)
"""The first pattern that a name begins with decides."""


@dataclass(frozen=True, slots=True)
class TiledImages:
    """Images cut into tiles of 512 pixels: *base* tokens for each image, and *per_tile* more."""

    base: int
    per_tile: int


@dataclass(frozen=True, slots=True)
class PatchedImages:
    """Images cut into patches of 32 pixels: *percent* of a token for each patch, *most* patches at detail "high"."""

    percent: int
    most: int


@dataclass(frozen=True, slots=True)
class ScaledImages:
    """Anthropic's: an image is scaled to *longest* pixels on its longer side, and costs *most* tokens at most."""

    longest: int
    most: int


@dataclass(frozen=True, slots=True)
class GoogleImages:
    """Google's: *fixed* tokens for an image of any size; None: by its size."""

    fixed: int | None


ImageRule = TiledImages | PatchedImages | ScaledImages | GoogleImages

_OPENAI_IMAGES: tuple[tuple[str, ImageRule], ...] = (
    (r"gpt-(?:4\.1|5(?:\.[2-9])?)-mini", PatchedImages(162, 1536)),
    (r"gpt-(?:4\.1|5(?:\.[2-9])?)-nano", PatchedImages(246, 1536)),
    (r"(?:o4|codex)-mini", PatchedImages(172, 1536)),
    (r"gpt-5\.[2-9]", PatchedImages(120, 2500)),
    (r"gpt-4o-mini", TiledImages(2833, 5667)),
    (r"gpt-5", TiledImages(70, 140)),
    (r"o[13]", TiledImages(75, 150)),
    (r"computer-use", TiledImages(65, 129)),
    (r"", TiledImages(85, 170)),
)
"""The first pattern that a name begins with decides; models of other makers count as gpt-4o."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePricing:
    """What a provider's prompt cache costs, as multiples of the price of an input token that is not cached.

    >>> pricing_of("claude-sonnet-4-5").write, pricing_of("gpt-5").write
    (1.25, 1.0)
    """

    read: float = 0.1
    """a token that comes from the cache"""
    write: float = 1.25
    """a token that goes into it"""
    minimum: int = 1_024
    """tokens: a shorter prefix is not cached"""
    granularity: int = 1
    """tokens: a cached prefix ends at a multiple of it"""
    lifetime: float = 300.0
    """seconds after a request, from which on its prefix is not cached any more"""
    input: float | None = None
    """money for a million input tokens that are not cached; None: `Context.report` names no money"""

    def __post_init__(self) -> None:
        numbers = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, value in numbers.items():
            whole = name in {"minimum", "granularity"}
            fits = type(value) is int if whole else isinstance(value, int | float) and type(value) is not bool
            if not (fits and 0 <= value < _MOST) and not (name == "input" and value is None):
                wanted = "tokens, a whole number from 0" if whole else "a number from 0"
                raise InvalidSetting(f"pricing.{name}", f"expected {wanted}, got {brief(value)}")


_MOST = 10**9
_PRICINGS = (
    (r".*claude-(?:opus-4[-.][5-9]|haiku-4[-.][5-9])", CachePricing(minimum=4_096)),
    (r".*claude-(?:sonnet-4[-.][6-9]|3[-.]haiku|3[-.]5[-.]haiku|haiku-3)", CachePricing(minimum=2_048)),
    (r".*claude", CachePricing()),
    (r"gpt-5\.(?:[6-9]|\d\d)", CachePricing(granularity=128, lifetime=1_800.0)),
    (r"gpt-5", CachePricing(write=1.0, granularity=128)),
    (r"(?:gpt-4\.1|o3|o4)", CachePricing(read=0.25, write=1.0, granularity=128)),
    (r"(?:gpt-|chatgpt-|o1)", CachePricing(read=0.5, write=1.0, granularity=128)),
    (r".*gemini-(?:2\.5-pro|3)", CachePricing(write=1.0, minimum=4_096)),
    (r".*gemini", CachePricing(write=1.0)),
    (r".*deepseek", CachePricing(write=1.0, minimum=64, granularity=64, lifetime=3_600.0)),
)
"""The first pattern that a name begins with decides. From the makers' pages on prompt and context caching."""


def pricing_of(model: str | None) -> CachePricing:
    """Return what the prompt cache of *model* costs; of one that is not known, what most cost at most."""
    name = plain_name(model) if model is not None else ""
    return next((pricing for pattern, pricing in _PRICINGS if re.match(pattern, name)), CachePricing())


_TOOLS_PROMPTS = (
    (r".*claude-opus-4[-.]8(?!\d)", 410),
    (r".*claude-sonnet-5(?!\d)", 474),
    (r".*claude-(?:opus|sonnet|haiku)-4[-.][56](?!\d)", 589),
    (r".*claude-(?:opus|sonnet)-4(?:$|[-.@:](?:[01](?!\d)|\d{6,}|latest))", 346),
    (r".*claude-3-opus", 530),
    (r".*claude-(?:instant|v?[123](?!\d))", 346),
    (r".*claude", 804),
    (r".*gemini", 0),
    (r"", 130),
)
"""What the use of tools adds to a request, beside their schemas: the first pattern that a name begins with decides.
Anthropic's "Tool use" has a number for each model and for each `tool_choice`: the larger one, and the largest of all
for a model that is not listed. Google names none. For others, the text that Qwen's chat template puts around a list."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of one model."""

    vocabulary: str
    """which vocabulary its text is counted with"""
    percent: int
    """how much of that count it is: 100, or more on the safe side"""
    exact: bool
    """whether the count is that of the model itself"""
    window: int | None
    """tokens that a request and its reply may have together; None: not known"""
    images: ImageRule
    typed_tools: int | None
    """tokens for each function where functions are written out as types (OpenAI); None: the model reads them as JSON"""
    tools_prompt: int
    """tokens that the use of tools adds to the system prompt, whichever tool may be chosen"""
    sound_tokens: int
    """tokens for a second of audio"""


def plain_name(model: str) -> str:
    """Return the name of *model* as its maker writes it.

    >>> plain_name("OpenRouter/openai/GPT-4o"), plain_name("ft:gpt-4o-mini:us::x")
    ('gpt-4o', 'gpt-4o-mini:us::x')
    """
    name = model.strip().lower().rpartition("/")[2]
    return name.removeprefix("ft:").removeprefix("openai:").removeprefix("openai.").removeprefix("azure:")


@lru_cache(maxsize=256)
def facts_of(model: str | None) -> ModelFacts:
    """Return what is known of *model*; None counts as gpt-4o, with a window that is not known.

    >>> facts = facts_of("gpt-4o")
    >>> facts.vocabulary, facts.exact, facts.window
    ('o200k_base', True, 128000)
    """
    name = plain_name(model) if model is not None else ""
    vocabulary, percent, exact = _vocabulary(name) if model is not None else ("o200k_base", 100, True)
    openai = percent == 100
    return ModelFacts(
        vocabulary,
        percent,
        exact,
        window=known_window(model),
        images=_images(name),
        typed_tools=(10 if vocabulary == "cl100k_base" else 7) if openai else None,
        tools_prompt=0 if openai else next(tokens for pattern, tokens in _TOOLS_PROMPTS if re.match(pattern, name)),
        sound_tokens=10 if openai else 32,
    )


def reads_breakpoints(model: str | None) -> bool:
    """Return whether *model* is one of OpenAI's whose prompt cache reads explicit breakpoints (gpt-5.6 and later).

    >>> reads_breakpoints("openai/gpt-5.6-mini"), reads_breakpoints("gpt-5.4"), reads_breakpoints("llama-3")
    (True, False, False)
    """
    return model is not None and _BREAKPOINTS.match(plain_name(model)) is not None


def known_window(model: str | None) -> int | None:
    """Return how many tokens a request to *model* and its reply may have together, None if that is not known.

    A fine-tuned model has the window of its base. A model that is newer than this table has none, but for
    Anthropic's: each since 2.1 has 200,000 at least.

    >>> known_window("openai/gpt-4.1-mini"), known_window("gpt-5"), known_window("llama-3.1-70b")
    (1047576, 272000, None)
    """
    name = plain_name(model) if model is not None else ""
    if _NO_CHAT.search(name):
        return None
    return next((window for pattern, window in _WINDOWS if re.match(pattern, name)), None)


def _vocabulary(name: str) -> tuple[str, int, bool]:
    for pattern, vocabulary in ((_O200K, "o200k_base"), (_CL100K, "cl100k_base"), (_HARMONY, "o200k_harmony")):
        if pattern.match(name):
            return vocabulary, 100, True
    if _OTHER_OPENAI.match(name):
        return "o200k_base", 100, False
    return "o200k_base", 160 if _is_later_anthropic(name) else 135, False


def _images(name: str) -> ImageRule:
    if "claude" in name:
        return ScaledImages(2576, 4784) if _is_later_anthropic(name) else ScaledImages(1568, 1600)
    if "gemini" in name:  # from Gemini 3 on an image costs the same at any size, unless the request asks otherwise
        return GoogleImages(None if "gemini-1" in name or "gemini-2" in name else 1120)
    return next(rule for pattern, rule in _OPENAI_IMAGES if re.match(pattern, name))


def _is_later_anthropic(name: str) -> bool:
    """Return whether *name* is one of Anthropic's from 4.7 on: they have another tokenizer and larger images."""
    at = name.find("claude")
    return at >= 0 and not _EARLIER_ANTHROPIC.match(name, at)
