"""Postings: those of a term are the same however they were read, and whatever came since."""

import math

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


@pytest.mark.parametrize("encrypted", [False, True])
@settings(max_examples=40, deadline=None)
@given(steps=steps, most=st.sampled_from([0, 3, 4_096]))
def test_postings_are_the_same_however_they_were_read(encrypted, steps, most):
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
