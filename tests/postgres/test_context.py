"""A context on Postgres by its URL: the library, the commands, and the fork of a context."""

import json
from contextlib import closing

import pytest
from typer.testing import CliRunner

from memci import Context
from memci.cli.app import app
from memci.errors import InvalidSetting
from memci.memory import NullMemory
from memci.serve.door import KEY, key_beside
from memci.storage.opening import open_store
from memci.testing.storage.rows import everything


@pytest.fixture
def run():
    def ran(*arguments):
        result = CliRunner().invoke(app, [str(each) for each in arguments], prog_name="memci")
        assert result.exception is None or isinstance(result.exception, SystemExit), "a command never raises"
        return result

    return ran


@pytest.fixture
def filled(postgres_url):
    """The URL of a store with a context that was compacted, and its fork."""
    with Context.open(postgres_url, "alice", owner="ada", window=2_000, memory=NullMemory()) as context:
        for number in range(60):
            context.append_turn(f"Remember marker-{number}.", {"role": "assistant", "content": "I will. " * 8})
        context.render()
        context.fork("alice-2", at=20).close()
    return postgres_url


def test_context_is_opened_by_a_url(filled):
    """It renders the same bytes when it is opened again, and pages that left the window are recalled."""
    with Context.open(filled, "alice", memory=NullMemory()) as context:
        shown = context.render()
        assert context.report().pages["archived"] > 0
        assert "marker-0" in str(context.recall_page(1))
        assert context.verify() == []
    with Context.open(filled, "alice", memory=NullMemory(), wait=1) as context:
        assert context.render() == shown
    with Context.open(filled, "alice") as context:
        context.flush()
        assert "marker-7" in str(context.search_memory("marker-7").pages), "its memory is in the database, too"
    assert [each.id for each in Context.list(filled, owner="ada")] == ["alice", "alice-2"]


def test_commands_take_a_url(filled, run, tmp_path):
    """inspect, verify, export, import and erase work on it as on a file."""
    contexts = json.loads(run("inspect", filled, "--json").stdout)["contexts"]
    assert [each["id"] for each in contexts] == ["alice", "alice-2"]
    assert json.loads(run("verify", filled, "--json").stdout)["well"]
    target = tmp_path / "export.jsonl"
    assert run("export", filled, "--all", "-o", target).exit_code == 0
    assert run("erase", filled, "--context", "alice-2", "--yes").exit_code == 1, "its bytes are in the tables' files"
    assert run("erase", filled, "--scrub").exit_code == 0
    assert "alice-2" not in run("inspect", filled).stdout


def test_doctor_looks_at_a_server(filled, run, server):
    """It names what endangers the data: this server does not sync."""
    result = run("doctor", filled, "--json")
    findings = {each["name"]: each for each in json.loads(result.stdout)["findings"]}

    assert result.exit_code == 1
    assert findings["safety"]["state"] == "problem"
    assert findings["rows"]["state"] == findings["checksums"]["state"] == "ok"
    assert run("doctor", filled, "--accept").exit_code == 2
    nowhere = run("doctor", "postgresql://127.0.0.1:9/agents")
    assert nowhere.exit_code == 1
    assert "check the URL" in nowhere.stdout


def test_gateway_needs_its_key_from_the_environment(postgres_url, monkeypatch):
    """A database has no file beside it for the key: the variable is named."""
    monkeypatch.delenv(KEY, raising=False)
    with pytest.raises(InvalidSetting, match=KEY):
        key_beside(postgres_url)
    monkeypatch.setenv(KEY, "ab" * 32)

    assert key_beside(postgres_url) == b"\xab" * 32


def test_copy_goes_to_postgres_and_back(filled, run, tmp_path):
    """Every row that can be read is the same in a file, in Postgres and in a file again."""
    file, url, back = f"{tmp_path}/a.db", f"{filled}_2", f"{tmp_path}/b.db"

    for source, target in ((filled, file), (file, url), (url, back)):
        assert json.loads(run("copy", source, target, "--json").stdout)["copied"] == 2
        assert json.loads(run("copy", source, target, "--json").stdout)["there"] == 2

    read = []
    for place in (filled, file, url, back):
        with closing(open_store(place, read_only=True)) as storage:
            raw = [list(storage.entries(name, as_appended=True)) for name in ("alice", "alice-2")]
            read.append((everything(storage, "alice", "alice-2"), raw))
    assert all(each == read[0] for each in read)
