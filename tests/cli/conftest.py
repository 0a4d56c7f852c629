"""What the tests of the command line share: a way to run it, and small conversations."""

import json
import shutil
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memci import Context, SQLiteStorage
from memci.cli.app import app
from memci.history.export import export_lines
from memci.history.import_ import import_lines
from memci.storage import FilesystemStorage

for _folder in ("cli", "memory"):  # what the tests of several files share stands beside them
    sys.path.insert(0, str(Path(__file__).parents[1] / _folder))


@pytest.fixture
def run():
    """Runs a command and returns its result: exit_code, stdout, stderr."""

    def ran(*arguments, input=None):  # noqa: A002
        result = CliRunner().invoke(app, [str(each) for each in arguments], input=input, prog_name="memci")
        assert result.exception is None or isinstance(result.exception, SystemExit), "a command never raises"
        return result

    return ran


@pytest.fixture
def trip(tmp_path):
    """A file with a conversation of 60 turns, with tool calls, that does not fit a small window."""
    messages = [{"role": "system", "content": "Be brief."}]
    for number in range(60):
        arguments = json.dumps({"number": number})
        call = {"id": f"c{number}", "type": "function", "function": {"name": "trains", "arguments": arguments}}
        messages += [
            {"role": "user", "content": f"Which train goes to stop {number}? I would like to arrive before noon."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps({"train": f"IC {number}", "min": 30})},
            {"role": "assistant", "content": f"Take IC {number}, 每小时一班, it needs 30 minutes."},
        ]
    path = tmp_path / "trip.json"
    path.write_text(json.dumps({"messages": messages}))
    return path


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """The store and the folder that the tests get copies of."""
    path = tmp_path_factory.mktemp("stored") / "agent.db"
    with Context.open(path, id="alice", owner="ada", system="Be brief.", window=2_000) as context:
        for number in range(60):
            context.append_turn(f"Remember marker-{number}, please.", {"role": "assistant", "content": "I will. " * 8})
    with Context.open(path, id="bob", window=4_000) as context:
        context.append_turn("Hello.", {"role": "assistant", "content": "Hi."})
    with closing(SQLiteStorage(path)) as source, closing(FilesystemStorage(path.parent / "agent")) as target:
        for each in ("alice", "bob"):
            import_lines(target, export_lines(source, each))
    return path


@pytest.fixture
def store(stored, tmp_path):
    """A store with two contexts, one of which has archived pages."""
    return shutil.copy(stored, tmp_path / "agent.db")


@pytest.fixture
def folder(store, stored, tmp_path):
    """The same store as a folder, beside it."""
    return shutil.copytree(stored.parent / "agent", tmp_path / "agent")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store of three contexts and two owners, whose memories were told nothing yet."""
    from memory_kit import talked

    path = tmp_path_factory.mktemp("memory") / "agents.db"
    talked(path, "alice", "ada", 50)
    talked(path, "alice-work", "ada", 20, first=50)
    talked(path, "bob", "bob", 3)
    return path


@pytest.fixture
def untold(made, tmp_path):
    """A copy of that store."""
    return shutil.copy(made, tmp_path / "agents.db")


@pytest.fixture(scope="module")
def flushed(made, tmp_path_factory):
    """That store, whose memories were told everything."""
    path = shutil.copy(made, tmp_path_factory.mktemp("flushed") / "agents.db")
    with closing(SQLiteStorage(path)) as storage:
        for each in ("alice", "alice-work", "bob"):
            with Context.open(storage, id=each) as context:
                context.flush()
    return path


@pytest.fixture
def told(run):
    """Runs a command with --json and returns what it printed."""

    def ran(*arguments):
        result = run(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return ran
