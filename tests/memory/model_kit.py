"""What the tests of the model's jobs share: a model that answers each step from what it is shown. It tests nothing."""

import contextlib
import json
from collections.abc import Callable

from machine_kit import keeping, rows

from memci.memory import TieredMemory
from memci.memory.backend import PageRecord
from memci.memory.tiers.rules import Rules
from memci.storage import Storage
from memci.testing.llm import Asked, ScriptedAnswer, ScriptedChat
from memci.testing.memory.pages import told

SMALL = Rules(capacity=4, batch=2, promoted=1.0, accesses=1)
"""so that a few pages go all roads"""
NOON = 1_714_824_000.0
"""2024-05-04 12:00 UTC"""
HOUR, DAY = 3600.0, 86400.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def shown(asked: Asked) -> list[dict]:
    """Return the values that a call shows, a line each."""
    body = asked.text.partition("<texts>\n")[2].partition("\n</texts>")[0]
    return [json.loads(line) for line in body.splitlines()]


def obliging(asked: Asked) -> ScriptedAnswer:
    """Answer as a model does that does what it is asked, in words of what it is shown."""
    values = shown(asked)
    said = [str(each.get("user") or each.get("text") or "") for each in values if "user" in each or "text" in each]
    first = " ".join(said[0].split()[:6]) if said else "Nothing"
    pages = _pages(values)
    if asked.step == "page":
        lines = [{"entry": each["entry"], "line": f"Told of {first}"} for each in values if "entry" in each]
        event = {"what": f"It happened: {first}", "who": "user", "when": None, "importance": 0.8}
        return {
            "title": f"About {first}",
            "lines": lines,
            "keywords": first.split(),
            "events": [event],
        }
    if asked.step == "topics":
        theme = {"theme": f"Theme of {first}", "keywords": first.split(), "content": f"On {first}"}
        return {"themes": [theme | {"pages": [each["page"] for each in values]}], "continues": True}
    if asked.step == "analysis":
        facts = [{"fact": f"Knows of {text}", "page": page} for page, text in pages.items()]
        trait = {"dimension": "curiosity", "level": "high", "reason": "asks often", "page": min(pages, default=1)}
        return {"traits": [trait], "user": facts, "assistant": []}
    if asked.step == "concepts":
        known = [{"subject": "user", "relation": "knows", "object": t.split()[-1], "page": n} for n, t in pages.items()]
        return {"relations": known}
    if asked.step == "day":
        return {"summary": f"A day of {first}", "mood": "positive"}
    if asked.step == "conversation":
        return {"summary": f"They spoke of {first}", "topics": first.split(), "sentiment": "positive", "moments": []}
    if asked.step == "strategy":
        return {"strategy": "Answer briefly and warmly.", "tags": ["brief"]}
    raise AssertionError(asked.step)


def _pages(values: list[dict]) -> dict[int, str]:
    found: dict[int, str] = {}
    number = 0
    for each in values:
        if "page" in each and "title" not in each:
            number = each["page"]
        elif "user" in each and number:
            found.setdefault(number, " ".join(str(each["user"]).split()[:6]))
    return found


def modelled(
    storage: Storage,
    answers: Callable[[Asked], ScriptedAnswer] = obliging,
    *,
    clock: Callable[[], float] | None = None,
    rules: Rules = SMALL,
    ceiling: int | None = None,
    owner: str = "anna",
) -> tuple[TieredMemory, ScriptedChat]:
    """Return a memory with a model that answers so, and the model."""
    chat = ScriptedChat(answers)
    memory = TieredMemory(
        storage, owner=owner, rules=rules, chat=chat, clock=clock or Clock(), ceiling=ceiling, counter=len
    )
    return memory, chat


def page(index: int, text: str = "", *, context: str = "alice", at: float | None = None) -> PageRecord:
    """Return a page with a word of its own."""
    said = text or f"topic of violins quokka{index:02}"
    return told(index, said, "yes, all right", context=context, at=NOON + 60 * index if at is None else at)


def tell(memory: TieredMemory, *pages: PageRecord, maintain: bool = True) -> None:
    """Keep pages, and admit them."""
    for each in pages:
        keeping(memory.session.storage)(each)
        memory.admit(each)
        if maintain:
            memory.maintain()


def drained(memory: TieredMemory, clock: Clock | None = None, *, rounds: int = 50) -> int:
    """Do all jobs that are due, and those that come of them; return how many that were."""
    done = 0
    for _ in range(rounds):
        memory.maintain()
        before = memory.work().waiting
        while memory.run_job():
            done += 1
        if memory.work().waiting == before:
            if clock is None or not before:
                break
            clock.now += 700.0
    memory.maintain()
    return done


def steps(chat: ScriptedChat) -> list[str]:
    """Return what the model was asked for, in order."""
    return [each.step for each in chat.calls]


def waiting(memory: TieredMemory) -> list[tuple[str, int, int]]:
    """Return (kind, subject, tries) of each job that waits."""
    return rows(
        memory, "SELECT kind, subject, tries FROM memory_job WHERE due IS NOT NULL AND kind <> 'save' ORDER BY id"
    )


@contextlib.contextmanager
def closing_all(*closable: object):
    """Close all at the end."""
    with contextlib.ExitStack() as stack:
        for each in closable:
            stack.enter_context(contextlib.closing(each))
        yield
