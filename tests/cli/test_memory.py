"""`memci inspect --memory`, `memci search`, `memci consolidate`: what is remembered is shown, found and moved on."""

import json
import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta

import apsw
import pytest

from memci import Context, SQLiteStorage
from memci.cli.memory_consolidation import _told
from memci.cli.memory_search import MARKED, marked
from memci.errors import LeaseLost
from memci.memory import NullMemory, TieredMemory
from memci.memory.heat import PAPER, heat
from memci.memory.overview import concept, counts, overview, waiting
from memci.storage import FilesystemStorage
from memci.testing.models import ScriptedChat
from memci.transfer import exported, imported

START = datetime(2026, 3, 1, tzinfo=UTC)
TALKS = (
    (
        "I live in Oslo with my dog Rex. Which flight to Lisbon leaves on day {}?",
        "I have booked flight TAP{} for $120.",
    ),
    ("My sister Mel plays the violin in Lisbon. When is concert {}?", "Concert {} begins at 19:00."),
    ("我住在上海, 喜欢喝绿茶. 第{}天去哪里喝茶?", "第{}天去湖心亭茶楼."),
)


def talked(path, id, owner, turns, first=0):  # noqa: A002
    """Append *turns* to a context, four of each talk in turn, a page every three hours."""
    settings = {"system": "Be brief.", "window": 1_200, "never_recalled": 5}
    with Context.open(path, id=id, owner=owner, memory=NullMemory(), **settings) as context:  # the worker tells nobody
        for number in range(first, first + turns):
            asked, answered = TALKS[number // 4 % len(TALKS)]
            answer = {"role": "assistant", "content": answered.format(number)}
            context.append_turn(asked.format(number), answer, at=START + timedelta(hours=3 * number))


def pages_of(talk, turns):
    """The indexes of closed pages of a talk in a context of so many turns."""
    return {number + 1 for number in range(turns - 1) if number // 4 % len(TALKS) == talk}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store of three contexts and two owners, whose memories were told nothing yet."""
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
def store(flushed, tmp_path):
    """A copy of the store whose memories were told everything."""
    return shutil.copy(flushed, tmp_path / "agents.db")


@pytest.fixture
def told(run):
    """Runs a command with --json and returns what it printed."""

    def ran(*arguments):
        result = run(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return ran


def used(path, query="Mel plays the violin", times=11):
    """Search so often that what is found is warm, and let upkeep see it."""
    with closing(SQLiteStorage(path)) as storage, closing(TieredMemory(storage, owner="ada")) as memory:
        for _ in range(times):
            memory.search(query, k=10)
        memory.upkeep()


# inspect --memory


def test_inspect_memory_when_nothing_was_remembered(run, untold):
    """It says so, and how many pages wait; looking makes nothing."""
    before = untold.read_bytes()

    result = run("inspect", untold, "--memory", "--owner", "ada")

    assert result.exit_code == 0
    assert result.stdout.startswith("ada: nothing was remembered yet: 68 pages wait")
    assert result.stdout.count("\n") == 1
    assert untold.read_bytes() == before
    assert {each.name for each in untold.parent.iterdir()} <= {f"agents.db{end}" for end in ("", "-wal", "-shm")}


def test_inspect_memory_when_it_was_told(run, told, store):
    """Every tier is shown: each page is in one, the heat is that of `heat`, the hottest episode stands first."""
    used(store)
    before = store.read_bytes()

    seen = told("inspect", store, "--memory", "--owner", "ada")

    tiers = seen["counts"]
    assert tiers["observed"] + tiers["short"] + tiers["mid"] + tiers["evicted"] == 68
    assert [len(seen[name]) for name in ("queue", "episodes", "chains")] == [
        tiers["short"],
        tiers["episodes"],
        tiers["chains"],
    ]
    assert min(tiers["short"], tiers["mid"], tiers["user_facts"], tiers["events"], tiers["days"]) > 0
    for each in seen["episodes"]:
        expected = heat(PAPER, each["visits"], each["length"], each["last_visit"], seen["at"])
        assert each["heat"] == pytest.approx(expected)
        assert len(each["pages"]) == each["length"]
    heats = [each["heat"] for each in seen["episodes"]]
    assert heats == sorted(heats, reverse=True)
    assert heats[0] > heats[-1]
    assert sum(each["length"] for each in seen["episodes"]) == tiers["mid"]
    assert seen["profile"]["version"] > 0
    assert seen["waiting"] == 0
    text = run("inspect", store, "--memory", "--owner", "ada").stdout
    headings = ["short-term", "episodes, hottest", "chains", "known of the user", "events", "days", "profile", "graph"]
    assert all(f"\n{each}" in text for each in headings)
    assert "█" in text
    assert "My sister Mel plays the violin in Lisbon." in text
    assert store.read_bytes() == before


def test_inspect_memory_when_a_model_did_some_of_it(run, told, tmp_path):
    """What a model was asked, what it cost and what of it was rejected stands at the end, by step."""
    path = tmp_path / "modelled.db"
    with Context.open(path, id="alice", window=8_000, chat=ScriptedChat(lambda asked: "no JSON")) as context:
        context.append_turn("I live in Oslo.", {"role": "assistant", "content": "Noted."})
        context.append_turn("And now?")
        context.flush()

    seen = told("inspect", path, "--memory")
    text = run("inspect", path, "--memory").stdout

    assert seen["work"]["spent"]["page"] | {"prompt": 0, "completion": 0} == {
        "calls": 3, "prompt": 0, "completion": 0, "failed": 0, "rejected": 3, "cached": 0
    }  # fmt: skip
    assert "a model's work; jobs: 1 wait" in text
    assert "page" in text.partition("a model's work")[2]


def test_inspect_memory_when_there_are_several_owners(run, told, store):
    """They are listed, each with how much there is; one that is not there is an error that names them."""
    owners = told("inspect", store, "--memory")["owners"]

    result = run("inspect", store, "--memory")
    unknown = run("inspect", store, "--memory", "--owner", "eve")

    assert [(each["owner"], each["counts"]["observed"] > 0) for each in owners] == [("ada", True), ("bob", True)]
    assert all(each in result.stdout for each in ("ada", "bob", "68"))
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "--owner: agents.db has nothing of 'eve'; it has 'ada', 'bob'" in unknown.stderr
    assert told("inspect", store, "--memory", "--context", "alice-work")["owner"] == "ada"


def test_inspect_memory_when_a_concept_is_named(run, told, store):
    """The concepts around it are shown with their relations, itself first; one that is not there is a clear line."""
    used(store)

    found = told("inspect", store, "--memory", "--owner", "ada", "--concept", "mel")["concepts"]

    assert (found[0]["name"], found[0]["activation"]) == ("Mel", 1.0)
    assert "Mel — play → violin" in found[0]["relations"]
    assert "violin" in {each["name"] for each in found}
    assert ["alice", 5] in found[0]["pages"]
    assert "Mel — play → violin" in run("inspect", store, "--memory", "--owner", "ada", "--concept", "Mel").stdout
    none = run("inspect", store, "--memory", "--owner", "ada", "--concept", "Zanzibar")
    assert none.exit_code == 0
    assert "has no concept 'Zanzibar'" in none.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--owner", "ada"], "--owner: belongs to the memory"),
        (["--concept", "Mel"], "--concept: belongs to the memory"),
        (["--memory", "--pages"], "--pages: lists the pages of a context"),
        (["--memory", "--concept", "Mel"], "--owner: name one"),
        (["--memory", "--owner", "ada", "--context", "alice"], "--owner: name one of"),
    ],
)
def test_inspect_memory_when_options_do_not_fit(run, store, arguments, said):
    """Options that make no sense together end with 2 and one line."""
    result = run("inspect", store, *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_overview_when_pages_were_erased(store):
    """A chain tells the pages that are left, in order, and a concept that no page tells any more is gone."""
    used(store)
    with closing(SQLiteStorage(store)) as storage, closing(TieredMemory(storage, owner="ada")) as memory:
        chain = max(overview(memory).chains, key=lambda each: len(each.pages))
        context, gone = chain.pages[1]

        with Context.open(storage, id=context) as opened:
            opened.erase(gone)

        left = next(each for each in overview(memory).chains if each.id == chain.id)
        assert left.pages == (chain.pages[0], *chain.pages[2:])
        assert all((context, gone) not in each.pages for each in overview(memory).episodes)
        assert all((context, gone) not in each.pages for each in concept(memory, "Mel"))


def test_waiting_when_pages_are_shared_undone_or_open(untold):
    """A page that a fork shares is waited for once, one that was undone until it is forgotten, the open one never."""
    with (
        closing(SQLiteStorage(untold)) as storage,
        closing(TieredMemory(storage, owner="ada")) as memory,
        Context.open(storage, id="alice", memory=memory) as context,
    ):
        fork = context.fork("alice-2", at=20)
        assert (waiting(memory, "alice"), waiting(memory, "alice-2")) == (49, 0)
        context.append_turn("Well?", {"role": "assistant", "content": "Well."})
        context.flush()
        assert waiting(memory, "alice") == 0
        for question in ("Something else?", "What?"):
            fork.append_turn(question, {"role": "assistant", "content": "That."})
        fork.close()
        context.append_turn("And now?", {"role": "assistant", "content": "Now."})
        assert (waiting(memory, "alice"), waiting(memory, "alice-2")) == (1, 1)
        context.append_turn("Later?", {"role": "assistant", "content": "No."})
        context.flush()
        context.undo()
        context.undo()

        assert waiting(memory, "alice") == 1
        context.flush()
        assert waiting(memory, "alice") == 0


# search


def test_search_when_pages_are_found(run, told, store):
    """A page says its context, number, day, tier and score, and its text; what is known is told as well."""
    before = store.read_bytes()

    found = told("search", store, "When is the violin concert 29?", "--owner", "ada", "-k", "3")

    best = found["pages"][0]
    assert (best["context"], best["index"], len(found["pages"])) == ("alice", 30, 3)
    assert "concert 29" in best["text"].lower()
    text = run("search", store, "When is the violin concert 29?", "--owner", "ada", "-k", "3").stdout
    score = f"{best['score']:.2f}"
    assert text.startswith("1. alice #30 entry ")
    assert all(each in text.splitlines()[0] for each in ("turn 29", "2026-03-04"))
    assert f"· {score}" in " ".join(text.split())
    assert "not searchable" not in text
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    ("query", "text", "words"),
    [
        ("playing violins", "She plays the violin.", ["plays", "violin"]),
        ("flight TAP-12", "Flight TAP12, or flight tap-12?", ["Flight", "TAP12", "flight", "tap-12"]),
        ("绿茶", "我喜欢喝绿茶.", ["绿茶"]),
        ("the of", "nothing of the kind", []),
    ],
)
def test_marked_when_words_stand_in_another_form(query, text, words):
    """The words of the query are marked in whatever form they stand there, and no others."""
    shown = marked(text, query)

    assert shown.plain == text
    assert [text[span.start : span.end] for span in shown.spans if span.style == MARKED] == words


def test_search_when_a_context_asks(run, told, store):
    """A context is not told of what stands in its window, and sees what is behind it; its owner sees all."""
    window = {
        each["index"] for each in told("inspect", store, "-c", "alice", "--pages")["pages"] if each["where"] == "active"
    }
    query = "violin concert in Lisbon"

    asked = told("search", store, query, "-c", "alice", "-k", "40")["pages"]
    everything = told("search", store, query, "--owner", "ada", "-k", "40")["pages"]

    assert window
    assert not any(each["index"] in window for each in asked if each["context"] == "alice")
    assert any(each["index"] in window for each in everything if each["context"] == "alice")
    assert "what stands in the window of alice" in run("search", store, query, "-c", "alice").stdout


def test_search_when_it_counts(told, store):
    """A search by hand warms nothing; with --count it does."""

    def found():
        return [each["access_count"] for each in told("inspect", store, "--memory", "--owner", "ada")["episodes"]]

    query = ("search", store, "Mel violin concert", "--owner", "ada", "-k", 40)
    told(*query)
    told(*query[:3], "-c", "alice")
    assert sum(found()) == 0

    told(*query, "--count")

    assert sum(found()) > 0


def test_search_when_days_are_given(told, store):
    """Only pages of these days are found, the last one with all its hours."""
    days = ("--since", "2026-03-02", "--until", "2026-03-02")

    found = {each["index"] for each in told("search", store, "Lisbon", "--owner", "ada", "-k", 20, *days)["pages"]}

    day = {*range(9, 17)}
    assert (pages_of(0, 50) | pages_of(1, 50)) & day <= found <= day


def test_search_when_the_store_is_a_folder(run, told, untold, tmp_path):
    """A folder of plain files is searched like a file, and says what waits before it is consolidated."""
    path = tmp_path / "agents"
    with closing(SQLiteStorage(untold)) as source, closing(FilesystemStorage(path)) as target:
        imported(target, exported(source, "alice"))

    before = run("search", path, "绿茶")
    run("consolidate", path)

    assert "nothing was found for '绿茶'" in before.stdout
    assert "49 pages are not searchable" in before.stdout
    for query, talk in (("绿茶", 2), ("violin", 1)):
        wanted = pages_of(talk, 50)
        assert {each["index"] for each in told("search", path, query, "-k", len(wanted))["pages"]} == wanted


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x"], "--owner: name one: agents.db has 'ada', 'bob'"),
        (["x", "--owner", "eve"], "nothing of 'eve'"),
        (["x", "-c", "carol"], "no context 'carol'"),
        (["x", "-c", "bob", "--owner", "bob"], "name one of --context and --owner"),
        (["  ", "--owner", "ada"], "QUERY: expected what to look for"),
        (["x", "--owner", "ada", "--since", "soon"], "--since: expected a datetime"),
    ],
)
def test_search_when_an_argument_makes_no_sense(run, store, arguments, said):
    """What is not there, or not clear, ends with 2 and one line."""
    result = run("search", store, *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


# consolidate


def test_consolidate_when_pages_wait(run, told, untold):
    """All that waits is told, and moves on; nothing waits then, and no context was changed by it."""
    with closing(SQLiteStorage(untold)) as storage:
        before = [storage.revision(each) for each in ("alice", "alice-work", "bob")]

    result = told("consolidate", untold)

    assert result["well"]
    assert [(each["id"], each["told"], each["waiting"]) for each in result["contexts"]] == [
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
    """Only the context, or the contexts of the owner, that is named is told of."""
    result = told("consolidate", untold, *option)

    assert [each["id"] for each in result["contexts"]] == names
    assert told("search", untold, "violin", "--owner", "ada")["pending"] == (49 if names == ["alice-work"] else 68)


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
    """A context that another writer took is told as that, and is no failure of the rest."""

    class Taken(TieredMemory):
        def observe(self, page):
            raise LeaseLost("at revision 9, not 8")

    with closing(SQLiteStorage(untold)) as storage, closing(Taken(storage, owner="ada")) as memory:
        assert _told(storage, "alice", memory) == "somebody else goes on with it: at revision 9, not 8"


def test_consolidate_when_it_is_rebuilt(run, told, store):
    """What was derived is forgotten and made anew from the pages: what was lost of it is found again."""
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
        assert counts(memory).pages == 2
    refused = run("consolidate", store, "--rebuild", "-c", "alice")
    assert refused.exit_code == 2
    assert "--rebuild: makes the whole memory of an owner anew" in refused.stderr


def test_consolidate_when_there_are_no_contexts(run, tmp_path):
    """A store without contexts has nothing that waits; one that is not there is not made."""
    path = tmp_path / "empty.db"
    SQLiteStorage(path).close()

    result, missing = run("consolidate", path), run("consolidate", tmp_path / "none.db")

    assert (result.exit_code, result.stdout) == (0, "there are no contexts: nothing waits\n")
    assert missing.exit_code == 2
    assert not (tmp_path / "none.db").exists()
