"""Ingest: adds pages to a memory.

    observe   a page closed: cut it into passages, and index their words                           tier 0
    admit     it left the window, or its context was closed: append it to the short-term queue     tier 1
    settle    its context was silent for hours: the same

A page is identified by its context and index, and compared by a digest of its content. The same page again changes
nothing; one with other entries replaces the first.
"""

import hashlib
import json
from collections import Counter

from ..text.moments import local
from .backend import PageRecord, Scope
from .forgetting import forget
from .owner import Session
from .repository.pages import ASIDE, OBSERVED, QUARANTINED
from .retrieval.passages import passage_terms, passages
from .retrieval.postings import store_passages


def observe(session: Session, page: PageRecord, *, admits: bool = False) -> None:
    """Store *page* so that searches find its words. The caller holds the store's lock. O(its characters).

    If the memory has a model, queue a job that describes the page. With *admits*, append the page to the short-term
    queue, unless it was there before.
    """
    owner = session.owner
    digest = _digest(page)
    known = owner.pages.find(page.context, page.index)
    if known and known.digest == owner.key_digest(digest):
        enters = admits and known.tier == OBSERVED and not known.marks & QUARANTINED
        if enters or (not page.open and owner.pages.acknowledged(page.context) < page.index):
            with owner.change():
                owner.pages.acknowledge(page.context, page.index - page.open)
                if enters:
                    owner.pages.enqueue([known.id])
        return
    owner.fed[page.context] = session.clock()
    cut = passages([entry for entry in page.entries if entry[0] not in page.quotes])
    times = page.times if page.times or page.at is None else dict.fromkeys(dict(page.entries), local(page.at, 0))
    pieces = [(each, times.get(each.entry), Counter(passage_terms(each, times.get(each.entry)))) for each in cut]
    with owner.change():
        digest = owner.key_digest(digest)
        known = owner.pages.find(page.context, page.index)
        if known and known.digest == digest:  # another process stored it first
            id_ = known.id
        else:
            marks = (known.marks & QUARANTINED if known else 0) | (ASIDE if page.aside else 0)
            if known:  # nothing may remain of its old text, or of what was derived from it
                forget(owner, Scope(page.context, (page.index,)))
            if known or owner.pages.acknowledged(page.context) >= page.index:
                owner.reread_index()
            id_, context = owner.pages.add(page, digest, marks)
            owner.add_passages(store_passages(owner.passages, context, id_, pieces))
            if session.has_model and page.entries and not marks & QUARANTINED and not owner.jobs.enqueue("page", id_):
                owner.jobs.skip()
        if admits or (known and known.tier != OBSERVED):
            owner.pages.enqueue([id_])
    if known:
        session.store.scrub()


def settle(session: Session, before: float) -> None:
    """Admit the observed pages of contexts whose last page is not later than *before*. O(observed pages).

    Their windows may still be open, but they have not been used since.
    """
    owner = session.owner
    if owner.pages.silent(before):
        with owner.change():
            owner.pages.enqueue(owner.pages.silent(before))


def _digest(page: PageRecord) -> bytes:
    """Return 16 bytes that are equal for pages with equal content."""
    times = [(ordinal, when.isoformat()) for ordinal, when in page.times.items()]
    fields = [page.entries, page.turn, times or page.at, sorted(page.quotes), *([True] if page.aside else [])]
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
