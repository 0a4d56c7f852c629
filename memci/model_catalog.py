"""Facts about models, by name: how to count text, tools, images and sound; window, prices and prompt cache.

    model                   facts_of                   known_window   pricing_of
    gpt-4o-2024-11-20       o200k_base, exact               128,000   read .5, write 1
    azure/gpt-4             cl100k_base, exact                8,192   no cache           the name after the last "/"
    gpt-oss-120b            o200k_harmony, exact               none                      the server decides
    gpt-9                   o200k_base, an estimate            none   a guess            a later model of OpenAI
    claude-opus-5-5         o200k_base × 1.6              1,000,000   read .05, write 1.25
    anything-else           o200k_base × 1.35                  none   a guess

**Text.** An exact count uses the vocabulary of the model. For other models the count is an estimate on the safe side.
Tokenizers with 100,000 tokens and more (Llama 3, Qwen, DeepSeek, Gemini, Mistral's later ones) stay within about 1.2 of
o200k on English and code; those with 32,000, and Anthropic's up to 4.6, within about 1.3. Anthropic's from 4.7 on takes
up to 1.35 times (measured: 1.47 times) as many as the one before it: × 1.6. For Chinese and other scripts than Latin,
an old, small vocabulary may take two tokens a character or more. No fixed factor covers that: pass a counter of the
model, or the usage that it reports, which corrects the counts.

**Windows and prices** are those of the installed package genai-prices, without an update over the network.
`prices_source` names its release and date. Open models have no window here: their server sets it. **Caches**
(lifetimes, least prefixes) are in no package: these are from the pages of the makers, up to November 2026. **Images,
tools and sound** have their sources where they are counted, in `memci.tokens`.
"""

import re
import tomllib
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InvalidSetting, brief, hint

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelInfo, TieredPrices

_BREAKPOINTS = re.compile(r"gpt-(?:5\.(?:[6-9]|[1-9]\d)|[6-9]|[12]\d)(?!\d)")  # Azure calls gpt-3.5 gpt-35
_DATED = re.compile(r"[-@](?:20\d\d-\d\d-\d\d|20\d{6})$")
_NO_CHAT = re.compile(r"audio|embedding|image|instruct|live|realtime|transcribe|tts|vision")
"""models that are not for chats, with smaller windows"""
_OPEN = re.compile(r"gpt-oss|gemma")
_CLOSED = frozenset({"anthropic", "openai", "google", "x-ai"})
"""makers that are the only ones to run their models, so that a name has one window"""
_MAKERS = ("anthropic", "openai", "google", "x-ai", "deepseek", "mistral", "moonshotai", "zhipuai", "minimax", "cohere")
"""providers whose prices are used: the makers of models, not resellers"""
_LONGEST_ANSWER = 128_000
"""The part of the window that OpenAI's models from gpt-5 on reserve for the answer; input is limited to the rest."""
_RELEASED, _DAY = "0.2.3", datetime(2026, 11, 10, 12, tzinfo=UTC)
"""A release of genai-prices, and a day on which it was out. Its data have no date. Of prices that change with the day
or the hour, those of this noon are used, so that a context renders the same whenever it is opened."""


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

    fixed: int | None = None


ImageRule = TiledImages | PatchedImages | ScaledImages | GoogleImages
_RULES = {"tiles": TiledImages, "patches": PatchedImages, "scaled": ScaledImages, "google": GoogleImages}


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePricing:
    """The prices of a prompt cache, as multiples of the price of an uncached input token.

    >>> pricing_of("claude-sonnet-4-5").write, pricing_of("gpt-5").write
    (1.25, 1.0)
    """

    read: float = 0.1
    """a token that is read from the cache"""
    write: float = 1.25
    """a token that is written to it"""
    minimum: int = 1_024
    """tokens: a shorter prefix is not cached"""
    granularity: int = 1
    """tokens: a cached prefix ends at a multiple of it"""
    lifetime: float = 300.0
    """seconds that a prefix stays cached after a request"""
    input: float | None = None
    """money for a million uncached input tokens; None: `Context.report` has no money"""
    steps: tuple[tuple[int, float], ...] = ()
    """(tokens, factor), ascending: a request of more tokens costs *factor* times as much"""

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
        """Return the factor of the price of each token in a request of *total* tokens."""
        for above, factor in reversed(self.steps):
            if total > above:
                return factor
        return 1.0


_MOST = 10**9  # larger numbers are mistakes


def pricing_of(model: str | None) -> CachePricing:
    """Return the prices of the prompt cache of *model*; for an unknown model, the highest usual ones.

    >>> pricing_of("gpt-6-sol").steps, pricing_of("my-model") == CachePricing()
    (((272000, 2.0),), True)
    """
    if model is None:
        return CachePricing()
    name = _base_name(model)
    pricing = CachePricing(**_listed("caches", name)[0])
    maker, info = _found(name)
    if info is None:
        return pricing
    prices = info.get_prices(_DAY)
    base = _share(prices.input_mtok, 1.0)
    if prices.input_mtok is None or not base:
        return pricing
    read, write = prices.cache_read_mtok, prices.cache_write_mtok
    if read is not None or (maker in _CLOSED and not _OPEN.match(name)):  # no price: it has no cache
        pricing = replace(pricing, read=_share(read, base), write=_share(write, base))
    steps = tuple((tier.start, float(tier.price) / base) for tier in getattr(prices.input_mtok, "tiers", ()))
    return replace(pricing, input=base, steps=steps)


def _share(price: "Decimal | TieredPrices | None", base: float) -> float:
    """Return *price* below its first step as a share of *base*; 1 if there is no price."""
    return 1.0 if price is None else round(float(getattr(price, "base", price)) / base, 6)  # type: ignore[arg-type]


def prices_source() -> str:
    """Return the source of windows and prices, with its release and date."""
    installed = version("genai-prices")
    return f"genai-prices {installed}, {'of' if installed == _RELEASED else 'later than'} {_DAY:%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """How the tokens of one model are counted."""

    vocabulary: str  # the vocabulary that counts its text
    percent: int  # the percentage of that count: 100, or more on the safe side
    exact: bool  # whether the model has this vocabulary
    images: ImageRule
    typed_tools: int | None
    """tokens for each function where functions are written out as types (OpenAI); None: the model reads them as JSON"""
    tools_prompt: int  # tokens that the use of tools adds to the system prompt, whichever tool may be chosen
    sound_tokens: int  # tokens for a second of audio


def plain_name(model: str) -> str:
    """Return the name of *model* as its maker writes it, without provider and prefix.

    >>> plain_name("OpenRouter/openai/GPT-4o"), plain_name("ft:gpt-4o-mini:us::x")
    ('gpt-4o', 'gpt-4o-mini:us::x')
    """
    name = model.strip().lower().rpartition("/")[2]
    return name.removeprefix("ft:").removeprefix("openai:").removeprefix("openai.").removeprefix("azure:")


def undated_name(model: str) -> str:
    """Return the plain name of *model* without the date of its release, which names the same model.

    >>> undated_name("openai/gpt-4o-2024-08-06")
    'gpt-4o'
    """
    return _DATED.sub("", plain_name(model))


@lru_cache(maxsize=256)
def facts_of(model: str | None) -> ModelFacts:
    """Return how text, images, tools and sound are counted for *model*; None counts as gpt-4o.

    >>> facts = facts_of("gpt-4o")
    >>> facts.vocabulary, facts.exact, facts.images
    ('o200k_base', True, TiledImages(base=85, per_tile=170))
    """
    name = plain_name(model) if model is not None else ""
    vocabulary, percent, exact = _listed("vocabularies", name if model is not None else "gpt-4o")
    openai = percent == 100
    rule, *numbers = _listed("images", name)
    return ModelFacts(
        vocabulary,
        percent,
        exact,
        images=_RULES[rule](*numbers),
        typed_tools=(10 if vocabulary == "cl100k_base" else 7) if openai else None,
        tools_prompt=0 if openai else _listed("tools_prompts", name)[0],
        sound_tokens=10 if openai else 32,
    )


def reads_breakpoints(model: str | None) -> bool:
    """Return whether *model* is of OpenAI, with explicit cache breakpoints (gpt-5.6 and later).

    >>> reads_breakpoints("openai/gpt-5.6-mini"), reads_breakpoints("gpt-5.4"), reads_breakpoints("llama-3")
    (True, False, False)
    """
    return model is not None and _BREAKPOINTS.match(plain_name(model)) is not None


def known_window(model: str | None) -> int | None:
    """Return how many tokens a request to *model* and its reply may have together, None if that is not known.

    A fine-tuned model has the window of its base. Where the input has a limit of its own below the window (gpt-5:
    272,000 of 400,000), it is that limit. A model of Anthropic that is newer than the data has
    200,000, the least that any has.

    >>> known_window("openai/gpt-4.1-mini"), known_window("gpt-5"), known_window("llama-3.1-70b")
    (1000000, 272000, None)
    """
    name = _base_name(model) if model is not None else ""
    if _NO_CHAT.search(name) or _OPEN.match(name):
        return None
    own: int | None = _listed("windows", name)[0]
    maker, info = _found(name) if name else ("", None)
    window = info.context_window if info is not None and maker in _CLOSED else None
    if window is None:
        return own
    if maker == "openai" and re.match(r"gpt-(?:[5-9]|[12]\d)(?!\d)", name):
        window = max(_LONGEST_ANSWER, window - _LONGEST_ANSWER)
    return min(window, own) if own is not None and own < 200_000 else window


def is_known(model: str) -> bool:
    """Return whether facts about *model* are known: its vocabulary, or its entry in genai-prices.

    >>> is_known("gpt-5"), is_known("azure/gpt-4"), is_known("gpt5")
    (True, True, False)
    """
    return bool(_listed("vocabularies", plain_name(model))[2]) or _found(_base_name(model))[1] is not None


def name_hint(model: str) -> str:
    """Return ": did you mean …?" with the known model whose name is most like *model*, "" if none is. O(models)."""
    from genai_prices.data import providers

    return hint(_base_name(model), [each.id for maker in providers if maker.id in _CLOSED for each in maker.models])


def _base_name(model: str) -> str:
    """Return the name of *model* as prices list it: also without region and variant."""
    name = plain_name(model).partition(":")[0]
    return name[name.find("claude") :] if "claude" in name else name


@lru_cache(maxsize=256)
def _found(name: str) -> "tuple[str, ModelInfo | None]":
    """Return the maker of the model *name*, and its entry in genai-prices. The first call takes 0.1 s."""
    from genai_prices.data import providers

    by_name = {each.id: each for each in providers}
    for maker in _MAKERS:
        if maker in by_name and (info := by_name[maker].find_model(name)) is not None:
            return maker, info
    return "", None


def _listed(table: str, name: str) -> list[Any]:
    """Return the values of the first pattern of *table* (`_data/models.toml`) that *name* begins with; [None]: none."""
    return next((found for pattern, *found in _tables()[table] if re.match(pattern, name)), [None])


@cache
def _tables() -> dict[str, list[list[Any]]]:
    return tomllib.loads(Path(__file__).with_name("_data").joinpath("models.toml").read_text("utf-8"))
