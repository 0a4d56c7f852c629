"""Waiting: whether the model of a memory slows an agent. `append_turn` + `render` without a model, and with slow ones.

    turns        none │ answers │ 30 s │ never │ none │ answers …      in blocks, so that a busy machine slows all
    a pause      between turns, so that the workers are busy when the next turn comes

A real client asks a real server, which lets it wait. Wall clock time is measured, since an agent could be slowed by
waiting for a lock, for the interpreter or for the file. This module knows nothing of what the answers are worth.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any

from memci import Context, SQLiteStorage
from memci.errors import StorageBusy
from memci.llm import Chat, ChatModel, Reply
from memci.testing.llm import Hang, ModelServer

from ..conversation import Message
from ..memory.talks import Talks
from .standin import StandIn

_BLOCK = 40
_SETTLING = 60
"""turns that fill the window first"""
_REST_SECONDS = 0.3
"""without work; then the background is taken to be idle"""
_WINDOW = 4_000
_SLOW_SECONDS = 30.0
Turns = Iterator[tuple[Any, list[Message]]]


class Late:
    """A model that answers after some seconds; never, if its caller does not wait so long."""

    def __init__(self, seconds: float, ended: threading.Event) -> None:
        self._seconds, self._ended = seconds, ended
        self._chat = StandIn()

    def __call__(self, messages: Any, /, **wanted: Any) -> Reply:
        """Return the answer when the time is over."""
        self._ended.wait(self._seconds)
        return self._chat(messages, **wanted)


def waited(
    folder: Path, *, turns: int, pause: float, played: Callable[[int], object] = lambda _: None
) -> dict[str, Any]:
    """Return microseconds of a turn without a model and with each kind of one, over *turns* each."""
    ended = threading.Event()
    with contextlib.ExitStack() as stack:
        hang = Hang()
        server = stack.enter_context(ModelServer(lambda _: hang))
        chats: dict[str, ChatModel | None] = {
            "none": None,
            "answers": StandIn(),
            "30 s": Late(_SLOW_SECONDS, ended),
            "never": Chat("stand-in", base_url=server.base_url, timeout=_SLOW_SECONDS),
        }
        stack.callback(ended.set)
        sides = [
            (name, *_opened(stack, folder / f"{number}.db", chat)) for number, (name, chat) in enumerate(chats.items())
        ]
        figures = _played(sides, turns, pause, played)
        ended.set()
        hang.release()
    return figures


def _opened(stack: contextlib.ExitStack, path: Path, chat: ChatModel | None) -> tuple[Context, Turns, list[float]]:
    store = stack.enter_context(contextlib.closing(SQLiteStorage(path, durability="fast")))
    context = stack.enter_context(Context.open(store, id="a", system="You remember.", window=_WINDOW, chat=chat))
    source = Talks().pages()
    for at, page in islice(source, _SETTLING):
        context.append_turn(*page, at=at)
        context.render()
    return context, source, []


def _rest(most: float = 10.0) -> None:
    """Wait until the background is idle: work for one side must not slow the next one."""
    until = time.monotonic() + most
    while time.monotonic() < until:
        used = time.process_time()
        time.sleep(_REST_SECONDS)
        if time.process_time() - used < _REST_SECONDS / 100:
            return


def _played(
    sides: list[tuple[str, Context, Turns, list[float]]], turns: int, pause: float, played: Callable[[int], object]
) -> dict[str, Any]:
    done = refused = largest = 0
    while done < turns:
        for _, context, source, times in sides:
            for at, page in islice(source, min(_BLOCK, turns - done)):
                time.sleep(pause)
                began = time.perf_counter()
                try:
                    context.append_turn(*page, at=at)
                    context.render()
                except StorageBusy:
                    refused += 1
                times.append(1e6 * (time.perf_counter() - began))
                largest = max(largest, context.report().total)
            _rest()
        done += _BLOCK
        played(min(done, turns))
    figures: dict[str, Any] = {"pause": pause, "turns": turns, "refused": refused, "largest": largest}
    figures["budget"] = sides[0][1].report().budget
    for name, context, _, times in sides:
        times.sort()
        figures[name] = {"median": median(times), "mean": fmean(times), "p99": times[len(times) * 99 // 100]}
        work = context.report().work
        figures[name]["calls"] = sum(each.calls for each in work.spent.values()) if work else 0
    for name in figures.keys() & {"answers", "30 s", "never"}:
        for key in ("median", "p99"):
            figures[name][f"{key}_ratio"] = round(figures[name][key] / figures["none"][key], 3)
    return figures
