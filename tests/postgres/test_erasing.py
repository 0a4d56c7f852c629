"""Erasing on Postgres: the tests of jobs, what other contexts found, and a short run of the canaries."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from memci import Context
from memci.history.backup import repeat_erasures
from memci.history.copying import copy_contexts
from memci.history.erase import erase, finish_erasures
from memci.history.erasures import unfinished_erasures
from memci.storage.opening import open_store
from tests.context.test_context_erase_jobs import (  # noqa: F401
    ASKED,
    WORD,
    asking,
    diary,
    test_another_owner_gets_no_words_of_other_contexts,
    test_words_found_after_the_page_was_stored_elsewhere_are_not_kept,
)
from tests.faults.canaries import rows_of, run


@pytest.fixture
def storage(postgres_url):
    """An empty store."""
    opened = open_store(postgres_url)
    yield opened
    opened.close()


@pytest.mark.parametrize("scope", ["page", "entry", "context", "owner"])
def test_words_found_by_other_contexts_leave_the_tables(scope, storage):
    """Whatever is erased, no row has it, nor what a handle keeps; the scrub finishes the job."""
    first = diary(storage)
    work, held = asking(storage), asking(storage, "held", stored=False)
    work.archive(keep=1)
    if scope in {"page", "entry"}:
        first.erase(1, 1 if scope == "entry" else None)
    else:
        first.close()
        erase(storage, **({"context": "diary"} if scope == "context" else {"owner": "ann"}))

    assert [name for name, told in rows_of(storage).items() if WORD in told] == []
    assert [job for job, killed, _ in unfinished_erasures(storage) if not killed]
    assert finish_erasures(storage).done
    assert list(unfinished_erasures(storage)) == []
    if scope != "owner":
        work.refresh()
        assert WORD not in json.dumps([work.render(), held.render(ASKED)])
        assert [each.verify() for each in (work, held)] == [[], []]


def test_what_is_erased_is_nowhere(server):
    """Renderings, exports, searches, messages, tables and the server's files, also if an erasure is killed."""
    done, left = run(server.url, 11, 4, data=Path(server.data))

    assert left == []
    assert done["erased"] >= 4


def test_later_erasures_are_repeated_in_a_copy(storage, a_schema):
    """A page and a whole context; what is new in the copy stays."""
    first = diary(storage)
    asking(storage).close()
    with a_schema() as url, closing(open_store(url)) as copy:
        list(copy_contexts(storage, copy))
        Context.open(copy, "new", owner="ann", window=4_000).append_turn("Hello.")
        first.erase(1)
        erase(storage, context="work")

        receipts = repeat_erasures(copy, storage)

        assert [(each.contexts, each.entries) for each in receipts] == [(0, 2), (1, 3)]
        assert sorted(record.id for record in copy.contexts()) == ["diary", "new"]
        assert [name for name, told in rows_of(copy).items() if WORD in told] == []
        assert repeat_erasures(copy, storage) == []
