"""`memci chat`: what it prints in a pipe, as JSON, on a terminal, and what its commands tell."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memci import Context
from memci.cli.chat.input import messages_of
from memci.memory.backend import NullMemory
from memci.testing.llm import ModelServer, Status
from memci.text.interface import section

STOPPED = section("companion")["stopped"]

QUIET = {
    "thinking": "",
    "need_memory_search": False,
    "memory_search_query": None,
    "should_save_memory": False,
    "memory_to_save": None,
}
SEARCH = QUIET | {"need_memory_search": True, "memory_search_query": "marker-3"}


def echo(request):
    """An analysis that wants nothing, and the last message said back."""
    if request.answer:
        return QUIET
    return Status(400) if "fail" in request.text else f"You said: {request.text}"


@pytest.fixture
def server():
    with ModelServer(echo) as started:
        yield started


@pytest.fixture
def chat(run, server, tmp_path):
    """Runs `memci chat` on a store with lines of input."""

    def ran(*lines, store=tmp_path / "agent.db", options=()):
        common = ("--model", "gpt-4o", "--base-url", server.base_url, "--no-memory-model")
        return run("chat", store, *common, *options, input="".join(f"{line}\n" for line in lines))

    return ran


def test_chat_when_lines_come_from_a_pipe(chat, tmp_path):
    """Each line is a message, its answer goes to standard output, and all of it is in the store."""
    result = chat("Hello.", "", "Two\\", "lines.", "//slash")

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "You said: Hello.\nYou said: Two\nlines.\nYou said: /slash\n"
    with Context.view(tmp_path / "agent.db", id="me", memory=NullMemory()) as context:
        assert context.report().messages == 6
        assert context.report().window == 32_000


def test_chat_when_it_is_json(chat):
    """A line of JSON for each message and each command, in ASCII."""
    result = chat("Grüezi.", "/cost", options=("--json", "--id", "ada", "--window", "8000"))

    said, command = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 0
    assert result.stdout.isascii()
    assert (said["text"], said["answer"], said["context"], said["page"], said["calls"]) == (
        "Grüezi.",
        "You said: Grüezi.",
        "ada",
        1,
        2,
    )
    assert said["usage"]["prompt"] > 0 and said["searched"] is None
    assert command["command"] == "/cost" and "analysis" in command["printed"]


def test_chat_when_the_model_fails(chat, tmp_path):
    """An error is one line on the error output, the conversation goes on, and the program ends with 1."""
    result = chat("First.", "fail", "Second.")

    assert result.exit_code == 1
    assert result.stdout == "You said: First.\nYou said: Second.\n"
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("memci: chat: HTTP 400")


def test_chat_when_the_model_fails_in_json(chat):
    """An error is a line of JSON in its place."""
    result = chat("fail", options=("--json",))

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["type"] == "ModelRefused"


def test_chat_when_no_model_is_configured(run, tmp_path, monkeypatch):
    """One line says which options and variables name a model, and nothing is made."""
    for name in ("MEMCI_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    result = run("chat", tmp_path / "agent.db")

    assert (result.exit_code, result.stdout) == (2, "")
    for name in ("--model", "MEMCI_MODEL", "OPENAI_API_KEY", "--base-url", "OPENAI_BASE_URL"):
        assert name in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_chat_when_the_environment_names_the_model(run, server, tmp_path, monkeypatch):
    """Without options, the variables of the environment say who answers."""
    monkeypatch.setenv("MEMCI_MODEL", "gpt-4o")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)

    result = run("chat", tmp_path / "agent.db", "--no-memory-model", "--no-analysis", input="Hi\n")

    assert result.stdout == "You said: Hi\n"
    assert len(server.requests) == 1


def test_chat_when_the_memory_has_the_model_too(run, server, tmp_path):
    """What the memory asks the model in the background changes nothing of the conversation."""
    options = ("--model", "gpt-4o", "--base-url", server.base_url)

    result = run("chat", tmp_path / "agent.db", *options, input="One.\nTwo.\nThree.\n/memory\n")

    assert result.exit_code == 0
    assert result.stdout.startswith("You said: One.\nYou said: Two.\nYou said: Three.\n")
    assert "all of it: memci inspect" in result.stdout


def test_chat_when_a_store_has_several_contexts(chat, store):
    """Which one is meant has to be said."""
    result = chat("Hi", store=store)

    assert result.exit_code == 2
    assert "--id: name one: agent.db has 'alice', 'bob'" in result.stderr


def test_chat_when_it_goes_on(chat, server, store):
    """A context that is there keeps its settings; a role is said to the model, and not stored."""
    result = chat("Hi", store=store, options=("--id", "bob", "--role", "You are a pirate."))

    assert result.exit_code == 0
    prompt = server.requests[-1].messages[0]["content"]
    assert "You are a pirate." in prompt
    with Context.view(store, id="bob", memory=NullMemory()) as context:
        assert context.report().window == 4_000
        assert context.render()[0]["content"].startswith("# Earlier")


def test_chat_when_the_memory_is_searched(chat, server, store):
    """What was found is told in the line of JSON; without the search, nothing is."""
    server.answers(lambda request: SEARCH if request.answer else "Found.")

    found = json.loads(chat("What of marker-3?", store=store, options=("--id", "alice", "--json")).stdout)
    not_looked = json.loads(chat("Hi", store=store, options=("--id", "alice", "--json", "--no-search")).stdout)

    assert found["searched"] == "marker-3"
    assert found["found"][0]["page"] == 4
    assert not_looked["searched"] is None


def test_commands_when_they_are_typed(chat, store, tmp_path, monkeypatch):
    """Each command tells what it is for."""
    monkeypatch.chdir(tmp_path)
    with Context.open(store, id="alice") as context:
        context.flush()

    result = chat(
        *("/help", "/window", "/pages", "/pages all", "/page 3", "/page #3", "/memory", "/search marker-5", "/cost"),
        *("/pin 2", "/unpin 2", "/archive", "/undo", "/export", "/export other.jsonl", "/quit", "never read"),
        store=store,
        options=("--id", "alice"),
    )

    assert (result.exit_code, result.stderr) == (0, "")
    for told in (
        "/search WORDS",
        "system & tools",
        "the latest 20 of 60: /pages all",
        "Remember marker-2, please.",
        "memory of ada",
        "marker-5",
        "no call of the model yet",
        "#2 stays in the window",
        "#2 may be archived again",
        "archived: #",
        "taken back, 2 messages: Remember marker-59, please.",
        "alice.jsonl: alice, ",
        "other.jsonl: alice, ",
    ):
        assert told in result.stdout
    assert "never read" not in result.stdout


def test_commands_when_they_only_look(chat, store):
    """Looking at pages is no use of them: what is stored is as before."""
    with Context.view(store, id="alice", memory=NullMemory()) as context:
        before = list(context.pages())

    chat("/page 3", "/pages", "/search marker-5", "/memory", "/window", store=store, options=("--id", "alice"))

    with Context.view(store, id="alice", memory=NullMemory()) as context:
        assert list(context.pages()) == before


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("/nope", "/nope: there is no such command: /help lists them"),
        ("/page", "/page: which page? /page 42"),
        ("/page x", "/page: which page? /page 42"),
        ("/page 99", "no page 99"),
        ("/search", "/search: what for? /search WORDS"),
        ("/undo", "there is nothing to take back"),
        ("/export /nowhere/at/all.jsonl", "can't be made"),
        ("/\x1b[2Jx", "no such command"),
    ],
)
def test_commands_when_they_make_no_sense(chat, command, told):
    """A mistake is one line, and the conversation goes on."""
    result = chat(command, "Hi")

    assert result.exit_code == 1
    assert told in result.stderr and result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr
    assert result.stdout == "You said: Hi\n"


def test_answer_when_it_would_steer_the_terminal(chat, server):
    """Control characters of an answer are shown, not obeyed."""
    server.answers(lambda request: QUIET if request.answer else "a\x1b[2Jb\x07c")

    assert chat("Hi").stdout == "a\\x1b[2Jb\\x07c\n"


def test_messages_when_lines_end_in_a_backslash():
    """Lines that end in a backslash go on; one behind another backslash is a backslash."""
    assert list(messages_of(["a\\\n", "b\n", "\n", "c\\\\\n", "d\\"])) == ["a\nb", "c\\\\", "d"]


def _hears():
    """Let the process take a Ctrl-C, whatever this was started by ignores."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """`memci chat` in another process, on a terminal of its own."""

    def __init__(self, *arguments, env=()):
        self.master, slave = pty.openpty()
        root = str(Path(__file__).parents[2])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memci", "chat", *map(str, arguments)],
            preexec_fn=_hears,  # noqa: PLW1509 -- one call of the system, before the program begins
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": root, "TERM": "xterm", "COLUMNS": "80", "LINES": "24", **dict(env)},
        )
        os.close(slave)
        self.seen = ""
        self.waited = 0
        """up to where it was waited for"""

    def wait_for(self, text, seconds=30):
        """Read until *text* is there, behind what was waited for before."""
        until = time.monotonic() + seconds
        while (at := self.seen.find(text, self.waited)) < 0:
            assert time.monotonic() < until, f"no {text!r} in {self.seen[self.waited :]!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65_536).decode("utf-8", "replace").replace("\r\n", "\n")
        self.waited = at + len(text)

    def interrupt(self, text):
        """Press Ctrl-C, and again after a while: one that comes just before a line is read waits for the next key."""
        for _ in range(6):
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(AssertionError, OSError):
                return self.wait_for(text, seconds=5)
        raise AssertionError(f"no {text!r} in {self.seen[self.waited :]!r}")

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        code = self.process.wait(30)
        os.close(self.master)
        return code


@pytest.fixture
def terminal(server, tmp_path):
    opened = []

    def started(*options, env=()):
        common = ("--id", "alice", "--model", "gpt-4o", "--base-url", server.base_url, "--no-memory-model")
        opened.append(Terminal(tmp_path / "agent.db", *common, *options, env=env))
        return opened[-1]

    yield started
    for each in opened:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("env", [{}, {"TERM": "dumb"}], ids=["colour", "dumb"])
def test_terminal_when_one_talks(terminal, env):
    """A prompt, an answer, an error, a command, and Ctrl-D leaves with 0; no colours where there are to be none."""
    talk = terminal(env=env)

    talk.wait_for("> ")
    talk.type("Hello.\r")
    talk.wait_for("You said: Hello.")
    talk.type("fail\r")
    talk.wait_for("brings it back")
    talk.type("/window\r")
    talk.wait_for("in all")
    talk.wait_for("> ")
    talk.type("\x04")
    talk.wait_for("To go on: memci chat")

    assert talk.end() == 0
    assert ("\x1b[1;36m" in talk.seen) == (not env)
    if env.get("TERM") == "dumb":
        assert "\x1b[" not in talk.seen


@pytest.mark.slow
def test_terminal_when_an_answer_is_stopped(terminal, server, tmp_path):
    """Ctrl-C stops the answer and keeps what was said; the conversation goes on; at the prompt it leaves.

    With NO_COLOR there are no colours.
    """
    server.answers(lambda request: QUIET if request.answer else "again and " * 50_000)
    talk = terminal(env={"NO_COLOR": "1"})
    talk.wait_for("> ")
    talk.type("Tell me a tale.\r")
    talk.wait_for("again and")

    talk.process.send_signal(signal.SIGINT)

    talk.wait_for("stopped: the text so far is kept")
    server.answers(echo)
    talk.wait_for("> ")
    talk.type("Go on.\r")
    talk.wait_for("You said: Go on.")
    talk.wait_for("> ")
    talk.interrupt("kept.")
    assert talk.end() == 0
    assert "\x1b[1;36m" not in talk.seen
    with Context.view(tmp_path / "agent.db", id="alice", memory=NullMemory()) as context:
        said = [message["content"] for message in context.messages()]
    assert said[0] == "Tell me a tale."
    assert said[1].startswith("again and") and said[1].endswith(STOPPED)
    assert said[2:] == ["Go on.", "You said: Go on."]
