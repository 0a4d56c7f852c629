"""TieredMemory: short-term pages, episodes, and what is known, in the store of the pages.

    observe ──▶ words ─────────────────────────────▶ search
    admit   ──▶ short-term ──▶ episodes ──▶ facts, profile, graph ──▶ search
                 `maintain` moves them on                              `run_job`: a model does it better

All of it works without a model and without a network; with a model, it works as well at once, and what the model says
of it comes later, in the background. This module knows nothing of windows; what it delegates to knows
nothing of it.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from ..errors import InvalidSetting, LimitExceeded, brief
from ..llm.model import ChatModel
from ..storage import Storage
from ..text.summarize import Summary, one_line
from ..tokens import counter_for
from .backend import Forgotten, PageRecord, Recollection, Scope, Work
from .consolidation import page_notes as notes
from .consolidation.fact_extraction import keep_profile
from .consolidation.job_runner import Means, improve
from .consolidation.maintenance import maintain
from .forgetting import forget, quarantine
from .ingest import SELECT_PAGE, admitted, heard, observed
from .owner import Owner, owner_of
from .repository import job_queue as jobs
from .repository.job_queue import Saving
from .repository.store import MemoryStore
from .repository.usage_ledger import spent
from .retrieval.embedders import Embedder
from .retrieval.hash_embedder import HashEmbedder
from .retrieval.retrieve import Wanted, recollect
from .tiers.facts import LONGEST, About
from .tiers.rules import Rules

_T = TypeVar("_T")


class TieredMemory:
    """The memory of one owner, in three tiers.

    Args:
        storage: Where the pages are; what is derived from them is kept beside them.
        owner: Whose memory it is.
        embedder: Turns texts into vectors; default: by spelling (`HashEmbedder`), which needs nothing.
        rules: Sizes and thresholds of the tiers.
        chat: A model that makes better, in the background, what is known; None: all is extracted.
        ceiling: Tokens that the model may cost in a UTC day; None: no bound.
        counter: Tokens of a text, for budgets; default: the o200k vocabulary.
        read_only: Whether nothing is ever written: what is searched does not count as used.
        clock: Seconds since 1970; for tests.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        owner: str,
        embedder: Embedder | None = None,
        rules: Rules | None = None,
        chat: ChatModel | None = None,
        ceiling: int | None = None,
        counter: Callable[[str], int] | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(owner, str) or not owner:
            raise InvalidSetting("owner", f"expected a name (a str that is not empty), got {owner!r:.60}")
        if chat is not None and not callable(chat):
            raise InvalidSetting("chat", f"expected a model to call, as memci.llm.Chat, got {brief(chat)}")
        if ceiling is not None and (type(ceiling) is not int or ceiling < 0):
            raise InvalidSetting(
                "ceiling", f"tokens that may be spent in a day, 0 or more, or None; not {brief(ceiling)}"
            )
        self._storage = storage
        self._store = MemoryStore.beside(storage)
        self._name = owner
        self._embedder = embedder or HashEmbedder(512)
        self.rules = rules or Rules()
        self._count = counter_for(None, counter)
        self._clock = clock
        self._read_only = read_only or self._store.read_only
        self._chat = chat
        self._ceiling = ceiling
        self._looking_after = threading.Lock()
        self._jobs = threading.Lock()
        self._closed = False

    @property
    def owner(self) -> str:
        """Whose memory it is."""
        return self._name

    def observe(self, page: PageRecord) -> None:
        """Make a closed page searchable. O(its characters)."""
        self._with(lambda owner: observed(self._store, owner, page, modelled=self.has_model))

    def admit(self, page: PageRecord) -> None:
        """Take a page into the short-term queue, once."""

        def enter(owner: Owner) -> None:
            admitted(self._store, owner, observed(self._store, owner, page, modelled=self.has_model))

        self._with(enter)

    def acknowledged(self, context: str) -> int:
        """Return the highest page of *context* that was observed, 0 if none was."""
        return self._with(lambda owner: heard(self._store, owner, context))

    def search(
        self,
        query: str,
        *,
        k: int = 5,
        budget: int | None = None,
        since: float | None = None,
        until: float | None = None,
        exclude: Collection[tuple[str, int]] = (),
    ) -> Recollection:
        """Return what is known of *query*, best first; what is returned counts as visited."""
        wanted = Wanted(query, k, budget, since, until, frozenset(exclude))
        return self._with(
            lambda owner: recollect(
                self._storage,
                self._store,
                owner,
                wanted,
                self._embedder,
                self._count,
                self._clock(),
                counts=not self._read_only,
            )
        )

    def erase(self, scope: Scope) -> Forgotten:
        """Remove what *scope* names, and what was derived from it."""
        return self._with(lambda owner: forget(self._store, owner, scope))

    def maintain(self, now: float | None = None) -> int:
        """Do what is due, and return how many pages moved between the tiers."""
        with self._looking_after:
            return maintain(
                self._storage,
                self._store,
                self._name,
                self._embedder,
                self.rules,
                now or self._clock(),
                modelled=self.has_model,
            )

    @property
    def has_model(self) -> bool:
        """Whether there is a model that makes better what is known."""
        return self._chat is not None and not self._read_only

    def run_job(self, settle: Callable[[], None] | None = None) -> bool:
        """Do one job of the model that is due, and return whether another one is. O(its calls of the model).

        Args:
            settle: Called before anything is written: it returns when nobody is disturbed by that.

        Raises:
            StorageError: If the memory can't be read or written; the job is done later.
        """
        if self._chat is None or self._read_only:
            return False
        from .consolidation.model_steps import STEPS

        means = Means(
            self._storage,
            self._store,
            self._name,
            self._embedder,
            self.rules,
            self._count,
            self._clock,
            self._ceiling,
        )
        with self._jobs:
            return improve(means, self._chat, STEPS, settle or _at_once)

    def summaries(self, context: str, indexes: Collection[int]) -> Mapping[int, Summary]:
        """Return what a model said of those pages of *context* of which it did. One query."""
        return notes.summaries(self._store, self._name, context, indexes)

    def work(self) -> Work:
        """Return what the model did and cost, and what waits for it. O(jobs + days)."""

        def worked(owner: Owner) -> Work:
            owner.refresh()
            queue = jobs.queue(self._store, owner.nr)
            return Work(queue.waiting, queue.set_aside, queue.skipped, spent(self._store, owner.nr))

        return self._with(worked)

    def learn(self, text: str, *, context: str, index: int, about: About = "user", at: float | None = None) -> None:
        """Keep *text* as a fact: what somebody asked to be remembered. It is known once its page is.

        Args:
            text: In one sentence; of a longer one, its beginning is kept.
            context: Where it was said.
            index: The page that says it; if that is erased, so is the fact.
            about: Whom it is about.
            at: When it was said, in seconds since 1970 UTC; default: when the page was.

        Raises:
            InvalidSetting: If the text says nothing.
            LimitExceeded: If too much waits to be learned: pages are not told.
        """
        if not isinstance(text, str) or not any(char.isalnum() for char in text):
            raise InvalidSetting("text", f"expected a sentence, got {brief(text)}")
        if about not in ("user", "assistant"):
            raise InvalidSetting("about", f'"user" or "assistant", not {brief(about)}')
        saving = Saving(0, context, index, one_line(text, LONGEST), about, at)

        def wait(owner: Owner) -> None:
            with owner.change() as connection:
                known = bool(self._store.read_rows(SELECT_PAGE, owner.name, context, index))
                if not jobs.save(connection, owner.nr, saving, known=known):
                    raise LimitExceeded("facts that wait for their pages", jobs.MOST + 1, jobs.MOST)

        self._with(wait)

    def quarantine(self, context: str, index: int) -> Forgotten:
        """Remove all that was derived from a page that is not to be trusted, and derive nothing from it any more.

        Words find the page still: it was said. O(what is told anew).
        """
        return self._with(lambda owner: quarantine(self._store, owner, context, index))

    def rollback(self, version: int) -> None:
        """Let the profile be again what it was in *version*: as its newest version; the others stay.

        Raises:
            InvalidSetting: If there is no such version (any more).
        """

        def back(owner: Owner) -> None:
            owner.refresh()
            profile = owner.tiers.profile
            found = [each for each in profile.previous if each.version == version]
            if profile.version == version:
                return
            if not found:
                known = ", ".join(str(each.version) for each in reversed(profile.previous)) or "none"
                raise InvalidSetting("version", f"no version {brief(version)} of the profile is kept: {known}")
            with owner.change() as connection:
                then = owner.tiers.profile.restored(found[0], now=self._clock())
                keep_profile(connection, owner, then, ())

        self._with(back)

    def close(self) -> None:
        """Let go of it. The tables are closed with the last one who uses this store."""
        if not self._closed:
            self._closed = True
            self._store.close()

    def _with(self, work: Callable[[Owner], _T]) -> _T:
        with self._store.lock:
            return work(owner_of(self._store, self._name))


def _at_once() -> None:
    """Return: nobody is disturbed."""
