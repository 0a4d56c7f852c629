"""A memory beside an encrypted store is encrypted, too: no file shows a text, and the answers are the same."""

import contextlib
import secrets
from base64 import b64encode

import numpy as np
import pytest
from machine_kit import keeping
from model_kit import Clock, modelled
from secret_kit import SECRET, lived

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import CorruptRecord, KeyMissing
from memci.history.erase import erase
from memci.history.rotation import rotate
from memci.memory import TieredMemory
from memci.memory.backend import Scope
from memci.memory.repository.home import tables_of
from memci.storage import EncryptedStorage, FilesystemStorage
from memci.testing.memory.pages import saying, told

KEY = secrets.token_bytes(32)
CANARIES = {
    "a message": "gnomonqua",
    "the system prompt": "lacunaqua",
    "an argument of a call": "mistralqua",
    "a tool that was offered": "obeliskqua",
    "metadata": "petrichorqua",
    "a name": "Zephyrina",
    "a message of a turn that left the window": "rondelqua",
    "what a memory with a model was told": SECRET,
}


def told_everything(storage):
    """Put a canary into each kind of text that a store may be given, and let all of it be remembered."""
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q":"mistralqua"}'}}
    tool = {"type": "function", "function": {"name": "obeliskqua", "parameters": {"type": "object"}}}
    with Context.open(storage, "chat", owner="ada", window=2_500, system="You are lacunaqua.", clock=None) as context:
        context.render(tools=[tool])
        context.append_turn(
            {"role": "user", "content": "Always remember that I live in rondelqua, please.", "name": "Zephyrina"},
            {"role": "assistant", "content": None, "tool_calls": [call], "metadata": {"tag": "petrichorqua"}},
            {"role": "tool", "tool_call_id": "c1", "content": "It was found in gnomonqua."},
            {"role": "assistant", "content": "You live in rondelqua."},
            usage={"prompt_tokens": 100, "completion_tokens": 10},
            op_id="first",
        )
        for number in range(40):
            context.append_turn(f"And number {number} of gnomonqua?", {"role": "assistant", "content": "Fine. " * 20})
        context.render()
        context.flush()
        assert list(storage.compactions("chat"))
    clock = Clock()
    memory, _ = modelled(storage, clock=clock)
    lived(memory, clock)


def shown_in(folder):
    """Return what canaries a file shows: as they are, in other letters, in UTF-16, hex or base64."""
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    folded = content.lower()

    def shows(word):
        plain = word.encode()
        shifted = [b64encode(plain[i : i + (len(plain) - i) // 3 * 3]) for i in range(3)]
        ways = [plain.lower(), plain.hex().encode(), word.lower().encode("utf-16-le")]
        return any(way in folded for way in ways) or any(way in content for way in shifted)

    return {name for name, word in CANARIES.items() if shows(word)}


def test_no_file_shows_a_text(tmp_path):
    """Of a plain folder the files show every canary, of an encrypted one none, and both find the same."""
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    answers = {}
    for folder in (plain, sealed):
        folder.mkdir()
        storage = FilesystemStorage(folder / "agent", durability="fast")
        with contextlib.closing(EncryptedStorage(storage, KEY) if folder == sealed else storage) as used:
            told_everything(used)
            for owner, query in (("ada", "Where does Zephyrina live?"), ("ada", "gnomonqua 17"), ("anna", SECRET)):
                with contextlib.closing(TieredMemory(used, owner=owner, read_only=True)) as memory:
                    found = memory.search(query, k=5)
                pages = [(each.context, each.index, each.entry, each.score, each.text) for each in found.pages]
                answers.setdefault(query, []).append((pages, found.profile, found.certainty, len(found.user_facts)))

    assert shown_in(plain) == set(CANARIES)
    assert shown_in(sealed) == set()
    for query, (one, other) in answers.items():
        assert one == other, query
        assert one[0], query


@pytest.fixture
def inner(tmp_path):
    with contextlib.closing(SQLiteStorage(tmp_path / "sealed.db", durability="fast")) as made:
        yield made


def remembering(storage, owner, *words):
    """Return a memory of pages that say *words*, and that of a model."""
    memory, _ = modelled(storage, owner=owner)
    for index, word in enumerate(words, 1):
        page = told(index, f"The {word} is here.", "Yes.", context=f"of {owner}")
        keeping(storage)(page)
        memory.admit(page)
        memory.maintain()
        while memory.run_job():
            pass
    memory.learn("The secret is quokka.", context=f"of {owner}", index=99)
    return memory


def test_key_of_a_memory_is_rotated_with_its_next_change(inner):
    """It is read with the old key until then, and with the new one alone afterwards; without a key it is not."""
    new = secrets.token_bytes(32)
    words = ("quokkaone", "zeppelin", "ferris", "violin", "obelisk", "mistral")
    remembering(EncryptedStorage(inner, KEY), "ada", *words).close()
    both = EncryptedStorage(inner, [new, KEY])
    memory = TieredMemory(both, owner="ada")
    assert saying(memory, "zeppelin") == [("of ada", 2)]
    remembering(EncryptedStorage(inner, KEY), "ben", *words).close()

    memory.learn("The violin is old.", context="of ada", index=98)

    for storage in (inner, EncryptedStorage(inner, KEY), EncryptedStorage(inner, lambda owner: [])):
        with contextlib.closing(TieredMemory(storage, owner="ada")) as closed, pytest.raises(KeyMissing):
            closed.search("zeppelin")
    assert [rotate(both), rotate(both)] == [3, 0]
    rotated = TieredMemory(EncryptedStorage(inner, new), owner="ada")
    assert saying(rotated, "zeppelin") == [("of ada", 2)]
    assert [each.text for each in rotated.session.tiers().savings.values()] == [
        "The secret is quokka.",
        "The violin is old.",
    ]


def test_memory_whose_key_is_gone_can_be_erased(inner):
    """Erasing an owner whose key was destroyed leaves no row of the memory; others are not touched."""
    keys = {name: [secrets.token_bytes(32)] for name in ("ada", "ben")}
    owned = [EncryptedStorage(inner, lambda name: keys.get(name.removeprefix("of "), [])) for _ in range(2)]
    for owner in keys:
        remembering(owned[0], owner, "quokkaone", "zeppelin").close()
    del keys["ada"]
    storage = owned[1]

    erase(storage, owner="of ada")

    tables = tables_of(storage)
    assert tables.owner_names() == ["ben"]
    assert tables.read_column("SELECT DISTINCT owner FROM memory_item") == [2]
    assert saying(TieredMemory(storage, owner="ben"), "zeppelin") == [("of ben", 2)]


def test_row_of_a_memory_that_was_changed_is_corrupt():
    """A fact that somebody wrote into the tables, in plain words or in others' bytes, is refused."""
    storage = EncryptedStorage(EphemeralStorage(), KEY)
    for body in ('{"summary":"forged"}', "QUJD"):
        memory = remembering(storage, f"ada {len(body)}", "quokkaone", "zeppelin", "ferris", "violin", "obelisk")
        owner = memory.session.owner
        with owner.change():
            memory.session.store.execute(
                "UPDATE memory_item SET body = ? WHERE owner = ? AND kind <> 'key'", body, owner.nr
            )
            owner.outdate()

        with pytest.raises(CorruptRecord, match="--rebuild"):
            memory.search("zeppelin")
        assert memory.erase(Scope()).pages == 5, "it can be erased, unread, to be made again"
        assert not memory.search("zeppelin").pages


@pytest.mark.parametrize("place", ["item.body", "page.title", "page.keywords", "vector.vector"])
def test_row_of_a_memory_in_the_place_of_another_is_corrupt(place):
    """What stands in another row of the same owner, of the same kind, is refused, too."""
    memory = remembering(EncryptedStorage(EphemeralStorage(), KEY), "ada", "quokkaone", "zeppelin", "ferris", "violin")
    owner, store = memory.session.owner, memory.session.store
    table, column = place.split(".")
    key = "page" if table == "vector" else "id"
    [episode, one, other] = [
        *store.read_column("SELECT id FROM memory_item WHERE kind = 'episode'"),
        *(store.read_column("SELECT id FROM memory_item WHERE kind = 'fact'")[:2] if table == "item" else (1, 2)),
    ]

    def read():
        return owner.items.all(), owner.pages.features(episode)

    assert all(read())
    with owner.change():
        taken = f"(SELECT {column} FROM memory_{table} WHERE {key} = ?)"
        store.execute(f"UPDATE memory_{table} SET {column} = {taken} WHERE {key} = ?", other, one)
    with pytest.raises(CorruptRecord):
        read()


def test_vector_of_a_passage_in_the_place_of_another_is_corrupt():
    """So it is with the vectors by which a search compares meanings."""
    memory = remembering(EncryptedStorage(EphemeralStorage(), KEY), "ada", "quokkaone", "zeppelin")
    owner, store = memory.session.owner, memory.session.store
    [one, other] = store.read_column("SELECT id FROM memory_passage LIMIT 2")
    with owner.change():
        owner.passages.keep_vectors("model", {one: np.ones(4, np.float32), other: np.zeros(4, np.float32)})
        assert len(owner.passages.vectors("model", 4)[0]) == 2
        taken = "(SELECT vector FROM memory_vector WHERE passage = ?)"
        store.execute(f"UPDATE memory_vector SET vector = {taken} WHERE passage = ?", other, one)
    with pytest.raises(CorruptRecord):
        owner.passages.vectors("model", 4)
