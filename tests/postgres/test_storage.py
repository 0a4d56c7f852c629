"""PostgresStorage keeps the promises of a store that lasts, says what to do, and survives a lost connection."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from threading import Thread

import psycopg
import pytest

from memci import Context
from memci.errors import (
    CommitUnknown,
    HandlePoisoned,
    InvalidSetting,
    SchemaTooNew,
    StorageBusy,
    StorageReadOnly,
    StorageUnavailable,
    WriteConflict,
)
from memci.memory import TieredMemory
from memci.memory.forgetting import scrub
from memci.storage import EncryptedStorage, PostgresStorage
from memci.storage.locks import hold
from memci.storage.protocol import Erasure, Transition
from memci.testing.memory.pages import told
from memci.testing.storage import DurableStorageConformance
from memci.testing.storage.rows import append, appended, bodies_of, current, everything, forked, with_op
from tests.postgres.server import Server
from tests.storage.plain_store import PlainStore

OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"


class TestPostgresStorage(DurableStorageConformance):
    @pytest.fixture
    def known(self):
        return PlainStore

    @pytest.fixture
    def reopen(self, postgres_url):
        return lambda: PostgresStorage(postgres_url)

    @pytest.fixture
    def storage(self, reopen):
        storage = reopen()
        yield storage
        storage.close()

    @pytest.fixture
    def corrupt(self, storage):
        def change(context, seq):
            statement = "UPDATE our.entry SET body = 'x' || substr(body, 2) WHERE number = %s AND seq = %s"
            storage.database.change_rows(statement, storage._place(context).number, seq)

        return change

    @pytest.fixture
    def remove(self, storage):
        def delete(context, seq):
            statement = "DELETE FROM our.entry WHERE number = %s AND seq = %s"
            storage.database.change_rows(statement, storage._place(context).number, seq)

        return delete


class TestPostgresStorageBehindAPooler(TestPostgresStorage):
    """Each transaction in another session: a real pooler, with a few sessions for all connections."""

    test_any_history_reads_as_a_known_store_does = None  # its statements are those of the other tests

    @pytest.fixture
    def reopen(self, pooled_url):
        return lambda: PostgresStorage(pooled_url)


class TestPostgresStorageWithOneConnection(TestPostgresStorage):
    """Without prepared statements, and with one connection for all threads."""

    test_any_history_reads_as_a_known_store_does = None  # it takes long, and does nothing that the others do not

    @pytest.fixture
    def reopen(self, postgres_url):
        return lambda: PostgresStorage(postgres_url, prepare=False, pool_size=1)


def test_a_pooler_is_recognised(pooled_url, postgres_url):
    """Behind it nothing is prepared and no setting is left in a session that others get."""
    with closing(PostgresStorage(pooled_url)) as pooled, closing(PostgresStorage(postgres_url)) as direct:
        append(pooled, "a", b"1")
        append(direct, "a", b"1")
        assert (pooled.database.pooled, direct.database.pooled) == (True, False)
        for number in range(20):
            append(pooled, "a", b"%d" % number)
        settings = {pooled.database.read_rows("SELECT current_setting('statement_timeout')")[0][0] for _ in range(20)}
        prepared = sum(pooled.database.read_rows("SELECT count(*) FROM pg_prepared_statements")[0][0] for _ in range(9))

    assert (settings, prepared) == ({"0"}, 0)


class TestEncryptedPostgresStorage(DurableStorageConformance):
    """What is encrypted goes there and back as what is not."""

    test_any_history_reads_as_a_known_store_does = None  # it takes long, and does nothing that the others do not

    @pytest.fixture
    def known(self):
        return PlainStore

    @pytest.fixture
    def reopen(self, postgres_url):
        return lambda: EncryptedStorage(PostgresStorage(postgres_url), bytes(range(32)))

    @pytest.fixture
    def storage(self, reopen):
        storage = reopen()
        yield storage
        storage.close()


@pytest.fixture
def storage(postgres_url):
    with closing(PostgresStorage(postgres_url)) as storage:
        yield storage


@pytest.fixture
def cut(server):
    """Ends all sessions of the server but its own."""

    def end():
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(OTHERS)

    return end


def test_lost_connections_are_made_again(storage, cut):
    """Reads, commits and tickets go on after all connections were cut, and a commit is there once."""
    append(storage, "a", b"1")
    cut()
    assert bodies_of(storage, "a") == [b"1"]
    cut()
    append(storage, "a", b"2")
    cut()
    storage.commit(with_op(appended(current(storage, "new"), b"3"), "op"))

    assert bodies_of(storage, "a") == [b"1", b"2"]
    assert bodies_of(storage, "new") == [b"3"]


def test_commit_that_arrived_is_found(storage, cut, monkeypatch):
    """If the connection is lost after the commit, the record's token says that it is there."""
    append(storage, "a", b"1")
    change_rows = storage.database.change_rows

    def lost(statement, *values):
        change_rows(statement, *values)
        cut()
        storage.database.change_rows = change_rows
        return change_rows("SELECT 1")

    for made in (appended(current(storage, "a"), b"2"), appended(current(storage, "b"), b"new")):
        storage.database.change_rows = lost
        assert storage.commit(made) is None

    assert bodies_of(storage, "a") == [b"1", b"2"]
    assert bodies_of(storage, "b") == [b"new"]


def test_an_append_is_a_statement_that_the_driver_remembers(storage, monkeypatch):
    """An append with an op_id and the usage of its call, as servers make them, has no more values than are remembered.

    One with more is read again by the driver each time; what is stored of the call is all there.
    """
    usage = {"prompt_tokens": 900, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 400}}
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    ran = []
    with Context.open(storage, "a", window=8_000) as context:
        context.append_turn("Hi", {"role": "assistant", "content": "Hello"})
        change_rows = storage.database.change_rows
        monkeypatch.setattr(
            storage.database,
            "change_rows",
            lambda *words: ran.append((len(words[0]), len(words[1:]))) or change_rows(*words),
        )
        for number in range(3):
            context.render(tools=tools)
            answer = {"role": "assistant", "content": "Yes"}
            context.append_turn("And?", answer, usage=usage, op_id=f"op {number}")

    assert len(ran) == 3
    length, values = ran[-1]
    assert length <= 4_096 and values <= 50, "the driver's limits"
    known = [(each.input, each.cached_read, each.cached_written, each.output) for each in storage.calls("a")]
    assert known == [(900, 400, 0, 30)] * 3


def test_commit_is_unknown_when_the_server_stays_away():
    """CommitUnknown names the op; when the server is back, the same op is stored once."""
    with Server() as server, closing(PostgresStorage(server.url, wait_seconds=0.2)) as storage:
        append(storage, "a", b"1")
        made = with_op(appended(current(storage, "a"), b"2"), "op 2")
        server.kill()

        with pytest.raises(CommitUnknown) as caught:
            storage.commit(made)
        with pytest.raises(StorageUnavailable):
            storage.load("a")
        server.start()

        assert caught.value.op_id == "op 2"
        storage.commit(made)
        assert storage.commit(made) == made.op
        assert bodies_of(storage, "a") == [b"1", b"2"]


def test_threads_share_few_connections(postgres_url):
    """More threads than connections: each waits for its own, and one that waits too long gets StorageBusy."""
    with closing(PostgresStorage(postgres_url, pool_size=2, wait_seconds=0.1)) as storage:
        database = storage.database

        def work(run_rows):
            run_rows("SELECT 1")
            with database._connection(), pytest.raises(StorageBusy, match="pool_size"):
                storage.revision("a")

        database.transaction(work)
    with closing(PostgresStorage(postgres_url, pool_size=2, wait_seconds=60)) as storage:
        threads = [Thread(target=append, args=(storage, f"t{i}", b"1")) for i in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

        assert len(storage.contexts()) == 8


def test_slow_statement_is_ended(postgres_url):
    """The server ends a statement after the timeout, within a transaction and without one."""
    with closing(PostgresStorage(postgres_url, statement_timeout_seconds=0.05)) as storage:
        with pytest.raises(StorageBusy, match="statement_timeout_seconds"):
            storage.database.read_rows("SELECT pg_sleep(9)")
        with pytest.raises(StorageBusy):
            storage.database.transaction(lambda run_rows: run_rows("SELECT pg_sleep(9)"))

        append(storage, "a", b"1")


def test_store_is_refused_when_it_is_not_one_that_can_be_used(server, postgres_url):
    """What can't be used is refused with a typed error, nothing is made, and no error has the password."""
    missing = f"{server.url.replace('/postgres?', '/nowhere?')}&password=pa55word"
    for url, kind in (
        (missing, StorageUnavailable),
        ("postgresql://ada:pa55word@127.0.0.1:9/agents", StorageUnavailable),
        ("postgresql://ada:pa55word@h/d?color=red", InvalidSetting),
        (f"{server.url}&schema=a'b", InvalidSetting),
    ):
        with pytest.raises(kind) as caught:
            PostgresStorage(url)
        assert "pa55word" not in str(caught.value)
    with pytest.raises(StorageUnavailable, match="no store"):
        PostgresStorage(postgres_url, read_only=True)
    for wrong in ({"schema": ""}, {"pool_size": 0}):
        with pytest.raises(InvalidSetting):
            PostgresStorage(postgres_url, **wrong)


def test_later_schema_is_refused(postgres_url):
    """Tables of a later version, and of another program, stay as they are."""
    with closing(PostgresStorage(postgres_url)) as storage:
        storage.database.change_rows("UPDATE our.store SET version = 99")
    with pytest.raises(SchemaTooNew):
        PostgresStorage(postgres_url)
    with psycopg.connect(postgres_url.partition("&schema")[0], autocommit=True) as connection:
        schema = postgres_url.rpartition("=")[2]
        connection.execute(f'DROP TABLE "{schema}".store')

    with pytest.raises(StorageUnavailable, match="another program"):
        PostgresStorage(postgres_url)


def test_store_for_reading_writes_nothing(storage, postgres_url):
    """One that was opened for reading reads all, and refuses each change."""
    made = append(storage, "a", b"1")
    with closing(PostgresStorage(postgres_url, read_only=True)) as reader:
        assert everything(reader, "a") == everything(storage, "a")
        with pytest.raises(StorageReadOnly):
            reader.commit(appended(current(reader, "a"), b"2"))
        with pytest.raises(StorageReadOnly):
            hold(reader, "a", 0)

    assert storage.revision("a") == made.record.revision


def test_handle_is_of_no_use_after_fork(storage):
    """A child gets HandlePoisoned, and its end leaves the parent's connections alone."""
    append(storage, "a", b"1")
    child = os.fork()
    if not child:
        with suppress(HandlePoisoned):
            storage.load("a")
            os._exit(1)
        os._exit(0)

    assert os.waitpid(child, 0)[1] == 0
    assert bodies_of(storage, "a") == [b"1"]
    with pytest.raises(TypeError):
        pickle.dumps(storage)


def test_context_of_another_owner_takes_its_rows_along(storage, postgres_url):
    """All rows change to the new owner in one transaction; another handle that knew the old one finds them."""
    append(storage, "a", b"1")
    with closing(PostgresStorage(postgres_url)) as other:
        before = everything(other, "a")
        record = current(storage, "a")._replace(owner="another")
        storage.commit(Transition(record.head, record))

        assert [*everything(other, "a")[0].values()][2:] == [*before[0].values()][2:]
        assert other.load("a")[0].owner == "another"
        with pytest.raises(WriteConflict):
            other.commit(Transition(record.head, record))
        append(other, "a", b"2")
    assert bodies_of(storage, "a") == [b"1", b"2"]


def test_damage_is_found_in_rows(storage):
    """Entries that are gone, rows of no context and forks without a parent are named."""
    append(storage, "a", b"1", b"2")
    storage.commit(forked("a", "b", 1, b"own"))
    assert storage.damage() == []

    storage.database.change_rows("DELETE FROM our.entry WHERE seq = 1 AND number = %s", storage._place("a").number)
    assert len(storage.damage()) == 1
    storage.database.change_rows("DELETE FROM our.context WHERE id = 'a'")
    assert [each.partition(" ")[2][:30] for each in storage.damage()] == [
        "'b' is a fork of 'a', which is",
        "rows of the table entry belong",
        "rows of the table page belong ",
    ]


def test_audit_log_is_a_table(storage, postgres_url):
    """Lines are kept in their order, for all handles."""
    storage.audit_log.add("erase", context="a", page=2)
    with closing(PostgresStorage(postgres_url)) as other:
        other.audit_log.add("export")

        assert [each["action"] for each in other.audit_log] == ["erase", "export"]


def test_no_byte_of_what_was_erased_is_in_the_tables(storage, server):
    """After the rewrite that `Erasure()` asks for, no file of the database has a byte of it."""
    canary = b'{"content":"canary 6f0c in a body"}'
    append(storage, "a", canary, canary * 400)
    append(storage, "b", b"stays")

    def files():
        storage.database.read_rows("CHECKPOINT")
        held = []
        for path in (server.folder / "data" / "base").rglob("*"):
            with suppress(OSError):  # a folder, or a file that the server has just removed
                held.append(path.read_bytes())
        return held

    assert any(b"canary 6f0c" in each for each in files())
    assert not storage.erase(Erasure(contexts=("a",))).scrubbed
    assert storage.erase(Erasure()).scrubbed

    assert not any(b"canary 6f0c" in each for each in files())
    assert bodies_of(storage, "b") == [b"stays"]


def remember(storage):
    """Store pages about canaries in the memory."""
    with closing(TieredMemory(storage, owner="canary")) as memory:
        for page in range(1, 4):
            memory.admit(told(page, f"My canary is called Olga {page}.", names=[f"canary {page}"]))


def test_an_erasure_says_that_bytes_are_left_while_a_transaction_may_read_them(postgres_url, server):
    """The server keeps removed rows for every transaction that began before, also one of another table."""
    with (
        closing(PostgresStorage(postgres_url, wait_seconds=0.1)) as storage,
        closing(psycopg.connect(server.url)) as other,
    ):
        append(storage, "a", b"canary")
        remember(storage)
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        storage.erase(Erasure(contexts=("a",)))

        assert not storage.erase(Erasure()).scrubbed
        assert not scrub(storage, whole=True)
        other.rollback()
        assert storage.erase(Erasure()).scrubbed
        assert scrub(storage, whole=True)


def test_the_servers_statistics_hold_no_text(storage):
    """They are samples, which an erasure can't reach."""
    for nr in range(20):
        append(storage, f"canary {nr}", b"a canary")
    remember(storage)
    storage.database.run_alone("ANALYZE")

    sampled = "SELECT tablename, attname FROM pg_stats WHERE schemaname = %s AND pg_stats::text ~ 'canary|63616e617279'"
    assert storage.database.read_rows(sampled, storage.database.schema) == []


def test_erasures_lock_contexts_in_one_order(storage, postgres_url):
    """One that has to wait for its first context holds none of the others: two of them never wait for each other."""
    url, _, schema = postgres_url.partition("&schema=")
    lock = f'SELECT id FROM "{schema}".context WHERE id = %s FOR UPDATE'
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
    for name in ("a", "b"):
        append(storage, name, b"1")
    with psycopg.connect(url) as other, ThreadPoolExecutor(1) as pool:
        other.execute(lock, ("a",))
        erased = pool.submit(storage.erase, Erasure(contexts=("b", "a")))
        while not storage.database.read_rows(waiting, f"%{schema}%")[0][0]:
            assert not erased.done()

        assert other.execute(lock + " NOWAIT", ("b",)).fetchall() == [("b",)]
        other.rollback()

        assert erased.result().contexts == 2


def test_many_processes_may_make_the_store_at_once(postgres_url):
    """Of eight that open a schema that is not there, one makes it, and all can use it."""
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(PostgresStorage, [postgres_url] * 8))

    for i, each in enumerate(stores):
        append(each, f"c{i}", b"1")
        each.close()
