"""What is known of a model by its name: how its text, tools, images and sound are counted, window and prompt cache.

    model                   facts_of                   known_window   pricing_of
    gpt-4o-2024-11-20       o200k_base, exact               128,000   read .5, write 1
    azure/gpt-4             cl100k_base, exact                8,192   no cache           the part behind the last "/"
    gpt-oss-120b            o200k_harmony, exact               none                      its server decides
    gpt-9                   o200k_base, an estimate            none   a guess            a later model of OpenAI
    claude-opus-5-5         o200k_base × 1.6              1,000,000   read .05, write 1.25
    anything-else           o200k_base × 1.35                  none   a guess

**Text.** "Exact" is the model's own vocabulary. For other models the count is an estimate on the safe side. Tokenizers
with 100,000 tokens and more (Llama 3, Qwen, DeepSeek, Gemini, Mistral's later ones) stay within about 1.2 of o200k on
English and code; those with 32,000, and Anthropic's up to 4.6, within about 1.3. Anthropic's from 4.7 on takes up to
1.35 times (measured: 1.47 times) as many as the one before it: × 1.6. For Chinese and other scripts than Latin, an old,
small vocabulary may take two tokens a character or more. No fixed factor covers that: give the model's own counter, or
let the usage that it reports correct the counts.

**Windows and prices** come from the package genai-prices, as it is installed: it is never asked to update itself over
the network (`prices_source` says of which day its data are). Open models have no window here: the server that runs them
sets it. **Caches** (lifetimes, least prefixes) are in no package: they are from the makers' pages up to November 2026.
**Images, tools and sound** name their sources where they are counted, in `memci.tokens`.
"""

import re
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from .errors import InvalidSetting, brief

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelInfo, TieredPrices

_O200K = re.compile(r"(?:chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|o1|o3|o4)(?:$|[-:.@])")
_CL100K = re.compile(
    r"(?:gpt-4|gpt-3\.5|gpt-35)(?:$|[-:@])|text-embedding-(?:3-|ada-002)|(?:davinci|babbage)-002(?:$|:)"
)
_HARMONY = re.compile(r"gpt-oss(?:$|[-:@])")
_OTHER_OPENAI = re.compile(r"gpt-(?:[4-9]|[1-9]\d)(?!\d|all)|chatgpt-|codex-|computer-use-|o[1-9](?:$|-)")
_EARLIER_ANTHROPIC = re.compile(
    r"claude-(?:instant|v?[123](?!\d)|(?:opus|sonnet|haiku)-4(?:$|[-.](?:[0-6](?!\d)|\d{6,})|[-@:](?:latest|\d{6,})))"
)

_BREAKPOINTS = re.compile(r"gpt-(?:5\.(?:[6-9]|[1-9]\d)|[6-9]|[12]\d)(?!\d)")  # Azure calls gpt-3.5 gpt-35
_NO_CHAT = re.compile(r"audio|embedding|image|instruct|live|realtime|transcribe|tts|vision")
"""models for something else than chats, whose windows are smaller"""
_OPEN = re.compile(r"gpt-oss|gemma")
_CLOSED = frozenset({"anthropic", "openai", "google", "x-ai"})
"""makers that run their models themselves, so that a name has one window"""
_MAKERS = ("anthropic", "openai", "google", "x-ai", "deepseek", "mistral", "moonshotai", "zhipuai", "minimax", "cohere")
"""makers of models; others sell them too, at prices of their own"""
_WINDOWS = (
    (r"gpt-5(?:\.\d)?-(?:chat|codex-spark)", 128_000),
    (r"claude-(?:instant|v?1|v?2(?!\.1))", 100_000),
    (r"claude-[a-z]+-(?:[4-9]|\d\d)", 200_000),
    (r"gemini-(?:2\.5|3)", 1_048_576),
)
"""For names that genai-prices leaves without a window, or has too large. The first pattern that fits decides."""
_LONGEST_ANSWER = 128_000
"""What OpenAI's models from gpt-5 on keep free of their window for the answer: their input is limited to the rest."""
_RELEASED, _DAY = "0.2.3", datetime(2026, 11, 10, 12, tzinfo=UTC)
"""A release of genai-prices, and a day on which it was out. Its data have no date of their own. Of prices that change
with the day or the hour, those of this noon hold: a context renders the same whenever it is opened."""


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
    steps: tuple[tuple[int, float], ...] = ()
    """(tokens, factor), ascending: a request of more tokens costs so many times as much"""

    def __post_init__(self) -> None:
        numbers = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "steps"}
        for name, value in numbers.items():
            whole = name in {"minimum", "granularity"}
            fits = type(value) is int if whole else isinstance(value, int | float) and type(value) is not bool
            if not (fits and 0 <= value < _MOST) and not (name == "input" and value is None):
                wanted = "tokens, a whole number from 0" if whole else "a number from 0"
                raise InvalidSetting(f"pricing.{name}", f"expected {wanted}, got {brief(value)}")
        try:
            steps = tuple((int(above), float(factor)) for above, factor in self.steps)
        except (TypeError, ValueError):
            raise InvalidSetting("pricing.steps", f"expected pairs of numbers, got {brief(self.steps)}") from None
        object.__setattr__(self, "steps", steps)  # JSON has lists

    def factor(self, total: int) -> float:
        """Return how many times as much as usual each token of a request of *total* tokens costs."""
        return next((factor for above, factor in reversed(self.steps) if total > above), 1.0)


_MOST = 10**9
_CACHES = (
    (r"claude-(?:opus-4[-.][5-7]|haiku-4[-.][5-9])", CachePricing(minimum=4_096)),
    (r"claude-(?:sonnet-4[-.][6-9]|3[-.]haiku|3[-.]5[-.]haiku|haiku-3)", CachePricing(minimum=2_048)),
    (r"claude-opus-5", CachePricing(minimum=512)),
    (r"claude", CachePricing()),
    (_BREAKPOINTS.pattern, CachePricing(granularity=128, lifetime=1_800.0)),
    (r"gpt-|chatgpt-|codex-|o[1-9]", CachePricing(write=1.0, granularity=128)),
    (r"gemini-(?:2\.5-pro|[3-9])", CachePricing(write=1.0, minimum=4_096)),
    (r"gemini", CachePricing(write=1.0)),
    (r".*deepseek", CachePricing(write=1.0, minimum=64, granularity=64, lifetime=3_600.0)),
)
"""How long caches live, their least prefixes, and the steps in which they grow: from the makers' pages on prompt and
context caching, November 2026. The first pattern that a name begins with decides. The prices are for models that
genai-prices does not know."""


def pricing_of(model: str | None) -> CachePricing:
    """Return what the prompt cache of *model* costs; of one that is not known, what most cost at most.

    >>> pricing_of("gpt-6-sol").steps, pricing_of("my-model") == CachePricing()
    (((272000, 2.0),), True)
    """
    if model is None:
        return CachePricing()
    name = _base_name(model)
    pricing = next((each for pattern, each in _CACHES if re.match(pattern, name)), CachePricing())
    maker, info = _found(name)
    if info is None:
        return pricing
    prices = info.get_prices(_DAY)
    base = _share(prices.input_mtok, 1.0)
    if prices.input_mtok is None or not base:
        return pricing
    read, write = prices.cache_read_mtok, prices.cache_write_mtok
    if read is not None or (maker in _CLOSED and not _OPEN.match(name)):  # such a model without a price has no cache
        pricing = replace(pricing, read=_share(read, base), write=_share(write, base))
    steps = tuple((tier.start, float(tier.price) / base) for tier in getattr(prices.input_mtok, "tiers", ()))
    return replace(pricing, input=base, steps=steps)


def _share(price: "Decimal | TieredPrices | None", base: float) -> float:
    """Return what part of *base* a *price* is in front of its first step; without one it is all of it."""
    return 1.0 if price is None else round(float(getattr(price, "base", price)) / base, 6)  # type: ignore[arg-type]


def prices_source() -> str:
    """Return where windows and prices come from, and of which day they are."""
    installed = version("genai-prices")
    return f"genai-prices {installed}, {'of' if installed == _RELEASED else 'later than'} {_DAY:%Y-%m-%d}"


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
    """Return how text, images, tools and sound are counted for *model*; None counts as gpt-4o.

    >>> facts = facts_of("gpt-4o")
    >>> facts.vocabulary, facts.exact, facts.images
    ('o200k_base', True, TiledImages(base=85, per_tile=170))
    """
    name = plain_name(model) if model is not None else ""
    vocabulary, percent, exact = _vocabulary(name) if model is not None else ("o200k_base", 100, True)
    openai = percent == 100
    return ModelFacts(
        vocabulary,
        percent,
        exact,
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

    A fine-tuned model has the window of its base. Where the input has a limit of its own below the window (gpt-5:
    272,000 of 400,000), it is that limit. Of Anthropic's, each that is newer than the data has 200,000 at least.

    >>> known_window("openai/gpt-4.1-mini"), known_window("gpt-5"), known_window("llama-3.1-70b")
    (1000000, 272000, None)
    """
    name = _base_name(model) if model is not None else ""
    if _NO_CHAT.search(name) or _OPEN.match(name):
        return None
    own = next((window for pattern, window in _WINDOWS if re.match(pattern, name)), None)
    maker, info = _found(name) if name else ("", None)
    window = info.context_window if info is not None and maker in _CLOSED else None
    if window is None:
        return own
    if maker == "openai" and re.match(r"gpt-(?:[5-9]|[12]\d)(?!\d)", name):
        window = max(_LONGEST_ANSWER, window - _LONGEST_ANSWER)
    return min(window, own) if own is not None and own < 200_000 else window


def _base_name(model: str) -> str:
    """Return the name of *model* as prices are listed: without its maker's, its region's and its variant's name."""
    name = plain_name(model).partition(":")[0]
    return name[name.find("claude") :] if "claude" in name else name


@lru_cache(maxsize=256)
def _found(name: str) -> "tuple[str, ModelInfo | None]":
    """Return who makes the model *name*, and what genai-prices knows of it. The first call takes 0.1 s."""
    from genai_prices.data import providers

    by_name = {each.id: each for each in providers}
    for maker in _MAKERS:
        if maker in by_name and (info := by_name[maker].find_model(name)) is not None:
            return maker, info
    return "", None


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
