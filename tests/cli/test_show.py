"""memci show: a page, each message as it was appended; and the words that count."""

import json

import pytest

from memci.cli.printer import many


def test_show_when_the_page_left_the_window(run, told, store):
    """A page is named with its title and printed whole, wherever it is."""
    shown = run("show", store, "--context", "alice", "--page", 3)

    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("alice #3, ")
    assert "Remember marker-2, please." in shown.stdout
    value = told("show", store, "--context", "alice", "-p", 3)
    assert [each["content"] for each in value["messages"]] == ["Remember marker-2, please.", "I will. " * 8]
    assert value["page"]["title"]


def test_show_when_there_is_no_such_page(run, store):
    """The error names the pages that there are."""
    result = run("show", store, "--context", "bob", "--page", 9)

    assert result.exit_code == 2
    assert "9" in result.stderr


def test_show_when_a_file_is_written(run, told, store, tmp_path):
    """It is a new file for its owner alone, of one context, chosen by its owner as well."""
    target = tmp_path / "alice.html"

    figures = told("show", store, "--owner", "ada", "-o", target)

    assert figures == {
        "file": str(target),
        "context": "alice",
        "pages": 60,
        "left_out": 0,
        "bytes": len(target.read_bytes()),
    }
    assert target.stat().st_mode & 0o777 == 0o600
    assert "Remember marker-2, please." in target.read_text()
    again = run("show", store, "--context", "bob", "-o", target)
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)


def test_show_when_it_is_not_clear_what(run, store):
    """It takes a page or a file, of a context that the owner has."""
    for options in (["-c", "bob"], ["-c", "bob", "-p", 1, "-o", "x"], ["-c", "alice", "--owner", "bob", "-p", 1]):
        assert run("show", store, *options).exit_code == 2


def test_pages_have_titles_in_a_list(told, store):
    """Those that have no line in the contents are named by their first message."""
    pages = told("inspect", store, "--context", "alice", "--pages")["pages"]

    assert all(page["title"] for page in pages)


def test_replay_when_the_file_is_an_export(run, told, store, tmp_path):
    """Replay reads what import reads: the messages of an export are those of the chat."""
    for form in ("--all", "--chat"):
        target = tmp_path / f"{form}.jsonl"
        context = [] if form == "--all" else ["--context", "alice"]
        assert run("export", store, form, *context, "-o", target).exit_code == 0

    whole, chat = (told("replay", tmp_path / f"{form}.jsonl", "--at", 60) for form in ("--all", "--chat"))

    assert json.dumps(whole["rendering"]).replace("--all", "--chat") == json.dumps(chat["rendering"])


@pytest.mark.parametrize(("count", "text"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1_234, "1,234 pages")])
def test_a_number_with_its_noun(count, text):
    """One of them is not several."""
    assert many(count, "page") == text
