"""memci erase --before: pages whose newest message is older than a date are erased."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from memci import Context

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def dated(tmp_path):
    """Two owners' contexts of 10 pages, a day each, and one without times."""
    path = tmp_path / "dated.db"
    for owner in ("ada", "bob"):
        with Context.open(path, owner, owner=owner, window=4_000) as context:
            for day in range(10):
                context.append_turn(
                    f"canary-{owner}-{day}", {"role": "assistant", "content": "Yes."}, at=START + timedelta(days=day)
                )
    with Context.open(path, "untimed", owner="ada", window=4_000, clock=None) as context:
        context.append_turn("canary-untimed")
    return path


def words(path):
    """The canaries that are in the bytes of the store's files."""
    content = b"".join(each.read_bytes() for each in path.parent.glob("dated.db*"))
    names = [f"canary-{owner}-{day}" for owner in ("ada", "bob") for day in range(10)] + ["canary-untimed"]
    return [name for name in names if name.encode() in content]


@pytest.mark.parametrize("owner", [None, "ada"])
def test_pages_before_a_date_are_erased_and_no_others(run, dated, owner):
    """A page of the date itself stays; so does what has no time, which is named; no byte of the others is left."""
    before = words(dated)
    whose = () if owner is None else ("--owner", owner)

    result = run("erase", dated, "--before", "2026-03-05", *whose, "--yes", "--json")

    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    gone = [f"canary-{each}-{day}" for each in ("ada", "bob") if owner in {None, each} for day in range(4)]
    assert words(dated) == [word for word in before if word not in gone]
    assert (said["pages"], said["entries"]) == (len(gone), 2 * len(gone))
    assert said["untimed"] == {"untimed": [1]}
    assert run("verify", dated).exit_code == 0
    assert json.loads(run("erase", dated, "--before", "2026-03-05", "--yes", "--json").stdout)["pages"] == 8 - len(gone)


def test_it_asks_and_names_what_it_would_erase(run, dated):
    """Without --yes nothing is erased before an answer."""
    result = run("erase", dated, "--before", "2026-03-02", input="n\n")

    assert result.exit_code == 1
    assert "ada of ada: 1 page: #1" in result.output
    assert "kept, since no message has a time: untimed: #1" in result.output
    assert len(words(dated)) == 21
    assert run("erase", dated, "--before", "soon", "--yes").exit_code == 2


def test_pages_that_a_fork_shares_are_erased_once(run, dated):
    """They go with the first context that shows them, and the fork is no error."""
    with Context.open(dated, "ada") as context, context.fork("ada-2") as fork:
        fork.append_turn("canary-fork", at=START + timedelta(days=20))

    result = run("erase", dated, "--before", "2026-03-05", "--yes", "--json")

    assert result.exit_code == 0, result.output
    assert not [word for word in words(dated) if word.endswith(("-0", "-1", "-2", "-3"))]
    assert json.loads(result.stdout)["pages"] == 12
    assert run("verify", dated).exit_code == 0


def test_a_message_without_a_time_is_as_old_as_the_next_one_with_one(run, tmp_path):
    """Of an old list that is stored at once only the last interaction has a time; the others were said before."""
    path = tmp_path / "listed.db"
    said = [
        each
        for number in range(3)
        for each in ({"role": "user", "content": f"q{number}"}, {"role": "assistant", "content": "Yes."})
    ]
    with Context.open(path, "listed", owner="ada", window=4_000, clock=lambda: START) as context:
        context.sync(said)
        context.append_turn("later", at=START + timedelta(days=9))

    result = run("erase", path, "--before", "2026-03-08", "--yes", "--json")

    assert (json.loads(result.stdout)["pages"], json.loads(result.stdout)["untimed"]) == (3, {})


def test_a_receipt_says_no_more_than_was_done(run, dated):
    """Nothing is erased of an owner that there is not, or twice; what was erased does not count as being there."""
    unknown = run("erase", dated, "--before", "2026-03-05", "--owner", "carol", "--yes")
    assert (unknown.exit_code, "no owner 'carol'" in unknown.stderr) == (2, True)
    run("erase", dated, "--before", "2026-03-05", "--yes")

    for again in (("--before", "2026-03-05", "--yes"), ("--scrub",)):
        told = " ".join(run("erase", dated, *again).stdout.split())
        assert "nothing was there to erase" in told
        assert "no byte of what was erased before is left" in told
    assert "ada: 20 messages, 8 of them erased, every other one is there" in run("verify", dated).stdout
