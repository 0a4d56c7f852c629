"""S3, S17: what was said steers no terminal that shows it, and commands that only count show nothing of it."""

import json
import re

import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from memci import SQLiteStorage
from memci.cli.app import app

from .kit import PAYLOADS, agent, hostile_turn

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = "\x1b]0;owned\x07\x1b[2J[link=https://evil.example]bob[/link]\u202e"
CANARY = "kanarienvogel"


def ran(*arguments: object) -> str:
    """Return all that a command printed."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], prog_name="memci")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


@pytest.fixture
def path(folder):
    """A store in which all that can be named or said is hostile."""
    path = folder / "agent.db"
    storage = SQLiteStorage(path)
    context = agent(storage, id=HOSTILE, owner=HOSTILE, window=9_000, counter=None, model="gpt-4o")
    for at, payload in enumerate(PAYLOADS):
        context.append_turn(*hostile_turn(f"{CANARY} {payload}", payload, f"c{at}{HOSTILE}"))
    context.archive(keep=1)
    storage.close()
    return path


@pytest.mark.parametrize("given", [(), ("--pages",), ("--json",), ("--pages", "--json")])
def test_inspect_steers_no_terminal(path, given):
    """Titles, lines, names and owners are shown with what would steer a terminal as escapes."""
    told = ran("inspect", path, "--context", HOSTILE, *given) + ran("inspect", path)

    assert CANARY in told or "--json" in given
    assert not STEERING.search(told)
    if "--json" not in given:
        assert "[link=" in told, "markup is text"


def test_verify_shows_names_and_sizes_only(path):
    """A check names contexts and counts, without a word of what they say."""
    whole = path.read_bytes()
    at = whole.index(CANARY.encode())
    path.write_bytes(whole[:at] + b"K" + whole[at + 1 :])

    told = ran("verify", path) + ran("verify", path, "--json")

    assert told.count("not those that were written") == 2
    assert CANARY not in told.lower()
    assert not STEERING.search(told)


def test_export_is_one_line_for_each_message(path, folder):
    """No text ends a line of an export: as many lines are read as were written."""
    told = ran("export", path, "--context", HOSTILE, "--output", folder / "out.jsonl")

    lines = (folder / "out.jsonl").read_text("utf-8").split("\n")[:-1]
    assert not STEERING.search(told)
    assert [json.loads(line)["kind"] for line in lines].count("entry") == 4 * len(PAYLOADS)
