"""Forgetting: what is erased from a memory, and all that was derived from it.

    page #7 is erased        its row, passages, words and vectors go; so does what is derived from it alone
                             its episode is rebuilt from the pages that are left
    page #9 is quarantined   its row, passages and words stay: words still find it
                             what was derived from it goes, and nothing is derived from it again

What else an erased item came from is analysed again.
"""

from collections.abc import Collection, Mapping
from contextlib import closing

from ..errors import KeyMissing
from ..storage import Storage
from .backend import Forgotten, Scope
from .owner import Owner, owner_of
from .repository.home import tables_of
from .repository.pages import QUARANTINED
from .repository.passages import DAY, NOTE, STRATEGY, TALK, TOPIC, TRAITS
from .retrieval import knowledge
from .tiers import episodes, facts
from .tiers.profile import Profile
from .tiers.topics import ChainSummary


def quarantine(owner: Owner, context: str, index: int) -> Forgotten:
    """Remove all that was derived from a page, and derive nothing from it again. O(what is rebuilt).

    The page itself stays, and is found by its words. The store's lock is held.
    """
    owner.refresh()
    if not owner.nr or not owner.pages.ids(context, (index,)):
        return Forgotten()
    with owner.change():
        pages = owner.pages.ids(context, (index,))
        derived = owner.items.derived(pages)
        for page in pages:
            owner.pages.detach(page)
            owner.pages.quarantine(page)
            _bare(owner, [page], (NOTE, TOPIC, DAY, TALK, STRATEGY, TRAITS))
        for item in derived:
            _rebuild(owner, item)
        owner.items.drop(_savings(owner, context, (index,)))
        owner.outdate()
    return Forgotten(0, len(derived), scrubbed=owner.store.scrub())


def forget_everywhere(storage: Storage, gone: Mapping[str, Collection[int] | None]) -> None:
    """Remove what is *gone* (pages by context; None: the whole context) from every owner's memory. O(what goes).

    A context may have had another owner before, or forks with owners of their own. An owner without a context is
    removed; so is one whose key is gone, if a whole context goes. What is left in the files, `scrub` removes.
    """
    with closing(tables_of(storage)) as store:
        for context, pages in gone.items():
            for name in store.owner_names(context):
                with store.lock:
                    owner = owner_of(store, name)
                    try:
                        forget(owner, Scope(context, pages))
                    except KeyMissing:
                        if pages is not None:
                            raise
                        forget(owner, Scope())  # without its key nobody can read it, and the context is to go
                    if not owner.pages.has_context():
                        forget(owner, Scope())


def scrub(storage: Storage, *, whole: bool) -> bool:
    """Remove the bytes that are left of what was forgotten; return whether none can be left (`MemoryStore.scrub`)."""
    with closing(tables_of(storage)) as store:
        return store.scrub(whole=whole)


def forget(owner: Owner, scope: Scope) -> Forgotten:
    """Remove what *scope* names, and what was derived from it; its bytes are left until the store is scrubbed.

    All of an owner goes unread, though its key be gone or a row be damaged. The lock is held. O(its pages + the index).
    """
    whole = scope == Scope()
    if whole:
        owner.nr = owner.read_state()[0]
    else:
        owner.refresh()
    context, indexes = scope.context, scope.pages
    if not owner.nr or (
        indexes is not None and not owner.pages.ids(context, indexes) and not _savings(owner, context, indexes)
    ):
        return Forgotten()
    with owner.store.change() if whole else owner.change():
        pages = owner.pages.ids(context, indexes)
        derived = [] if whole else owner.items.derived(pages)
        owner.passages.remove(pages)
        for page in pages:
            owner.pages.remove(page)
        if indexes is not None:
            owner.pages.recount(context)
        for item in derived:
            _rebuild(owner, item)
        if indexes is None:
            owner.pages.forget_context(context)
        owner.store.purge()
        if whole:
            owner.jobs.clear()
        else:
            owner.items.drop(_savings(owner, context, indexes))
            owner.disorder()
            owner.outdate()
    if whole:
        owner.store.owners.drop(owner.name)
    facts.forget_texts()
    knowledge.forget_texts()
    return Forgotten(len(pages), len(derived), scrubbed=False)


def _savings(owner: Owner, context: str | None, indexes: Collection[int] | None) -> list[int]:
    """Return the facts that wait for pages of a context, with *indexes* if given."""
    return [
        id_
        for id_, each in owner.tiers.savings.items()
        if each.context == context and (indexes is None or each.index in indexes)
    ]


def _bare(owner: Owner, pages: Collection[int], kinds: Collection[int]) -> None:
    """Let *pages* be found no more by what a model wrote of these *kinds*."""
    for kind in kinds:
        owner.annotate(kind, dict.fromkeys(pages, ()))


def _rebuild(owner: Owner, item: int) -> None:
    """Rebuild an item from the pages that are left of it; drop it if that can't be done. O(its pages)."""
    left = owner.pages.extracts(item)
    tiers = owner.tiers
    days = {id_ for id_, _ in tiers.days.values()}
    kinds = (TALK, STRATEGY, TRAITS) if item == tiers.profile_id else (DAY,) if item in days else (TOPIC,)
    if item in {tiers.profile_id, *days, *tiers.episodes}:  # what a model wrote of these pages had more of them
        _bare(owner, [each.id for each in left], kinds)
    episode, chain = tiers.episodes.get(item), tiers.chains.get(item)
    if left and episode is not None:
        rebuilt = episodes.retold(episode, [each.features for each in left])
        owner.items.put(rebuilt, id=item)
    elif left and chain is not None:
        summary = ChainSummary()
        for each in left:
            summary = summary.updated(each.features.title)
        owner.items.put(summary, id=item)
    else:  # what else it came from is analysed again
        if item == tiers.profile_id:  # the counters hold nothing that was said
            bare = Profile(turns=tiers.profile.turns, last_turn=tiers.profile.last_turn)
            owner.items.put(bare, id=item)
        else:
            owner.items.drop([item])
        owner.pages.mark((each.id for each in left), keep=QUARANTINED)
