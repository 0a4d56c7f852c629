"""`memci inspect --memory`, `memci search`: what is remembered is shown and found."""

import shutil
from contextlib import closing

import pytest
from memory_kit import pages_of, used

from memci import Context, SQLiteStorage
from memci.cli.memory.search import MARKED, mark_words
from memci.history.export import export_lines
from memci.history.import_ import import_lines
from memci.memory import TieredMemory
from memci.memory.inspect import overview, waiting
from memci.memory.tiers.heat import heat
from memci.storage import FilesystemStorage
from memci.testing.llm import ScriptedChat


@pytest.fixture
def store(flushed, tmp_path):
    """A copy of the store whose memories were told everything."""
    return shutil.copy(flushed, tmp_path / "agents.db")


# inspect --memory


def test_inspect_memory_when_it_is_empty(run, untold):
    """It says so, and how many pages wait; looking makes nothing."""
    before = untold.read_bytes()

    result = run("inspect", untold, "--memory", "--owner", "ada")

    assert result.exit_code == 0
    assert result.stdout.startswith("ada: the memory is empty: 68 pages wait")
    assert result.stdout.count("\n") == 1
    assert untold.read_bytes() == before
    assert {each.name for each in untold.parent.iterdir()} <= {f"agents.db{end}" for end in ("", "-wal", "-shm")}


def test_inspect_memory_when_it_was_told(run, told, store):
    """Every tier is shown: each page is in one, the heat is that of `heat`, the hottest episode stands first."""
    used(store)
    before = store.read_bytes()

    seen = told("inspect", store, "--memory", "--owner", "ada")

    tiers = seen["counts"]
    assert tiers["observed"] + tiers["short"] + tiers["mid"] + tiers["evicted"] == 70  # two are open
    assert [len(seen[name]) for name in ("queue", "episodes", "chains")] == [
        tiers["short"],
        tiers["episodes"],
        tiers["chains"],
    ]
    assert min(tiers["short"], tiers["mid"], tiers["user_facts"], tiers["days"]) > 0
    for each in seen["episodes"]:
        expected = heat(each["visits"], each["length"], each["last_visit"], seen["at"])
        assert each["heat"] == pytest.approx(expected)
        assert len(each["pages"]) == each["length"]
    heats = [each["heat"] for each in seen["episodes"]]
    assert heats == sorted(heats, reverse=True)
    assert heats[0] > heats[-1]
    assert sum(each["length"] for each in seen["episodes"]) == tiers["mid"]
    assert seen["waiting"] == 0
    text = run("inspect", store, "--memory", "--owner", "ada").stdout
    headings = ["short-term", "episodes, hottest", "chains", "known of the user", "days"]
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

    assert [(each["owner"], each["counts"]["short"] > 0) for each in owners] == [("ada", True), ("bob", True)]
    assert all(each in result.stdout for each in ("ada", "bob", "7"))
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "--owner: agents.db has no owner 'eve'; it has 'ada', 'bob'" in unknown.stderr
    assert told("inspect", store, "--memory", "--context", "alice-work")["owner"] == "ada"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--audit", "--owner", "ada"], "--audit: shows the log of the whole store"),
        (["--memory", "--pages"], "--pages: lists the pages of a context"),
        (["--memory", "--owner", "bob", "--context", "alice"], "--context: 'bob' has no context 'alice'; 'bob' has"),
    ],
)
def test_inspect_memory_when_options_do_not_fit(run, store, arguments, said):
    """Options that make no sense together end with 2 and one line."""
    result = run("inspect", store, *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_overview_when_pages_were_erased(store):
    """A chain tells the pages that are left, in order."""
    used(store)
    with closing(SQLiteStorage(store)) as storage, closing(TieredMemory(storage, owner="ada")) as memory:
        chain = max(overview(memory).chains, key=lambda each: len(each.pages))
        context, gone = chain.pages[1]

        with Context.open(storage, id=context) as opened:
            opened.erase(gone)

        left = next(each for each in overview(memory).chains if each.id == chain.id)
        assert left.pages == (chain.pages[0], *chain.pages[2:])
        assert all((context, gone) not in each.pages for each in overview(memory).episodes)


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
        assert (waiting(memory, "alice"), waiting(memory, "alice-2")) == (1, 0)
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
    assert all(each in text.splitlines()[0] for each in ("turn 29", "Wed 4 Mar 2026"))
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
    shown = mark_words(text, query)

    assert shown.plain == text
    assert [text[span.start : span.end] for span in shown.spans if span.style == MARKED] == words


def test_search_when_a_context_asks(run, told, store):
    """A context does not find what is in its window; its owner finds everything."""
    window = {
        each["index"] for each in told("inspect", store, "-c", "alice", "--pages")["pages"] if each["where"] == "active"
    }
    query = "violin concert in Lisbon"

    asked = told("search", store, query, "-c", "alice", "-k", "40")["pages"]
    everything = told("search", store, query, "--owner", "ada", "-k", "40")["pages"]

    assert window
    assert not any(each["index"] in window for each in asked if each["context"] == "alice")
    assert any(each["index"] in window for each in everything if each["context"] == "alice")
    assert "pages in the window of alice were left out" in run("search", store, query, "-c", "alice").stdout


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
    """A folder is searched like a file, and pages that wait are found before it is consolidated."""
    path = tmp_path / "agents"
    with closing(SQLiteStorage(untold)) as source, closing(FilesystemStorage(path)) as target:
        import_lines(target, export_lines(source, "alice"))

    before = run("search", path, "绿茶")
    run("consolidate", path)

    assert "绿茶" in before.stdout and "nothing was found" not in before.stdout
    assert "not searchable" not in before.stdout
    for query, talk in (("绿茶", 2), ("violin", 1)):
        wanted = pages_of(talk, 50)
        found = told("search", path, query, "-k", 2 * len(wanted))["pages"]
        assert {each["index"] for each in found if query in each["text"]} == wanted


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x"], "--owner: name one: agents.db has 'ada', 'bob'"),
        (["x", "--owner", "eve"], "no owner 'eve'"),
        (["x", "-c", "carol"], "no context 'carol'"),
        (["x", "-c", "alice", "--owner", "bob"], "'bob' has no context 'alice'; 'bob' has 'bob'"),
        (["  ", "--owner", "ada"], "QUERY: expected what to look for"),
        (["x", "--owner", "ada", "--since", "soon"], "since: expected a datetime"),
    ],
)
def test_search_when_an_argument_makes_no_sense(run, store, arguments, said):
    """What is not there, or not clear, ends with 2 and one line."""
    result = run("search", store, *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
