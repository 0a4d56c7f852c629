"""memci instructions: the user's lasting instructions are listed, and dropped for good."""

import json

from memci import Context

FRENCH = "Always answer in French."


def test_instructions_are_listed_and_dropped(run, tmp_path):
    """What was dropped is not listed again; an unknown id is a usage error, and changes nothing."""
    store = tmp_path / "agent.db"
    with Context.open(store, "alice", window=4_000) as context:
        for said in (FRENCH, "Never book before 11.", "Go on."):
            context.append_turn(said, {"role": "assistant", "content": "Yes."})

    listed = json.loads(run("instructions", store, "--json").stdout)["instructions"]
    assert [(each["page"], each["text"]) for each in listed] == [(1, FRENCH), (2, "Never book before 11.")]
    assert run("instructions", store, "--drop", "1-00000000").exit_code == 2

    dropped = run("instructions", store, "--drop", listed[0]["id"])

    assert dropped.exit_code == 0
    assert FRENCH not in run("instructions", store).stdout
    assert "Never book before 11." in run("instructions", store).stdout
