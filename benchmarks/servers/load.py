"""Requests of clients that wait for nothing but their answers: how many a second, and how long each takes.

    client 1   conversation 1   open (wait=) · append the question · render · append the answer · close     again …
    client 2   conversation 2   …

Clients are threads with a `Context`, or tasks with an `AsyncContext`; each has a conversation of its own, of 30 turns
at first. No model is asked. This module knows nothing of RAM.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import quantiles
from typing import Literal

from memci import AsyncContext, Context, SQLiteStorage

from ..conversation import Message
from ..memory.talks import Talks

TURNS = 30
Pages = list[list[Message]]


def load(
    folder: Path, talks: Talks, durability: Literal["full", "fast"], kind: str, clients: int, requests: int
) -> dict[str, float | int | str]:
    """Send *requests* in total by so many *clients*; return requests per second and milliseconds of a request."""
    source = talks.pages()
    store = SQLiteStorage(folder / f"{durability}-{kind}-{clients}.db", durability="fast")
    for client in range(clients):
        with Context.open(store, str(client), window=8_000) as context:
            for _ in range(TURNS):
                context.append_turn(next(source)[1])
    store.close()
    store = SQLiteStorage(folder / f"{durability}-{kind}-{clients}.db", durability=durability)
    work = [[next(source)[1] for _ in range(requests // clients)] for _ in range(clients)]
    began, used = time.perf_counter(), time.process_time()
    times = (_threads if kind == "threads" else _tasks)(store, work)
    took, used = time.perf_counter() - began, time.process_time() - used
    store.close()
    cuts = quantiles(times, n=100)
    return {
        "durability": durability,
        "kind": kind,
        "clients": clients,
        "requests_per_second": round(len(times) / took, 1),
        "p50_ms": round(1e3 * cuts[49], 2),
        "p99_ms": round(1e3 * cuts[98], 2),
        "cpu_ms": round(1e3 * used / len(times), 2),
    }


def _threads(store: SQLiteStorage, work: list[Pages]) -> list[float]:
    def client(number: int) -> list[float]:
        times = []
        for question, answer in work[number]:
            began = time.perf_counter()
            with Context.open(store, str(number), wait=10) as context:
                context.append_turn(question, op_id=str(began))
                context.render()
                context.append_turn(answer)
            times.append(time.perf_counter() - began)
        return times

    with ThreadPoolExecutor(len(work)) as clients:
        return [each for times in clients.map(client, range(len(work))) for each in times]


def _tasks(store: SQLiteStorage, work: list[Pages]) -> list[float]:
    async def client(number: int) -> list[float]:
        times = []
        for question, answer in work[number]:
            began = time.perf_counter()
            async with AsyncContext.open(store, str(number), wait=10) as context:
                await context.append_turn(question, op_id=str(began))
                await context.render()
                await context.append_turn(answer)
            times.append(time.perf_counter() - began)
        return times

    async def clients() -> list[float]:
        return [each for times in await asyncio.gather(*map(client, range(len(work)))) for each in times]

    return asyncio.run(clients())
