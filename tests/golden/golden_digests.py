"""Digests of what a context shows and stores: a conversation is replayed with all that can happen to a context.

    replayed(Case("travel", "sqlite", {"window": 3_000}), talk, folder)
        ──▶  {"renderings": ["5f0c…", …], "answers": [...], "export": "…", "rows": {"entry": "…", …}, …}

Lists have one digest for every ten turns, each over all that came before: the first that differs says where to look.
What depends on the clock, the machine or the version of a compressor is left out. This module knows nothing of which
digests are right.
"""

import json
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from golden_door import attp, opened, undisturbed, viewed
from golden_texts import Talk, call, says, user

from memci import BudgetExceeded, Context, EphemeralStorage, PageNotFound, SQLiteStorage
from memci.memory import NullMemory, TieredMemory
from memci.storage import FilesystemStorage, Storage

NONCE = "0123abcd"
EVERY = 10
SESSION = 4
"""turns after which a context with a memory is closed and opened again"""
NOW = 1_800_000_000.0
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search_flights",
            "description": "Find flights to a city on a day.",
            "parameters": {
                "type": "object",
                "properties": {"to": {"type": "string"}, "date": {"type": "string", "enum": ["today", "tomorrow"]}},
                "required": ["to"],
            },
        },
    }
]


class Case(NamedTuple):
    """One replay."""

    talk: str
    store: str
    settings: dict
    memory: bool = False
    acts: bool = True

    @property
    def name(self) -> str:
        settings = " ".join(f"{key}={getattr(value, '__name__', value)}" for key, value in self.settings.items())
        return f"{self.talk} {self.store}{' memory' * self.memory}{' plain' * (not self.acts)} {settings}"


class Chain:
    """A digest of values, one after another, with a mark for every ten turns."""

    def __init__(self) -> None:
        self._hash, self.marks = sha256(), []

    def add(self, value) -> None:
        self._hash.update(encoded(value) + b"\n")

    def mark(self) -> None:
        self.marks.append(self._hash.hexdigest()[:16])


_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encoded(value) -> bytes:
    return _written(value).encode()


def digest(values) -> str:
    chain = Chain()
    for value in values:
        chain.add(value)
    chain.mark()
    return chain.marks[0]


class Replay:
    """A context that a conversation is replayed through, by one handle after another."""

    def __init__(self, case: Case, talk: Talk, folder: Path) -> None:
        self.case, self.talk, self.folder = case, talk, folder
        self.renderings, self.answers = Chain(), Chain()
        self.called = 0
        self.storage = store(case.store, folder)
        self.context = self.open("alice", nonce=NONCE, system=talk.system)

    def open(self, name: str, **more) -> Context:
        memory = NullMemory()
        if self.case.memory:
            self.memory = memory = TieredMemory(self.storage, owner="alice", clock=lambda: NOW)
        return opened(self.storage, name, memory=memory, **self.case.settings, **more)

    def shut(self) -> None:
        self.context.flush()
        self.context.close()
        if self.case.memory:
            self.memory.close()

    def turns(self) -> None:
        for number, turn in enumerate(self.talk.turns):
            self.turn(number, turn)
            waits = bool(turn[-1].get("tool_calls"))
            if self.case.acts and not waits:
                self.act(number, turn)
            if number % EVERY == EVERY - 1:
                self.renderings.mark()
                self.answers.mark()
            if self.case.memory and number % SESSION == SESSION - 1:
                self.shut()
                self.context = self.open("alice")
        self.renderings.mark()
        self.answers.mark()

    def turn(self, number: int, turn: list[dict]) -> None:
        """Show the first message before it is appended, as an agent does, then the whole turn."""
        first, rest = turn[:1], turn[1:]
        at = f"2026-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}T12:00:00+00:00"
        if first[0]["role"] == "user" and rest:
            pending = self.context.render(*first, tools=TOOLS if number % 3 else (), strict=False)
            self.renderings.add(pending)
        usage = {"prompt_tokens": 900 + 7 * number, "completion_tokens": 20} if number % 9 == 5 else None
        receipt = self.context.append_turn(*first, *rest, op_id=f"op{number}", at=at, usage=usage)
        self.answers.add([receipt.page, [[each.page, each.ordinal] for each in receipt.entries], receipt.seq])
        self.renderings.add(self.context.render(strict=False))

    def act(self, number: int, turn: list[dict]) -> None:
        """Do what the number of the turn says."""
        context = self.context
        if number % 5 == 4:
            index = number * 3 % number + 1
            self.asks("recall_page", {"index": index, "entry": number % 3 or None, "offset": None})
        if number % 7 == 6:
            words = next((m["content"] for m in turn if isinstance(m.get("content"), str) and m["content"]), "Oslo")
            self.asks("search_memory", {"query": words[:60], "since": None, "until": None})
        for due, does in (
            (number % 11 == 7, lambda: context.pin(number // 2)),
            (number % 11 == 10, lambda: context.unpin(number // 2 - 1)),
            (number in (9, 23, 24), context.undo),
            (number == 17, lambda: list(context.archive(keep=2))),
            (number == 26, lambda: context.recall_page(2)),
        ):
            if due:
                try:
                    self.answers.add(does())
                except (BudgetExceeded, PageNotFound):
                    self.answers.add("refused")
        if number == 20:
            self.forked()
        self.renderings.add(context.render(strict=False))

    def asks(self, tool: str, arguments: dict) -> None:
        """Let the model call a tool of the context."""
        if tool not in {each["function"]["name"] for each in self.context.tools}:
            return
        self.called += 1
        reply = says(None, tool_calls=[call(f"memci{self.called}", tool, arguments)])
        answers = self.context.answers(reply)
        self.answers.add(answers)
        self.context.append_turn(reply, *answers, says("I see."))

    def forked(self) -> None:
        """Fork the context as it was five turns ago, go on in the fork, and leave it in the store."""
        with self.context.fork("fork", at=14) as fork:
            for number in range(3):
                fork.append_turn(user(f"On another way, {number}: {'Oslo or Bergen? ' * 9}"), says("Bergen."))
            self.renderings.add(fork.render())

    def end(self) -> dict:
        """Return the digests of all that can be read of it in the end."""
        context, found = self.context, {}
        found["tools"] = digest([*context.tools, attp.describe(context.functions)])
        found["pages"] = digest([page.index, page.title, page.turn, page.pinned] for page in context.pages())
        report = context.report()
        found["report"] = digest([report.tokens, report.total, report.budget, report.turn, report.warnings])
        found["messages"] = digest(context.messages())
        lines = list(context.export())
        found["export"] = digest(lines)
        found["imported"] = imported(lines, context.render(strict=False))
        if self.case.acts:
            counter = {key: self.case.settings[key] for key in ("counter",) if key in self.case.settings}
            with viewed(self.storage, "alice", at=len(self.talk.turns) * 2 // 3, **counter) as view:
                found["viewed"] = digest(view.render(strict=False))
            context.erase(3)
            context.erase(5, 1)
            found["erased"] = digest(context.render(strict=False))
            found["export without it"] = digest(list(context.export()))
        self.shut()
        with self.open("alice") as again:
            found["reopened"] = digest(again.render(strict=False))
        if self.case.store != "ram":
            found["rows"] = rows_of(self.storage)
        self.storage.close()
        if self.case.store == "sqlite" and self.case.memory:
            found["rows"] |= memory_of(self.folder / "agent.db")
        if self.case.store == "files":
            found["copies"] = copies_of(self.folder / "agent" / "contexts")
        return found


def replayed(case: Case, talk: Talk, folder: Path) -> dict:
    """Return the digests of *talk* replayed as *case* says, with its store in *folder*."""
    with undisturbed():
        replay = Replay(case, talk, folder)
        replay.turns()
        return {"renderings": replay.renderings.marks, "answers": replay.answers.marks, **replay.end()}


def store(kind: str, folder: Path):
    if kind == "sqlite":
        return SQLiteStorage(folder / "agent.db", durability="fast")
    if kind == "files":
        return FilesystemStorage(folder / "agent", durability="fast")
    return EphemeralStorage()


def imported(lines: list[str], before: list[dict]) -> str:
    """Return the digest of what an import shows, which is what was shown *before* if nothing was taken back since."""
    with Context.import_(EphemeralStorage(), lines) as context:
        return digest([context.render(strict=False), context.render(strict=False) == before])


def rows_of(storage: Storage) -> dict[str, str]:
    """Return a digest of the rows of each kind, as the store returns them."""
    records = storage.contexts()
    kinds = ("entries", "pages", "compactions", "ops", "calls")
    found = {kind: [[*row] for each in records for row in getattr(storage, kind)(each.id)] for kind in kinds}
    return {kind: digest([ascii(rows)]) for kind, rows in {"contexts": [[*each] for each in records], **found}.items()}


def memory_of(path: Path) -> dict[str, str]:
    """Return a digest of the rows of each table of the memory: vectors go."""
    found = {}
    with sqlite3.connect(path) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'memory%' AND type = 'table'")
        for (name,) in names.fetchall():
            if name.startswith(("memory_words", "memory_postings")):  # an index of SQLite's own, packed
                continue
            cursor = connection.execute(f"SELECT * FROM {name}")
            columns = [each[0] for each in cursor.description]
            found[name] = digest(sorted(ascii(plain(dict(zip(columns, row, strict=True)))) for row in cursor))
    connection.close()
    return found


def plain(row: dict) -> list:
    """Return *row* without what differs between machines."""
    return [
        (key, round(value, 6) if isinstance(value, float) else value) for key, value in row.items() if key != "vector"
    ]


def copies_of(folder: Path) -> dict[str, str]:
    """Return a digest of each plain copy in a folder, by its name."""
    found = {}
    for path in sorted(folder.iterdir()):
        text = path.read_text()
        lines = {letter: encoded(letter) + b"\n" for letter in set(text)}
        found[path.name] = sha256(b"".join(map(lines.__getitem__, text))).hexdigest()[:16]
    return found
