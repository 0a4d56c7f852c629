"""memci facts: what a memory knows is listed, learned, corrected and forgotten, also in a memory that is made again."""

import json

import pytest

from memci import Context

PLAYS = "I play the violin."


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "agent.db"
    with Context.open(path, "alice", window=4_000) as context:
        for said in ("Good evening.", "The vet was here.", "Go on."):
            context.append_turn(said, {"role": "assistant", "content": "Yes."})
    return path


def test_a_fact_is_learned_corrected_and_forgotten(run, store):
    def facts(*options):
        done = run("facts", store, "--json", *options)
        assert done.exit_code == 0, done.output
        return {each["text"]: each["id"] for each in json.loads(done.stdout)["facts"]}

    assert facts() == {}
    learned = facts("--learn", PLAYS, "--page", "2", "--context", "alice")
    assert [*learned] == [PLAYS]
    assert [*facts("--correct", learned[PLAYS], "--to", "I play the viola.")] == ["I play the viola."]
    assert run("consolidate", store, "--rebuild").exit_code == 0
    again = facts()
    assert [*again] == ["I play the viola."]
    assert "I play the viola." in run("facts", store).stdout
    assert facts("--forget", again["I play the viola."]) == {}
    assert run("consolidate", store, "--rebuild").exit_code == 0
    assert facts() == {}


@pytest.mark.parametrize(
    "options", [["--learn", PLAYS], ["--correct", "7"], ["--forget", "7"], ["--correct", "7", "--to", PLAYS]]
)
def test_what_is_incomplete_or_unknown_is_a_usage_error(run, store, options):
    assert run("facts", store, *options).exit_code == 2
