"""Ingest: adds pages to a memory.

    observe   a page closed, or a part of it left the window: index the words of its passages      tier 0
    admit     it left the window, or its context was closed: append it to the short-term queue     tier 1
    settle    its context was silent for hours: the same

A page is identified by its context and index, and compared by a digest of its content. The same page again changes
nothing; one that has grown gets the new passages, and one with other entries replaces the first.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from ..text.moments import local
from .backend import PageRecord, Scope
from .forgetting import forget
from .owner import Owner, Session
from .repository.pages import ASIDE, OBSERVED, QUARANTINED, KnownPage
from .retrieval.passages import Passage, passage_terms, passages
from .retrieval.postings import store_passages


def observe(session: Session, page: PageRecord, *, admits: bool = False) -> None:
    """Store *page* so that searches find its words. The caller holds the store's lock. O(its characters).

    If the memory has a model, queue a job that describes the page. With *admits*, append the page to the short-term
    queue, unless it was there before.
    """
    owner = session.owner
    digests = list(_digests(page))
    known = owner.pages.find(page.context, page.index)
    if known and known.digest == owner.key_digest(digests[-1]):
        if admits and known.tier == OBSERVED and not known.marks & QUARANTINED:
            with owner.change():
                owner.pages.acknowledge(page.context, page.index - page.open)
                owner.pages.enqueue([known.id])
        return  # that it was sent again is stored with the next page
    owner.fed[page.context] = session.clock()
    grown = _known_length(owner, known, digests)
    pieces, revision = _pieces(page, grown), owner.revision
    with owner.change():
        session.keep_rules()
        digest = owner.key_digest(digests[-1])
        if owner.revision != revision + 1:  # another process stored something first
            known = owner.pages.find(page.context, page.index)
            grown = _known_length(owner, known, digests)
            pieces = _pieces(page, grown)
        marks = (known.marks & QUARANTINED if known else 0) | (ASIDE if page.aside else 0)
        if known and known.digest == digest:
            id_ = known.id
        else:
            if known and grown:
                id_, context = owner.pages.grow(page, known.id, digest)
            else:
                if known:  # nothing may remain of its old text, or of what was derived from it
                    forget(owner, Scope(page.context, (page.index,)))
                if known or owner.pages.acknowledged(page.context) >= page.index:
                    owner.reread_index()
                id_, context = owner.pages.add(page, digest, marks)
            owner.fresh = store_passages(owner.passages, context, id_, pieces)
            if session.has_model and page.entries and not marks & QUARANTINED and not owner.jobs.enqueue("page", id_):
                owner.jobs.skip()
        if admits or (known and known.tier != OBSERVED):
            owner.pages.enqueue([id_])
    if known and not grown:
        session.store.scrub()


def _known_length(owner: Owner, known: KnownPage | None, digests: Sequence[bytes]) -> int:
    """Return how many entries of a page that has grown are known: 0 if it is new, or has changed otherwise."""
    if known is None or known.tier != OBSERVED or known.marks & (QUARANTINED | ASIDE):
        return 0
    return {owner.key_digest(each): length for length, each in enumerate(digests)}.get(known.digest, 0)


def _pieces(page: PageRecord, known: int) -> list[tuple[Passage, datetime | None, Counter[str]]]:
    """Return the passages of *page* behind its first *known* entries, with their times and terms."""
    cut = passages([entry for entry in page.entries[known:] if entry[0] not in page.quotes])
    times = page.times if page.times or page.at is None else dict.fromkeys(dict(page.entries), local(page.at, 0))
    return [(each, times.get(each.entry), Counter(passage_terms(each, times.get(each.entry)))) for each in cut]


def settle(session: Session, before: float) -> None:
    """Admit the observed pages of contexts whose last page is not later than *before*. O(observed pages).

    Their windows may still be open, but they have not been used since.
    """
    owner = session.owner
    if owner.pages.silent(before):
        with owner.change():
            owner.pages.enqueue(owner.pages.silent(before))


def _digests(page: PageRecord) -> Iterator[bytes]:
    """Yield 16 bytes for each beginning of *page*, the whole last, which are equal if its content is. O(characters)."""
    whole = hashlib.blake2b(json.dumps([page.turn, page.at, page.aside]).encode(), digest_size=16)
    yield whole.digest()
    for entry in page.entries:
        when = page.times.get(entry[0])
        fields = [*entry, entry[0] in page.quotes, when and when.isoformat()]
        text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
        whole.update(text.encode("utf-8", "surrogatepass"))
        yield whole.digest()
