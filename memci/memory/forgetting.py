"""Forgetting: erases pages from a memory, with all that was derived from them.

    page #7 is erased        removes its row, passages, words and vectors, and what was derived from it alone;
                             rebuilds its episode from the other pages
    page #9 is quarantined   keeps its row, passages and words, so that searches find it;
                             removes what was derived from it, and derives nothing from it again

The other pages from which a removed item was derived are analysed again.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import product

from ..errors import CorruptRecord, KeyMissing
from ..storage import Storage
from ..storage.audit import mark
from ..text.sanitize import JOINT
from .backend import Forgotten, Scope
from .owner import Owner, owner_of
from .repository.home import all_tables_of
from .repository.pages import QUARANTINED
from .repository.passages import DAY, NOTE, STRATEGY, TALK, TOPIC, TRAITS
from .tiers import episodes, facts
from .tiers.episodes import Episode
from .tiers.events import DailySummary, LifeEvent
from .tiers.graph import Relation
from .tiers.profile import Profile
from .tiers.topics import Chain


def quarantine(owner: Owner, context: str, index: int) -> Forgotten:
    """Remove everything derived from a page, and derive nothing from it again. O(what is rebuilt).

    Searches still find the page by its words. The caller holds the store's lock.
    """
    owner.refresh()
    if not owner.nr or not owner.pages.ids_of(context, (index,)):
        return Forgotten()
    with owner.change():
        pages = owner.pages.ids_of(context, (index,)).values()
        derived = owner.items.derived(pages)
        for page in pages:
            owner.pages.detach(page)
            owner.pages.quarantine(page)
        _drop_annotations(owner, pages, (NOTE, TOPIC, DAY, TALK, STRATEGY, TRAITS))
        for item in derived:
            _rebuild(owner, item, pages)
        owner.items.drop(_waiting_facts(owner, Scope(context, (index,))))
        owner.outdate()
    return Forgotten(0, len(derived), scrubbed=owner.store.scrub())


def forget_everywhere(storage: Storage, gone: Mapping[str, Collection[int] | None]) -> None:
    """Remove erased pages from every owner's memory: *gone* has them by context (None: the whole context).

    A context may have had another owner before, and its forks may have others. An owner without contexts is removed,
    and so is one without a key, if a whole context goes. Use `scrub` to remove the bytes in the files. O(what goes).
    """
    with all_tables_of(storage) as stores:
        for store, (context, pages) in product(stores, gone.items()):
            for name in store.owner_names(context):
                with store.lock:
                    owner = owner_of(store, name)
                    try:
                        forget(owner, Scope(context, pages))
                    except KeyMissing:
                        if pages is not None:
                            raise
                        forget(owner, Scope())  # nobody can read it without its key, and the context must go
                    if not owner.pages.has_context():
                        forget(owner, Scope())


def texts_of(storage: Storage, gone: Mapping[str, Collection[int] | None]) -> set[str]:
    """Return what searches show of pages in other words: the texts that forgetting the pages *gone* removes, by line.

    *gone* has them by context (None: the whole context). What can't be read is shown by no search. O(what was derived).
    """
    texts = set[str]()
    with all_tables_of(storage) as stores:
        for store, (context, indexes) in product(stores, gone.items()):
            for name in store.owner_names(context):
                with store.lock, suppress(KeyMissing, CorruptRecord):
                    owner = owner_of(store, name)
                    pages = owner.pages.ids_of(context, indexes).values()
                    for id_, item in owner.items.values(owner.items.derived(pages)):
                        titles = [each.title for page, each in owner.pages.features(id_).items() if page not in pages]
                        left = "\n".join(["", *titles]).replace(JOINT, "\n")
                        told = (line.strip() for text in _texts(item, pages) for line in text.splitlines())
                        texts |= {line for line in told if line and "\n" + line.removesuffix("…") not in left}
    return texts


def _texts(item: object, gone: Collection[int]) -> Iterator[str]:
    """Yield the texts of *item* that a search shows, and that it may have from the pages *gone*."""
    match item:
        case facts.Known():
            left = item.without(gone)
            stay = () if left is None else (left, *left.sayings)
            yield from {each.text for each in (item, *item.sayings)}.difference(each.text for each in stay)
        case Episode():
            yield item.summary.replace(JOINT, "\n")
        case Chain():
            yield from (point.replace(JOINT, "\n") for point in item.points)
        case LifeEvent():
            yield item.what
        case DailySummary():
            yield item.summary
        case Relation():
            yield f"{item.source} — {item.kind} → {item.target}"
        case Profile():
            yield from (item.strategy, item.text, *(each.text for each in item.previous))
            yield from (text for each in item.conversations for text in (each.summary, *each.notable_moments))


def forget_owners(storage: Storage, marks: Collection[str]) -> None:
    """Remove whole memories, of the owners with these *marks*: also of contexts that are another's now. O(owners)."""
    with all_tables_of(storage) as stores:
        for store in stores:
            for name in [each for each in store.owner_names() if mark(each) in marks]:
                with store.lock:
                    forget(owner_of(store, name), Scope())


def remembers(storage: Storage, owner: str) -> bool:
    """Return whether there is a memory of *owner*. O(owners)."""
    with all_tables_of(storage) as stores:
        return any(owner in store.owner_names() for store in stores)


def owners_of(storage: Storage, contexts: Collection[str]) -> set[str]:
    """Return the owners whose memories know one of *contexts*. O(contexts)."""
    with all_tables_of(storage) as stores:
        return {name for store in stores for context in contexts for name in store.owner_names(context)}


def scrub(storage: Storage, *, whole: bool) -> bool:
    """Remove the bytes of forgotten rows from the files; return whether none are left (`MemoryStore.scrub`)."""
    with all_tables_of(storage) as stores:
        scrubbed = [store.scrub(whole=whole) for store in stores]
    return all(scrubbed)


def forget(owner: Owner, scope: Scope) -> Forgotten:
    """Remove everything in *scope*, and what was derived from it. Its bytes stay until the store is scrubbed.

    A whole owner is removed without reading its rows, so that a lost key or a damaged row is no obstacle. The caller
    holds the store's lock. O(its pages + the index).
    """
    whole = scope == Scope()
    if whole:
        owner.nr = owner.read_state()[0]
    else:
        owner.refresh()
    context, indexes = scope.context, scope.pages
    if not owner.nr or not (
        context is None or indexes is None or owner.pages.ids_of(context, indexes) or _waiting_facts(owner, scope)
    ):
        return Forgotten()
    with owner.store.change() if whole else owner.change():
        pages = owner.pages.ids() if context is None else [*owner.pages.ids_of(context, indexes).values()]
        derived = [] if whole else owner.items.derived(pages)
        owner.passages.remove(pages)
        for page in pages:
            owner.pages.remove(page)
        if indexes is not None:
            owner.pages.recount(context)
        for item in derived:
            _rebuild(owner, item, pages)
        if indexes is None:
            owner.pages.forget_context(context)
        owner.store.purge()
        if whole:
            owner.jobs.clear()
        else:
            owner.items.drop(_waiting_facts(owner, scope))
            owner.reread_index()
            owner.outdate()
    if whole:
        owner.store.owners.drop(owner.name)
    facts.forget_texts()
    return Forgotten(len(pages), len(derived), scrubbed=False)


def _waiting_facts(owner: Owner, scope: Scope) -> list[int]:
    """Return the facts that wait for pages in *scope*."""
    waiting, pages = owner.tiers.savings.items(), scope.pages
    return [id_ for id_, each in waiting if each.context == scope.context and (pages is None or each.index in pages)]


def _drop_annotations(owner: Owner, pages: Collection[int], kinds: Collection[int]) -> None:
    """Remove the terms by which a model's texts of these *kinds* made *pages* searchable."""
    for kind in kinds:
        owner.annotate(kind, dict.fromkeys(pages, ()))


def _rebuild(owner: Owner, item: int, gone: Collection[int]) -> None:
    """Rebuild an item from its pages without those *gone*, or drop it if that is impossible. O(its pages)."""
    left = owner.pages.features(item)
    tiers = owner.tiers
    days = {id_ for id_, _ in tiers.days.values()}
    kinds = (TALK, STRATEGY, TRAITS) if item == tiers.profile_id else (DAY,) if item in days else (TOPIC,)
    if item in {tiers.profile_id, *days, *tiers.episodes}:  # a model's text was about the removed pages, too
        _drop_annotations(owner, left, kinds)
    episode, chain, fact = tiers.episodes.get(item), tiers.chains.get(item), tiers.facts.get(item)
    if fact is not None and (said := fact.without(gone)) is not None:
        owner.items.put(said, id=item)
    elif left and episode is not None:
        owner.items.put(episodes.rebuild_episode(episode, [*left.values()]), id=item)
    elif left and chain is not None:
        rebuilt = Chain(chain.context, episode=chain.episode)
        for page in left.values():
            rebuilt = rebuilt.updated(page).noted(page.title)
        owner.items.put(rebuilt, id=item)
    else:  # its other pages are analysed again
        if item == tiers.profile_id:  # the counters contain no text
            bare = Profile(turns=tiers.profile.turns, last_turn=tiers.profile.last_turn)
            owner.items.put(bare, id=item)
        else:
            owner.items.drop([item])
        owner.pages.mark(left, keep=QUARANTINED)
