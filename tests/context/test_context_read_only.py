"""Reading only: everything is shown, nothing is changed, no byte is written."""

import contextlib
import json

import pytest

from memci import SQLiteStorage
from memci.errors import InvalidSetting, StorageError, StorageReadOnly
from memci.storage import FilesystemStorage

from .kit import ON_DISK, STORES, again, call, calling, files, opened, seen, store, talked, turn, where

pytestmark = pytest.mark.usefixtures("no_memory")


def read_only_store(kind, folder):
    if kind == "sqlite":
        return SQLiteStorage(folder / "agent.db", read_only=True)
    return FilesystemStorage(folder / "agent", read_only=True)


@pytest.mark.parametrize("kind", STORES)
def test_reader_sees_what_the_writer_sees(kind, tmp_path):
    """A context that is opened for reading shows the same bytes, pages, messages and counts."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context = talked(20, size=60, storage=storage, window=1_500)
        context.pin(19)

        reader = again(storage, read_only=True)

        assert seen(reader) == seen(context)
        assert reader.read_only
        assert not context.read_only


@pytest.mark.parametrize("kind", ON_DISK)
def test_nothing_on_disk_changes_whatever_is_read(kind, tmp_path):
    """Rendering, recalling, listing, verifying and exporting leave every file as it was, byte for byte."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        talked(20, size=60, storage=storage, window=1_500)
    before = files(tmp_path)

    with contextlib.closing(read_only_store(kind, tmp_path)) as storage:
        reader = again(storage, read_only=True, system="Other.", window=1_200)
        seen(reader)
        reader.recall_page(1)
        reader.answers(calling(call("r", "recall_page", {"index": 1, "entry": None})))
        reader.render("word " * 700)
        reader.refresh()
        list(reader.export()), reader.verify(), reader.flush()
        reader.close()

    after = files(tmp_path)
    side_files = {name for name, held in after.items() if name.endswith("-shm") or (name.endswith("-wal") and not held)}
    assert {name: held for name, held in after.items() if name not in side_files} == before, "SQLite makes these two"


@pytest.mark.parametrize("missing", ["agent.db", "nowhere/agent.db"])
def test_missing_file_is_not_made(missing, tmp_path):
    """What is not there can't be read, and reading does not make it."""
    with pytest.raises(StorageError):
        opened(tmp_path / missing, read_only=True)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ON_DISK)
def test_missing_store_is_not_made_by_a_store_for_reading(kind, tmp_path):
    """A store that is opened for reading only does not make its files either."""
    with pytest.raises(StorageError), contextlib.closing(read_only_store(kind, tmp_path)) as storage:
        opened(storage, read_only=True)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", STORES)
def test_missing_context_is_not_made(kind, tmp_path):
    """Reading a context that there is not is refused, and makes none."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        with pytest.raises(InvalidSetting, match="there is no context 'alice'"):
            opened(storage, read_only=True)

        assert list(storage.contexts()) == []


@pytest.mark.parametrize("by_store", [False, True])
def test_every_change_is_refused(by_store, tmp_path):
    """What would change the context raises, and the reader shows what it showed."""
    talked(6, size=20, storage=tmp_path / "agent.db").close()
    with contextlib.closing(SQLiteStorage(tmp_path / "agent.db", read_only=True)) as storage:
        reader = again(storage if by_store else tmp_path / "agent.db", read_only=True)
        before = seen(reader)
        for change in (
            lambda: reader.append_turn("x"),
            lambda: reader.append_turn("x", op_id="o"),
            lambda: reader.append_turn(usage={"prompt_tokens": 900}),
            lambda: reader.pin(1),
            lambda: reader.archive(keep=0),
            reader.archive,
            reader.undo,
            lambda: reader.erase(1),
            lambda: reader.erase(1, 1),
        ):
            with pytest.raises(StorageReadOnly):
                change()
            assert seen(reader) == before
        reader.close()


def test_fork_of_what_is_only_read_is_a_context_that_can_be_written():
    """A reader may fork: nothing of what it reads changes by that, but for the store that gets a new context."""
    storage = store("ram", None)
    context = talked(4, storage=storage)
    reader = again(storage, read_only=True)
    before = seen(context)

    fork = reader.fork("bob")
    fork.append_turn("mine")

    assert not fork.read_only
    assert seen(context) == before


def test_fork_from_a_store_for_reading_is_refused(tmp_path):
    """Where nothing may be written, no fork can be."""
    talked(4, storage=tmp_path / "agent.db").close()
    reader = again(tmp_path / "agent.db", read_only=True)

    with pytest.raises(StorageReadOnly):
        reader.fork("bob")

    reader.close()
    assert [each.id for each in SQLiteStorage(tmp_path / "agent.db", read_only=True).contexts()] == ["alice"]


def test_recall_of_what_is_only_read_counts_nothing():
    """A reader recalls exactly, and the page's counters stay."""
    storage = store("ram", None)
    context = talked(5, storage=storage)
    context.archive(keep=0)
    reader = again(storage, read_only=True)

    assert reader.recall_page(1) == list(turn(1))
    reader.answers(calling(call("r", "recall_page", {"index": 2, "entry": None})))

    counted = [(page.recall_count, page.last_recalled_turn) for page in again(storage).pages()]
    assert counted == [(0, None)] * 5
    assert [(page.recall_count, page.last_recalled_turn) for page in reader.pages()] == counted


def test_compaction_of_a_reader_stays_in_memory():
    """A rendering that needs a compaction gets one, every page is told where the reader shows it, nobody else sees
    it."""
    storage = store("ram", None)
    context = talked(8, size=80, storage=storage)
    before = seen(context)
    reader = again(storage, read_only=True, window=1_300)

    view = reader.render("word " * 300)

    assert view[-1]["content"].startswith("word")
    assert set(where(reader).values()) >= {"archived", "open"}
    assert len(json.dumps(view)) < len(before[0])
    assert seen(again(storage)) == seen(context) == before
    reader.refresh()
    assert seen(again(storage)) == before


def test_part_that_a_reader_split_off_in_memory_can_be_read_in_the_window():
    """A page that only the reader's own compaction split is listed, and what it shows of it can be recalled."""
    storage = store("ram", None)
    context = opened(storage, window=4_000)
    context.append_turn("go")
    for step in range(12):
        context.append_turn(calling(f"c{step}"), result_of(step))
    reader = again(storage, read_only=True, window=1_200)

    view = reader.render()

    listed = [page.index for page in reader.pages()]
    told = [message["content"] for message in view if "memci:contents" in str(message["content"])]
    shown = [index for index in range(1, 9) if any(f"#{index} " in text for text in told)]
    assert shown, "the middle of the open page was archived"
    for index in shown:
        assert index in listed
        assert reader.recall_page(index)
    assert reader._parts.window.record.next_page == 1 + len(listed)


def result_of(step):
    return {"role": "tool", "tool_call_id": f"c{step}", "content": f"{step} " + "word " * 150}


def test_reader_is_never_disturbed_and_lags_until_it_refreshes():
    """Others append, archive and undo: a reader goes on showing what it read, then reads anew."""
    storage = store("ram", None)
    context = talked(4, storage=storage)
    reader = again(storage, read_only=True)
    before = reader.render()

    context.append_turn(*turn(5))
    context.archive(keep=0)

    assert reader.render() == before
    reader.refresh()
    assert seen(reader) == seen(context)
