"""What is erased is forgotten by the memory too: not a byte of it is left, in no tier, for no owner."""

import contextlib

import apsw
import pytest
from machine_chats import chat, talk, word
from machine_kit import Told, check, items, rows, tiers

from memci import SQLiteStorage
from memci.history.erase import erase
from memci.memory import TieredMemory
from memci.memory.backend import Scope
from memci.memory.tiers.rules import Rules
from memci.storage import FilesystemStorage

pytestmark = pytest.mark.usefixtures("alone")

RULES = Rules(capacity=4, batch=2, promoted=1.0, accesses=1)
"""so that facts, the profile, events and the graph come of a few pages"""
SECRET = "zanzibarqua"
OTHER = "wombatqua"
TABLES = ("memory_passage", "memory_vector", "memory_item", "memory_evidence", "memory_page", "memory_words_content")


@pytest.fixture(params=["sqlite"])
def storage(request, tmp_path):
    path = tmp_path / "agent"
    made = SQLiteStorage(path, busy_timeout_seconds=0) if request.param == "sqlite" else FilesystemStorage(path)
    with contextlib.closing(made):
        yield made


both = pytest.mark.parametrize("storage", ["sqlite", "files"], indirect=True)


@pytest.fixture
def tells(storage, tmp_path):
    """Give what lists the files that hold a text, in any letters, once all is written out."""

    def held(text):
        needles = {text.encode(), text.casefold().encode(), text.encode("utf-16-le")}
        return [
            path.name
            for path in tmp_path.rglob("*")
            if path.is_file() and any(needle in path.read_bytes() for needle in needles)
        ]

    return held


def secretly(number, secret=SECRET):
    """Return a turn that leaves its mark in every tier."""
    return (
        {
            "role": "user",
            "content": f"I live in {secret} and I love {secret}. My sister {secret.title()} plays violin.",
        },
        {"role": "assistant", "content": f"I booked {secret} for you on 2024-05-0{number % 9 + 1}."},
    )


def lived(storage, **given):
    """Return a context and its memory after a life in which #2 and #3 were of the secret, and all tiers are filled."""
    owner = given.get("owner") or given.get("id") or "alice"
    memory = TieredMemory(storage, owner=owner, rules=RULES, clock=lambda: 2e9)
    context = chat(storage, memory=memory, **given)
    talk(context, [1])
    for number in (2, 3):
        context.append_turn(*secretly(number), at=f"2024-05-0{number}T10:00:00+00:00")
    for number in range(4, 14):
        context.append_turn(*secretly(number, OTHER), at=f"2024-06-{number:02}T10:00:00+00:00")
        if number % 5 == 4:
            context.flush()
    for _ in range(3):
        memory.search(f"{SECRET} violin {OTHER}", k=20)
    memory.maintain(2e9)
    return context, memory


def test_the_secret_is_everywhere_before(storage, tells):
    """The life that is erased from leaves marks in episodes, facts or events, else the tests below show nothing."""
    _, memory = lived(storage)

    assert tells(SECRET)
    kinds = {kind for kind, body in rows(memory, "SELECT kind, body FROM memory_item") if SECRET in body.casefold()}
    assert {"episode", "fact", "chain"} <= kinds
    assert memory.search(SECRET).pages


@both
def test_no_byte_of_an_erased_page_is_left(storage, tells):
    """Erased pages leave nothing in any tier: words, vectors, titles, episodes, chains, facts, events, the profile."""
    context, memory = lived(storage)

    receipts = [context.erase(2), context.erase(3)]

    assert [receipt.memory for receipt in receipts] == ["done", "done"]
    assert [(kind, body) for kind, body in rows(memory, "SELECT kind, body FROM memory_item") if SECRET in body] == []
    assert tells(SECRET) == []
    assert tells(OTHER)
    check(memory)
    assert not any(SECRET in piece.text for page in memory.search(SECRET).pages for piece in page.pieces)
    context.flush()
    assert tells(SECRET) == []


@pytest.mark.parametrize("scope", ["context", "owner"])
def test_memory_in_a_file_of_its_own_forgets_too(scope, storage, tells, tmp_path):
    """A memory that is open on the store is told of what goes whole, wherever its file is."""
    with contextlib.closing(TieredMemory(storage, owner="alice", path=tmp_path / "own.db")) as memory:
        context = chat(storage, memory=memory)
        context.append_turn(*secretly(2))
        context.close()
        assert "own.db-wal" in tells(SECRET)

        receipt = erase(storage, **{scope: "alice"})

        assert (receipt.physical, receipt.memory, tells(SECRET)) == ("done", "done", [])


def test_no_byte_of_an_erased_entry_is_left(storage, tells):
    """Erased messages leave nothing in any tier either; what else their page says is found as before."""
    context, memory = lived(storage)

    for page in (2, 3):
        for entry in (1, 2):
            with contextlib.suppress(KeyError):
                context.erase(page, entry)

    assert [(kind, body) for kind, body in rows(memory, "SELECT kind, body FROM memory_item") if SECRET in body] == []
    assert tells(SECRET) == []
    check(memory)
    context.flush()
    assert tells(SECRET) == []


def test_other_entries_of_the_page_are_found_after_one_was_erased(storage, tells):
    """Of a page with an erased entry, the rest is found, told and analysed; the erased one is nowhere."""
    context, memory = lived(storage)
    context.append_turn(
        {"role": "user", "content": "the quagga stays"}, {"role": "assistant", "content": "numbatqua goes"}
    )
    talk(context, range(30, 50))
    context.flush()
    (hit, *_) = memory.search("quagga").pages

    context.erase(hit.index, 2)

    assert tells("numbatqua") == []
    assert memory.search("quagga").pages[0].text == hit.text == "the quagga stays"
    assert {key[1]: tier for key, tier in tiers(memory).items()}[hit.index] in {"short", "mid"}
    check(memory)


def test_undone_page_leaves_nothing_in_the_tiers(storage):
    """What was taken back is nowhere in the memory, although its bytes stay in the store of the pages."""
    context, memory = lived(storage)
    context.append_turn({"role": "user", "content": "the numbatqua"}, {"role": "assistant", "content": "numbatqua!"})
    context.append_turn({"role": "user", "content": "and?"})
    context.flush()
    assert memory.search("numbatqua").pages

    context.undo()
    context.undo()
    context.flush()

    assert not any("numbatqua" in page.text for page in memory.search("numbatqua").pages)
    assert rows(memory, "SELECT count(*) FROM memory_item WHERE body LIKE '%numbatqua%'") == [(0,)]
    check(memory)


def test_no_byte_of_an_erased_context_is_left(storage, tells):
    """A context that is erased whole leaves nothing in the memory of its owner; other contexts of the owner stay."""
    lived(storage, id="alice", owner="anna")[0].close()
    other, _ = lived(storage, id="bob", owner="anna")
    other.erase(2)
    other.erase(3)

    receipt = erase(storage, context="alice")

    assert receipt.memory == "done"
    assert tells(SECRET) == []
    memory = TieredMemory(storage, owner="anna", rules=RULES)
    assert memory.acknowledged("alice") == 0
    assert {name for name, _ in tiers(memory)} == {"bob"}
    assert memory.search(OTHER).pages
    check(memory)


@both
def test_no_byte_of_an_erased_owner_is_left(storage, tells):
    """An owner who is erased leaves nothing, neither of what was said nor the name; other owners stay."""
    lived(storage, id="alice", owner="annaquux")[0].close()
    other, _ = lived(storage, id="bob", owner="bert")
    other.erase(2)
    other.erase(3)

    erase(storage, owner="annaquux")

    assert tells(SECRET) == []
    assert tells("annaquux") == []
    assert other.search_memory(OTHER).pages


@both
@pytest.mark.parametrize("contexts", [0, 1])
def test_an_owner_goes_with_what_the_memory_has_of_contexts_that_are_anothers(contexts, storage, tells):
    """Nothing of theirs is remembered under their name, whose contexts they are now; the new owner keeps them."""
    lived(storage, id="alice", owner="annaquux")[0].close()
    context = chat(storage, id="alice", owner="bert", change_owner=True, window=None, nonce=None)
    for number in range(contexts):
        talk(chat(storage, id=f"other{number}", owner="annaquux"), [40])

    receipt = erase(storage, owner="annaquux")

    assert (receipt.contexts, receipt.physical, receipt.memory) == (contexts, "done", "done")
    assert tells("annaquux") == []
    assert chat(storage, id="new", owner="annaquux").search_memory(SECRET).pages == ()
    assert context.search_memory(SECRET).pages


def test_page_erased_in_one_context_is_forgotten_by_the_memory_of_its_forks(storage, tells):
    """What a fork shares is forgotten by the fork's memory when it is erased in the parent; "done" means all of it."""
    context, _ = lived(storage)
    fork = context.fork("bob")
    talk(fork, range(40, 50))
    fork.flush()
    fork.close()

    receipts = [context.erase(2), context.erase(3)]

    if all(receipt.memory == "done" for receipt in receipts):
        assert tells(SECRET) == []
    chat(storage, id="bob", window=None, nonce=None).flush()
    assert tells(SECRET) == []


def test_page_is_forgotten_for_the_owner_that_the_context_had(storage, tells):
    """A context that was given to another owner is erased from the memory of the one before, too."""
    context, _ = lived(storage, owner="anna")
    context.close()
    context = chat(storage, owner="bert", change_owner=True, window=None, nonce=None)
    talk(context, [40])
    context.flush()

    receipts = [context.erase(2), context.erase(3)]

    assert [receipt.memory for receipt in receipts] == ["done", "done"]
    assert tells(SECRET) == []


def test_receipt_says_when_a_reader_holds_bytes_back(tells, storage, monkeypatch):
    """While somebody reads an older state of the memory's file, the receipt says that it is pending."""
    monkeypatch.setattr("memci.memory.repository.sqlite._BUSY_MILLISECONDS", 20)
    context, memory = lived(storage)
    reader = apsw.Connection(memory.session.store._place)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memory_page").fetchall()

    receipts = [context.erase(2), context.erase(3)]

    assert tells(SECRET) != []
    assert receipts[-1].memory == "pending"
    reader.close()


def test_evidence_of_other_pages_survives(storage):
    """A fact that several pages tell stays when one of them is erased, and an episode is rebuilt from those left."""
    context, memory = lived(storage)
    before, facts = items(memory, "episode"), items(memory, "fact")
    told = {key for key, fact in facts.items() if OTHER in fact["text"].casefold() and len(fact["sayings"]) > 1}
    assert told

    context.erase(max(facts[key]["index"] for key in told))

    check(memory)
    assert items(memory, "episode").keys() <= before.keys()
    assert told <= items(memory, "fact").keys()


def test_erasing_tells_a_memory_of_ones_own(storage):
    """A memory that the program passed is told of an erased page and of an erased entry, as what they are then."""
    memory = Told()
    context = talk(chat(storage, memory=memory), range(1, 15))
    context.flush()
    memory.calls.clear()

    context.erase(4)
    context.erase(5, 2)

    assert memory.calls[:2] == [("erase", ("alice", (4,))), ("admit", ("alice", 5))]
    assert [ordinal for ordinal, _ in memory.pages["alice", 5].entries] == [1]
    assert ("alice", 4) not in memory.pages


def test_what_could_not_be_told_is_erased_later(storage):
    """If the memory is away when a page is erased, the receipt says so, and the next call tells it."""
    from memci.errors import StorageUnavailable

    memory = Told()
    context = talk(chat(storage, memory=memory), range(1, 15))
    context.flush()
    memory.fails = StorageUnavailable
    assert context.erase(4).memory == "pending"
    assert ("alice", 4) in memory.pages
    context.close()

    memory.fails = None
    chat(storage, memory=memory, window=None, nonce=None).flush()

    assert ("alice", 4) not in memory.pages


def test_forgetting_counts_what_went(storage):
    """The memory says how many pages and how much of what was derived went."""
    _, memory = lived(storage)

    gone = memory.erase(Scope("alice", (2, 3)))

    assert gone.pages == 2
    assert gone.derived > 0
    assert gone.scrubbed
    assert word(1)
