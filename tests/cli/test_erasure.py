"""`memci erase`: it asks, erases, and says what went."""

import json

import apsw
import pytest

from memci import Context, SQLiteStorage


def contexts(run, store):
    """The ids of the contexts in *store*."""
    return [each["id"] for each in json.loads(run("inspect", store, "--json").stdout)["contexts"]]


def test_erase_when_the_answer_is_no(run, store):
    """It shows what would go and asks; anything but yes ends with 1, and the file keeps its bytes."""
    before = store.read_bytes()

    results = [run("erase", store, "--context", "alice", input=answer) for answer in ("n\n", "\n", "")]

    assert [result.exit_code for result in results] == [1] * 3
    assert all("alice of ada: 120 messages on 60 pages" in result.stdout for result in results)
    assert "nothing was erased" in results[0].stderr
    assert store.read_bytes() == before


@pytest.mark.parametrize("kind", ["store", "folder"])
def test_erase_when_a_context_is_named(run, kind, request):
    """The context goes whole, with every byte of it, and the other one stays."""
    path = request.getfixturevalue(kind)

    result = run("erase", path, "--context", "alice", input="y\n")

    assert result.exit_code == 0
    assert "no byte of it is left" in result.stdout
    assert contexts(run, path) == ["bob"]
    files = [each for each in path.parent.rglob(f"{path.name}*" if kind == "store" else "agent/**/*") if each.is_file()]
    assert files
    assert not any(b"marker-7" in each.read_bytes() for each in files)


def test_erase_when_an_owner_is_named(run, store):
    """All contexts of an owner go, without being asked if --yes is given."""
    with Context.open(store, id="carol", owner="ada", window=4_000) as context:
        context.append_turn("Hello.")

    result = run("erase", store, "--owner", "ada", "--yes", "--json")

    told = json.loads(result.stdout)
    assert (result.exit_code, told["contexts"], told["entries"], told["physical"]) == (0, 2, 121, "done")
    assert contexts(run, store) == ["bob"]
    assert json.loads(run("erase", store, "--owner", "ada", "--yes", "--json").stdout) == told, "its receipt, again"
    assert run("erase", store, "--owner", "eve", "--yes").exit_code == 2


def test_erase_when_only_a_memory_is_left_of_an_owner(run, store):
    """It asks, as for a context; then the memory goes, and so does the name."""
    with Context.open(store, id="carol", owner="evaquux", window=4_000) as context:
        context.append_turn("I live in Oslo with my dog Rex.", {"role": "assistant", "content": "Noted."})
    Context.open(store, id="carol", owner="ada", change_owner=True).close()

    refused, done = (run("erase", store, "--owner", "evaquux", input=answer) for answer in ("n\n", "y\n"))

    assert (refused.exit_code, done.exit_code) == (1, 0)
    assert "the memory of evaquux, who has no context" in refused.stdout
    assert b"evaquux" not in store.read_bytes()
    assert contexts(run, store) == ["alice", "bob", "carol"]
    assert run("erase", store, "--owner", "evaquux", "--yes").exit_code == 0, "its receipt, again"


def test_erase_when_a_page_is_named(run, store):
    """The messages of the page are shown, then they are gone, and the page says so."""
    result = run("erase", store, "--context", "alice", "--page", 8, input="y\n")

    assert result.exit_code == 0
    assert "user: Remember marker-7, please." in result.stdout
    assert b"marker-7," not in store.read_bytes()
    for options in ([], ["--yes"]):
        again = run("erase", store, "--context", "alice", "--page", 8, *options)
        assert again.exit_code == 0, "its receipt, again"
        assert again.stdout in result.stdout
    assert run("verify", store).exit_code == 0


def test_erase_when_an_entry_is_named(run, store):
    """One message of a page goes, the other stays."""
    result = run("erase", store, "--context", "alice", "--page", 8, "--entry", 1, "--yes")

    assert result.exit_code == 0
    with Context.open(store, id="alice") as context:
        assert [each["content"][:8] for each in context.recall_page(8)] == ["[erased]", "I will. "]


def test_erase_when_a_fork_shares_it(run, store):
    """A page goes from the forks too, which is said before; a parent can't go before its forks."""
    with Context.open(store, id="alice") as context:
        context.fork("alice-2").close()

    shared = run("erase", store, "--context", "alice", "--page", 8, input="y\n")
    whole = run("erase", store, "--context", "alice", "--yes")

    assert "every fork" in shared.stdout
    assert shared.exit_code == 0
    assert whole.exit_code == 2
    assert "'alice-2' is a fork of 'alice'" in whole.stderr
    with Context.open(store, id="alice-2") as fork:
        assert next(page.where for page in fork.pages() if page.index == 8) == "erased"


@pytest.mark.slow
def test_erase_when_somebody_still_reads(run, store, monkeypatch):
    """While a reader keeps an older state, it ends with 1 and says how to finish; --scrub does, later."""
    monkeypatch.setitem(SQLiteStorage.__init__.__kwdefaults__, "busy_timeout_seconds", 0.05)
    with Context.open(store, id="bob") as context:
        context.append_turn("Are you there?")
    reader = apsw.Connection(str(store))
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM context").fetchall()

    pending = run("erase", store, "--context", "alice", "--yes")

    assert pending.exit_code == 1
    assert "pending" in pending.stdout
    assert "memci erase STORE --scrub" in pending.stdout
    reader.close()
    done = run("erase", store, "--scrub", "--json")
    assert (done.exit_code, json.loads(done.stdout)["physical"]) == (0, "done")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name --context, --owner, --before or --scrub"),
        (["-c", "alice", "--owner", "bob", "--yes"], "'bob' has no context 'alice'; 'bob' has 'bob'"),
        (["-c", "carol", "--yes"], "has no context 'carol'"),
        (["--owner", "eve", "--yes"], "has no owner 'eve'"),
        (["--owner", "ada", "--page", "1"], "--page: belongs to one context"),
        (["-c", "bob", "--entry", "1"], "--entry: belongs to one page"),
        (["-c", "bob", "--page", "9", "--yes"], "no page 9"),
        (["-c", "bob", "--page", "1", "--entry", "9", "--yes"], "page #1 has no entry 9"),
        (["-c", "bob", "--json"], "--yes: --json does not ask"),
        (["--before", "spring", "--yes"], "before: expected a date (2026-03-31)"),
    ],
)
def test_erase_when_an_argument_makes_no_sense(run, store, arguments, told):
    """What is not there, or not clear, ends with 2 and one line; the file keeps its bytes."""
    before = store.read_bytes()

    result = run("erase", store, *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert store.read_bytes() == before


def test_erase_when_there_is_no_store(run, tmp_path):
    """No store is made to erase from."""
    result = run("erase", tmp_path / "none.db", "--context", "a", "--yes")

    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []
