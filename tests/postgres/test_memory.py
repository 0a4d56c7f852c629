"""The memory on Postgres keeps the promises of every memory, and answers as it does on SQLite."""

import contextlib
import sys
from pathlib import Path

import pytest

from memci.memory import TieredMemory
from memci.memory.backend import Scope
from memci.memory.repository.home import tables_of
from memci.storage import EncryptedStorage, PostgresStorage
from memci.testing.memory.conformance import DurableMemoryConformance
from memci.testing.memory.pages import saying, told
from tests.memory.tables_suite import MemoryStoreConformance

sys.path.insert(0, str(Path(__file__).parents[1] / "memory"))
from machine_kit import keeping
from test_encrypted_memory import shown_in, told_everything

KEY = bytes(range(32))


@pytest.fixture
def storage(postgres_url):
    with contextlib.closing(PostgresStorage(postgres_url)) as made:
        yield made


class TestPostgresMemory(DurableMemoryConformance):
    @pytest.fixture
    def stored(self, postgres_url):
        return lambda: PostgresStorage(postgres_url)

    @pytest.fixture
    def storage(self, stored):
        with contextlib.closing(stored()) as made:
            yield made

    @pytest.fixture
    def reopen(self, stored):
        with contextlib.ExitStack() as stack:
            yield lambda owner="anna": TieredMemory(stack.enter_context(contextlib.closing(stored())), owner=owner)

    @pytest.fixture
    def memory(self, reopen):
        return reopen()

    @pytest.fixture
    def stranger(self, reopen):
        return reopen("ben")

    @pytest.fixture
    def keep(self, storage):
        return keeping(storage)


class TestPooledPostgresMemory(TestPostgresMemory):
    """A pooler of transactions stands between: nothing is kept in a session of the server."""

    test_any_history_is_found_as_a_plain_dict_would = None  # it takes long, and does nothing that the others do not

    @pytest.fixture
    def stored(self, pooled_url):
        return lambda: PostgresStorage(pooled_url)


class TestEncryptedPostgresMemory(TestPostgresMemory):
    """What is encrypted is found as what is not."""

    test_any_history_is_found_as_a_plain_dict_would = None

    @pytest.fixture
    def stored(self, postgres_url):
        return lambda: EncryptedStorage(PostgresStorage(postgres_url), KEY)


def test_no_file_of_the_server_shows_a_text(postgres_url, server):
    """Of an encrypted store the files and the log of the server show no canary, once all is written out."""
    with contextlib.closing(EncryptedStorage(PostgresStorage(postgres_url), KEY)) as storage:
        told_everything(storage)
        storage.database.change_rows("CHECKPOINT")

    assert shown_in(Path(server.data)) == set()


class TestPostgresTables(MemoryStoreConformance):
    @pytest.fixture
    def url(self, postgres_url):
        return postgres_url

    @pytest.fixture
    def reopen(self, url):
        with contextlib.ExitStack() as stack:
            yield lambda: tables_of(stack.enter_context(contextlib.closing(PostgresStorage(url))))


class TestPooledPostgresTables(TestPostgresTables):
    @pytest.fixture
    def url(self, pooled_url):
        return pooled_url


def test_erased_words_leave_the_files(postgres_url, server):
    """After an erasure and a scrub no byte of a word is in the files of the memory's tables."""
    storage = PostgresStorage(postgres_url)
    memory = TieredMemory(storage, owner="anna")
    for index, word in enumerate(("quokkasecret", "zeppelin"), 1):
        page = told(index, f"The {word} is here.", "Yes.", names=[f"Ms {word}"])
        keeping(storage)(page)
        memory.admit(page)
    with memory.session.owner.change():
        memory.session.owner.annotate(1, {1: ["quokkasecret"]})
    assert saying(memory, "quokkasecret") == [("alice", 1)]

    gone = memory.erase(Scope("alice", (1,)))
    scrubbed = memory.session.store.scrub(whole=True)

    assert (gone.pages, gone.scrubbed, scrubbed) == (1, False, True)
    assert not saying(memory, "quokkasecret")
    names = storage.database.read_rows(
        "SELECT pg_relation_filepath(c.oid) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname LIKE '%%memory%%' AND c.relkind IN ('r', 'i')",
        storage.database.schema,
    )
    storage.database.change_rows("CHECKPOINT")
    files = [Path(server.data, name).read_bytes() for (name,) in names]
    assert any(b"zeppelin" in each for each in files), "the files are where they are looked for"
    assert not any(b"quokkasecret" in each for each in files)
    storage.close()
