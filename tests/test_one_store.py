"""One store for the life of a server, a context per request: what stays open and in RAM between requests."""

import gc
import subprocess
import sys
import threading
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import apsw
import pytest

from memci import Context, SQLiteStorage
from memci.errors import HandlePoisoned, InvalidSetting
from memci.memory import TieredMemory
from memci.memory.owner import owner_of
from memci.memory.repository.home import tables_of
from memci.memory.repository.owner_cache import OwnerCache
from memci.storage import FilesystemStorage

CYCLES = 5
SEARCH = 8, 4
"""statements of a search whose words are known, and of each page that it finds"""
ANSWER = {"role": "assistant", "content": "The ferry to Oslo leaves at nine. " * 10}


@pytest.fixture
def statements():
    """Count the statements that SQLite runs, by their text, on all connections."""
    counted = {}

    def traced(event):
        counted[event["sql"]] = counted.get(event["sql"], 0) + 1

    def connected(connection):
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, traced)

    apsw.connection_hooks.append(connected)
    yield counted
    apsw.connection_hooks.remove(connected)


@pytest.fixture(params=[SQLiteStorage, FilesystemStorage])
def store(request, tmp_path, statements):
    before = request.param(tmp_path / "agents", durability="fast")
    for owner in ("anna", "ben"):
        with Context.open(before, owner, window=1_500, clock=None) as context:
            for number in range(30):
                context.append_turn(f"Which ferry number {number} goes to Oslo, {owner}?", ANSWER)
            context.flush()
    before.close()
    statements.clear()
    opened = request.param(tmp_path / "agents", durability="fast")
    yield opened
    opened.close()


def request(store, owner, op_id="request-1"):
    """Serve one request: nothing is stored by one that comes again."""
    with Context.open(store, owner, wait=5, clock=None) as context:
        context.render("Which ferry was it?")
        context.append_turn("Which ferry was it?", ANSWER, op_id=op_id)
        return [page.index for page in context.search_memory("ferry number 7").pages]


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def index_reads(statements):
    """Return how often all passages of an owner were read."""
    return sum(count for text, count in statements.items() if "group_concat(s.id)" in text)


def test_an_index_is_read_once_for_all_requests(store, statements):
    """The index of an owner is read by the first request that searches, not by each."""
    found = [request(store, owner) for owner in ("anna", "ben") * 5]

    assert 8 in found[0]
    assert found[2:] == found[:2] * 4
    assert index_reads(statements) == 2


@pytest.mark.parametrize("store", [SQLiteStorage], indirect=True)
def test_requests_leave_nothing_behind(store, statements):
    """Over many requests on one store, no file, no thread and no memory is added."""
    tracemalloc.start()  # first: what was allocated before would count as new when it is allocated again
    for _ in range(12):
        request(store, "anna")
    files, threads = open_files(), threading.active_count()
    sizes = []
    for _ in range(8):
        for _ in range(CYCLES):
            request(store, "anna")
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()

    assert open_files() <= files
    assert threading.active_count() == threads
    growth = [after - before for before, after in pairwise(sizes)]  # a table of the interpreter may grow once
    assert median(growth) / CYCLES < 512
    assert index_reads(statements) == 1


def test_a_search_takes_few_statements(store, statements):
    """A search reads the rows of what it finds with one statement, and counts its visits in one transaction."""
    with Context.open(store, "anna", clock=None) as context:
        context.search_memory("ferry number 7", k=5)
        for most in (1, 5):
            statements.clear()
            assert len(context.search_memory("ferry number 7", k=most).pages) == most
            assert sum(statements.values()) <= SEARCH[0] + SEARCH[1] * most, statements


@pytest.mark.parametrize("store", [FilesystemStorage], indirect=True)
def test_a_search_finds_what_another_process_stored(store, tmp_path, statements):
    """What is in RAM is read again when another process has changed it."""
    request(store, "anna")
    kind = type(store)
    line = (
        f"from memci import Context, SQLiteStorage; from memci.storage import FilesystemStorage\n"
        f"store = {kind.__name__}({str(tmp_path / 'agents')!r})\n"
        f"with Context.open(store, 'elsewhere', owner='anna', window=1_500) as c:\n"
        f"    c.append_turn('The quokka is at gate 12.', {ANSWER!r}); c.append_turn('Bye.'); c.flush()"
    )
    subprocess.run([sys.executable, "-c", line], check=True)

    with Context.open(store, "anna") as context:
        found = context.search_memory("quokka").pages

    assert {page.context for page in found} == {"elsewhere"}
    assert index_reads(statements) == 2


@pytest.mark.parametrize("store", [FilesystemStorage], indirect=True)  # it has a SQLite file in it
def test_an_erased_page_is_gone_from_ram(store):
    """What is erased stands in no text of the process any more, but for single words: not in an index, nor a cache."""
    secret = "Her safe opens with quokka 4711."
    with Context.open(store, "anna") as context:
        page = context.append_turn(secret, ANSWER).page
        context.append_turn("Bye.", ANSWER)
        context.flush()
        context.memory.learn(f"{secret} ".strip(), context="anna", index=page)  # not the text of this test
        context.memory.maintain()
        context.archive(keep=0)
        found = context.search_memory("quokka safe")
        assert secret in str(found) and found.user_facts
        del found
        assert texts_with(secret)
        context.erase(page)

    request(store, "anna")
    until = time.monotonic() + 20
    while texts_with(secret) and time.monotonic() < until:
        pass  # a step in the background may hold the context for a moment

    assert texts_with(secret) == []


def texts_with(secret):
    """Return the other texts in this process that contain *secret*."""
    gc.collect()
    known = (each for holder in gc.get_objects() for each in gc.get_referents(holder) if type(each) is str)
    return [text for text in known if secret.lower() in text.lower() and text is not secret]


def test_what_is_in_ram_is_bounded_in_bytes(tmp_path):
    """Beyond `cache_bytes`, the owners used longest ago are read again; the size is that of the objects."""
    store = SQLiteStorage(tmp_path / "agents.db", durability="fast", cache_bytes=100_000)
    tables = tables_of(store)
    cache, most = tables.owners, 0
    for number in range(12):
        with Context.open(store, str(number), window=1_500, clock=None) as context:
            for ferry in range(12):
                context.append_turn(f"Which ferry number {ferry} goes to Oslo?", ANSWER)
            assert context.search_memory("ferry number 2").pages
        with tables.lock:  # a step in the background may be about to make room
            most = max(most, cache.size)
    kept = len(cache)

    assert 1 < kept < 12
    assert 50_000 < most <= 100_000
    store.close()
    owner_of(tables, "11")  # as a worker may, in the middle of a step
    assert not len(cache)


def test_two_owners_that_do_not_fit_together_take_turns():
    """The owner that is used again is not the one that makes room, though it was used longest ago."""
    cache, ann, ben = OwnerCache(10), SimpleNamespace(size=6), SimpleNamespace(size=6)
    cache.add("ann", ann)
    cache.add("ben", ben)

    assert cache.find("ann") is ann
    cache.add("cem", SimpleNamespace(size=1))
    assert (cache.find("ben"), cache.size) == (None, 6)


def test_the_size_of_an_index_is_what_python_allocated(tmp_path, statements):
    """The bytes that count against the bound are within a fifth of what reading the index allocates."""
    store = SQLiteStorage(tmp_path / "agents.db", durability="fast")
    with Context.open(store, "anna", window=1_500, clock=None) as context:
        for number in range(80):
            context.append_turn(f"My friend Ben{number} lives in Oslo near ferry {number}.", ANSWER)
        context.flush()
    store.close()
    with Context.open(tmp_path / "agents.db", "anna") as context:
        owner = context.memory.session.owner
        gc.collect()
        tracemalloc.start()
        owner.refresh(index=True)
        gc.collect()
        allocated, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert owner.size == pytest.approx(allocated, rel=0.2)


def test_a_store_of_its_own_is_closed_with_its_context(tmp_path):
    """A context that was opened by its path frees its tables and its index when it closes."""
    context = Context.open(tmp_path / "agents.db", "anna", window=1_500)
    context.append_turn("Hello.", ANSWER)
    context.search_memory("Hello")
    store = context.memory.session.store
    files = open_files()

    context.close()

    assert store.closed
    assert not len(store.owners)
    assert open_files() < files


def test_a_closed_store_opens_no_memory(store):
    """A memory that is made for a store after it was closed says so, and opens nothing that nobody would close."""
    store.close()

    with pytest.raises(HandlePoisoned):
        TieredMemory(store, owner="anna")


@pytest.mark.parametrize("value", [-1, 1.5, None, True])
def test_a_bound_that_is_no_number_of_bytes_is_refused(tmp_path, value):
    """The bound is checked before anything is made."""
    with pytest.raises(InvalidSetting, match="cache_bytes"):
        SQLiteStorage(tmp_path / "agents.db", cache_bytes=value)
    assert not (tmp_path / "agents.db").exists()
