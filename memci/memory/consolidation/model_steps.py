"""Steps: how a job of each kind is done, with a model, and without one if it failed too often.

    page          a note: title, lines, keywords, events                      without: what is extracted stands
    handover      the oldest pages of the queue join episodes, by topic       without: topics by clustering
    notice        events of the notes, days, counters                         it needs no model
    episode       its summary, from its raw pages                             without: titles of its pages stand
    analysis      facts, and the profile                                      without: patterns
    graph         concepts and relations                                      without: patterns
    day, conversation, strategy                                               without: what was extracted stands

Each reads, asks, and writes in one transaction that first looks whether all is as it was read. This module knows
nothing of when a job is due, or of what becomes of one that fails.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..backend import PageRecord
from ..owner import Conflict
from ..repository.items import dumped, put
from ..repository.job_queue import Job
from ..repository.reading import QUARANTINED, raw_pages, there
from ..repository.store import fetched
from ..tiers.chains import PageFeatures, page_text
from ..tiers.episodes import told
from ..tiers.events import conversation, day_of
from ..tiers.profile import Profile
from ..tiers.provenance import sources, vocabulary
from ..tiers.relations import Page, Relation
from ..tiers.topics import Topic
from . import page_notes as notes
from . import prompts as model
from .episode_building import hand_over
from .event_detection import Ended, last_said, notice, spoken
from .fact_extraction import SENT, Learned, keep_profile, learn, relate
from .job_runner import Bench, Step
from .page_notes import Note, notes_of, plainly

_FORERUNNERS = 8
"""pages that what is told of a chain may come from; of a longer one it is told anew"""


class _Before(NamedTuple):
    """The page before another one."""

    id: int
    offered: model.Before
    sources: Sequence[int]
    """the pages that what is offered comes from"""


def _page(bench: Bench, job: Job) -> None:
    storage, store = bench.means.storage, bench.means.store
    rows = store.read_rows("SELECT digest FROM memory_page WHERE id = ? AND analyzed & ? = 0", job.subject, QUARANTINED)
    pages = [page for _, page in raw_pages(storage, store, [job.subject])]
    if bench.chat is None or not rows or not pages or not pages[0].entries:
        return
    (page,), before = pages, _before(bench, job.subject)
    said = model.describe(
        bench.chat,
        page,
        None if before is None else before.offered,
        zone=bench.means.rules.zone,
        on_rejected=bench.chat.rejected,
    )
    note = Note(
        job.subject,
        rows[0][0].hex(),
        said.title,
        said.summary.lines,
        said.keywords,
        said.continues,
        None if before is None else before.id,
        said.chain,
        said.events,
        plainly(page),
    )
    texts = "\n".join((said.title, *note.lines, *said.keywords, said.chain, *(each.what for each in said.events)))
    read = [job.subject] if before is None else [job.subject, *before.sources]
    sent = {id_: vocabulary(page_text(each)) for id_, each in raw_pages(storage, store, read)}
    from_ = sources(texts, [job.subject], sent)
    with bench.change() as connection:
        if not there(connection, read):
            raise Conflict
        notes.keep(connection, bench.owner.nr, note, from_)
        connection.execute(
            "UPDATE memory_page SET summary = ?, keywords = ? WHERE id = ? AND summary <> ''",
            (note.title, json.dumps(note.keywords, ensure_ascii=False), note.page),
        )


def _before(bench: Bench, page: int) -> _Before | None:
    """Return the page before *page* in its context, as a model is told of it; None if there is none."""
    store = bench.means.store
    found = store.read_rows(_PREVIOUS, page)
    if not found or found[0][1] & QUARANTINED:
        return None
    id_ = found[0][0]
    known = notes_of(store, [id_])
    if id_ not in known:
        pages = [each for _, each in raw_pages(bench.means.storage, store, [id_])]
        title = plainly(pages[0]).title if pages else ""
        return _Before(id_, model.Before(title), [id_]) if title else None
    key, note = known[id_]
    from_ = [row[0] for row in store.read_rows("SELECT page FROM memory_evidence WHERE item = ?", key)]
    if len(from_) > _FORERUNNERS:
        return _Before(id_, model.Before(note.plain.title), [id_]) if note.plain.title else None
    return _Before(id_, model.Before(note.title, note.chain), from_)


_PREVIOUS = """
SELECT b.id, b.analyzed FROM memory_page AS g JOIN memory_page AS b ON b.context = g.context AND b.page < g.page
WHERE g.id = ? ORDER BY b.page DESC LIMIT 1"""


def _handover(bench: Bench, job: Job) -> None:  # noqa: ARG001 -- there is one queue
    means, chat = bench.means, bench.chat

    def divided(batch: Sequence[PageFeatures]) -> Sequence[Topic]:
        assert chat is not None, "without a model the rules divide"
        return model.themes(chat, batch, on_rejected=chat.rejected) if len(batch) > 1 else means.rules.topics(batch)

    hand_over(
        means.storage,
        means.store,
        bench.owner,
        means.embedder,
        means.rules,
        bench.now,
        topics=None if chat is None else divided,
        change=bench.change,
    )


def _notice(bench: Bench, job: Job) -> None:  # noqa: ARG001 -- there is one buffer
    means = bench.means
    notice(means.storage, means.store, bench.owner, means.rules, bench.now, modelled=True, change=bench.change)


def _episode(bench: Bench, job: Job) -> None:
    means, owner, key = bench.means, bench.owner, job.subject
    with means.store.lock:
        owner.refresh()
        episode = owner.tiers.episodes.get(key)
    if episode is None or not episode.grown:
        return
    members = means.store.read_rows("SELECT id, summary FROM memory_page WHERE episode = ? ORDER BY id", key)
    if bench.chat is None:
        after = replace(episode, told=episode.length, version=episode.version + 1)
    else:
        ids = [row[0] for row in members[:SENT]]
        pages = list(raw_pages(means.storage, means.store, ids))
        said = model.retold(bench.chat, episode, [page for _, page in pages], on_rejected=bench.chat.rejected)
        read = {id_ for id_, page in pages if page.key in said.sent}
        others = [title for id_, title in members if id_ not in read]
        after = told(episode, said.summary, said.keywords, said.importance, others)
    with bench.change() as connection:
        now = owner.tiers.episodes.get(key)
        left = fetched(connection, "SELECT id, summary FROM memory_page WHERE episode = ? ORDER BY id", key)
        if now is None or left != members or now.summary != episode.summary:
            raise Conflict
        after = replace(after, warmth=now.warmth, version=now.version + 1)
        put(connection, owner.nr, "episode", dumped(after, without=["embedding"]), id=key, vector=after.embedding)
        owner.tiers.keep(key, after)


def _analysis(bench: Bench, job: Job) -> None:
    means, chat = bench.means, bench.chat

    def learner(profile: Profile, pages: Sequence[PageRecord]) -> Learned:
        assert chat is not None, "without a model the rules learn"
        said = model.learned(chat, profile, pages, on_rejected=chat.rejected)
        return Learned(said.facts, said.text, said.traits, said.sent)

    learn(
        means.storage,
        means.store,
        bench.owner,
        means.rules,
        bench.now,
        job.subject,
        learner=None if chat is None else learner,
        change=bench.change,
    )


def _graph(bench: Bench, job: Job) -> None:
    means, chat = bench.means, bench.chat

    def relater(pages: Sequence[PageRecord]) -> tuple[Sequence[Relation], Sequence[Page]]:
        assert chat is not None, "without a model the rules relate"
        said, sent = model.related(chat, pages, on_rejected=chat.rejected)
        return [relation for _, relation in said], sent

    relate(
        means.storage,
        means.store,
        bench.owner,
        means.rules,
        job.subject,
        relater=None if chat is None else relater,
        change=bench.change,
    )


def _day(bench: Bench, job: Job) -> None:
    means, owner = bench.means, bench.owner
    with means.store.lock:
        owner.refresh()
        days = [(date, day) for date, (id_, day) in owner.tiers.days.items() if id_ == job.subject]
    if bench.chat is None or not days:
        return
    ((date, day),) = days
    rows = means.store.read_rows("SELECT page FROM memory_evidence WHERE item = ? ORDER BY page", job.subject)
    ids = [row[0] for row in rows]
    pages = [page for _, page in raw_pages(means.storage, means.store, ids)]
    own = [page for page in pages if page.at is not None and day_of(page.at, means.rules.zone) == date and page.entries]
    if not own:
        return
    after = model.day(bench.chat, day, own, on_rejected=bench.chat.rejected)
    with bench.change() as connection:
        if owner.tiers.days.get(date) != (job.subject, day) or not there(connection, ids):
            raise Conflict
        put(connection, owner.nr, "day", dumped(after), id=job.subject)
        owner.tiers.days[date] = job.subject, after


def _conversation(bench: Bench, job: Job) -> None:
    means, owner = bench.means, bench.owner
    said = spoken(means.storage, means.store, Ended(*json.loads(job.body)))
    ids, pages = [id_ for id_, _ in said], [page for _, page in said]
    if bench.chat is None or not pages:
        return
    plain = conversation(pages, means.rules.zone)
    after = model.conversation(bench.chat, pages, means.rules.zone, on_rejected=bench.chat.rejected)
    with bench.change() as connection:
        profile = owner.tiers.profile
        if plain in profile.conversations:  # else a page of it was erased, or five others came since
            at = profile.conversations.index(plain)
            both = (*profile.conversations[:at], after, *profile.conversations[at + 1 :])
            keep_profile(connection, owner, replace(profile, conversations=both), ids)


def _strategy(bench: Bench, job: Job) -> None:
    means, owner = bench.means, bench.owner
    with means.store.lock:
        owner.refresh()
        before = owner.tiers.profile
    if bench.chat is None or not owner.nr:
        return
    ids, messages = last_said(means.storage, means.store, owner.nr, int(json.loads(job.body)))
    strategy, tags = model.treated(bench.chat, messages, on_rejected=bench.chat.rejected)
    with bench.change() as connection:
        profile = owner.tiers.profile
        same = (profile.strategy, profile.strategy_turns) == (before.strategy, before.strategy_turns)
        if not same or not there(connection, ids):
            raise Conflict
        treated = replace(profile.treated(strategy, tags), strategy_turns=profile.strategy_turns)
        keep_profile(connection, owner, treated if strategy else profile, ids)


STEPS: Mapping[str, Step] = {
    "page": _page,
    "handover": _handover,
    "notice": _notice,
    "episode": _episode,
    "analysis": _analysis,
    "graph": _graph,
    "day": _day,
    "conversation": _conversation,
    "strategy": _strategy,
}
"""by kind"""
