"""Stores with memories, for the tests of the commands that show them."""

from contextlib import closing
from datetime import UTC, datetime, timedelta

from memci import SQLiteStorage
from memci.memory import NullMemory, TieredMemory
from tests.door import open_context

START = datetime(2026, 3, 1, tzinfo=UTC)
TALKS = (
    (
        "I live in Oslo with my dog Rex. Which flight to Lisbon leaves on day {}?",
        "I have booked flight TAP{} for $120.",
    ),
    ("My sister Mel plays the violin in Lisbon. When is concert {}?", "Concert {} begins at 19:00."),
    ("我住在上海, 喜欢喝绿茶. 第{}天去哪里喝茶?", "第{}天去湖心亭茶楼."),
)


def talked(path, id, owner, turns, first=0):  # noqa: A002
    """Append *turns* to a context, four of each talk in turn, a page every three hours."""
    settings = {"system": "Be brief.", "window": 1_200, "never_recalled": 5}
    with open_context(path, id=id, owner=owner, memory=NullMemory(), **settings) as context:  # the worker tells nobody
        for number in range(first, first + turns):
            asked, answered = TALKS[number // 4 % len(TALKS)]
            answer = {"role": "assistant", "content": answered.format(number)}
            context.append_turn(asked.format(number), answer, at=START + timedelta(hours=3 * number))


def pages_of(talk, turns):
    """The indexes of closed pages of a talk in a context of so many turns."""
    return {number + 1 for number in range(turns - 1) if number // 4 % len(TALKS) == talk}


def used(path, query="Mel plays the violin", times=11):
    """Search so often that what is found is warm, and let maintenance see it."""
    with closing(SQLiteStorage(path)) as storage, closing(TieredMemory(storage, owner="ada")) as memory:
        for _ in range(times):
            memory.search(query, k=10)
        memory.maintain()
