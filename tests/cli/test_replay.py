"""`memci replay`: what is printed, in every way, and how it ends."""

import json

import pytest

from memci import Context

KEYS = {
    "file",
    "context",
    "store",
    "turns",
    "messages",
    "model_calls",
    "said_tokens",
    "largest_request",
    "system_messages_left_out",
    "report",
    "seconds",
    "pages",
    "rendering",
}


def test_replay_when_there_is_no_terminal(run, trip, monkeypatch):
    """Without a terminal there are plain lines and a table, no control codes, nothing wider than 80 columns."""
    monkeypatch.delenv("COLUMNS", raising=False)
    result = run("replay", trip, "--window", 2000)

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "message  48 of 240" in result.stdout
    assert "trip.json in a window of 2,000 tokens" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stderr == ""


def test_replay_when_json_is_wanted(run, trip):
    """--json prints one JSON object with the same keys each time, and every figure of it fits the others."""
    result = run("replay", trip, "--window", 2000, "--json")

    value = json.loads(result.stdout)
    assert set(value) == KEYS
    assert (value["turns"], value["messages"], value["model_calls"]) == (60, 240, 120)
    assert value["largest_request"] <= value["report"]["budget"] == 1750
    assert value["said_tokens"] > value["report"]["total"]
    assert value["report"]["compactions"] > 0
    assert value["pages"] is value["rendering"] is value["store"] is None


def test_replay_when_the_pages_are_wanted(run, trip):
    """--pages lists every page, with its title: its line in the contents, or its first message."""
    result = run("replay", trip, "--window", 2000, "--json", "--pages")

    pages = json.loads(result.stdout)["pages"]
    assert [page["index"] for page in pages] == list(range(1, 61))
    assert {page["where"] for page in pages} > {"open", "active", "archived"}
    assert all(page["title"] for page in pages)
    told = run("replay", trip, "--window", 2000, "--pages").stdout
    assert "#60" in told


def test_replay_when_it_stops_at_a_turn(run, trip):
    """--at prints what the model would see after that turn: readable, or as JSON."""
    result = run("replay", trip, "--at", 2, "--json")

    value = json.loads(result.stdout)
    assert [message["role"] for message in value["rendering"]] == [
        "system",
        *["user", "assistant", "tool", "assistant"] * 2,
    ]
    assert value["turns"] == 2
    told = run("replay", trip, "--at", 2).stdout
    assert "── 7 tool c1" in told
    assert 'c1: trains({"number": 1})' in told
    assert "每小时一班" in told


def test_replay_when_a_text_would_steer_the_terminal(run, tmp_path):
    """What a conversation says is printed as text: its escapes steer no terminal."""
    path = tmp_path / "steer.json"
    path.write_text(json.dumps([{"role": "user", "content": "a\x1b[2Jb [bold]c"}]))

    result = run("replay", path, "--at", 1)

    assert "a\\x1b[2Jb [bold]c" in result.stdout


def test_replay_when_answers_were_not_recorded(run, tmp_path):
    """Each turn without an answer counts as one call of the model."""
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps({"messages": [{"role": "user", "content": f"Q{i}"}]}) + "\n" for i in range(5)))

    result = run("replay", path, "--json")

    value = json.loads(result.stdout)
    assert (value["turns"], value["model_calls"]) == (5, 5)


def test_replay_when_results_are_missing(run, tmp_path):
    """A recorded call without its result does not stop the replay."""
    call = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    path = tmp_path / "cut.json"
    path.write_text(
        json.dumps([{"role": "user", "content": "Go."}, said, said, {"role": "assistant", "content": "?"}, said])
    )

    assert run("replay", path).exit_code == 0


def test_replay_when_the_store_is_kept(run, trip, tmp_path):
    """--store keeps the context under the file's name; a second replay into it is refused and changes nothing."""
    path = tmp_path / "[red]kept.db"

    result = run("replay", trip, "--store", path)

    assert result.exit_code == 0
    assert f"memci inspect {path}" in result.stdout
    with Context.open(path, id="trip") as context:
        assert sum(1 for _ in context.messages()) == 240
    again = run("replay", trip, "--store", path)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "holds a context 'trip' already" in again.stderr
    with Context.open(path, id="trip") as context:
        assert sum(1 for _ in context.messages()) == 240


def test_replay_when_a_preset_is_chosen(run, trip):
    """A preset reaches the context: the verbatim one archives less at once."""
    verbatim, balanced = (
        json.loads(run("replay", trip, "--window", 2000, "--json", "--preset", each).stdout)
        for each in ("verbatim", "balanced")
    )

    assert balanced["report"]["compactions"] < verbatim["report"]["compactions"]


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--window", 300], 1, "can't be reduced, the budget is"),
        (["--window", 10], 2, "memci: window: "),
        (["--reply", 9000], 2, "memci: reply: "),
        (["--preset", "luxury"], 2, "'balanced', 'economy', 'verbatim' or 'original', got 'luxury'"),
        (["--at", 61], 2, "has the turns 1 to 60, not 61"),
        (["--at", 0], 2, "has the turns 1 to 60, not 0"),
        (["--store", "/"], 2, "memci: "),
    ],
)
def test_replay_when_an_option_makes_no_sense(run, trip, options, code, told):
    """What does not fit ends with 1, what makes no sense with 2: one line on stderr, nothing on stdout."""
    result = run("replay", trip, "--json", *options)

    assert (result.exit_code, result.stdout) == (code, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no such file"),
        (b"", "is empty"),
        (b"\x80\x81", "is not text in UTF-8"),
        (
            b'[{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": "b"}]',
            "[1]: no tool call",
        ),
        (b'[{"role": "user", "content": "a", "weight": NaN}]', "NaN is not JSON"),
        (b"\x1f\x8b\x08", "is compressed"),
    ],
)
def test_replay_when_the_file_is_broken(run, tmp_path, content, told):
    """A file that can't be played ends with 2 and one line that says where; no traceback."""
    path = tmp_path / "broken.json"
    if content is not None:
        path.write_bytes(content)

    result = run("replay", path, "--no-live")

    assert result.exit_code == 2
    assert result.stderr.startswith("memci: ")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
