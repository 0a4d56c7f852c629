"""Exports: what goes out of one store comes into any other, and is the same there."""

import contextlib
import json

import pytest

from memci import EphemeralStorage, SQLiteStorage
from memci.errors import InvalidSetting, MemciError, StorageFull, WriteConflict
from memci.history.export import export_lines
from memci.history.export_format import Checksum, embed_json, fields_of, line_of, stored_text
from memci.history.import_ import import_lines, read_transitions
from memci.storage import FilesystemStorage

from .kit import call, calling, opened, result, turn

pytestmark = pytest.mark.usefixtures("no_memory")

KINDS = ["ram", "file", "folder"]


@pytest.fixture
def store(tmp_path):
    """Opens a new store of a kind; all are closed at the end."""
    with contextlib.ExitStack() as stack:

        def made(kind, name="store"):
            kinds = {
                "ram": EphemeralStorage,
                "file": lambda: SQLiteStorage(tmp_path / f"{name}.db", durability="fast"),
                "folder": lambda: FilesystemStorage(tmp_path / name, durability="fast"),
            }
            return stack.enter_context(contextlib.closing(kinds[kind]()))

        yield made


def lived(storage, turns=40, **given):
    """A context to which everything has happened: compactions, splits, clips, pins, recalls, undo, late results."""
    context = opened(storage, window=1_500, system="Be kind. \ufffd", **given)
    for number in range(turns):
        context.append_turn(*turn(number, 20), op_id=f"op {number}", at=f"2026-01-{1 + number % 28:02d}")
        if number % 9 == 2:
            context.append_turn(calling(call(f"c{number}", arguments={"text": "word " * 200})))
            context.append_turn(result(f"c{number}", "word " * number * 60))
        if number % 9 == 4:
            context.append_turn(
                {"role": "user", "content": "half \ufffd", "id": 2**80, "x": [1.0, 1, True, None, -0.0]}
            )
            context.pin(number // 2 + 1)
        if number % 9 == 6:
            [answer] = context.answers(calling(call(f"r{number}", "recall_page", {"index": number // 2})))
            context.append_turn(calling(call(f"r{number}", "recall_page", {"index": number // 2})), answer)
        if number % 11 == 8:
            context.undo()
        if number % 13 == 7:
            context.append_turn(calling(call(f"late{number}")), "never mind")
            context.append_turn(result(f"late{number}"))
    return context


def views(storage, id="alice"):  # noqa: A002
    """All that can be seen of a context."""
    with opened(storage, id=id, window=None, read_only=True) as context:
        pages = list(context.pages())
        seen = {
            "rendered": context.render(strict=False),
            "pages": pages,
            "messages": list(context.messages()),
            "tokens": context.report().tokens,
            "problems": context.verify(),
            "recalled": [outcome(context.recall_page, page.index) for page in pages],
        }
    turns = storage.load(id)[0].turn
    return seen | {"then": [outcome(then, storage, id, number) for number in range(turns % 3, turns + 1, 3)]}


def then(storage, id, number):  # noqa: A002
    """How the context stood at the close of turn *number*."""
    with opened(storage, id=id, window=None, at=number) as context:
        return context.render(strict=False), list(context.pages())


def rows(storage):
    """Every row of the context."""
    reads = (storage.entries, storage.pages, storage.compactions, storage.ops, storage.calls)
    appended = list(storage.entries("alice", as_appended=True))
    return storage.load("alice"), appended, *(list(read("alice")) for read in reads)


def outcome(work, *arguments):
    """What *work* returns, or the error that it raises."""
    try:
        return work(*arguments)
    except MemciError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(("source", "target"), [("file", "ram"), ("ram", "folder"), ("folder", "file")])
def test_import_makes_what_was_exported(store, source, target):
    """In another store of any kind the context is the same: what is shown, every page, and how it stood in any turn."""
    here, there = store(source, "here"), store(target, "there")
    lived(here).close()
    lines = list(export_lines(here, "alice"))

    assert import_lines(there, lines) == "alice"

    assert list(export_lines(there, "alice")) == lines
    assert rows(there) == rows(here)
    assert {entry.codec for entry in here.entries("alice")} == {1, 2}
    assert any(entry.clip for entry in here.entries("alice"))
    assert any(entry.quotes for entry in here.entries("alice"))
    assert any('"kind":"view"' in line for line in lines)
    before, after = views(here), views(there)
    assert before["problems"] == []
    assert sum(isinstance(each, tuple) for each in before["then"]) > 8
    for what, seen in before.items():
        assert after[what] == seen, what


@pytest.mark.parametrize("kind", KINDS)
def test_imported_context_goes_on_as_the_other_one_does(store, kind):
    """After an import both go the same way, and an op_id of before is known."""
    here, there = store("file", "here"), store(kind, "there")
    one = lived(here)
    import_lines(there, export_lines(here, "alice"))
    other = opened(there, window=None)

    assert other.append_turn(*turn(39, 20), op_id="op 39").duplicate
    for number in range(40, 60):
        assert one.append_turn(*turn(number, 20)) == other.append_turn(*turn(number, 20))
        assert one.render() == other.render()
    assert one.recall_page(7) == other.recall_page(7)
    assert other.verify() == []


@pytest.mark.parametrize("kind", KINDS)
def test_fork_is_exported_whole(store, kind):
    """A fork comes into a store that has not its parent, with all that it shared and without the tie."""
    here, there = store(kind, "here"), store("file", "there")
    parent = lived(here)
    fork = parent.fork("bob", at=20)
    for number in range(30):
        fork.append_turn(*turn(number, 20))
    fork.erase(3)

    import_lines(there, export_lines(here, "bob"))

    record, _ = there.load("bob")
    assert (record.parent, record.base) == (None, 0)
    assert list(export_lines(there, "bob")) == list(export_lines(here, "bob"))
    assert views(there, "bob") == views(here, "bob")


@pytest.mark.parametrize("kind", KINDS)
def test_import_of_a_context_without_a_past(store, kind):
    """What never had a compaction is imported too, even what has no message, and can be changed then."""
    here, there = store("file", "here"), store(kind, "there")
    opened(here, id="empty").close()
    with opened(here, id="short") as short:
        short.append_turn(*turn(1))
        short.append_turn(*turn(2))
        short.pin(1)

    for each in ("empty", "short"):
        import_lines(there, export_lines(here, each))

        assert list(export_lines(there, each)) == list(export_lines(here, each))
        with opened(there, id=each, window=None) as context:
            context.append_turn(*turn(3))
            assert context.verify() == []


def test_import_of_a_context_with_a_counter_of_its_own(store):
    """What fits by its own counter is imported, though by the one that is used here it does not fit its window."""
    storage, there = store("ram"), store("ram")
    context = opened(storage, window=900)
    context.append_turn("many tokens of one word " + "a1" * 2_000)
    context.append_turn("next")
    context.pin(1)

    import_lines(there, export_lines(storage, "alice"))

    assert opened(there, window=None).render() == context.render()


@pytest.mark.parametrize("place", ["before its entry", "twice"])
def test_import_of_a_view_that_is_not_behind_its_entry(store, place):
    """What is shown of a message comes once, after the message."""
    storage = store("ram")
    lived(storage).close()
    lines = list(export_lines(storage, "alice"))[:-1]
    at = next(at for at, line in enumerate(lines) if '"kind":"view"' in line)
    moved = [*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]]
    checksum = Checksum()
    for line in (lines := moved if place == "before its entry" else [*lines[:at], lines[at], *lines[at:]]):
        checksum.add(line)

    with pytest.raises(InvalidSetting, match=r"line \d+: view \d+ is not in its place"):
        import_lines(EphemeralStorage(), [*lines, checksum.end()])


@pytest.mark.parametrize("field", ["settings", "state"])
@pytest.mark.parametrize("form", ["value", "text"])
def test_import_with_half_of_a_surrogate_pair_is_refused(store, field, form):
    """No request can have one: an escape would bring it where a text itself could not."""
    storage, there = store("ram"), EphemeralStorage()
    opened(storage, system="Be brief.").close()
    header = next(export_lines(storage, "alice"))
    fields = fields_of(header)
    forged = {**fields[field], "system": "\ud83d"}
    header = json.dumps({**fields, field: forged if form == "value" else json.dumps(forged, sort_keys=True)})
    checksum = Checksum()
    checksum.add(header)

    with pytest.raises(InvalidSetting, match="half of a surrogate pair"):
        import_lines(there, [header, checksum.end()])

    assert there.contexts() == []


def test_import_under_another_name(store):
    """A new id is taken, the owner stays, and the one that was there is left alone."""
    storage = store("file")
    lived(storage, 12, owner="ada").close()
    before = list(export_lines(storage, "alice"))

    assert import_lines(storage, before, id="alice-2") == "alice-2"

    assert storage.load("alice-2")[0].owner == "ada"
    assert list(export_lines(storage, "alice")) == before
    assert [each.replace('"id":"alice-2"', '"id":"alice"', 1) for each in export_lines(storage, "alice-2")][
        :-1
    ] == before[:-1]


@pytest.mark.parametrize("kind", KINDS)
def test_import_over_a_context_is_refused(store, kind):
    """A context that is there is never touched by an import."""
    storage = store(kind)
    lived(storage, 12).close()
    before = list(export_lines(storage, "alice"))

    with pytest.raises(InvalidSetting, match="there is a context 'alice' already"):
        import_lines(storage, before)

    assert list(export_lines(storage, "alice")) == before


def test_import_that_the_store_can_not_take_leaves_nothing(store):
    """A disk that is full keeps nothing of the import: it is one transaction."""

    class Full(EphemeralStorage):
        def commit(self, transition):
            raise StorageFull("no space is left")

    here, full = store("ram"), Full()
    lived(here, 12).close()

    with pytest.raises(StorageFull):
        import_lines(full, export_lines(here, "alice"))

    assert full.contexts() == []


def test_export_of_a_context_that_changes_meanwhile(store):
    """A writer that comes between is told of, and the last line, without which nothing is imported, is not written."""
    storage = store("file")
    context = lived(storage, 12)
    lines = export_lines(storage, "alice")
    seen = [next(lines)]
    context.append_turn("I was here.")

    with pytest.raises(WriteConflict, match="changed while it was exported"):
        seen.extend(lines)

    assert '"kind":"end"' not in "".join(seen)


def test_export_of_what_is_not_there(store):
    """An unknown context is refused at the call, not at the first line."""
    with pytest.raises(InvalidSetting, match="there is no context 'carol'"):
        export_lines(store("ram"), "carol")


def test_export_reads_as_it_writes():
    """The lines come as the entries are read: nothing is collected before."""

    class Watched(EphemeralStorage):
        read = 0

        def entries(self, context, first=0, end=None, *, containing=None, **more):
            for entry in super().entries(context, first, end, containing=containing, **more):
                self.read += 1
                yield entry

    storage = Watched()
    context = opened(storage, window=50_000)
    for number in range(300):
        context.append_turn(f"message {number}")
    storage.read = 0
    lines = export_lines(storage, "alice")

    for _ in range(20):
        next(lines)

    assert storage.read <= 42, "each as it was appended, and as it is shown"


@pytest.mark.parametrize("style", ["settings", "state", "text"])
@pytest.mark.parametrize(
    "text",
    [
        '{"b":1,"a":"é"}',
        '{"a": 1, "b": "\\u00e9"}',
        '{"a":"\\ud83d\\ude00"}',
        "[1.0,1e3,-0.0]",
        '"a"',
        "5",
        "none",
        "NaN",
        "",
    ],
)
def test_text_comes_back_as_it_was_whatever_wrote_it(style, text):
    """JSON within a line stands as what it says only if that gives the same text again."""
    line = line_of({"text": embed_json(style, text)})

    assert stored_text(style, fields_of(line)["text"]) == text


def test_export_shows_what_json_says(store):
    """What memci writes itself stands as JSON, not as a string of JSON."""
    storage = store("ram")
    lived(storage, 12).close()

    values = [json.loads(line) for line in export_lines(storage, "alice")]

    assert all(isinstance(values[0][key], dict) for key in ("settings", "state"))
    assert all(isinstance(value["text"], dict) for value in values if value["kind"] == "compaction")


def test_export_of_the_context_itself(store):
    """`Context.export` gives the same lines."""
    storage = store("ram")
    context = lived(storage, 12)

    assert list(context.export()) == list(export_lines(storage, "alice"))


def test_transitions_when_contexts_follow_one_another(store):
    """Exports that stand in one file are read one after another; `import_lines` takes exactly one."""
    storage = store("ram")
    for each in ("one", "two"):
        opened(storage, id=each).append_turn("Hello.")
    lines = [line for each in ("one", "two") for line in export_lines(storage, each)]

    assert [each.record.id for each in read_transitions(lines)] == ["one", "two"]
    with pytest.raises(InvalidSetting, match="expected one context, it has 2"):
        import_lines(EphemeralStorage(), lines)


def test_transitions_when_a_copy_changed_the_ends_of_lines(store):
    """Newlines, as a file has them, those of Windows, and empty lines at the end make no difference."""
    storage = store("ram")
    lived(storage, 12).close()
    lines = list(export_lines(storage, "alice"))

    for copied in ([f"{line}\n" for line in lines], [f"{line}\r\n" for line in lines], [*lines, "", "\n"]):
        assert list(read_transitions(copied)) == list(read_transitions(lines))


def test_export_as_chat(store):
    """A chat has the system prompt and every message that was not taken back, a line each, as JSON for anyone."""
    storage = store("file")
    context = lived(storage, 12)

    lines = list(export_lines(storage, "alice", chat=True))

    messages = [json.loads(line) for line in lines]
    assert messages == [{"role": "system", "content": "Be kind. \ufffd"}, *context.messages()]
    assert all(line.encode() for line in lines)
    assert len(messages) < storage.load("alice")[0].head
