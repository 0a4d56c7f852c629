"""Commands on a context whose id several owners have: they ask whose is meant, and take none of them silently."""

import json

import pytest

from memci import Context


@pytest.fixture
def trips(tmp_path):
    """A store in which ada and bob each have a context "trip"."""
    path = tmp_path / "trips.db"
    for owner in ("ada", "bob"):
        with Context.open(path, "trip", owner=owner, window=4_000, new=True) as context:
            context.append_turn(f"I am {owner}, and I go to Oslo.", {"role": "assistant", "content": "Fine."})
            context.archive(keep=0)
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["show", "TRIPS", "-p", 1],
        ["inspect", "TRIPS"],
        ["inspect", "TRIPS", "--memory"],
        ["search", "TRIPS", "Oslo"],
        ["consolidate", "TRIPS"],
        ["export", "TRIPS"],
        ["files", "TRIPS", "FOLDER"],
        ["erase", "TRIPS", "--page", 1, "--yes"],
        ["erase", "TRIPS", "--yes"],
    ],
)
def test_command_when_several_owners_have_the_id(run, trips, tmp_path, command):
    """Without an owner it ends with 2, names them and changes nothing; with one it is about that one's context."""
    before = trips.read_bytes()
    given = [{"TRIPS": trips, "FOLDER": tmp_path / "pages"}.get(each, each) for each in command] + ["-c", "trip"]

    asked = run(*given)
    unknown = run(*given, "--owner", "eve")
    same = trips.read_bytes() == before
    named = run(*given, "--owner", "bob")

    assert (asked.exit_code, asked.stdout, same) == (2, "", True)
    assert "--owner: several owners have a context 'trip': name one of 'ada', 'bob'" in asked.stderr
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert named.exit_code == 0, named.stderr
    written = "".join(each.read_text() for each in (tmp_path / "pages").rglob("*.md"))
    assert "I am ada" not in named.stdout + written
    with Context.view(trips, "trip", owner="ada") as context:
        assert context.recall_page(1)[0]["content"] == "I am ada, and I go to Oslo."


def test_chat_when_several_owners_have_the_id(run, trips):
    """It goes on in the context of the one who is named, and makes one for somebody new."""
    options = ["--id", "trip", "--model", "gpt-4o", "--base-url", "http://127.0.0.1:9/v1", "--no-memory-model"]

    asked = run("chat", trips, *options, input="")
    named = run("chat", trips, *options, "--owner", "bob", input="")
    fresh = run("chat", trips, *options, "--owner", "eve", input="")

    assert (asked.exit_code, "--owner: several owners have" in asked.stderr) == (2, True)
    assert (named.exit_code, fresh.exit_code) == (0, 0), named.stderr + fresh.stderr
    contexts = json.loads(run("inspect", trips, "--json").stdout)["contexts"]
    assert [(each["id"], each["owner"], each["messages"]) for each in contexts] == [
        ("trip", "ada", 2),
        ("trip∷bob", "bob", 2),
        ("trip∷eve", "eve", 0),
    ]


def test_all_contexts_of_an_owner(run, trips, tmp_path):
    """Lists and exports take an owner without an id."""
    listed = json.loads(run("inspect", trips, "--owner", "bob", "--json").stdout)["contexts"]
    target = tmp_path / "bob.jsonl"
    done = run("export", trips, "--all", "--owner", "bob", "-o", target, "--json")

    for command in (["inspect"], ["export", "--all"], ["erase", "--yes"]):
        unknown = run(command[0], trips, *command[1:], "--owner", "eve")
        assert (unknown.exit_code, unknown.stdout) == (2, ""), "who has none is told apart from a store that is empty"
        assert "no owner 'eve'; it has 'ada', 'bob'" in unknown.stderr
    assert [each["id"] for each in listed] == ["trip∷bob"]
    assert json.loads(done.stdout)["contexts"] == ["trip∷bob"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["show", "TRIPS", "ada"], "'ada' is one argument too many: name it behind --context or --owner"),
        (["verify", "TRIPS", "ada"], "'ada' is one argument too many\n"),
        (["show", "TRIPS", "-p", 1, "-c", "ada"], "--context: 'ada' is an owner, of 'trip': name one of them"),
        (["show", "TRIPS", "-p", 1, "--owner", "trip"], "--owner: 'trip' is a context, of 'ada': name it by --context"),
        (["facts", "TRIPS", "--owner", "bobb"], "did you mean 'bob'?"),
        (["files", "TRIPS", "FOLDER", "--owner", "eve"], "has no owner 'eve'"),
        (["files", "TRIPS", "TRIPS"], "is a file: name a new folder"),
        (["copy", "TRIPS"], "Missing argument 'NEW'"),
        (["chat", "TRIPS", "--model", "gpt-5"], "--model: say where the model is by OPENAI_API_KEY"),
        (["serve", "TEXT", "--upstream", "http://127.0.0.1:1"], "is not a SQLite file"),
        (["serve", "TRIPS", "--upstream", "http://127.0.0.1:1", "--preset", "cheap"], "preset: "),
    ],
)
def test_a_mistaken_command_says_what_was_meant(run, trips, tmp_path, monkeypatch, command, said):
    """It ends with 2, before anything is served or written."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / "text.txt").write_text("no store\n" * 200)
    places = {"TRIPS": trips, "FOLDER": tmp_path / "pages", "TEXT": tmp_path / "text.txt"}

    mistaken = run(*(places.get(each, each) for each in command))

    assert (mistaken.exit_code, mistaken.stdout) == (2, "")
    assert said in mistaken.stderr
    assert not (tmp_path / "pages").exists()
