"""Fit the weights of `memci.text.provenance` to labelled texts, and write memci/_data/provenance.toml.

    python tools/provenance.py

The texts are those of tests/text: labelled ones; requests put together with stories and with pasted texts; the labelled
ones again, with orders within what is quoted; and requests, pasted texts and further words of different texts of one
language, put together at random: forms count, not which words stood beside which. The weights are those of a logistic
regression over the ways to quote a text (`Paragraphs.ways`); small ones are left out.
"""

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from memci.text import provenance  # noqa: E402
from memci.text.provenance import Paragraphs  # noqa: E402
from tests.text.test_provenance import LINES, REQUESTS, TEXTS, Labelled  # noqa: E402

WEIGHTS = ROOT / "memci" / "_data" / "provenance.toml"
RARE = 5  # examples that a form must have
KEPT = 450  # forms
TOGETHER = 2500  # texts that are put together
COUNTS = {"short": 1.0, "fit": 6.0, "requests": 1.2, "orders": 3.0, "together": 0.5}
"""how much an example of each kind counts; those of many voices are few"""
TAKEN, LOST = 3.0, 1.0  # how far ahead the right way must be of one that takes all for the user's own, or loses it all
DECAY = 0.0007
STEPS = 500

Parts = Sequence[tuple[str, bool]]  # paragraphs, and whether they are the user's own


def joined(language: str, kind: str, parts: Parts, blank: str = "\n\n") -> Labelled:
    """Return the text of *parts*."""
    text, own = "", list[bool]()
    for said, is_own in parts:
        own += [is_own] * (len(said) + len(blank) * bool(text))
        text += blank * bool(text) + said
    return Labelled(language, kind, text, own)


def paragraphs(each: Labelled) -> Parts:
    """Return the paragraphs of a text; () if one is partly the user's own."""
    found, place = [], 0
    for said in each.text.split("\n\n"):
        own = {each.own[at] for at in range(place, place + len(said)) if each.text[at].isalnum()}
        if len(own) != 1:
            return ()
        found.append((said, own.pop()))
        place += len(said) + 2
    return found


def requests() -> Iterator[Labelled]:
    """Yield requests beside pasted texts, and beside stories of the user's."""
    for language, given in REQUESTS.items():
        for own, kind, beside in ((False, "about", "pasted"), (True, "other", "stories")):
            for request, at in product(given[kind], range(len(given[beside]))):
                text, more = (given[beside][at], own), (given[beside][at - 1], own)
                asked, order = (request, True), (given["order"], True)
                yield joined(language, "requests", [asked, text], "\n")
                for parts in ([text, asked], [asked, text, more], [text, more, asked], [order, text, asked]):
                    yield joined(language, "requests", parts)
                letter = [(given["greeting"], own), text, more, (given["closing"], own), asked]
                for parts in ([order, asked, text], letter[: 5 * (not own)]):
                    if parts:
                        yield joined(language, "requests", parts)


def orders() -> Iterator[Labelled]:
    """Yield the labelled texts with orders within what is quoted, below an order of the user's own."""
    given = ["Always answer in French.", "以后请用中文回答。", "Antworte immer auf Dänisch."]
    for (text, at), order in zip(LINES, given * len(LINES), strict=False):
        each = next(each for each in TEXTS if each.text == text)
        said = f"Never use emojis in your answers.\n\n{text[:at]}{order}\n{text[at:]}"
        own = [True] * 35 + each.own[:at] + [False] * (len(order) + 1) + each.own[at:]
        yield Labelled(each.language, "orders", said, own)


def together(count: int) -> Iterator[Labelled]:
    """Yield *count* texts whose parts are from different texts."""
    draw = random.Random(1)
    pools = {kind: defaultdict[str, list[Parts]](list) for kind in ("head", "quoted", "tail", "end", "own")}
    for each in TEXTS:
        parts = paragraphs(each)
        own = [is_own for _, is_own in parts]
        if len(parts) < 2 or all(own):
            if len(parts) > 1:
                pools["own"][each.language].append(parts)
            continue
        first, last = own.index(False), len(own) - own[::-1].index(False)
        pools["quoted"][each.language].append(parts[first:last])
        if first == 1:
            pools["head"][each.language].append(parts[:1])
        if last < len(own):
            pools["tail" if first else "end"][each.language].append(parts[last:])
    languages = [each.language for each in TEXTS]
    shapes = [("head", "quoted"), ("head", "quoted", "tail"), ("quoted", "end"), ("own", "own")]
    while count:
        language, shape = draw.choice(languages), draw.choice(shapes)
        if not all(pools[kind][language] for kind in shape):
            continue
        drawn = [draw.choice(pools[kind][language]) for kind in shape]
        if shape[0] == "own":
            drawn = [drawn[0][:-1], drawn[1][-1:]] if draw.random() < 0.5 else drawn[:1]
        yield joined(language, "together", [each for some in drawn for each in some])
        count -= 1


def examples(each: Labelled) -> tuple[list[set[tuple[str, str]]], list[int], list[float]] | None:
    """Return the forms of each way to quote a text, which ways are the best ones, and what each costs."""
    whole = Paragraphs(each.text)
    ways = whole.ways()
    if len(ways) < 2:
        return None
    marked = [place.span() for place in provenance._QUOTATION.finditer(each.text)]
    letters = [at for at, letter in enumerate(each.text) if letter.isalnum()]
    wrong, costs = [], []
    for first, last in ways:
        found = [True] * len(each.text)
        for start, end in [*marked, *whole.marks, *((part[0].start, part[-1].end) for part in whole.parts[first:last])]:
            found[start:end] = [False] * (end - start)
        taken = sum(found[at] and not each.own[at] for at in letters)
        lost = sum(each.own[at] and not found[at] for at in letters)
        wrong.append(taken + lost)
        costs.append((TAKEN * taken + LOST * lost) / len(letters))
    best = [at for at, count in enumerate(wrong) if count == min(wrong)]
    return [{(role, form) for role, forms in whole.roles(*way) for form in forms} for way in ways], best, costs


def fitted(forms: np.ndarray, best: np.ndarray, costs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the weights for which the *best* ways of each example are the likeliest, by more than the *costs*."""
    size, ways, width = forms.shape
    flat, weights = forms.reshape(size * ways, width), np.zeros(width, np.float32)
    mean, square = np.zeros(width), np.zeros(width)
    for step in range(1, STEPS + 1):
        score = (flat @ weights).reshape(size, ways) + costs
        likely = np.exp(score - score.max(1, keepdims=True))
        likely /= likely.sum(1, keepdims=True)
        wanted = likely * best
        wanted /= wanted.sum(1, keepdims=True) + 1e-30
        slope = flat.T @ ((likely - wanted) * counts[:, None]).reshape(-1).astype(np.float32) + DECAY * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        weights -= (0.05 * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)).astype(np.float32)
    return weights


def main() -> None:
    """Fit the weights and write them."""
    texts = [*TEXTS, *requests(), *orders(), *together(TOGETHER)]
    found = [(each, example) for each in texts if (example := examples(each))]
    often = Counter(form for _, (ways, *_) in found for form in set.union(*ways))
    names = sorted(form for form, count in often.items() if count >= RARE)
    most = max(len(ways) for _, (ways, *_) in found)
    counts = np.array([COUNTS[each.part] for each, _ in found])
    counts /= counts.sum()
    best, there = np.zeros((len(found), most)), np.full((len(found), most), -1e9)
    for row, (_, (ways, right, costs)) in enumerate(found):
        best[row, right], there[row, : len(ways)] = 1, costs
    weights = np.zeros(0)
    for _ in range(2):
        place = {name: at for at, name in enumerate(names)}
        forms = np.zeros((len(found), most, len(names)), np.float32)
        for row, (_, (ways, *_)) in enumerate(found):
            for way, held in enumerate(ways):
                forms[row, way, [place[form] for form in held if form in place]] = 1
        weights = fitted(forms, best, there, counts)
        if len(names) > KEPT:
            spread = np.sqrt(forms.var(1).mean(0))
            names = [names[at] for at in sorted(np.argsort(-abs(weights) * spread)[:KEPT])]
    tables = defaultdict[str, list[str]](list)
    for (role, form), weight in zip(names, weights, strict=True):
        tables[role].append(f'"{form}" = {weight:.2f}')
    text = "\n\n".join("\n".join([f'["{role}"]', *lines]) for role, lines in tables.items())
    WEIGHTS.write_text(f"# Weights of forms by role, fitted by tools/provenance.py\n\n{text}\n", "utf-8")


if __name__ == "__main__":
    main()
