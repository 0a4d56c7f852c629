"""S15: no text makes a whole call dear: CPU per character stays within four times of plain words.

`MEMCI_FAMILIES=all` tries each family, for some minutes; `MEMCI_FAMILIES=few` some of them. CPU is no test on a busy
machine, so here only what was quadratic is tried, with room.
"""

import os
import re
import time
from collections.abc import Callable

import pytest

from memci import Context, EphemeralStorage
from memci.workers import Worker

from .families import families, repeat

SIZE = 4_000
"""characters of each message: those of a page together are as many as a summary reads"""
TIMES = 4.0
"""as much CPU as of plain words"""
FLOOR_SECONDS = 0.006
"""of plain words, which are too quick to be measured: whatever is quadratic takes many times as long"""
TRIES = 4
"""measures of a call: a slow moment of the machine is no cost of it, and does not come each time"""
PLAIN = {
    (False, False): "The people of the town walk along the river to a small market, where friends sell bread and fish ",
    (True, False): "我们每天早上沿着河边走到市场，今日は友達と川沿いを歩いて市場へ行く、우리는 시장에 갑니다，",
    (False, True): "we\ntown\nof\nriver\n",
    (True, True): "我们\n河边\n市場\n시장에\n",
}
"""plain words: of a writing with wide characters, where fewer say more; each a line, as lines have their cost, too"""
ALL = families()
TRIED = os.environ.get("MEMCI_FAMILIES")
CHOSEN = dict(list(ALL.items())[:: 1 if TRIED == "all" else 61])
ROOM = 5.0
"""times more than that: what is quadratic took 70 times as much as plain words; a busy machine takes twice as long"""


def calls(text: str) -> dict[str, float]:
    """Return the seconds of CPU of whole calls about *text*."""
    spent: dict[str, float] = {}

    def measure(name: str, act: Callable[[], object]) -> None:
        began = time.process_time()
        act()
        spent[name] = time.process_time() - began

    turn = ({"role": "user", "content": f"hi{text}x"}, {"role": "assistant", "content": f"ok{text}y"})
    with Context.open(EphemeralStorage(), "a", window=400_000) as context:
        measure("append", lambda: context.append_turn(*turn, *turn))
        context.append_turn("Next.")
        measure("archive", lambda: context.archive(keep=0))
        measure("search", lambda: context.search_memory(f"{text}x"))
        measure("render", context.render)
        measure("erase", lambda: context.erase(1))
    with Context.open(EphemeralStorage(), "b", window=400_000) as context:
        measure("sync", lambda: context.sync([*turn, *turn]))
    return spent


def kind(text: str) -> tuple[bool, bool]:
    """Return which of the plain words *text* is compared with."""
    return any("\u3000" < each < "\ud7b0" for each in text), re.search(r"[\n\r\v\u2028.!?;:。！？…]", text) is not None


def dear(text: str, plain: dict[str, float], times: float = TIMES) -> dict[str, float]:
    """Return how many times as much CPU as *plain* words those calls took that took more than *times* each time."""
    found: dict[str, float] = {}
    for attempt in range(TRIES):
        ratios = {name: spent / max(plain[name], FLOOR_SECONDS) for name, spent in calls(text).items()}
        over = {name: round(ratio, 1) for name, ratio in ratios.items() if ratio > times}
        found = {
            name: min(ratio, found.get(name, ratio)) for name, ratio in over.items() if not attempt or name in found
        }
        if not found:
            break
    return found


@pytest.fixture(scope="module")
def plain():
    """What plain words cost; all work is done within the calls, none in the background."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "submit", lambda _self, _busy: None)
        calls("warm")
        yield _plain_costs()


def _plain_costs():
    costs = {}
    for which, words in PLAIN.items():
        measured = [calls(repeat(words, SIZE)) for _ in range(2)]
        costs[which] = {name: min(each[name] for each in measured) for name in measured[0]}
    return costs


def test_there_are_many_families():
    assert len(ALL) > 600


@pytest.mark.skipif(not TRIED, reason="CPU is measured: set MEMCI_FAMILIES to few or all on a quiet machine")
def test_whole_calls_cost_as_much_as_those_of_plain_words(plain):
    found = {name: dear(repeat(piece, SIZE), plain[kind(piece)]) for name, piece in CHOSEN.items()}

    assert {name: calls for name, calls in found.items() if calls} == {}


def test_blank_lines_before_small_talk(plain):
    """Each blank was a beginning of what goes before small talk: 48,000 took 12 seconds."""
    assert dear(repeat("\n", SIZE), plain[False, True], ROOM * TIMES) == {}


@pytest.mark.parametrize("mark", "“«「")
def test_quotation_marks_that_are_never_closed(mark, plain):
    four = {name: 4 * cost for name, cost in plain[kind(mark)].items()}

    assert dear(repeat(f"a{mark}", 4 * SIZE), four, ROOM * TIMES) == {}


def test_costs_that_are_too_high_are_noticed(plain):
    """The measure above has teeth."""
    cheap = {name: cost / 100 for name, cost in plain[False, False].items()}

    assert dear(repeat(PLAIN[True, True], SIZE), cheap)
