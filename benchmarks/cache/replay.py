"""Replays: a conversation through a manager, and what each of its requests costs, has and lacks.

    turn ─▶ manager ─▶ the request of the next model call ─▶ billed under each price, with each kind of pauses
    ── pause ──    the provider has forgotten the prompt, if the cache expires; memci knows, if it has a clock

Every call of the conversation counts, those that fill the window first among them: an agent pays for them, too. What
a manager adds is billed: its notice, its tools, its summaries, and where it has a recall, one for each call that needs
what is not verbatim in its request: the request again, from the cache, and 400 tokens. Recalls for questions are not
billed: they are asked again and again to measure, and are no part of the talk. This module knows nothing of how a
manager works.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from statistics import fmean, median
from time import thread_time
from typing import Any

from memci.tokens import counter_for

from ..conversation import Message, texts
from .bills import Bills, pauses
from .data import Part, Replay
from .manager import Manager, Memci, Setting, Threaded
from .script import Script
from .sight import PLACES, Sight, orphans, unlisted

OUTPUT = 5.0
"""what a token of a manager's own model call costs when it is written, in input tokens; its prompt costs 1 a token"""
TIMED = 10
"""a call of so many is timed: the clock of a thread is slow on some machines"""
STOP = 0.1
"""the share of all calls over budget at which a replay ends: such a manager is not compared"""


def play(
    replay: Replay,
    make: Callable[[Setting], Manager],
    *,
    budget: int,
    billings: Sequence[str] = ("marked",),
    calls: int | None = None,
    names: bool = False,
    played: Callable[[int], object] = lambda _calls: None,
) -> dict[str, Any]:
    """Play *replay* through what *make* makes, and return what it cost and kept.

    Args:
        budget: Tokens of a request.
        billings: How requests are billed, each with another price of a token that is read from the cache.
        calls: How many calls at most; None: all.
        names: Whether half of a summary are identifiers.
        played: Called with the number of calls played.
    """
    conversation = replay.conversation
    count = counter_for()
    script = Script(count, names)
    manager = make(Setting(conversation.system, budget, count, script))
    random = Random(conversation.name)
    sight = Sight(conversation.system)
    bills = Bills(count, billings)
    facts: Counter[str] = Counter()
    times, floors = [], []
    view: list[Message] = []
    own: list[int] = []
    context, listed = None, unlisted
    task = ""
    asked = _asked(replay)
    total_calls = min(calls or 10**9, sum(1 for _ in conversation.calls()))
    for number, (paused, turn) in enumerate(conversation.calls()):
        if number == total_calls or facts["over"] > STOP * total_calls:
            break
        if view and turn[0]["role"] == "assistant" and sight.called(turn[0], view, own, listed) and context:
            bills.recall()
        if number and paused and conversation.separate:
            manager = make(Setting(conversation.system, budget, count, script))
            bills.begin()
        elif paused and isinstance(manager, Threaded):
            manager.begin()
        context = manager if isinstance(manager, Memci) else None
        listed = context.listed if context else unlisted
        sight.take(turn, paused=paused)
        task = next((message["content"] for message in reversed(turn) if message["role"] == "user"), task)
        talks = not conversation.separate and any(message["role"] == "user" for message in turn)
        after = pauses(random, paused=paused, talks=talks)
        if context:
            context.at += after["drawn" if context.drawn else "expires"]
        clock = thread_time if number % TIMED == 0 else float
        begun = clock()
        sum(count(text) for message in turn for text in texts(message))
        floors.append(clock() - begun)
        begun = clock()
        view = manager.call(turn)
        times.append(clock() - begun)
        own = sight.own(view)
        request = [context.system if context else {"role": "system", "content": conversation.system}, *view]
        stable = next((at for at in own if at + 1 not in own), -1) + 2  # the end of what it writes in front
        total = bills.request(
            request, stable=context.stable if context else stable, tools=context.tools if context else 0, after=after
        )
        told = any(message["role"] == "user" and message["content"] == task for message in view)
        facts.update(over=total > budget, orphans=orphans(view) > 0, lost=not told)
        if questions := list(asked(len(turn))):
            sight.asked(questions, view, own, listed)
        played(number + 1)
    made = len(bills.sizes)
    return {
        "conversation": conversation.name,
        "window": budget,
        "calls": made,
        "stopped": made < total_calls,
        **bills.figures,
        "breaks": bills.breaks,
        "own": (script.read + OUTPUT * script.written) / made,
        "own_calls": script.calls,
        **{name: facts[name] / made for name in _SHARES},
        "needed": sight.found.total(),
        **{place: sight.found[place] for place in PLACES},
        "tokens": fmean(bills.sizes),
        "sizes": bills.sizes,
        "median_over_floor": median(times[::TIMED]) / median(floors[::TIMED]),
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


def mean(of: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean of what was played of one system, conversation and window, over its beginnings."""
    needed = sum(each["needed"] for each in of)
    numbers: dict[str, Any] = {name: fmean(each[name] for each in of) for name in MEANS if name in of[0]}
    for name in {"costs", "kept", "recalls"} & of[0].keys():
        numbers[name] = {key: fmean(each[name][key] for each in of) for key in of[0][name]}
    places = {place: sum(each[place] for each in of) / needed if needed else 0 for place in PLACES}
    return of[0] | numbers | places | {"phases": len(of), "needed": needed}


_SHARES = ("over", "orphans", "lost")
MEANS = (*_SHARES, "own", "own_calls", "tokens", "median_over_floor", "mean_over_floor", "calls", "breaks")
"""what a mean is taken of; figures that are older lack some"""


def merged(figures: Iterable[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Return the mean over the beginnings of those *figures* that have the fields *names* in common."""
    groups: defaultdict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for each in figures:
        groups[tuple(each[name] for name in names)].append(each)
    return [mean(of) for of in groups.values()]
