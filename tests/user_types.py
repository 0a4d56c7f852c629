"""The public signatures, as a strict type checker sees them: a change that breaks a user's types fails here.

`make types` runs it: most of its time is mypy's, which has just looked at the same modules.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import memci

USAGE = """
from collections.abc import Callable, Iterator
from typing import Any, Literal, assert_type

from memci import (
    Agent, AsyncContext, BudgetExceeded, Context, EphemeralStorage, Event, InvalidMessage, MemciError, NeverRecalled,
    OpenToolGroup, PageNotFound, Policy, Receipt, Report, SQLiteStorage, Stale, StorageError,
)
from memci.chapters.chapter import Entry
from memci.chapters.instructions import Instruction
from memci.history.listing import ContextInfo
from memci.history.reader import PageInfo
from memci.memory.backend import MemoryBackend
from memci.storage import Storage


def listen(event: Event) -> None:
    assert_type(event.kind, Literal["compaction", "unload", "clip", "gate"])
    assert_type(event.pages, tuple[int, ...])
    assert_type(event.tokens, int)


store: Storage = EphemeralStorage()
file: Storage = SQLiteStorage("agent.db")
context = Context.open(
    store,
    "alice",
    owner="alice",
    system="Be kind.",
    model="gpt-5",
    counter=len,
    window=32_000,
    reply=1_000,
    policy=Policy(
        preset="economy",
        archive_share=0.5,
        fewest=2,
        active_pages=5,
        contents_tokens=2_000,
        never_recalled=10,
        stale=20,
        rules=[NeverRecalled(10), Stale(20), lambda pages, turn: [page.index for page in pages if turn > 3]],
        notice=True,
    ),
    clock=None,
    nonce="1f9a03c2",
    on_event=listen,
)
assert_type(context, Context)
assert_type(Context.open("agent.db", id="alice"), Context)
assert_type(context.id, str)
assert_type(context.render("hi", {"role": "user", "content": "x"}, tools=context.tools), list[Any])
assert_type(context.render(strict=False), list[Any])
assert_type((context.owner, context.system, context.window, context.budget), tuple[str, str | None, int, int])
assert_type(context.memory, MemoryBackend)
assert_type(Context.view(store, "alice", at=3), Context)
assert_type(Context.list(store, owner="alice"), list[ContextInfo])
context.append_turn(["hi", {"role": "assistant", "content": "x"}])

receipt = context.append_turn("hi", {"role": "assistant", "content": "x"}, op_id="op", usage=None, at=None)
assert_type(receipt, Receipt)


async def awaited() -> None:
    async with AsyncContext.open("agent.db", "alice", window=32_000, policy=Policy(preset="economy")) as opened:
        assert_type(opened, AsyncContext)
        assert_type(await opened.render("hi"), list[Any])
        assert_type(await opened.append_turn("hi"), Receipt)
    assert_type(await AsyncContext.view("agent.db", "alice"), AsyncContext)
    assert_type(await AsyncContext.list("agent.db"), list[ContextInfo])


assert_type(receipt.page, int)
assert_type(receipt.entries, tuple[Entry, ...])
assert_type(receipt.seq, int)
assert_type(receipt.op_id, str | None)
assert_type(receipt.duplicate, bool)

assert_type(context.tools, list[Any])
assert_type(context.functions, dict[str, Callable[..., str]])
assert_type(context.handles({}), bool)
assert_type(context.answer({}), dict[str, Any])
assert_type(context.answers({}), list[dict[str, Any]])
assert_type(context.recall_page(1, entry=2), list[dict[str, Any]])
assert_type(context.archive(keep=3), tuple[int, ...])
assert_type(context.undo(), list[dict[str, Any]])
assert_type(context.pages(), Iterator[PageInfo])
assert_type(context.messages(), Iterator[dict[str, Any]])
assert_type(context.report(), Report)
assert_type(context.report().tokens, dict[str, int])
assert_type(context.report().warnings, tuple[str, ...])
assert_type(context.verify(), list[str])
context.pin(1)
context.unpin(1)
assert_type(context.instructions(), list[Instruction])
context.drop_instruction("1-00000000")
context.flush()
context.close()
with Context.open("agent.db", id="alice") as entered:
    assert_type(entered, Context)

from pydantic import BaseModel

from memci.companion import AnswerStream, Companion
from memci.companion.answers import CompanionAnswer
from memci.llm import Chat, ChatModel, Embeddings, Ledger, Reply, Spent, Usage, ask
from memci.memory import TieredMemory
from memci.memory.backend import Work
from memci.memory.retrieval.embedders import Embedder


class Title(BaseModel):
    title: str


chat = Chat("gpt-4.1-mini", base_url="http://localhost/v1", ledger=Ledger(1_000_000))
model: ChatModel = chat
embedder: Embedder = Embeddings("text-embedding-3-small")
assert_type(chat([{"role": "user", "content": "Hi"}], step="chat"), Reply)
assert_type(ask(chat, [{"role": "user", "content": "Hi"}], Title, step="title"), Title)
assert_type(chat.ledger.total, Spent)
memory = TieredMemory(store, owner="alice", chat=chat, embedder=embedder, ceiling=100_000)
better = Context.open(store, id="alice", chat=chat)
assert_type(better.report().work, Work | None)
agent = Agent(object(), context, [len], steps=9, model="gpt-5", temperature=0.2)
assert_type(agent.run("Hi", op_id="r1"), str)
assert_type(agent.run("Hi", output=Title), Title)
assert_type(agent.stream("Hi"), Iterator[str])


def add(a: int, b: int) -> int:
    return a + b


companion = Companion(context, chat, role="A travel agent", tools=[], functions={"add": add})
assert_type(companion.respond("Hi"), CompanionAnswer)
assert_type(companion.stream("Hi"), AnswerStream)
assert_type(companion.respond("Hi").usage, Usage)

try:
    context.render()
except OpenToolGroup as error:
    assert_type(error.missing, tuple[str, ...])
except BudgetExceeded as error:
    assert_type(error.parts, dict[str, int])
except InvalidMessage as error:
    assert_type(error.path, str)
except PageNotFound as error:
    assert_type(error.valid, tuple[int, int] | None)
except StorageError as error:
    assert_type(error.data_safe, bool)
except MemciError as error:
    assert_type(error.retryable, bool)
"""

MISUSE = """
from memci import AsyncContext, Context, EphemeralStorage, Policy

Context.open(EphemeralStorage())
Context.open(EphemeralStorage(), id="a", window="8000")
Context.open(EphemeralStorage(), id="a", policy=Policy(preset="fast"))
Context.open(EphemeralStorage(), "a", windw=8000)
context = Context.open(EphemeralStorage(), id="a")
context.recall_page("1")
context.append_turn("x", op_id=5)
context.report().total = 5
context.append_turn(42)
AsyncContext.open(EphemeralStorage(), "a", windw=8000)


async def awaited(opened: AsyncContext) -> None:
    await opened.append_turn(42)
"""


LOOP = """
from typing import Any

from openai import OpenAI

from memci import Context

client = OpenAI(base_url="http://localhost/v1", api_key="none")
context = Context.open("agent.db", "alice", window=8_000)
my_tools: list[Any] = []


def run_tool(call: dict[str, Any]) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c1", "content": ""}


"""
"""what the loop of the tutorial takes as given"""


def tutorial_loop() -> str:
    """The loop of a program of one's own, and the way with `Agent`, as docs/tutorial.md shows them."""
    text = (Path(next(iter(memci.__path__))).parent / "docs/tutorial.md").read_text(encoding="utf-8")
    found = re.search(r"^## The whole loop$(.*?)^## Calls that wait", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return LOOP + "\n".join(re.findall(r"^```python\n(.*?)^```$", found[1], re.MULTILINE | re.DOTALL))


CLIENT = "from openai import OpenAI\n\nclient = OpenAI()\n"  # what the README and the request of a server take as given


def programs_of(page: str) -> list[str]:
    """The programs that a *page* shows, in order."""
    text = (Path(next(iter(memci.__path__))).parent / page).read_text(encoding="utf-8")
    return re.findall(r"^```python[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def checked(folder: Path, programs: dict[str, str]) -> dict[str, list[str]]:
    """What a strict check says of *programs*, by name: in one run, since what memci imports takes most of its time."""
    pytest.importorskip("mypy")
    root = Path(next(iter(memci.__path__))).parent
    for name, code in programs.items():
        (folder / name).write_text(code, encoding="utf-8")
    options = ["--strict", "--config-file=", "--no-error-summary", f"--cache-dir={root / '.mypy_cache'}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *(str(folder / name) for name in programs)],
        cwd=root,
        env={**os.environ, "MYPYPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert not done.stderr, done.stderr
    lines = [line.replace(f"{folder}{os.sep}", "") for line in done.stdout.splitlines()]
    return {name: [line for line in lines if line.partition(":")[0].endswith(name)] for name in programs}


def shown_programs() -> dict[str, str]:
    """The programs of README, tutorial and servers, by name."""
    request, application, *_ = programs_of("docs/servers.md")
    readme = CLIENT + programs_of("README.md")[0]
    return {"tutorial.py": tutorial_loop(), "readme.py": readme, "request.py": CLIENT + request, "web.py": application}


def test_types_of_a_user_are_what_they_were_and_refuse_what_is_wrong(tmp_path):
    """Every public call passes a strict check, with the type that is pinned, and so do README, tutorial and servers.

    The loop uses the real client: requests take what `render` returns. The check is not vacuous: of a third program,
    ten mistakes are ten errors, each on its line.
    """
    pytest.importorskip("openai")
    pytest.importorskip("starlette")
    told = checked(tmp_path, {"usage.py": USAGE, "misuse.py": MISUSE, **shown_programs()})

    assert {name: wrong for name, wrong in told.items() if wrong and name != "misuse.py"} == {}
    lines = [int(line.split(":")[1]) for line in told["misuse.py"] if ": error:" in line]
    assert sorted(set(lines)) == [4, 5, 6, 7, 9, 10, 11, 12, 13, 17]


def test_a_strict_pyright_finds_nothing_either(tmp_path):
    """Where it is installed: no type of the same programs is unknown to it."""
    found = shutil.which("pyright")
    if found is None:
        pytest.skip("pyright is not installed")
    root = Path(next(iter(memci.__path__))).parent
    options = {"typeCheckingMode": "strict", "extraPaths": [str(root)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(options), encoding="utf-8")
    for name, code in {"usage.py": USAGE, **shown_programs()}.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    done = subprocess.run(
        [found, "-p", str(tmp_path), "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
