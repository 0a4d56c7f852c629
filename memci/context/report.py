"""Results of a context's calls: the receipt of an append, and the report about tokens, pages and costs.

system 1,339 + tools 180 + contents 901 + active 3,870 + framing 3 = 6,293 of 7,000
"""

from dataclasses import dataclass
from typing import NamedTuple

from ..chapters.chapter import Entry
from ..formats.usage import CallsCost
from ..memory.backend import Work
from ..model_catalog import prices_source, pricing_of
from ..segments.cache_policy import CacheUse, Levels
from ..tokens import REQUEST_TOKENS
from ..window.window import RATIO_CEILING, Window
from .renderer import CacheMeter


class Receipt(NamedTuple):
    """The result of an append."""

    page: int
    """the page of the last message; 0 if there was none"""
    entries: tuple[Entry, ...]
    """the handle of each message"""
    seq: int
    """the sequence number of the first message; messages are numbered from 0, without gaps"""
    op_id: str | None = None
    duplicate: bool = False
    """whether the op_id was stored before, so that nothing was stored again"""


@dataclass(frozen=True, slots=True)
class Report:
    """A context at one moment. All sizes are in tokens, as *counter* counts them."""

    tokens: dict[str, int]
    """per part: system, segments (if there are any), tools, contents, active, open, framing"""
    total: int
    """of the whole request now"""
    budget: int
    """what a request may cost: the window without the reply"""
    window: int
    counter: str
    exact: bool
    """whether the counts are the provider's own, up to framing"""
    ratio: float
    """the factor applied to counted tokens: the median of reported to predicted ones, within bounds"""
    turn: int
    pages: dict[str, int]
    """how many are open, active, archived (with a line of their own), folded, unloaded, undone, erased"""
    messages: int
    """that were ever appended"""
    compactions: int
    cached_last: float
    """the share of the last request, from 0 to 1, tools included, that was a prefix of the one before"""
    cached: float
    """the same over all renderings since the context was opened"""
    cost: CallsCost
    """of all calls whose usage was given to an append, as far as they were read; `Context.calls` returns each"""
    spent: float
    """the cost of the renderings by `Policy.pricing`, as counted here, in uncached input tokens; with tools and the
    notice, and all of it new after a pause in which the cache expired"""
    money: float | None
    """the same in money; None if neither genai-prices nor `Policy.pricing` has the price of a million input tokens"""
    levels: Levels
    """when a compaction is due by that price, how far it goes, and why"""
    use: CacheUse
    """how the context used its past, on which the levels depend"""
    clipped: int
    """messages in the window that are shown clipped"""
    gated: int
    """results in the window that are shown as digests (`Policy.gate`)"""
    gated_tokens: int
    """tokens that these save in each request"""
    warnings: tuple[str, ...] = ()
    work: Work | None = None
    """what the memory's model did and cost, and which jobs wait for it; None without a model"""
    set_aside: int = 0
    """pages that the memory could not store, as far as it was used since the context was opened; `flush` tries again"""

    def __str__(self) -> str:
        pages = ", ".join(f"{count:,} {where}" for where, count in self.pages.items() if count) or "none"
        parts = ", ".join(f"{part} {tokens:,}" for part, tokens in self.tokens.items() if tokens)
        request = f"{self.total:,} of {self.budget:,} tokens"
        facts = {"turn": self.turn, "request": request, "of which": parts, "pages": pages}
        facts |= {"compactions": self.compactions} | ({"warnings": "; ".join(self.warnings)} if self.warnings else {})
        return "\n".join(f"{name:12}{value}" for name, value in facts.items())


def report(window: Window, meter: CacheMeter, work: Work | None = None, set_aside: int = 0) -> Report:
    """Return the report of *window*, *meter*, the *work* of the memory's model, and how many pages it *set_aside*.

    O(messages in the window).
    """
    active, contents = window.active, window.contents
    opened = active.open.tokens if active.open is not None else 0
    counts = {
        "open": int(active.open is not None),
        "active": len(active.closed),
        "archived": len(contents.lines),
        "folded": sum(len(each.pages) for each in contents.ranges),
    }
    state = window.state
    counts["unloaded"] = window.record.next_page - 1 - state.undone - state.erased - sum(counts.values())
    counts["undone"], counts["erased"] = state.undone, state.erased
    price = window.settings.pricing.input
    warnings = []
    gated, gated_tokens = _saved(window)
    clipped = sum(1 for node in active.messages if node.clip)
    if clipped:
        warnings.append(f"{clipped} messages are shown clipped: each names the call that reads all of it")
    if not window.count.exact:
        warnings.append(f"tokens are counted as {window.count.name}, which is not the model's own vocabulary")
    model, pricing = window.settings.model, window.settings.pricing
    if model is not None and pricing.input is None and pricing == pricing_of(model):
        warnings.append(f"{prices_source()} has no prices of {model!r:.60}: give them as Policy.pricing")
    if (factor := pricing.factor(window.tokens)) > 1:
        warnings.append(f"a request of {window.tokens:,} tokens costs {factor:g} times as much for each token")
    tools = f"the tools changed {meter.broken} times, last {meter.change}" if meter.broken else None
    changed = filter(None, (window.broken, tools))
    warnings += [f"requests began otherwise than before, so that no cache had them: {why}" for why in changed]
    if (latest := window.reported_ratio) > RATIO_CEILING:
        warnings.append(f"the provider reports {latest:.2f} times the tokens counted: were all tools passed to render?")
    if work is not None and work.set_aside:
        warnings.append(f"{work.set_aside} jobs of the memory's model failed five times and were set aside")
    if set_aside:
        warnings.append(
            f"{set_aside} pages could not be fed to the memory and were set aside: flush() tries them again"
        )
    return Report(
        tokens={
            "system": window.system.tokens,
            **({"segments": window.segments.tokens} if window.segments.tokens else {}),
            "tools": window.own_tools + state.tools,
            "contents": contents.tokens,
            "active": active.messages.tokens - opened,
            "open": opened,
            "framing": REQUEST_TOKENS,
        },
        total=window.tokens,
        budget=window.limits.budget,
        window=window.settings.window,
        counter=window.count.name,
        exact=window.count.exact,
        ratio=window.ratio,
        turn=window.record.turn,
        pages=counts,
        messages=window.record.head,
        compactions=state.compactions,
        cached_last=meter.last,
        cached=meter.kept / meter.sent if meter.sent else 0.0,
        cost=meter.cost,
        spent=meter.spent,
        money=None if price is None else meter.spent * price / 1e6,
        levels=window.levels,
        use=state.cache,
        clipped=clipped,
        gated=gated,
        gated_tokens=gated_tokens,
        warnings=tuple(warnings),
        work=work,
        set_aside=set_aside,
    )


def _saved(window: Window) -> tuple[int, int]:
    """Return how many results are shown as digests, and the tokens that this saves. O(their text), once."""
    gated = [node for node in window.active.messages if node.spans is not None]
    for node in gated:
        node.full = node.full or window.weigh(node.message)
    return len(gated), sum(max(0, node.full - window.active.own_tokens(node)) for node in gated)
