"""A model that writes down what it is asked, and answers the least that the schema of an answer allows.

What it was asked is compared as a multiset: jobs of the memory may come in another order. This module knows nothing of
which prompts are right.
"""

import json
from collections import Counter
from contextlib import closing
from pathlib import Path

from golden_digests import NONCE, NOW, digest
from golden_door import opened
from golden_texts import Talk

from memci import SQLiteStorage
from memci.llm import Reply, Usage
from memci.memory import TieredMemory

TURNS = 24


class Scribe:
    """The model."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()

    def __call__(self, messages, /, *, step="chat", tools=(), answer=None, **_):
        self.asked[step, digest([list(messages), list(tools)])] += 1
        schema = answer.model_json_schema() if answer else {"type": "string"}
        content = least(schema, schema.get("$defs", {}))
        return Reply(
            {"role": "assistant", "content": content if isinstance(content, str) else json.dumps(content)}, Usage()
        )

    def digests(self) -> dict[str, str]:
        """Return a digest of all that was asked, by step."""
        steps = sorted({step for step, _ in self.asked})
        return {step: digest(sorted([*each, n] for each, n in self.asked.items() if each[0] == step)) for step in steps}


def prompted(talk: Talk, folder: Path) -> dict[str, str]:
    """Return the digests of what a memory asks its model of *talk*, by step."""
    scribe = Scribe()
    with closing(SQLiteStorage(folder / "agent.db", durability="fast")) as storage:
        with closing(TieredMemory(storage, owner="anna")) as usual:
            rules = soon(usual.session.rules)
        memory = TieredMemory(storage, owner="anna", rules=rules, chat=scribe, clock=lambda: NOW)
        for start in range(0, TURNS, 2):
            settings = {"system": talk.system, "window": 2_000, "never_recalled": 2, "nonce": NONCE}
            with opened(storage, "alice", memory=memory, **settings) as context:
                for number, turn in enumerate(talk.turns[start : start + 2], start):
                    at = f"2026-01-{number // 6 + 1:02}T{number:02}:00:00+00:00"
                    context.append_turn(*turn, at=at)
                    context.flush()
                    if number % 3 == 2:
                        context.search_memory("Oslo 杭州 Ada")
        memory.close()
    return scribe.digests()


def soon(rules):
    """Return *rules* by which pages go all roads early."""
    return rules.model_copy(update={"capacity": 3, "batch": 2, "promoted": 1.0, "accesses": 1})


def least(schema: dict, known: dict):
    """Return a small value that *schema* allows."""
    if "$ref" in schema:
        return least(known[schema["$ref"].rpartition("/")[2]], known)
    if "enum" in schema or "const" in schema:
        return schema["enum"][0] if "enum" in schema else schema["const"]
    if "anyOf" in schema:
        return least(schema["anyOf"][0], known)
    match schema.get("type"):
        case "object":
            return {name: least(each, known) for name, each in schema.get("properties", {}).items()}
        case "array":
            return [least(schema["items"], known)] * max(1, schema.get("minItems", 0)) if "items" in schema else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean" | "null" as kind:
            return True if kind == "boolean" else None
    return "Anna likes Oslo."[: schema.get("maxLength", 99)]
