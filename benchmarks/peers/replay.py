"""Replays: a conversation through a manager, and what each of its requests costs, has and lacks.

    turn ─▶ manager ─▶ the request of the next model call ─▶ billed under each price, warm and with expiry

This module knows nothing of which manager it plays.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from statistics import fmean, median
from time import thread_time
from typing import Any

from memci import CachePricing
from memci.settings import Preset
from memci.tokens import counter_for

from ..cache.prefix import BILLINGS, Prefixes
from ..conversation import Message, texts
from .data import Part, Replay
from .frameworks.memci import Memci
from .frameworks.plain import Peer, Setting
from .script import Script
from .sight import PLACES, Sight, orphans, unlisted

PRICES = {0.1: "marked", 0.5: "half"}
"""the price of a token that is read from the cache, and the billing that has it"""
OUTPUT = 5.0
"""what a token of a manager's own model call costs when it is written, in input tokens; its prompt costs 1 a token"""
STOP = 0.1
"""the share of all calls over budget at which a replay ends: such a manager is not compared"""
_PAUSE = timedelta(hours=1)
_CALL = timedelta(seconds=5)
_DAY_SECONDS = 86_400.0


def play(
    replay: Replay, make: Callable[[Setting], Peer], *, budget: int, calls: int | None = None, names: bool = False
) -> dict[str, Any]:
    """Play *replay* through what *make* makes, and return what it cost and kept.

    Args:
        budget: Tokens of a request.
        calls: How many calls at most; None: all.
        names: Whether half of a summary are identifiers.
    """
    conversation = replay.conversation
    count = counter_for()
    setting = Setting(conversation.system, budget, count, Script(count, names))
    peer = make(setting)
    system: Message = {"role": "system", "content": conversation.system}
    sight = Sight(conversation.system)
    prefixes = {name: Prefixes(count, BILLINGS[name].marked) for name in PRICES.values()}
    spent: dict[tuple[float, bool], list[float]] = {each: [] for each in product(PRICES, (False, True))}
    facts: Counter[str] = Counter()
    times, floors, sizes = [], [], []
    view: list[Message] = []
    own: list[int] = []
    task = ""
    asked = _asked(replay)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    total_calls = min(calls or 10**9, sum(1 for _ in conversation.calls()))
    for number, (paused, turn) in enumerate(conversation.calls()):
        if number == total_calls or facts["over"] > STOP * total_calls:
            break
        if view and turn[0]["role"] == "assistant":
            sight.called(turn[0], view, own, peer.listed() if isinstance(peer, Memci) else unlisted)
        sight.take(turn, paused=paused)
        task = next((message["content"] for message in reversed(turn) if message["role"] == "user"), task)
        now += _PAUSE if paused else _CALL
        if isinstance(peer, Memci):
            peer.at = now
        begun = thread_time()
        for text in (text for message in turn for text in texts(message)):
            count(text)
        floors.append(thread_time() - begun)
        begun = thread_time()
        view = peer.call(turn)
        times.append(thread_time() - begun)
        own = sight.own(view)
        request = [system, *view]
        for read, name in PRICES.items():
            kept, total = prefixes[name].compare(request, stable=own[-1] + 2 if own else 1)
            spent[read, False].append(BILLINGS[name].price(kept, total))
            spent[read, True].append(BILLINGS[name].price(0 if paused else kept, total))
        sizes.append(total)
        facts["over"] += total > budget
        facts["orphans"] += orphans(view) > 0
        facts["lost"] += not any(message["role"] == "user" and message["content"] == task for message in view)
        if questions := list(asked(len(turn))):
            listed = peer.listed() if isinstance(peer, Memci) else unlisted
            for evidence in questions:
                sight.asked(evidence, view, own, listed)
    played = len(sizes)
    script = setting.script
    return {
        "conversation": conversation.name,
        "window": budget,
        "calls": played,
        "stopped": played < total_calls,
        "costs": {f"{read}/{'expires' if old else 'warm'}": fmean(each) for (read, old), each in spent.items()},
        "own": (script.read + OUTPUT * script.written) / played,
        "own_calls": script.calls,
        **{name: facts[name] / played for name in ("over", "orphans", "lost")},
        "needed": sight.found.total(),
        **{place: sight.found[place] for place in PLACES},
        "tokens": fmean(sizes),
        "sizes": sizes,
        "median_over_floor": median(times) / median(floors),
        "mean_over_floor": fmean(times) / fmean(floors),
    }


def _asked(replay: Replay) -> Callable[[int], Iterator[list[Message]]]:
    """Return what, given the messages of each turn, yields what is asked after it: once at the end of each session."""
    ends: dict[int, tuple[Part, int]] = {}
    done = 0
    for part in replay.parts:
        said = 0
        for session in part.sessions:
            done += len(session)
            said += len(session)
            ends[done] = part, said
    taken = [0]

    def after(messages: int) -> Iterator[list[Message]]:
        taken[0] += messages
        if taken[0] in ends:
            part, said = ends[taken[0]]
            flat = [message for session in part.sessions for message in session]
            yield from ([flat[at] for at in each] for each in part.questions if max(each) < said)

    return after


def memci(preset: Preset, read: float, *, kept: bool = False, clock: bool = True) -> Callable[[Setting], Peer]:
    """Return what makes a context of memci with *preset*.

    It knows the price, how long the cache lives (if it is *kept*: a day), and the time, unless it has no *clock*.
    """
    lifetime = _DAY_SECONDS if kept else CachePricing().lifetime
    return lambda setting: Memci(setting, preset, BILLINGS[PRICES[read]], clock, lifetime)
