"""Months: three months of one owner's conversations, day by day: what each tier holds, what it finds, what it costs.

    50 turns a day in three contexts, each closed when it is over    ──▶  a memory with a clock of its own
    every evening: questions of pages that are 1, 7, 30, 60 days old ──▶  found among the first ten?
    a night later: `maintain`, and what every tier holds             ──▶  a row of figures, and a curve

The talks are made up, with words as uneven as real ones; some turns tell a fact or an event. There is room for fewer
episodes than there are subjects, so that some are evicted. This module knows nothing of a model.
"""

import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from memci import Context, SQLiteStorage
from memci.memory import TieredMemory
from memci.memory.inspect import counts
from memci.memory.repository.pages import FACTS
from memci.memory.tiers.rules import Rules

from .talks import Talks

DAYS, TURNS, TALKS = 90, 50, 3
EPISODES = 200
"""the paper's capacity: by default there is room for 2,000"""
AGES = (1, 7, 30, 60)
"""days; of each, so many pages are asked for every evening"""
ASKED = 5
_BEGAN = datetime(2026, 1, 1, 8, tzinfo=UTC)
_TOLD = (
    "I moved to {}.",
    "My sister {} got married yesterday!",
    "I have a dog that is called {}.",
    "I work as a {}.",
    "I passed the exam in {} last night!",
)
_TELLS = 7
"""turns of which one tells something that lasts"""


def lived(folder: Path, days: int = DAYS, played: Callable[[int], None] = lambda _day: None) -> dict[str, Any]:
    """Live *days* days, and return a row per day, and how many of the questions were answered, by age."""
    now = [_BEGAN]
    random, talks = Random(90), Talks()
    source = talks.pages()
    said: list[list[tuple[tuple[str, int], str]]] = []
    """of each day, pages with a question"""
    rows: list[dict[str, Any]] = []
    hits: dict[int, list[bool]] = {age: [] for age in AGES}
    turn = 0
    with closing(SQLiteStorage(folder / "months.db", durability="fast")) as store:
        rules = Rules(episodes=EPISODES)
        memory = TieredMemory(store, owner="you", rules=rules, clock=lambda: now[0].timestamp())  # noqa: PLW0108 -- it changes
        for day in range(days):
            today: list[tuple[tuple[str, int], str]] = []
            spent = dict.fromkeys(("talk", "maintenance", "search"), 0.0)
            for talk in range(TALKS):
                now[0] = _BEGAN + timedelta(days=day, hours=5 * talk)
                name = f"day-{day}-{talk}"
                began = time.process_time()
                with Context.open(store, name, owner="you", window=8_000, memory=memory) as context:
                    for _ in range(TURNS // TALKS + (talk < TURNS % TALKS)):
                        turn += 1
                        now[0] += timedelta(minutes=2)
                        page = next(source)[1]
                        if turn % _TELLS == 0:
                            word = page[1]["content"].split()[0].strip(".").capitalize()
                            page[0]["content"] += " " + random.choice(_TOLD).format(word)
                        today.append(((name, context.append_turn(*page, at=now[0]).page), talks.question(page)))
                        context.render()
                    spent["talk"] += time.process_time() - began
                    began = time.process_time()  # closing hands the pages over
                spent["maintenance"] += time.process_time() - began
            said.append(today)
            began = time.process_time()
            for age in AGES:
                for key, question in random.sample(said[day - age], ASKED) if age <= day else ():
                    found = memory.search(question, k=10).pages
                    hits[age].append(key in {(each.context, each.index) for each in found})
            spent["search"] = time.process_time() - began
            began = time.process_time()
            now[0] += timedelta(hours=7)
            memory.maintain()
            spent["maintenance"] += time.process_time() - began
            rows.append(_row(memory, day, turn, spent, {age: each[-ASKED:] for age, each in hits.items()}))
            played(day + 1)
        memory.close()
    recall = {str(age): round(sum(each) / len(each), 3) for age, each in hits.items() if each}
    asked = {str(age): len(each) for age, each in hits.items()}
    return {"turns": turn, "episodes_at_most": EPISODES, "recall_at_10": recall, "asked": asked, "days": rows}


def _row(
    memory: TieredMemory, day: int, turns: int, spent: dict[str, float], asked: dict[int, list[bool]]
) -> dict[str, Any]:
    known = counts(memory)
    tiers = memory.session.tiers()
    read = memory.session.store.read_value("SELECT count(*) FROM memory_page WHERE marks & ?", FACTS)
    return {
        "day": day + 1,
        "turns": turns,
        **{name: getattr(known, name) for name in ("observed", "short", "mid", "evicted", "episodes", "chains")},
        "promoted": read,
        "facts": known.user_facts + known.assistant_facts,
        "events": known.events,
        "days": known.days,
        "profile_versions": tiers.profile.version,
        "sessions": len(tiers.profile.conversations),
        **{f"{name}_ms": round(1e3 * each, 1) for name, each in spent.items()},
        "found": {str(age): sum(each) for age, each in asked.items() if each},
    }


def draw(figures: dict[str, Any], file: Path) -> None:
    """Draw *figures* into *file*, as PNG. It needs matplotlib: `pip install -e '.[plots]'`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = figures["days"]
    days = [row["day"] for row in rows]
    drawing, places = plt.subplots(2, 2, figsize=(10, 6.4), layout="constrained")
    pages, knowledge, recall, cost = places.flat
    shown = ("mid", "evicted", "promoted", "short")
    for name, label in zip(shown, ("in episodes", "evicted", "promoted (facts, profile)", "in the queue"), strict=True):
        pages.plot(days, [row[name] for row in rows], label=label)
    pages.set(title="pages, by tier", ylabel="pages")
    for name in ("episodes", "facts", "events", "days"):
        knowledge.plot(days, [row[name] for row in rows], label=name)
    knowledge.set(title=f"what was derived (episodes: at most {figures['episodes_at_most']})", ylabel="items")
    for age in figures["recall_at_10"]:
        own = [(row["day"], row["found"][age]) for row in rows if age in row["found"]]
        weeks = [own[at : at + 7] for at in range(0, len(own) - 6, 7)]
        shares = [sum(found for _, found in week) / (ASKED * len(week)) for week in weeks]
        recall.plot(
            [week[-1][0] for week in weeks], shares, marker=".", label=f"{age} days old" if age != "1" else "a day old"
        )
    recall.set(title="recall among the first ten, by week", ylim=(0, 1.02), xlabel="day")
    for name, label in (("talk", "append + render"), ("maintenance", "feeding + maintenance")):
        cost.plot(days, [row[f"{name}_ms"] / TURNS for row in rows], label=label)
    cost.set(title="CPU per turn", ylabel="ms", xlabel="day", ylim=(0, None))
    for place in places.flat:
        place.legend(fontsize=8)
        place.grid(alpha=0.3)
    file.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(file, dpi=110, metadata={"Software": None})
    plt.close(drawing)
