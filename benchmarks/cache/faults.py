"""Faults, as in demand paging: how often a call needs what is not in the window, and what brings it back.

    MEMCI_DATA=… python -m benchmarks.cache.faults

    a call of a tool      its arguments were said earlier in the same run          in the window · on a line · gone
    gone: a fault         search_memory(what the user asked last, the tool)        found among the first five · missing

An agent without memci's window would have to hold all of it. A line names what it stands for: `recall_page` brings the
page, exact. This module knows nothing of prices.
"""

from collections import Counter
from datetime import UTC, datetime

from memci import Context, EphemeralStorage, Policy
from memci.messages import call_name, text_of

from ..conversation import Conversation, airline, texts
from .bills import CALL, PAUSE
from .sight import needs

WINDOWS, PRESETS, K = (4_000, 8_000, 32_000), ("balanced", "economy"), 5


def faults(conversation: Conversation, window: int, preset: str) -> Counter[str]:
    """Play *conversation*, and count calls, what they needed, and where that was."""
    count: Counter[str] = Counter()
    now, run, asked = datetime(2026, 1, 1, tzinfo=UTC), [], ""
    given = {"system": conversation.system, "window": window, "policy": Policy(preset=preset), "reply": 0}
    with Context.open(EphemeralStorage(), "faults", clock=None, **given) as context:
        for number, (paused, turn) in enumerate(conversation.calls()):
            run = [] if paused else run
            asked = next((text_of(each) for each in reversed(turn) if each["role"] == "user"), asked)
            if number and turn[0].get("tool_calls"):
                named = {leaf for leaf in needs(turn[0]) if leaf not in conversation.system and said(leaf, run)}
                shown = context.render(strict=False)
                left = {leaf for leaf in named if not said(leaf, [text for each in shown for text in texts(each)])}
                count += Counter(calls=1, needing=bool(named), needed=len(named), faulting=bool(left), faults=len(left))
                if left:
                    context.flush()
                    tools = " ".join(call_name(call) for call in turn[0]["tool_calls"])
                    found = context.search_memory(f"{asked} {tools}", k=K)
                    pages = [context.recall_page(each.index) for each in found.pages]
                    there = [text for page in pages for message in page for text in texts(message)]
                    count += Counter(searches=1, missing=sum(not said(leaf, there) for leaf in left))
            run += (text for message in turn for text in texts(message))
            now += PAUSE if paused else CALL
            context.append_turn(*turn, at=now)
    return count


def said(leaf: str, among: list[str]) -> bool:
    """Return whether *leaf* stands in one of the texts."""
    return any(leaf in text for text in among)


def main() -> None:
    """Print the table of docs/performance.md."""
    conversation = airline()
    if conversation is None:
        raise SystemExit("the conversations are not here; set MEMCI_DATA to their folder")
    print(
        "| window | preset | calls | needing | faulting | faults per 100 calls | searches | missing, of 1,000 needed |"
    )
    for window in WINDOWS:
        for preset in PRESETS:
            of = faults(conversation, window, preset)
            shares = f"{100 * of['faults'] / of['calls']:.1f} | {of['searches']}"
            missing = f"{1_000 * of['missing'] / of['needed']:.1f}"
            print(
                f"| {window:,} | {preset} | {of['calls']} | {of['needing']} | {of['faulting']} | {shares} | {missing} |"
            )


if __name__ == "__main__":
    main()
