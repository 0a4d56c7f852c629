"""The index: postings and columns are the same however they were read, and whatever came since."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_kit import keeping

from memci.memory import TieredMemory
from memci.memory.repository.passages import NOTE
from memci.memory.retrieval import postings
from memci.storage import EncryptedStorage, EphemeralStorage
from memci.testing.memory.pages import told

WORDS = ("harvest", "harves", "harvset", "orchard", "pz-100042", "pz-100043", "quince")
ASKED = (*WORDS, "harvast", "arvest", "orchards", "pz-1000", "nothing")


def read(index, terms):
    """Return which passages have each of *terms*, and how often."""
    return {
        term: (positions.tolist(), times.tolist())
        for term in terms
        for positions, times in [index.postings([term])[term]]
    }


def one_by_one(memory):
    """Return an index of what the memory has now, which reads term by term."""
    index = memory.session.store.index(memory.session.owner.passages)
    index._lookups = -math.inf
    return index


steps = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)),
        st.tuples(st.just("ask"), st.lists(st.sampled_from(ASKED), min_size=1, max_size=3)),
        st.tuples(st.just("annotate"), st.lists(st.sampled_from(WORDS), max_size=2)),
    ),
    min_size=4,
    max_size=16,
)


@settings(max_examples=20, deadline=None)
@given(steps=steps, most=st.sampled_from([0, 3, 4_096]), encrypted=st.booleans())
def test_postings_are_the_same_however_they_were_read(steps, most, encrypted):
    """Read at once or one by one, before or after passages came or a model added terms; also misspelled ones."""
    store = EncryptedStorage(EphemeralStorage(), bytes(range(32))) if encrypted else EphemeralStorage()
    memory = TieredMemory(store, owner="ada")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_AT_ONCE", most)
        for number, (act, words) in enumerate(steps, 1):
            owner = memory.session.owner
            if act == "tell":
                page = told(number, " ".join(words))
                keeping(store)(page)
                memory.observe(page)
            elif act == "annotate" and owner.nr:
                ids = owner.pages.ids_of("alice", [page.index])
                with owner.change():
                    owner.annotate(NOTE, dict.fromkeys(ids.values(), words))
            elif owner.nr:
                read(owner.index, words)

    owner.refresh(index=True)
    assert not owner.nr or read(owner.index, ASKED) == read(one_by_one(memory), ASKED)


@pytest.mark.parametrize("most", [0, 4_096])
def test_words_that_no_passage_has_take_no_more_ram_than_others(most, monkeypatch):
    """Questions never run out of them, and a server keeps an index for months."""
    monkeypatch.setattr(postings, "_AT_ONCE", most)
    monkeypatch.setattr(postings, "MOST_POSTINGS", 1_600)
    store = EphemeralStorage()
    memory = TieredMemory(store, owner="ada")
    page = told(1, " ".join(WORDS))
    keeping(store)(page)
    memory.observe(page)
    kept = []
    for number in range(60):
        memory.search(f"harvest unheard{number} of pz-7{number:05} quincer{number}")
        kept.append(len(memory.session.owner.index._known))

    assert max(kept) < 200


def passages(index):
    """Return what the layout knows of each passage by its id, with its neighbours' ids, and whom names stand for."""
    columns, names = index.layout.columns, {number: name for name, number in index.layout.speakers.items()}
    ids = [*index.ids.tolist(), None]
    known = {name: [names[number] for number in index.layout.people(name)] for name in ("ann", "elder")}
    for at, id_ in enumerate(ids[:-1]):
        row = {name: column[..., at].tolist() for name, column in columns._asdict().items()}
        known[id_] = row | {"speaker": names[row["speaker"]], "links": [ids[link] for link in row["links"]]}
    return known


pages = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob"]),
        st.lists(st.sampled_from(["Where?", "On Monday, at noon.", "Always say so. " * 90]), min_size=1, max_size=3),
        st.sampled_from([None, 1.7e9 + 1 / 3, 1.7e9 + 1e5]),
        st.lists(st.sampled_from([None, "Ann", "Ben, the elder", '"王"']), max_size=3),
    ),
    max_size=8,
)


@settings(max_examples=20, deadline=None)
@given(pages, st.booleans())
def test_an_index_that_is_read_is_the_one_that_grew(given, encrypted):
    """Whoever speaks, however long, in whichever context, at an unknown time: a restart changes nothing."""
    store = EncryptedStorage(EphemeralStorage(), bytes(range(32))) if encrypted else EphemeralStorage()
    memory = TieredMemory(store, owner="ada")
    last = {"alice": 0, "bob": 0}
    for context, texts, at, names in given:
        last[context] += 1
        page = told(last[context], *texts, context=context, at=at, names=names)
        keeping(store)(page)
        memory.observe(page)

    owner = memory.session.owner
    owner.refresh(index=True)
    if owner.nr:
        np.testing.assert_equal(passages(one_by_one(memory)), passages(owner.index))
