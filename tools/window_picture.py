"""Draw a window at work, from a real run: the conversation of `memci demo`, turn by turn.

    .venv/bin/python tools/window_picture.py docs/img/window.svg

Above: what stood in the window at the close of each turn, below the budget. Below: the life of one page, with the
lines that stood for it. The model is played back; all else is what memci did. The picture follows the reader's theme,
needs no font and loads nothing.
"""

import sys
from contextlib import closing
from html import escape
from itertools import pairwise
from pathlib import Path

from memci import Context, EphemeralStorage
from memci.cli.replay.demo import conversation, recall
from memci.cli.replay.player import NONCE, play
from memci.serve.inspector.inspected import InspectedContext
from memci.serve.inspector.page_story import PageEvent, PageStory
from memci.serve.inspector.timeline import WindowSize, window_sizes

WINDOW = 8_000
PAGE = 12
FOLDED_AGAIN = "its range was folded further"
WIDTH, LEFT, TOP, HEIGHT, STRIP = 960, 70, 64, 210, 330
PARTS = {
    "contents": "Contents Page: a line for each older page",
    "active": "newest pages, word for word",
    "open": "the turn itself",
    "system": "system and tools",
}
STYLE = """
svg { font: 13px system-ui, sans-serif; --ink: #1f2328; --quiet: #59636e; --system: #6b7280; --contents: #d97706;
  --active: #3b74e8; --open: #0d9488; --limit: #b42318; --back: #fff }
@media (prefers-color-scheme: dark) { svg { --ink: #e8eaf0; --quiet: #a0a8b8; --system: #8b93a3; --contents: #f0a23c;
  --active: #5f93ff; --open: #2fc2b0; --limit: #ff8a80; --back: #111318 } }
text { fill: var(--ink) } .quiet { fill: var(--quiet) } .title { font-weight: 600; font-size: 15px }
.back { fill: var(--back) } .system { fill: var(--system) } .contents { fill: var(--contents) }
.active, .whole { fill: var(--active) } .open { fill: var(--open) } .line { fill: var(--contents) }
.folded { fill: var(--contents); opacity: .55 } .unlisted { fill: var(--system); opacity: .4 }
.limit { stroke: var(--limit); stroke-width: 1.5; stroke-dasharray: 6 4 } .budget { fill: var(--limit) }
.rule { stroke: var(--quiet); stroke-width: 1 } .code { font: 12px ui-monospace, monospace }
"""


def main(target: Path) -> None:
    """Run the conversation, and write the picture to *target*."""
    chat = conversation()
    with closing(EphemeralStorage()) as storage:
        with Context.open(storage, id="demo", system=chat.system, window=WINDOW, nonce=NONCE) as context:
            for _ in play(context, chat):
                pass
            recall(context, PAGE)
            exact = context.recall_page(PAGE)[0]["content"]
        seen = InspectedContext(storage, "demo")
        sizes = window_sizes(seen, 0, seen.last_turn)
        row = seen.row(PAGE)
        assert row is not None, "the conversation has more pages"
        story = PageStory(seen, row)
        svg = drawn(sizes, seen.window.limits.budget, seen.record.head, story.events(), str(exact))
    target.write_text(svg, "utf-8")


def drawn(sizes: list[WindowSize], budget: int, messages: int, events: list[PageEvent], exact: str) -> str:
    """Return the picture."""
    last = sizes[-1].turn
    shown = len(sizes)
    step = (WIDTH - LEFT - 20) / (last + 1)
    made = sum(size.compactions for size in sizes)
    whole = sum(size.open for size in sizes)
    parts = [
        f'<rect class="back" width="{WIDTH}" height="550" rx="8"/>',
        text(20, 28, f"A window of {WINDOW:,} tokens at work", "title"),
        text(20, 48, f"{shown:,} turns, {messages:,} messages, {whole:,} tokens; {made} compactions; no request "
             "above the budget", "quiet"),
    ]  # fmt: skip
    for size in sizes:
        x, y = LEFT + size.turn * step, float(TOP + HEIGHT)
        for part in ("system", "contents", "active", "open"):
            height = HEIGHT * getattr(size, part) / budget
            y -= height
            if height:
                box = f'x="{x:.1f}" y="{y:.1f}" width="{step + 0.05:.2f}" height="{height:.1f}"'
                parts.append(f'<rect class="{part}" {box}/>')
    parts.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - 20}" y1="{TOP}" y2="{TOP}"/>')
    parts += [text(62, TOP + 4, f"{budget:,}", "budget", "end"), text(62, TOP + HEIGHT, "0", "quiet", "end")]
    for number, (part, words) in enumerate(PARTS.items()):
        x = (LEFT, LEFT + 310, LEFT + 540, LEFT + 680)[number]
        parts.append(f'<rect class="{part}" x="{x}" y="{TOP + HEIGHT + 14}" width="12" height="12" rx="2"/>')
        parts.append(text(x + 18, TOP + HEIGHT + 25, words, "quiet"))
    return head(last) + "\n".join([*parts, *life(events, last, step, exact)]) + "\n</svg>\n"


def life(events: list[PageEvent], last: int, step: float, exact: str) -> list[str]:
    """Return the strip below: how the page stood, turn by turn, with the words that stood for it."""
    parts = [text(20, STRIP - 6, f"The life of page #{PAGE}", "title")]
    for event, following in pairwise([*events, None]):
        assert event is not None, "only the last one has no follower"
        start, end = event.turn, last + 1 if following is None else following.turn
        box = f'x="{LEFT + start * step:.1f}" y="{STRIP + 6}" width="{max(2.0, (end - start) * step):.1f}" height="22"'
        parts.append(f'<rect class="{event.standing.place}" {box}/>')
    shown = {event.what: event for event in reversed(events) if event.what != FOLDED_AGAIN}  # the first of each kind
    y = STRIP + 52
    for event in reversed(shown.values()):
        whole = event.what == "opened" or event.what.startswith("recalled")
        words = "word for word: " + exact if whole else event.standing.line or event.why
        parts.append(text(LEFT, y, f"turn {event.turn}: {event.what}", ""))
        parts.append(text(LEFT, y + 17, short(words), "quiet code"))
        y += 37
    return parts


def head(last: int) -> str:
    """Return the beginning of the file, with a name and a description for those who can't see it."""
    told = (
        f"Columns for {last} turns: the tokens of system, Contents Page, newest pages and open turn stay below the "
        f"budget. Below, page {PAGE}: in full at first, then a line on the Contents Page, and recalled word for word."
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 550" role="img" aria-labelledby="t d">\n'
        f'<title id="t">A window at work</title>\n<desc id="d">{told}</desc>\n<style>{STYLE}</style>\n'
    )


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    """Return a line of text."""
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def short(words: str, most: int = 112) -> str:
    """Return *words* on one line of at most *most* characters."""
    line = " ".join(words.split())
    return line if len(line) <= most else line[: most - 1] + "…"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
