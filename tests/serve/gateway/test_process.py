"""`memci serve` as a process: what it refuses, several workers, a kill in the middle; and the example."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx2
import openai
import pytest

from memci import Context
from memci.errors import InvalidSetting
from memci.serve.gateway import app

from .kit import Talk, filled

ROOT = Path(__file__).parents[3]


@contextmanager
def serving(store, upstream, *more):
    """Run the command, and give its process and its address."""
    command = [sys.executable, "-m", "memci", "serve", str(store), "--upstream", upstream, "--port", "0", *more]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process, re.search(r"http://[\d.:]+", process.stderr.readline())[0]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()


@pytest.mark.slow
def test_the_start_says_which_identity_is_in_force(store):
    """In one line, behind the address."""
    options = ("--identity", "credential", "--credential", "x-tenant")
    with serving(store, "http://localhost", *options) as (process, _):
        assert "the credential; conversations of one" in process.stderr.readline()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--upstream", "http://localhost", "--identity", "user"], "header:NAME"),
        (["--upstream", "http://localhost", "--host", "0.0.0.0"], "set a token"),
        (["--upstream", "localhost"], "base URL of a provider"),
        (["--upstream", "http://localhost", "--format", "gemini"], "openai_chat"),
    ],
)
def test_what_makes_no_sense_is_refused(command, tmp_path, options, told):
    """The command ends with 2 and one line, before anything listens."""
    result = command("serve", tmp_path / "agents.db", *options)

    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert told in result.stderr


@pytest.mark.slow
def test_a_kill_in_the_middle_loses_nothing(provider, store):
    """Two workers are killed while an answer comes; the client repeats its request, and the list is stored once."""
    with serving(store, provider.url, "--window", "6000", "--workers", "2") as (process, url):
        talk = Talk("openai_chat", url, stream=True)
        filled(talk)
        assert [talk.say(text) for text in ("one", "two")] == ["Hello!", "Hello!"]
        provider.hold = Event()
        arrived, script = Event(), provider.script
        provider.script = lambda seen: (arrived.set(), script(seen))[1]

        def killed():
            arrived.wait()
            os.killpg(process.pid, signal.SIGKILL)

        killer = Thread(target=killed)
        killer.start()
        with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
            talk.say("three")
        killer.join()
        provider.hold.set()
    with serving(store, provider.url, "--window", "6000") as (_, url):
        talk.moved(url)
        assert talk.ask() == "Hello!"
        talk.say("four")
        talk.client.close()

    (info,) = Context.list(store)
    with Context.open(store, info.id) as context:
        texts = [message["content"] for message in context.messages() if message["role"] == "user"]
        assert texts[-4:] == ["one", "two", "three", "four"]
        assert context.verify() == []


def test_the_key_beside_the_store_is_made_once_and_for_its_user_only(tmp_path, monkeypatch):
    """Every worker has the same key, also one that looked before it was there, and other users can't read it."""
    app(tmp_path / "agents.db", upstream="http://localhost")
    (key,) = tmp_path.iterdir()
    made = key.read_text()
    app(f"{tmp_path}/agents.db/", upstream="http://localhost")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda _self: False)
        app(tmp_path / "agents.db", upstream="http://localhost")
    assert ([*tmp_path.iterdir()], key.read_text()) == ([key], made)
    assert key.name == "agents.db.gateway-key" and key.stat().st_mode & 0o077 == 0
    assert len(bytes.fromhex(key.read_text())) == 32
    for held in ("", "ab" * 31, "ab" * 65, "no key"):  # cut short, or another file
        key.write_text(held)
        with pytest.raises(InvalidSetting, match=r"agents\.db\.gateway-key"):
            app(tmp_path / "agents.db", upstream="http://localhost")


@pytest.mark.slow
def test_the_example_runs():
    """The example prints what its text says."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/gateway.py")], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "You asked for the price of line 3." in done.stdout
    assert done.stderr == ""
