"""TieredMemory: short-term pages, episodes and long-term knowledge, kept beside the pages.

    observe ──▶ words ─────────────────────────────▶ search
    admit   ──▶ short-term ──▶ episodes ──▶ facts, profile, graph ──▶ search
                 `maintain` moves them on                            `run_job`: a model improves it

It works without a model and without a network. With a model, rules still do the steps at once, and the model's results
replace theirs later, in the background.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date

from ..errors import InvalidSetting, LimitExceeded, StorageError, brief
from ..llm.model import ChatModel, check_chat
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.audit import audit
from ..storage.validation import check_filled, check_int
from ..text.summarize import Summary, one_line
from ..tokens import counter_for
from ..workers import guard_lock
from .backend import Forgotten, Learned, PageRecord, Recollection, Scope, Shown, Work
from .consolidation import job_runner, maintenance
from .consolidation.fact_extraction import keep_profile, keep_saving
from .forgetting import forget, quarantine
from .ingest import observe
from .owner import Session
from .repository.home import tables_of
from .repository.job_queue import MOST
from .repository.pages import ASIDE
from .retrieval.embedders import Embedder
from .retrieval.hash_embedder import HashEmbedder
from .retrieval.results import RetrievalRequest
from .retrieval.retrieve import recollect
from .tiers.facts import LONGEST, About, Kind, Known, digest_of
from .tiers.rules import Rules


@checked
class TieredMemory:
    """The memory of one owner, in three tiers.

    Args:
        storage: The store of the pages. Derived data is kept beside them.
        owner: Name of the owner.
        embedder: Turns texts into vectors; default: `HashEmbedder`, which compares words and needs no model.
        rules: Sizes and thresholds of the tiers, which are stored with the owner; default: the stored ones.
        path: A file for the derived data, for a store that has no place for it.
        chat: A model that improves the results in the background; None: only rules.
        ceiling: Tokens that the model may cost in a UTC day; None: no limit.
        counter: Counts the tokens of a text, for budgets; default: the o200k vocabulary.
        read_only: Whether nothing is written: then searches do not count as visits.
        clock: Seconds since 1970; for tests.

    Raises:
        InvalidSetting: If an argument is invalid, or the store has no place for a memory and *path* is not given.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        owner: str,
        embedder: Embedder | None = None,
        rules: Rules | None = None,
        path: str | os.PathLike[str] | None = None,
        chat: ChatModel | None = None,
        ceiling: int | None = None,
        counter: Callable[[str], int] | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(owner, str) or not owner:
            raise InvalidSetting("owner", f"expected a name (a str that is not empty), got {brief(owner)}")
        if embedder is not None and not callable(embedder):
            raise InvalidSetting("embedder", f"expected an Embedder, as memci.llm.Embeddings, got {brief(embedder)}")
        if chat is not None:
            check_chat("chat", chat)
        if ceiling is not None and (type(ceiling) is not int or ceiling < 0):
            raise InvalidSetting(
                "ceiling", f"tokens that may be spent in a day, 0 or more, or None; not {brief(ceiling)}"
            )
        if not isinstance(rules, Rules | None):
            raise InvalidSetting("rules", f"expected memci.memory.Rules, got {brief(rules)}")
        store = tables_of(storage, path)
        self._read_only = read_only or store.read_only
        self._chat = chat
        self._ceiling = ceiling
        self.session = Session(
            storage,
            store,
            owner,
            embedder or HashEmbedder(384),
            rules,
            clock,
            counter_for(None, counter),
            has_model=chat is not None and not self._read_only,
        )
        """the stores and settings of the memory"""
        if rules is not None and not self._read_only:
            # an error is raised at the first use, and not by opening
            with store.lock, suppress(StorageError):
                self.session.owner.refresh()
                if self.session.owner.nr:
                    with self.session.owner.change():
                        self.session.keep_rules()
        self.owner = owner
        """name of the owner"""
        self.notebooks: dict[str, Callable[[Learned], None]] = {}
        """how open contexts store what is learned of them, by their ids"""
        self._maintaining = guard_lock(threading.Lock())
        self._working = guard_lock(threading.Lock())
        self._closed = False

    def observe(self, page: PageRecord) -> None:
        """Make a closed page searchable. O(its characters)."""
        with self.session.store.lock:
            observe(self.session, page)

    def admit(self, page: PageRecord) -> None:
        """Put a page into the short-term queue, once. O(its characters)."""
        with self.session.store.lock:
            observe(self.session, page, admits=True)

    def acknowledged(self, context: str) -> int:
        """Return the highest index of an observed page of *context* that was not open; 0 if there is none."""
        return self.session.owner.pages.acknowledged(context)

    def set_aside(self, context: str) -> Collection[int]:
        """Return the pages of *context* that were set aside, because they could not be read or stored."""
        states = self.session.owner.pages.states(context)
        return [index for index, (_, marks) in sorted(states.items()) if marks & ASIDE]

    def observed(self, context: str) -> Collection[int]:
        """Return the pages of *context* that are in no tier yet. One query."""
        return self.session.owner.pages.observed(context)

    def removals(self) -> tuple[int, int]:
        """Return numbers that change when pages are forgotten. One small query."""
        number, _, removals = self.session.owner.read_state()
        return number, removals

    def end_session(self, context: str) -> None:
        """End the conversation in *context* and summarize it, as a silence does. O(its pages)."""
        with self._maintaining:
            maintenance.end_session(self.session, context, self.session.clock())

    def overdue(self) -> bool:
        """Return whether more pages wait for `maintain` than an open context usually leaves."""
        return maintenance.overdue(self.session)

    def search(
        self,
        query: str,
        *,
        k: int = 5,
        budget: int | None = None,
        since: float | None = None,
        until: float | None = None,
        wall: bool = False,
        now: date | None = None,
        exclude: Collection[Shown] = (),
        skip: int = 0,
    ) -> Recollection:
        """Return what fits *query*, best first. Results count as visited."""
        for name, value in (("k", k), ("budget", 0 if budget is None else budget), ("skip", skip)):
            check_int(name, value, 0)
        request = RetrievalRequest(query, k, budget, since, until, frozenset(exclude), wall, now, skip)
        with self.session.store.lock:
            return recollect(self.session, request, counts=not self._read_only)

    def erase(self, scope: Scope) -> Forgotten:
        """Remove everything in *scope*, and what was derived from it."""
        with self.session.store.lock:
            gone = forget(self.session.owner, scope)
            return gone if gone == Forgotten() else replace(gone, scrubbed=self.session.store.scrub())

    def maintain(self, now: float | None = None) -> int:
        """Do the maintenance that is due, and return how many pages moved between the tiers."""
        with self._maintaining:
            if now is not None:  # with a given time, only the times of pages count
                self.session.owner.fed.clear()
            return maintenance.maintain(self.session, self.session.clock() if now is None else now)

    @property
    def rules(self) -> Rules:
        """The rules that are in effect."""
        return self.session.rules

    @property
    def has_model(self) -> bool:
        """Whether a model improves the results."""
        return self.session.has_model

    def run_job(self, settle: Callable[[], None] | None = None) -> bool:
        """Run one job that is due, and return whether another one is due. O(its calls of the model)."""
        if self._chat is None or self._read_only:
            return False
        with self._working:
            return job_runner.run_job(self.session, self._chat, settle or (lambda: None), self._ceiling)

    def summaries(self, context: str, indexes: Collection[int]) -> Mapping[int, Summary]:
        """Return a model's summaries of those pages of *context* that have one. Two queries."""
        owner = self.session.owner
        ids = owner.pages.ids_of(context, indexes)
        notes = owner.items.notes(ids.values())
        return {index: notes[id_][1].summary for index, id_ in ids.items() if id_ in notes}

    def work(self) -> Work:
        """Return the costs of the model, and the number of jobs that wait. O(jobs + days)."""
        with self.session.store.lock:
            owner = self.session.owner
            owner.refresh()
            counts = owner.jobs.counts()
            return replace(counts, waiting=counts.waiting + len(owner.tiers.savings), spent=owner.usage.total())

    def learn(
        self,
        text: str,
        *,
        context: str,
        index: int,
        about: About = "user",
        at: float | None = None,
        kind: Kind = "fact",
    ) -> None:
        """Store *text* as a fact, on request. Searches find it once the memory has its page.

        While its context is open with this memory, the fact is stored with the context: then exports and copies have
        it, and a memory that is made again.

        Args:
            text: One sentence; a longer text is cut.
            context: The context that says it.
            index: The page that says it. Erasing the page erases the fact.
            about: The person it is about.
            at: When it was said, in seconds since 1970 UTC; default: the time of the page.
            kind: Whether it is about the person, or about how the user and the assistant stand to each other.

        Raises:
            InvalidSetting: If the text has no letter or digit, or a value is unknown.
            LimitExceeded: If too many facts wait for their pages, or its context stores too many.
        """
        check_filled("context", context)
        check_int("index", index)
        self._store_learned(context, Learned(index, about, _sentence(text), at, kind=kind))

    def correct(self, id: int, text: str) -> None:  # noqa: A002 -- of the fact
        """Replace the words of a fact, on request: the former ones are not derived again.

        Args:
            id: The number of the fact, as an overview of the memory has it (`memci.memory.inspect.HeldFact`).
            text: One sentence; a longer text is cut.

        Raises:
            InvalidSetting: If there is no such fact, or the text has no letter or digit.
            LimitExceeded: If its context stores too many facts.
        """
        self._replace(id, _sentence(text))

    def forget(self, id: int) -> None:  # noqa: A002 -- of the fact
        """Remove a fact, on request: it is not derived again from the same words. The page that says it stays.

        Args:
            id: The number of the fact, as an overview of the memory has it (`memci.memory.inspect.HeldFact`).

        Raises:
            InvalidSetting: If there is no such fact.
            LimitExceeded: If its context stores too many facts.
        """
        self._replace(id, "")

    def keep_learned(self, context: str, learned: Learned) -> None:
        """Take in a fact that *context* stored for a program, or the removal of one. The same again changes nothing."""
        owner = self.session.owner
        page, about, text, at, instead, kind = learned
        saving = Known(text, about, context, page, at=at, authored=True, instead=instead, kind=kind)
        with self.session.store.lock:
            owner.refresh()
            facts = owner.tiers.facts_about(about)
            here = [(each.text, each.instead) for each in facts.values() if each.authored and each.context == context]
            if (text, instead) in here or saving in owner.tiers.savings.values():
                return
            with owner.change():
                if len(owner.tiers.savings) >= MOST:
                    raise LimitExceeded("facts that wait for their pages", MOST + 1, MOST)
                owner.pages.acknowledge(context, 0)  # an erasure of the context finds the owner
                owner.drop([key for key, each in facts.items() if digest_of(each.text) == instead])
                keep_saving(owner, saving, self.session.clock())

    def _replace(self, id_: int, text: str) -> None:
        with self.session.store.lock:
            known = self.session.tiers().facts.get(id_)
        if known is None:
            raise InvalidSetting("id", f"there is no fact {brief(id_)}: memci facts lists them")
        learned = Learned(known.index, known.about, text, known.at, digest_of(known.text), known.kind)
        self._store_learned(known.context, learned)

    def _store_learned(self, context: str, learned: Learned) -> None:
        """Store a fact with its context, if that is open, and take it in."""
        if (note := self.notebooks.get(context)) is not None:
            note(learned)
        self.keep_learned(context, learned)

    def quarantine(self, context: str, index: int) -> Forgotten:
        """Remove everything derived from a page that cannot be trusted, and derive nothing from it again.

        Searches still find the page by its words. O(what is rebuilt).
        """
        check_filled("context", context)
        check_int("index", index)
        audit(self.session.storage, "quarantine", context=context, owner=self.owner, page=index)
        with self.session.store.lock:
            return quarantine(self.session.owner, context, index)

    def rollback(self, version: int) -> None:
        """Make an earlier *version* of the profile the newest one. The other versions stay.

        Raises:
            InvalidSetting: If this version does not exist, or is no longer kept.
        """
        with self.session.store.lock:
            profile = self.session.tiers().profile
            found = [each for each in profile.previous if each.version == version]
            if profile.version == version:
                return
            if not found:
                known = ", ".join(str(each.version) for each in reversed(profile.previous)) or "none"
                raise InvalidSetting("version", f"no version {brief(version)} of the profile is kept: {known}")
            owner = self.session.owner
            with owner.change():
                keep_profile(owner, owner.tiers.profile.restored(found[0], now=self.session.clock()), ())

    def close(self) -> None:
        """Write the visits that wait, and release the tables.

        Tables beside the pages stay open as long as the store; those at a *path* are closed by their last user.
        """
        if self._closed:
            return
        self._closed, store = True, self.session.store
        with store.lock, suppress(StorageError):  # visits that can't be written are not counted
            if not (self._read_only or store.closed):
                self.session.owner.write_visits()
        store.close()


def _sentence(text: str) -> str:
    """Return *text* as a line of at most `LONGEST` columns; InvalidSetting without a letter or digit."""
    if not any(map(str.isalnum, text)):
        raise InvalidSetting("text", f"expected a sentence, got {brief(text)}")
    return one_line(text, LONGEST)
