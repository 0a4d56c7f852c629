"""Heat: a memory of some months, seen day by day, and drawn as SVG.

    a talk a day about one of four subjects, some questions     ──▶  TieredMemory, with a clock of its own
    the heat of the warmest episode of each, every evening      ──▶  a curve

What is drawn is what the memory keeps, from a run that is the same each time. This module knows nothing of speed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from random import Random

from memci import Context, EphemeralStorage, Policy
from memci.memory import TieredMemory
from memci.memory.owner import owner_of
from memci.memory.repository.home import tables_of
from memci.memory.tiers.heat import Warmth

DAYS = 60
_BEGAN = datetime(2026, 1, 1, 19, tzinfo=UTC)
_TALKED: dict[str, tuple[str, Sequence[int], Sequence[int]]] = {
    "violin": (
        "violin lesson bow strings scales Vivaldi concerto teacher practice tuning vibrato orchestra sonata rosin",
        (1, 2, 4, 30, 31),
        (9, 16, 23, 33, 41, 48, 55),
    ),
    "Oslo": (
        "Oslo flight hotel fjord ferry museum Vigeland passport luggage train Bergen sauna itinerary krone booking",
        (6, 7, 8, 10, 12, 13),
        (11, 14, 15, 17, 18, 19),
    ),
    "the dog": ("dog puppy Bruno vet leash vaccine kibble paw fur bark kennel obedience", (20, 22, 24), (28, 46)),
    "taxes": (
        "tax return invoice deduction receipt accountant income form deadline refund assessment",
        (36, 37, 38),
        (),
    ),
}
"""its words, days on which it was talked about, and days on which it was asked for"""
_LISTED = 1
"""tokens of the Contents Page: a page that leaves the window enters the tiers"""
_SAID = 4
"""pages of a talk"""


@dataclass(slots=True)
class Curve:
    """What one subject's episodes were like, evening by evening."""

    name: str
    lifetime: list[float] = field(default_factory=list)
    analysed: list[int] = field(default_factory=list)
    """evenings on which it had been analysed since the one before"""
    asked: Sequence[int] = ()
    talked: Sequence[int] = ()
    known: int = 0
    """visits up to its last analysis"""


def warmed(days: int = DAYS) -> list[Curve]:
    """Play the months and return a curve per subject."""
    today = [_BEGAN]
    random = Random(7)
    storage = EphemeralStorage()
    memory = TieredMemory(storage, owner="you", clock=lambda: datetime.timestamp(today[0]))
    context = Context.open(
        storage,
        id="you",
        system="You remember.",
        window=4_000,
        policy=Policy(contents_tokens=_LISTED),
        memory=memory,
        nonce="00000000",
    )
    curves = {name: Curve(name, asked=asked, talked=talked) for name, (_, talked, asked) in _TALKED.items()}
    for day in range(days):
        now = today[0] = _BEGAN + timedelta(days=day)
        for words, talked, asked in _TALKED.values():
            if day in talked:
                for page in range(_SAID):
                    said = " ".join(random.sample(words.split(), 6))
                    told = " ".join(random.sample(words.split(), 7))
                    when = now + timedelta(minutes=3 * page)
                    context.append_turn(
                        f"About the {said}.", {"role": "assistant", "content": f"Yes, the {told}."}, at=when
                    )
                    context.render()
            if day in asked:
                context.search_memory(" ".join(random.sample(words.split(), 3)), k=3)
        context.archive(keep=0)
        context.flush()
        _noted(storage, curves.values(), day, now.timestamp())
    context.close()
    return list(curves.values())


def drawn(curves: Sequence[Curve]) -> str:
    """Return *curves* as an SVG that is readable on light and dark ground."""
    highest = 10 * -(-max(max(curve.lifetime) for curve in curves) // 10)

    def x(day: float) -> float:
        return _LEFT + day * (_RIGHT - _LEFT) / (DAYS - 1)

    def y(heat: float) -> float:
        return _BOTTOM - heat * (_BOTTOM - _TOP) / highest

    body = [f'<text class="title" x="{_LEFT}" y="20">Heat of four episodes over {DAYS} days</text>']
    for heat in range(0, int(highest) + 1, 10):
        body.append(f'<path class="grid" d="M{_LEFT} {y(heat):.1f}H{_RIGHT}"/>')
        body.append(f'<text class="small" text-anchor="end" x="{_LEFT - 6}" y="{y(heat) + 4:.1f}">{heat}</text>')
    body += [
        f'<text class="small" text-anchor="middle" x="{x(day):.1f}" y="{_BOTTOM + 16}">day {day}</text>'
        for day in range(0, DAYS, 10)
    ]
    for lane, curve in enumerate(curves):
        row = _BOTTOM + 36 + 18 * lane
        points = " ".join(f"{x(day):.1f},{y(heat):.1f}" for day, heat in enumerate(curve.lifetime) if heat)
        body.append(f'<g class="c{lane}"><polyline points="{points}"/>')
        body += [f'<circle cx="{x(day):.1f}" cy="{y(curve.lifetime[day]):.1f}" r="4"/>' for day in curve.analysed]
        body += [f'<rect x="{x(day) - 3:.1f}" y="{row - 3}" width="6" height="6"/>' for day in curve.talked]
        body += [f'<circle class="ring" cx="{x(day):.1f}" cy="{row}" r="3.2"/>' for day in curve.asked]
        body.append(f'<text text-anchor="end" x="{_LEFT - 6}" y="{row + 4}">{escape(curve.name)}</text>')
        body.append(f'<text x="{_RIGHT + 6}" y="{y(curve.lifetime[-1]) + 4:.1f}">{escape(curve.name)}</text></g>')
    legend = _BOTTOM + 36 + 18 * len(curves) + 6
    told = "■ talked about    ○ found by a search    ● analysed: facts and profile come of it"
    body.append(f'<text class="small" x="{_LEFT}" y="{legend}" xml:space="preserve">{told}</text>')
    lines = "\n".join(body)
    size = f'width="{_RIGHT + 70}" height="{legend + 12}" viewBox="0 0 {_RIGHT + 70} {legend + 12}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{_LABEL}">'
    return f"{head}\n<style>{_STYLE}</style>\n{lines}\n</svg>\n"


def _noted(storage: EphemeralStorage, curves: Iterable[Curve], day: int, now: float) -> None:
    """Note how warm the warmest episode of each subject is."""
    store = tables_of(storage)
    with store.lock:
        owner = owner_of(store, "you")
        owner.refresh()
        episodes = list(owner.tiers.episodes.values())
    store.close()
    for curve in curves:
        words = set(_TALKED[curve.name][0].lower().split())
        own = [each.warmth for each in episodes if words.intersection(" ".join(each.keywords).lower().split())]
        warmest = max(own, key=lambda each: each.lifetime(now), default=Warmth())
        curve.lifetime.append(round(warmest.lifetime(now), 2) if own else 0.0)
        if warmest.analysed_visits > curve.known:
            curve.analysed.append(day)
        curve.known = warmest.analysed_visits


_LABEL = "Curves of heat: up with every page and every search, hardly down with time"
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 690, 36, 260
_COLOURS = (("#1f6feb", "#6cb6ff"), ("#bc4c00", "#f69d50"), ("#1a7f37", "#57d364"), ("#8250df", "#d2a8ff"))
"""on light ground and on dark"""


def _colours(dark: int) -> str:
    return "".join(
        f".c{lane} text,.c{lane} rect,.c{lane} circle{{fill:{pair[dark]}}}.c{lane} polyline{{stroke:{pair[dark]}}}"
        f".c{lane} circle.ring{{fill:none;stroke:{pair[dark]}}}"
        for lane, pair in enumerate(_COLOURS)
    )


_STYLE = (
    "text{font:12px sans-serif}.title{font-weight:600;fill:#24292f}.small{font-size:11px;fill:#57606a}"
    ".grid{stroke:#8c959f;stroke-opacity:.35}polyline{fill:none;stroke-width:2}.ring{stroke-width:1.4}"
    + _colours(0)
    + "@media (prefers-color-scheme:dark){.title{fill:#e6edf3}.small{fill:#9198a1}"
    + _colours(1)
    + "}"
)
