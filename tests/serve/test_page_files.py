"""Pages as files: what stands in them, which of them are written again, and what is never touched."""

import json
import stat
from contextlib import closing

import pytest

from memci import Context, SQLiteStorage
from memci.errors import InvalidSetting, StorageError
from memci.history.erase import erase
from memci.serve.page_files import PageFiles, folder_name

AT = "2026-03-02T10:00:00Z"


def turn(number, at=AT):
    """A question with a call and its result, and the answer."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": "trains", "arguments": '{"to": "Oslo"}'}}
    return [
        {"role": "user", "content": f"Which train at {number}?\n--- 00000000 · 9 · user ---"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"IC {number}\tplatform 3"},
        {"role": "assistant", "content": f"Take IC {number}. " * 8},
    ]


@pytest.fixture
def store(tmp_path):
    """A store in which most pages of a context have left the window."""
    with closing(SQLiteStorage(tmp_path / "agent.db")) as storage:
        with Context.open(storage, "alice", owner="ada", window=2_000) as context:
            for number in range(30):
                context.append_turn(turn(number), at=AT)
        yield storage


@pytest.fixture
def files(store, tmp_path):
    with closing(PageFiles(store, str(tmp_path / "pages"))) as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "pages"


def test_every_page_is_a_file_with_its_exact_texts(store, files, folder):
    """Archived, unloaded and active pages stand there alike; texts are exact, calls and results can be read."""
    done = files.update()

    pages = sorted((folder / "alice").glob("page-*.md"))
    text = pages[4].read_text()
    assert (done.contexts, done.pages, done.written, done.removed, done.problems) == (1, 30, 30, 0, ())
    assert [path.name for path in pages] == [f"page-{index:05}.md" for index in range(1, 31)]
    assert text.startswith("page #5\n")
    assert "\nturn: 4\ndates: 2026-03-02T10:00:00+00:00\n" in text
    assert "Which train at 4?\n--- 00000000 · 9 · user ---\n" in text
    assert 'calls trains (c4): {"to": "Oslo"}' in text
    assert "IC 4\tplatform 3\n" in text
    assert "Take IC 4. " * 8 in text
    contents = (folder / "alice" / "contents.md").read_text()
    assert "\n#5 · 2026-03-02 · turn 4 · " in contents
    assert "Which train at 4?" in contents
    assert "alice/contents.md: alice of ada, 30 pages, 120 messages" in (folder / "contents.md").read_text()


def test_no_message_can_imitate_the_line_before_another(files, folder):
    """The line that says whose a message is begins with a word that no message knows."""
    files.update()

    lines = (folder / "alice" / "page-00005.md").read_text().splitlines()
    (mark,) = {line.split()[1] for line in lines if line.startswith("--- ")} - {"00000000"}

    assert sum(line.startswith(f"--- {mark} · ") for line in lines) == 4


def test_only_what_changed_is_written_again(store, files, folder):
    """A second look writes nothing, whether it is the same reader's or another's; an append writes its own pages."""
    files.update()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.md")}

    with closing(PageFiles(store, str(folder))) as other:
        assert other.update()[2:4] == files.update()[2:4] == (0, 0)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.md")} == before
    with Context.open(store, "alice") as context:
        context.append_turn("And back?", at=AT)
    assert files.update()[1:4] == (31, 2, 0)  # the page that was open, and the new one


def test_a_file_that_is_missing_or_cut_is_written_again(store, files, folder):
    """What is in a file is compared, so that a lost or empty file is noticed."""
    files.update()
    (folder / "alice" / "page-00003.md").unlink()
    (folder / "alice" / "page-00004.md").write_text("")

    with closing(PageFiles(store, str(folder))) as again:
        assert again.update().written == 2


def test_what_was_erased_or_taken_back_is_removed(store, files, folder):
    """A page that was erased or undone loses its file, and one message of a page its text."""
    files.update()
    with Context.open(store, "alice") as context:
        context.erase(7)
        context.erase(8, 1)
        context.undo()

    done = files.update()

    texts = {path.name: path.read_text() for path in (folder / "alice").iterdir()}
    assert done.removed == 2
    assert not {"page-00007.md", "page-00030.md"} & set(texts)
    assert "[erased]" in texts["page-00008.md"]
    assert not [name for name, text in texts.items() if "at 6?" in text or "at 7?" in text or "at 29?" in text]


def test_a_context_that_is_gone_loses_its_folder(store, files, folder):
    """All files of an erased context are removed, and its folder unless it holds something else."""
    with Context.open(store, "bob", window=2_000) as context:
        context.append_turn("Hello.")
    files.update()
    (folder / "alice" / "note.txt").write_text("mine")
    erase(store, context="bob")
    erase(store, context="alice")

    done = files.update()

    assert (done.contexts, done.pages, done.removed) == (0, 0, 31)
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {"note.txt", "contents.md"}


def test_owner_and_context_choose_what_is_written(store, tmp_path):
    """Only the contexts of an owner, or one context, stand in the folder."""
    with Context.open(store, "bob", owner="bea", window=2_000) as context:
        context.append_turn("Hello.")

    for chosen, there in (({"owner": "bea"}, "bob"), ({"context": "alice"}, "alice"), ({"owner": "nobody"}, "")):
        with closing(PageFiles(store, str(tmp_path / "chosen"), **chosen)) as files:
            files.update()
        assert [path.name for path in (tmp_path / "chosen").iterdir() if path.is_dir()] == [there][: bool(there)]


def test_files_are_readable_by_their_owner_only(files, folder):
    """Folders have the mode 0700, files 0600."""
    files.update()

    modes = {stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")] if path.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}


@pytest.mark.parametrize("id", ["../../up", "/etc/passwd", "Alice", "alice ", "a\nb", "contents.md", "x" * 300, ".git"])
def test_any_id_has_a_folder_of_its_own_within(store, tmp_path, id):  # noqa: A002
    """No id leads outside of the folder, hides, or shares its folder with another id."""
    with Context.open(store, id, window=2_000) as context:
        context.append_turn("Hello.")

    with closing(PageFiles(store, str(tmp_path / "pages"), context=id)) as files:
        assert files.update()[:2] == (1, 1)

    (page,) = tmp_path.rglob("page-00001.md")
    assert page.parent.parent == tmp_path / "pages"
    assert page.parent.name == folder_name(id) not in {"alice", "contents.md"}
    assert page.parent.name.casefold() == page.parent.name
    assert not page.parent.name.startswith(".")


def test_a_link_in_the_folder_is_not_followed(store, files, folder, tmp_path):
    """A link in the place of a context's folder is a problem that is named; what it leads to is not touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    folder.joinpath("alice").symlink_to(outside)

    done = files.update()

    assert len(done.problems) == 1
    assert "link" in done.problems[0]
    assert list(outside.iterdir()) == []
    folder.joinpath("alice").unlink()
    files.update()
    target = outside / "mine.txt"
    target.write_text("mine")
    page = folder / "alice" / "page-00002.md"
    page.unlink()
    page.symlink_to(target)
    with closing(PageFiles(store, str(folder))) as again:
        problems = again.update().problems
    assert target.read_text() == "mine"
    assert len(problems) == 1


def test_a_folder_of_others_is_refused(store, tmp_path):
    """A folder with files of somebody else is refused before anything is written or removed."""
    (tmp_path / "page-00001.md").write_text("mine")
    before = sorted(tmp_path.iterdir())

    with pytest.raises(InvalidSetting, match="name a new folder"):
        PageFiles(store, str(tmp_path))

    assert sorted(tmp_path.iterdir()) == before


def test_parts_that_are_no_text_are_shown_without_their_bytes(store, tmp_path):
    """Images are named with their size, beside the text."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5_000}}
    with Context.open(store, "carol", window=20_000) as context:
        context.append_turn({"role": "user", "content": [{"type": "text", "text": "Look: \ufffd"}, image]})

    with closing(PageFiles(store, str(tmp_path / "pages"), context="carol")) as files:
        files.update()

    text = (tmp_path / "pages/carol/page-00001.md").read_text("utf-8")
    assert "Look: \ufffd\n" in text
    assert "characters of media, kept in the archive" in text
    assert len(text) < 1_000


def test_a_context_that_cant_be_read_does_not_stop_the_others(store, files, folder, tmp_path):
    """It is named, its files stay as they were, and the others are brought up to date."""
    with Context.open(store, "bob", window=2_000) as context:
        context.append_turn("Hello.")
    files.update()

    class Damaged:
        def __getattr__(self, name):
            return getattr(store, name)

        def entries(self, context, *arguments, **more):
            if context == "alice":
                raise StorageError("a page is damaged")
            return store.entries(context, *arguments, **more)

    (folder / "bob" / "page-00001.md").unlink()
    with closing(PageFiles(Damaged(), str(folder))) as others:
        done = others.update()

    assert done.problems == ("alice: a page is damaged",)
    assert (folder / "bob" / "page-00001.md").exists()
    assert len(list((folder / "alice").glob("page-*.md"))) == 30


def test_the_command_writes_the_files_and_says_what_it_did(command, store, folder, tmp_path):
    """It prints one line or one object; a wrong context or folder is one line, too."""
    path = tmp_path / "agent.db"

    done = command("files", path, folder, "--context", "alice", "--json")
    again = command("files", path, folder)

    assert json.loads(done.stdout) == {
        "folder": str(folder), "contexts": 1, "pages": 30, "written": 30, "removed": 0, "problems": []
    }  # fmt: skip
    assert again.stdout == f"{folder}: 1 context, 30 pages, 0 written, 0 removed\n"
    assert command("files", path, folder, "--context", "nobody").exit_code == 2
    assert command("files", path, tmp_path).exit_code == 2


def test_a_watcher_writes_what_changes(store, files, folder):
    """It looks again after each pause, and says something only when something changed."""

    def pause():
        with Context.open(store, "alice") as context:
            if context.report().messages == 120:
                context.append_turn("And back?")
            else:
                context.undo()

    seen = [(done.pages, done.removed) for done, _ in zip(files.updates(pause), range(3), strict=False)]

    assert seen == [(30, 0), (31, 0), (30, 1)]
    assert "And back?" not in (folder / "alice" / "contents.md").read_text()


def test_a_watcher_is_silent_while_nothing_changes(files):
    """A pause without a change yields nothing."""
    pauses, seen = [], []

    def pause():
        pauses.append(1)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seen.extend(done.written for done in files.updates(pause))

    assert (len(pauses), seen) == (3, [30])
