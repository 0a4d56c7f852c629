"""A context whose memory asks a model that says anything: nothing said is changed, nothing known is lost."""

import os

import pytest

from memci import Context, SQLiteStorage
from memci.memory import TieredMemory
from memci.memory.tiers.rules import Rules
from memci.text.sanitize import width
from memci.text.summarize import LINE_COLUMNS, TITLE_COLUMNS
from tests.hostile_answers import HostileChat

ANSWERS = int(os.environ.get("MEMCI_EXAMPLES", "200"))
"""how many are given; MEMCI_EXAMPLES=2000 gives more"""
WINDOW = 3_000
RULES = Rules(capacity=4, batch=3, promoted=2.0, accesses=1)
"""so that pages go all roads early"""
CITIES = ("Oslo", "Bergen", "Lima", "北京", "大阪", "서울", "Quito")


def said(turn):
    """Return the messages of a turn, with identifiers that a summary must keep."""
    city = CITIES[turn % len(CITIES)]
    user = f"I live in {city}. Please move ZQ{turn:04}X to May {turn % 28 + 1}, it cost ${turn}.50; why was it so late?"
    return [
        {"role": "user", "content": user},
        {
            "role": "assistant",
            "content": f"Done: ZQ{turn:04}X is moved; see /srv/papers/{turn}.pdf. " + "All is well. " * 20,
        },
    ]


def size(context):
    """Return how much is known: of facts, concepts and events never less than before, as long as lists have room."""
    tiers = context.memory.session.tiers()
    profile = tiers.profile
    return {
        "user": len(tiers.facts_about("user")),
        "assistant": len(tiers.facts_about("assistant")),
        "concepts": len(tiers.graph),
        "traits": len(profile.traits),
        "events": len(tiers.events),
        "episodes": len(tiers.episodes),
        "days": len(tiers.days),
        "profile": len(profile.text) > 0,
        "strategy": len(profile.strategy) > 0,
    }


@pytest.mark.slow
def test_hundreds_of_bad_answers_change_and_lose_nothing(tmp_path, monkeypatch):
    """Raw pages stay as they were, what is known never shrinks, lines keep identifiers, rejections are counted."""
    for worker in ("worker", "model_worker"):  # all is done by flushes: the same on every machine
        monkeypatch.setattr(f"memci.workers.{worker}.submit", lambda busy: None)
    chat = HostileChat(seed=20, offered=(1, 2, 3))
    storage = SQLiteStorage(tmp_path / "a.db", durability="fast")
    memory = TieredMemory(storage, owner="a", chat=chat, rules=RULES)
    with Context.open(storage, id="a", window=WINDOW, memory=memory) as context:
        known, turn, appended = {}, 0, []
        while sum(chat.said.values()) < ANSWERS:
            turn += 1
            messages = said(turn)
            appended += messages
            context.append_turn(*messages, at=f"2024-05-{turn // 30 % 28 + 1:02}T{turn % 24:02}:00:00+00:00")
            assert context.report().total <= context.report().budget
            if turn % 3 == 0:
                context.search_memory(f"What of booking ZQ{turn // 2:04}X in {CITIES[turn % 7]}?")
            if turn % 5 == 0:
                context.flush()
                now = size(context)
                assert all(now[name] >= known.get(name, 0) for name in now), (known, now)
                known = now
        context.flush()
        work = context.report().work

        assert list(context.messages()) == appended
        assert context.verify() == []
        assert set(chat.said) == {
            "page",
            "topics",
            "analysis",
            "concepts",
            "day",
            "conversation",
            "strategy",
        }
        assert sum(each.calls for each in work.spent.values()) == sum(chat.said.values())
        assert sum(each.rejected for each in work.spent.values()) > 60
        assert all(each.rejected > 0 for each in work.spent.values())
        for line in context._parts.window.common.archive.contents.lines.values():
            assert width(line.line) <= TITLE_COLUMNS + 60
            assert all(0 < width(entry.summary) <= LINE_COLUMNS for entry in line.entries)
            assert all(f"ZQ{line.index:04}X" in entry.summary for entry in line.entries)
        found = context.search_memory("booking ZQ0007X", k=1).pages[0]
        assert found.index == 7
        assert any(found.text in message["content"] for message in said(7))
    storage.close()
