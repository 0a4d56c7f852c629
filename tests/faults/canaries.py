"""Canaries: each message has a word of its own; a random one is erased, and all that memci shows or keeps is searched.

    python -m tests.faults.canaries --store sqlite --seed 1 --erasures 1000
    sqlite, seed 1: 1000 erasures, 41 killed, 5810 acts, 0 words left

After each erasure an owner's renderings, exports and searches show only words that messages of the owner hold; files
and tables hold only words that some message holds; and what was erased is in no message that shared it. A model adds
lines, facts and summaries with these words to the memory. Some erasures are killed at a line: opening the store
finishes them. The bytes in a server's files are looked at in the end, after `finish_erasures`.
"""

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from memci import Context, EphemeralStorage, Policy, SQLiteStorage
from memci.errors import Erased, MemciError, WriteConflict
from memci.history import erase as erasing
from memci.history.copying import copy_contexts
from memci.history.erase import erase, finish_erasures
from memci.memory.inspect import overview
from memci.storage import EncryptedStorage, FilesystemStorage
from memci.tools.search_memory import SEARCH_MEMORY

from .bombs import Bomb
from .worker import end_if_hung

sys.path.insert(0, str(Path(__file__).parent.parent / "memory"))
from model_kit import drained, modelled

OWNERS = ("ann", "bob", "cid")
TOPICS = tuple(
    f"{kind} of {place}"
    for kind in ("garden", "silo", "ferry", "violin", "oven", "bridge", "lamp", "tower")
    for place in ("Oslo", "Lima", "Quito", "Turin", "Kyoto", "Perth")
)
SAID = (
    "The launch code of the {topic} is {word}, keep it.",
    "I live in {word}, beside the {topic}.",
    "Always call the {topic} {word}.",
    "My sister {word} loves the {topic}; her birthday is on Friday.",
    "{word} opens the {topic}.",
)
ASKED = (*3 * ("What is the launch code of the {topic}?",), "How many launch codes did I tell you?")
"""the last one is answered with a line for each of many"""
CANARY = re.compile(r"qux[0-9a-f]{9}z", re.IGNORECASE)
KEY = b"k" * 32
STEPS = ("forget_pages", "scrub_memories", "end_erasure")
"""what an erasure does when its transaction is done: most kills are before one of them, the others at any line"""
_LARGEST = 9
"""contexts in a store, at most: each is read whole after every erasure"""


def canaries(text: str) -> set[str]:
    """Return the words in *text* that are a message's own."""
    return {each.casefold() for each in CANARY.findall(text)}


def rows_of(store) -> dict[str, str]:
    """Return all that each table of a *store* on a server holds, as text."""
    database, found = store.database, {}
    for (name,) in database.read_rows("SELECT tablename FROM pg_tables WHERE schemaname = %s", database.schema):
        rows = database.read_rows(f'SELECT * FROM "{database.schema}"."{name}"')
        values = [value for row in rows for value in row]
        told = (bytes(each).decode("latin-1") if isinstance(each, bytes) else str(each) for each in values)
        found[name] = "\n".join(told)
    return found


class Canaries:
    """A store, its contexts and what they may show. *kind*: sqlite, files, ram, encrypted, or the URL of a server."""

    def __init__(self, kind: str, folder: Path, seed: int) -> None:
        self.random, self.kind, self.folder = random.Random(seed), kind, folder
        self.acts: Counter[str] = Counter()
        self.left: list[str] = []
        self._number = 0
        self.topics = ["silo of Oslo"]
        if self.on_server:
            self.kind = f"{kind}&schema=canaries_{os.getpid()}_{seed}"
        self.store = self._open("agent")
        self.target = EphemeralStorage()
        self.handles: dict[str, Context] = {}
        self.moved: dict[str, set[str]] = {}
        """contexts that changed their owner, and the owners before: their memories keep them"""
        self.passed_on: set[str] = set()
        """contexts with what tools had answered to another owner before: it is theirs now"""
        for owner in OWNERS:
            self._context(owner)

    @property
    def on_server(self) -> bool:
        return self.kind.startswith("postgres")

    def _open(self, name: str):
        if self.on_server:
            from memci.storage import PostgresStorage

            return PostgresStorage(self.kind)
        path = self.folder / name
        match self.kind:
            case "files":
                return FilesystemStorage(path)
            case "ram":
                return EphemeralStorage()
            case "encrypted":
                return EncryptedStorage(SQLiteStorage(path), KEY)
        return SQLiteStorage(path)

    def _name(self) -> str:
        self._number += 1
        return f"c{self._number}"

    def _question(self) -> str:
        """Return a question about something that was said, lately most often."""
        at = min(len(self.topics), 1 + int(self.random.expovariate(0.15)))
        return self.random.choice(ASKED).format(topic=self.topics[-at])

    def _word(self) -> str:
        return f"qux{self.random.getrandbits(36):09x}z"

    def _context(self, owner: str) -> Context:
        rng = self.random
        policy = Policy(remember=rng.random() < 0.85)
        name, window = self._name(), rng.choice((3_000, 16_000))
        self.handles[name] = Context.open(self.store, name, owner=owner, window=window, policy=policy)
        return self.handles[name]

    def _any(self) -> Context:
        name = self.random.choice(sorted(self.handles))
        return self.fresh(name)

    def fresh(self, name: str) -> Context:
        """Return the handle of a context; it reads again if another one changed the context."""
        context = self.handles[name]
        if self.store.revision(name) != context._parts.window.record.revision:
            context.refresh()
        return context

    # -- acts

    def say(self) -> None:
        rng, context = self.random, self._any()
        topic = rng.choice(TOPICS)
        self.topics.append(topic)
        text = rng.choice(SAID).format(topic=topic, word=self._word())
        context.append_turn(text, {"role": "assistant", "content": f"Noted {self._word()}."})

    def ask(self) -> None:
        context = self._any()
        question = self._question()
        with suppress(WriteConflict):
            context.render(question)
            if self.random.random() < 0.7:
                context.append_turn(question)

    def use(self) -> None:
        context, rng = self._any(), self.random
        number = self._name()
        name, arguments = rng.choice(
            (
                ("recall_page", {"index": rng.randint(1, 6), "entry": None}),
                (SEARCH_MEMORY["function"]["name"], {"query": self._question(), "since": None, "until": None}),
            )
        )
        call = {"id": number, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        reply = {"role": "assistant", "content": None, "tool_calls": [call]}
        context.append_turn("Look it up.", reply)
        context.append_turn(*context.answers(reply), {"role": "assistant", "content": "I see."})

    def tidy(self) -> None:
        context = self._any()
        self.random.choice((context.archive, context.flush, context.flush, lambda: context.archive(keep=0)))()

    def fork(self) -> None:
        context = self._any()
        if len(self.handles) < _LARGEST:
            owner = self.random.choice((None, *OWNERS))
            name = self._name()
            self.handles[name] = context.fork(name, owner=owner)
            if owner not in {None, context.owner} or context.id in self.passed_on:
                self.passed_on.add(name)

    def carry(self) -> None:
        context = self._any()
        if len(self.handles) < _LARGEST:
            name = self._name()
            self.handles[name] = Context.import_(self.store, list(context.export()), id=name)
            self.passed_on |= {name} if context.id in self.passed_on else set()

    def move(self) -> None:
        context = self._any()
        owner, name = self.random.choice(OWNERS), context.id
        if owner != context.owner:
            self.moved.setdefault(name, set()).add(context.owner)
            self.passed_on.add(name)
            context.close()
            self.handles[name] = Context.open(self.store, name, owner=owner, change_owner=True)

    def think(self) -> None:
        """Let a model say in its own words what the memory of an owner holds."""
        memory, _ = modelled(self.store, clock=time.time, owner=self.random.choice(OWNERS))
        drained(memory)
        memory.close()

    def learn(self) -> None:
        """Let a program store a fact with a word of a page, and correct or remove one."""
        rng, context = self.random, self._any()
        pages = [page.index for page in context.pages() if page.where not in {"undone", "erased"}]
        words = sorted(canaries(json.dumps(context.recall_page(rng.choice(pages))))) if pages else []
        held = {page: canaries(json.dumps(context.recall_page(page))) for page in pages}
        for word in words[:1]:
            [index, *_] = [page for page in pages if word in held[page]]
            with suppress(MemciError):
                context.memory.learn(f"{word} matters to them.", context=context.id, index=index)
                self.acts["learned"] += 1
                known = {fact.text: fact.id for fact in overview(context.memory).user_facts}
                fact = known.get(f"{word} matters to them.")
                if fact is not None and rng.random() < 0.5:
                    context.memory.correct(fact, f"{word} is gone.")
                elif fact is not None and rng.random() < 0.5:
                    context.memory.forget(fact)

    def kill(self) -> None:
        """Erase a page, or a whole context, in a process that is killed meanwhile; then open the store again."""
        rng, context = self.random, self._any()
        name = context.id
        pages = [page.index for page in context.pages() if page.where not in {"undone", "erased"}]
        index = rng.choice(pages) if pages and rng.random() < 0.8 else None
        said = context.messages() if index is None else context.recall_page(index)
        gone = canaries(json.dumps([each for each in said if each["role"] != "tool"]))
        kin = set[str]() if index is None else self._kin(name)  # a whole context leaves what its parent shares
        step, line = rng.choice((None, *STEPS)), int(10 ** rng.uniform(1, 4.5))
        if self.kind == "ram":
            return
        for each in self.handles.values():
            each.close()
        self.store.close()
        child = os.fork()
        if not child:
            end_if_hung()
            try:
                store = self._open("agent")
                opened = Context.open(store, name)
                if step is not None:
                    setattr(erasing, step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
                Bomb(0 if step else line).around(
                    lambda: erase(store, context=name) if index is None else opened.erase(index)
                )
            finally:
                os._exit(0)
        killed = os.waitpid(child, 0)[1] & 0x7F
        self.acts["killed"] += killed == signal.SIGKILL
        if killed not in {0, signal.SIGKILL}:
            self.left.append(f"{self.acts.total()}: an erasure was ended by {killed}")
        self.store = self._open("agent")
        there = {record.id for record in self.store.contexts()}
        self.handles = {each: Context.open(self.store, each) for each in sorted(self.handles) if each in there}
        erased = name not in there
        if index is not None and not erased:
            erased = any(page.index == index and page.where == "erased" for page in self.handles[name].pages())
        if name not in there:
            self.moved.pop(name, None)
        if len(self.handles) < len(OWNERS):
            self._context(rng.choice(OWNERS))
        self.acts["erased"] += erased
        self._expect_gone(gone if erased else set(), kin & there)
        self.check()

    def copy(self) -> None:
        target = EphemeralStorage()
        list(copy_contexts(self.store, target))
        for record in target.contexts():
            with Context.view(target, record.id, owner=record.owner) as seen:
                held = canaries(json.dumps(list(seen.messages())))
                self._expect("copy", canaries(record.state + "".join(seen.export())), held)
        target.close()

    def erase(self) -> None:
        rng, context = self.random, self._any()
        scope = rng.choices(("page", "entry", "context", "owner"), (6, 5, 1, 0.3))[0]
        if scope in {"page", "entry"}:
            pages = [page.index for page in context.pages() if page.where not in {"undone", "erased"}]
            if not pages:
                return
            index = rng.choice(pages)
            messages = context.recall_page(index)
            entry = rng.randint(1, len(messages)) if scope == "entry" and messages else None
            told = messages if entry is None else [messages[entry - 1]]
            gone = canaries(json.dumps([each for each in told if each["role"] != "tool"]))  # those quote others
            kin = self._kin(context.id)
            try:
                receipt = context.erase(index, entry)
            except Erased:  # it went with what it quoted
                return
        else:
            [owner] = {context.owner}
            names = [context.id] if scope == "context" else [each.id for each in self.store.contexts(owner=owner)]
            gone, kin = canaries(json.dumps(list(context.messages()))), set[str]()
            held = {name: self.handles.pop(name) for name in names if name in self.handles}
            for each in held.values():
                each.close()
            try:
                receipt = erase(self.store, **({"context": names[0]} if scope == "context" else {"owner": owner}))
            except MemciError:  # a fork shares its messages
                for name in held:
                    self.handles[name] = Context.open(self.store, name)
                return
            for name in names:
                self.moved.pop(name, None)
            if len(self.handles) < len(OWNERS):
                self._context(owner)
        self.acts["erased"] += 1
        if not self.on_server and (receipt.physical, receipt.memory) != ("done", "done"):
            self.left.append(f"{self.acts.total()}: a receipt is {receipt}")
        self._expect_gone(gone, kin)
        self.check()

    # -- checks

    def _expect_gone(self, gone: set[str], kin: set[str]) -> None:
        """Expect no word of *gone* in the messages of the contexts *kin*."""
        for name in kin:
            told = canaries(json.dumps(list(self.fresh(name).messages())))
            if gone & told:
                self.left.append(f"{self.acts.total()}: {gone & told} in the messages of {name}")

    def _kin(self, name: str) -> set[str]:
        """Return the contexts that share messages with *name*."""
        parents = {record.id: record.parent for record in self.store.contexts()}
        found = {name}
        while (
            more := {
                each
                for each, parent in parents.items()
                if (parent in found) != (each in found) and (parent or each in found)
            }
            - found
            | {parents[each] for each in found if parents[each]} - found
        ):
            found |= more
        return found & self.handles.keys()

    def _expect(self, where: str, seen: set[str], allowed: set[str]) -> None:
        if odd := seen - allowed:
            self.left.append(f"{self.acts.total()}: {where} has {sorted(odd)[:3]}")

    def check(self) -> None:
        """Search everything."""
        told = {name: list(self.fresh(name).messages()) for name in sorted(self.handles)}
        held = {name: canaries(json.dumps(messages)) for name, messages in told.items()}
        own: dict[str, set[str]] = {owner: set() for owner in OWNERS}
        said: dict[str, set[str]] = {owner: set() for owner in OWNERS}
        for name, words in held.items():
            for owner in {self.handles[name].owner, *self.moved.get(name, ())}:
                own[owner] |= words
                said[owner] |= canaries(json.dumps([each for each in told[name] if each["role"] != "tool"]))
        for name in told.keys() - self.passed_on:
            answers = [each for each in told[name] if each["role"] == "tool"]
            self._expect(f"answer in {name}", canaries(json.dumps(answers)), said[self.handles[name].owner])
        for name, words in held.items():
            context = self.fresh(name)
            shown = json.dumps(context.render(strict=False))
            self._expect(f"rendering of {name}", canaries(shown), own[context.owner])
            question = self._question()
            shown = json.dumps(context.render(question, strict=False))
            self._expect(f"rendering of {name} with a question", canaries(shown), own[context.owner])
            self._expect(f"export of {name}", canaries("".join(context.export())), words)
            found = str(context.search_memory(self._question()))
            self._expect(f"search of {name}", canaries(found), own[context.owner])
        everything = set[str]().union(*held.values())
        for path in self.folder.rglob("*"):
            if path.is_file():
                self._expect(f"file {path.name}", canaries(path.read_bytes().decode("latin-1")), everything)
        if self.on_server:
            for name, told in rows_of(self.store).items():
                self._expect(f"table {name}", canaries(told), everything)

    def check_server(self, data: Path) -> None:
        """Look for words that no message holds in the files of the server, whose folder is *data*."""
        finish_erasures(self.store)
        told = (canaries(json.dumps(list(self.fresh(name).messages()))) for name in sorted(self.handles))
        everything = set[str]().union(*told)
        database = self.store.database
        sql = (
            "SELECT pg_relation_filepath(c.oid) FROM pg_class AS c LEFT JOIN pg_class AS t ON t.reltoastrelid = c.oid "
            "JOIN pg_namespace AS n ON n.oid = coalesce(t.relnamespace, c.relnamespace) "
            "WHERE n.nspname = %s AND c.relkind IN ('r', 'i', 't')"
        )
        paths = [path for (path,) in database.read_rows(sql, database.schema)]
        database.change_rows("CHECKPOINT")
        for path in paths:
            self._expect(f"file {path}", canaries((data / path).read_bytes().decode("latin-1")), everything)

    def act(self) -> None:
        """Do something at random."""
        names = ("say", "ask", "use", "tidy", "fork", "carry", "move", "copy", "think", "learn", "kill", "erase")
        name = self.random.choices(names, (9, 6, 3, 3, 1.5, 0.7, 0.5, 0.3, 0.7, 1.5, 0.7, 8))[0]
        self.acts[name] += 1
        getattr(self, name)()

    def close(self) -> None:
        """Close the handles and the store, and search the files once more."""
        for context in self.handles.values():
            context.close()
        if self.on_server:
            self.store.database.change_rows(f'DROP SCHEMA "{self.store.database.schema}" CASCADE')
        self.store.close()


def run(
    kind: str, seed: int, erasures: int, *, acts: int = 120, data: Path | None = None
) -> tuple[Counter[str], list[str]]:
    """Return the acts of runs with at least *erasures*, and what was left: [] if all is well.

    *data*: the folder of a server, whose files are looked at, too.
    """
    done, left = Counter[str](), list[str]()
    while done["erased"] < erasures and not left:
        with tempfile.TemporaryDirectory() as folder:
            machine = Canaries(kind, Path(folder), seed)
            try:
                for _ in range(acts):
                    machine.act()
                    if machine.left or done["erased"] + machine.acts["erased"] >= erasures:
                        break
                if data is not None:
                    machine.check_server(data)
            finally:
                machine.close()
            done += machine.acts
            left += [f"seed {seed}, act {each}" for each in machine.left]
        seed += 1
    return done, left


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--erasures", type=int, default=100)
    given = parser.parse_args()
    if given.store == "postgres":
        from tests.postgres.server import Server

        with Server() as server:
            done, left = run(server.url, given.seed, given.erasures, data=Path(server.data))
    else:
        done, left = run(given.store, given.seed, given.erasures)
    acts = done.total() - done["erased"] - done["killed"] - done["learned"]
    told = f"{done['erased']} erasures, {done['killed']} killed, {acts} acts, {len(left)} words left"
    sys.stdout.write(f"{given.store:.10}, seed {given.seed}: {told}\n")
    sys.stdout.writelines(f"{each}\n" for each in left[:10])


if __name__ == "__main__":
    main()
