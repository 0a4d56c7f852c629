"""`memci consolidate`: memories are fed what waits, and moved on, by a model too."""

import json
import shutil
from contextlib import closing

import apsw
import pytest
from memory_kit import used
from model_kit import obliging

from memci import Context, SQLiteStorage
from memci.cli.memory.consolidate import feed
from memci.errors import WriteConflict
from memci.memory import TieredMemory
from memci.memory.inspect import counts, waiting
from memci.memory.repository.home import tables_of
from memci.storage.opening import open_store
from memci.testing.llm import Asked, ModelServer, Status

STEPS = {
    "PageAnswer": "page",
    "ThemesAnswer": "topics",
    "LearnedAnswer": "analysis",
    "RelationsAnswer": "concepts",
    "DayAnswer": "day",
    "ConversationAnswer": "conversation",
    "StrategyAnswer": "strategy",
}
"""by the name of the schema that is asked for"""


@pytest.fixture
def store(flushed, tmp_path):
    """A copy of the store whose memories were told everything."""
    return shutil.copy(flushed, tmp_path / "agents.db")


@pytest.fixture
def server():
    """A model that does what it is asked."""

    def said(request):
        return obliging(Asked(tuple(request.messages), STEPS[request.answer], (), None, 0))

    with ModelServer(said) as started:
        yield started


def test_consolidate_when_pages_wait(run, told, untold):
    """All that waits is fed, and moves on; nothing waits then, and no context was changed by it."""
    with closing(SQLiteStorage(untold)) as storage:
        before = [storage.revision(each) for each in ("alice", "alice-work", "bob")]

    result = told("consolidate", untold)

    assert result["well"]
    assert [(each["id"], each["fed"], each["waiting"]) for each in result["contexts"]] == [
        ("alice", 49, 0),
        ("alice-work", 19, 0),
        ("bob", 2, 0),
    ]
    ada = result["owners"][0]
    assert set(ada["before"].values()) == {0}
    assert ada["after"] == told("inspect", untold, "--memory", "--owner", "ada")["counts"]
    assert min(ada["after"]["mid"], ada["after"]["episodes"]) > 0
    assert told("search", untold, "violin", "--owner", "ada")["pages"]
    with closing(SQLiteStorage(untold)) as storage:
        assert [storage.revision(each) for each in ("alice", "alice-work", "bob")] == before
    again = run("consolidate", untold)
    assert again.exit_code == 0
    assert "+" not in again.stdout


@pytest.mark.parametrize(("option", "names"), [(("-c", "alice-work"), ["alice-work"]), (("--owner", "bob"), ["bob"])])
def test_consolidate_when_one_is_named(told, untold, option, names):
    """Only the named context, or the contexts of the named owner, are fed."""
    result = told("consolidate", untold, *option)

    assert [each["id"] for each in result["contexts"]] == names
    with closing(SQLiteStorage(untold)) as storage, closing(TieredMemory(storage, owner="ada")) as memory:
        assert waiting(memory, "alice") == 49
        assert waiting(memory, "alice-work") == (0 if names == ["alice-work"] else 19)


def test_consolidate_when_another_owner_has_the_id_too(told, untold):
    """Each context is fed to its owner's memory: the id in the store says which one is meant."""
    Context.open(untold, id="alice", owner="bob", new=True, window=8_000).close()

    assert [each["waiting"] for each in told("consolidate", untold)["contexts"]] == [0, 0, 0, 0]


def test_consolidate_when_somebody_writes(run, untold):
    """Who has a context open goes on with it, undisturbed."""
    with Context.open(untold, id="alice") as context:
        context.append_turn("Before?", {"role": "assistant", "content": "Before."})

        result = run("consolidate", untold)
        context.append_turn("After?", {"role": "assistant", "content": "After."})

        assert result.exit_code == 0
        assert context.search_memory("violin concert").pages


def test_consolidate_when_a_message_was_changed(run, untold):
    """A page that can't be read keeps no other page from the memory: `verify` names it."""
    untold.write_bytes(untold.read_bytes().replace(b"When is concert 5?", b"When is c0ncert 5?"))

    value = json.loads(run("consolidate", untold, "--json").stdout)

    assert value["well"]
    assert [each["waiting"] for each in value["contexts"]] == [0, 0, 0]
    assert run("verify", untold).exit_code == 1


def test_consolidate_when_another_writer_has_it(untold):
    """A context that another process writes is named with that reason."""

    class Taken(TieredMemory):
        def observe(self, page):
            raise WriteConflict("at revision 9, not 8")

    with closing(SQLiteStorage(untold)) as storage, closing(Taken(storage, owner="ada")) as memory:
        problem = feed(storage, "alice", memory)

    assert problem == "another process writes it: at revision 9, not 8"


def test_consolidate_when_it_is_rebuilt(run, told, store):
    """What was derived is deleted and derived again from the pages: what was lost of it is found again."""
    used(store)
    connection = apsw.Connection(str(store))
    connection.execute("DELETE FROM memory_passage")
    connection.execute("DELETE FROM memory_item WHERE kind = 'fact'")
    connection.execute("UPDATE memory_owner SET revision = revision + 1, removals = removals + 1")
    connection.close()
    assert not told("search", store, "concert 29", "--owner", "ada")["pages"]

    result = run("consolidate", store, "--rebuild", "--owner", "ada")

    assert result.exit_code == 0
    assert told("search", store, "concert 29", "--owner", "ada")["pages"][0]["index"] == 30
    seen = told("inspect", store, "--memory", "--owner", "ada")
    assert seen["counts"]["user_facts"] > 0
    assert seen["counts"]["observed"] + seen["counts"]["short"] + seen["counts"]["mid"] == 68
    assert {each["access_count"] for each in seen["episodes"]} == {0}
    with closing(SQLiteStorage(store)) as storage, closing(TieredMemory(storage, owner="bob")) as memory:
        assert counts(memory).pages == 3  # with the open one, which closing has handed over
    with closing(open_store(store)) as storage, closing(tables_of(storage)) as tables, tables.change():
        tables.execute("UPDATE memory_item SET body = 'damaged' WHERE kind = 'episode'")
    assert run("consolidate", store, "--owner", "ada").exit_code == 2
    assert run("consolidate", store, "--rebuild", "--owner", "ada").exit_code == 0
    assert run("consolidate", store, "--owner", "ada").exit_code == 0
    refused = run("consolidate", store, "--rebuild", "-c", "alice")
    assert refused.exit_code == 2
    assert "--rebuild: derives the whole memory of an owner again" in refused.stderr


def test_consolidate_when_there_are_no_contexts(run, tmp_path):
    """A store without contexts has nothing that waits; one that is not there is not made."""
    path = tmp_path / "empty.db"
    SQLiteStorage(path).close()

    result, missing = run("consolidate", path), run("consolidate", tmp_path / "none.db")

    assert (result.exit_code, result.stdout) == (0, "there are no contexts: nothing waits\n")
    assert missing.exit_code == 2
    assert not (tmp_path / "none.db").exists()


# consolidate --model


def test_consolidate_when_a_model_does_it(told, run, untold, server):
    """All of its jobs are done: each page has its note, and what is derived is in its words."""
    model = ("--model", "gpt-4o", "--base-url", server.base_url)

    result = told("consolidate", untold, *model)

    asked = [STEPS[request.answer] for request in server.requests]
    assert asked.count("page") == 49 + 19 + 2
    assert {"topics", "analysis", "day", "strategy"} <= set(asked)
    assert result["well"]
    assert [each["waiting"] for each in result["contexts"]] == [0, 0, 0]
    assert (result["model"]["waiting"], result["model"]["calls"]) == (0, len(asked))
    lines = told("inspect", untold, "--memory", "--owner", "ada")["episodes"][0]["summary"].splitlines()
    assert lines[-1].startswith(("On ", "About ")), "of its topic, or of its pages"
    again = run("consolidate", untold, *model)
    assert again.exit_code == 0
    assert "the model: 0 calls, 0 + 0 tokens" in again.stdout


def test_consolidate_when_a_model_came_later(told, store, server):
    """Pages that were fed before there was a model are improved by it when all is derived again."""
    model = ("--model", "gpt-4o", "--base-url", server.base_url)

    without = told("consolidate", store, "--owner", "bob", *model)
    rebuilt = told("consolidate", store, "--owner", "bob", "--rebuild", *model)

    assert without["model"]["calls"] <= 1  # at most for the conversation, which is over
    assert rebuilt["model"]["calls"] - without["model"]["calls"] == 2


def test_consolidate_when_the_model_is_away(run, untold):
    """What needs no model is done, and it says how many jobs wait."""
    with ModelServer(lambda _: Status(400)) as server:
        model = ("--model", "gpt-4o", "--base-url", server.base_url)
        result = run("consolidate", untold, "--owner", "bob", *model)
        value = json.loads(run("consolidate", untold, "-c", "alice-work", *model, "--json").stdout)

    assert result.exit_code == 1
    assert "3 jobs wait: it did not answer" in " ".join(result.stdout.split())
    assert not value["well"]
    assert [each["waiting"] for each in value["contexts"]] == [0]
    assert value["model"]["failed"] > 0
    assert value["owners"][0]["after"]["short"] > 0


def test_consolidate_when_the_ceiling_is_reached(run, told, untold, server):
    """It asks no more, and goes on another day: that is no failure."""
    model = ("--model", "gpt-4o", "--base-url", server.base_url, "--ceiling", "1")

    result = told("consolidate", untold, "--owner", "bob", *model)

    assert (result["model"]["calls"], result["model"]["waiting"]) == (1, 2)  # a page, and what is over
    assert result["well"]


@pytest.mark.parametrize("option", [("--ceiling", "9"), ("--base-url", "http://localhost:1/v1")])
def test_consolidate_when_no_model_is_named(run, untold, option):
    """An option of a model makes no sense without one."""
    refused = run("consolidate", untold, *option)

    assert refused.exit_code == 2
    assert f"{option[0]}: is for a model: name it by --model" in refused.stderr
