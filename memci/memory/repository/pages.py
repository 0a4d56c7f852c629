"""The pages of one owner, as rows: their tiers, episodes, chains, and marks.

A page is named by its id, which is never used again. Call all methods that write within a change of the owner.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..backend import PageRecord
from ..tiers.topics import PageFeatures
from .items import halve, read_vectors
from .store import OwnerTable

OBSERVED, SHORT, MID, EVICTED = range(4)
"""tier of a page: only searchable, in the short-term queue, in an episode, in an evicted episode"""

FACTS, GRAPH, QUARANTINED, ASIDE = 1, 2, 4, 8
"""bits of `marks`: facts and the profile were derived; relations were derived; nothing may be derived again; the page
was set aside, without its messages"""


class KnownPage(NamedTuple):
    """The row of a page."""

    id: int
    turn: int
    at: float | None
    digest: bytes  # of the content of the page when it was observed
    tier: int
    marks: int  # `FACTS`, `GRAPH`, `QUARANTINED`, `ASIDE`


class PageTable(OwnerTable):
    """The pages of one owner."""

    def find(self, context: str, index: int) -> KnownPage | None:
        """Return the row of a page, None if there is none."""
        rows = self._store.read_rows(_FIND, self._owner.name, context, index)
        return KnownPage(*rows[0]) if rows else None

    def acknowledged(self, context: str) -> int:
        """Return the highest observed page of *context*, 0 if there is none."""
        return self._store.read_value(_ACKNOWLEDGED, self._owner.name, context) or 0

    def ids_of(self, context: str, indexes: Collection[int] | None = None) -> dict[int, int]:
        """Return the ids of the pages of *context*, or of those with *indexes* that exist, by index. O(these)."""
        if indexes is None:
            return dict(self._store.read_rows(_OF_CONTEXT, self._owner.name, context))
        wanted = json.dumps([*indexes])
        return dict(self._store.read_rows(_OF_CONTEXT + _AND_SOME, self._owner.name, context, wanted))

    def ids(self) -> list[int]:
        """Return the ids of all pages. O(pages)."""
        return self._store.read_column("SELECT id FROM memory_page WHERE owner = ?", self._owner.nr)

    def add(self, page: PageRecord, digest: bytes, marks: int) -> tuple[int, int]:
        """Add the row of *page*, and return its id and the number of its context."""
        nr = self._owner.nr
        self.acknowledge(page.context, page.index - page.open)
        statement = "SELECT nr FROM memory_context WHERE owner = ? AND name = ?"
        context = self._store.read_column(statement, nr, page.context)[0]
        id_ = self._store.insert_row(_ADD, *(nr, context, page.index, page.turn, page.at, digest, marks))
        return id_, context

    def grow(self, page: PageRecord, id_: int, digest: bytes) -> tuple[int, int]:
        """Store that *page* (its row is *id_*) has more entries; return its id and the number of its context."""
        self.acknowledge(page.context, page.index - page.open)
        self._store.execute("UPDATE memory_page SET digest = ? WHERE id = ?", digest, id_)
        return id_, self._store.read_column("SELECT context FROM memory_page WHERE id = ?", id_)[0]

    def acknowledge(self, context: str, index: int) -> None:
        """Store that the pages of *context* up to *index* were observed."""
        self._store.execute(_ACKNOWLEDGE, self._owner.nr, context, index)

    def remove(self, page: int) -> None:
        """Remove the row of a page and its vectors; remove its passages before."""
        self._store.execute("DELETE FROM memory_vector WHERE page = ?", page)
        self.detach(page)
        self._store.execute("DELETE FROM memory_page WHERE id = ?", page)

    def detach(self, page: int) -> None:
        """Remove a page from the evidence of items, its vector, and its job."""
        self._store.execute("DELETE FROM memory_vector WHERE page = ? AND passage = 0", page)
        self._store.execute("DELETE FROM memory_evidence WHERE page = ?", page)
        self._store.execute("DELETE FROM memory_job WHERE kind = 'page' AND subject = ?", page)

    def quarantine(self, page: int) -> None:
        """Remove a page from its tier, and mark it, so that nothing is derived from it again."""
        self._store.execute(_QUARANTINE, QUARANTINED, page)

    def forget_context(self, context: str | None) -> None:
        """Remove the row of a context without pages; None: all remaining rows of the owner."""
        nr = self._owner.nr
        if context is not None:
            self._store.execute("DELETE FROM memory_context WHERE owner = ? AND name = ?", nr, context)
            return
        self._store.execute("DELETE FROM memory_context WHERE owner = ?", nr)
        self._store.execute("DELETE FROM memory_item WHERE owner = ?", nr)
        self._store.execute("DELETE FROM memory_owner WHERE nr = ?", nr)

    def has_context(self) -> bool:
        """Return whether the owner has a context. One query."""
        return bool(self._store.read_value("SELECT 1 FROM memory_context WHERE owner = ?", self._owner.nr))

    def recount(self, context: str | None) -> None:
        """Acknowledge only the pages up to the highest existing one: later numbers may be used again."""
        self._store.execute(_RECOUNT, self._owner.nr, context)

    def observed(self, context: str) -> list[int]:
        """Return the indexes of the pages of *context* that are in no tier yet. O(the owner's pages in no tier)."""
        return self._store.read_column(_OBSERVED, self._owner.name, OBSERVED, QUARANTINED, context)

    def silent(self, before: float) -> list[int]:
        """Return the pages in no tier whose context has no page after the time *before*. O(pages in no tier)."""
        return self._store.read_column(_SILENT, self._owner.name, OBSERVED, QUARANTINED, before)

    def enqueue(self, pages: Iterable[int]) -> None:
        """Append those of *pages* that are in no tier to the short-term queue."""
        rows = [(SHORT, self._owner.nr, SHORT, page, OBSERVED, QUARANTINED) for page in pages]
        self._store.executemany(_ENQUEUE, rows)

    def queue(self, most: int = 2**31 - 1) -> list[int]:
        """Return the pages of the short-term queue, the oldest first. O(pages returned)."""
        return self._store.read_column(_QUEUE, self._owner.name, SHORT, most)

    def into_tier(self, page: int, features: PageFeatures, chain: int, episode: int, model: str) -> None:
        """Move a page from the queue into a chain and an episode; *model* made its vector."""
        described = self._described(page, features.title, features.keywords)
        self._store.execute(_INTO_TIER, MID, *described, chain, episode, page)
        if features.vector is not None:
            vector = self._seal(halve(features.vector), "vector of a page", page)
            self._store.execute(_KEEP_VECTOR, page, model, self._owner.nr, vector)

    def retitle(self, page: int, title: str, keywords: Sequence[str]) -> None:
        """Replace the title and keywords of a page that has some; other pages get them with their episode."""
        statement = "UPDATE memory_page SET title = ?, keywords = ? WHERE id = ? AND title <> ''"
        self._store.execute(statement, *self._described(page, title, keywords), page)

    def evict(self, episode: int) -> None:
        """Remove all pages from an episode and its chains."""
        statement = "UPDATE memory_page SET tier = ?, episode = NULL, chain = NULL WHERE episode = ?"
        self._store.execute(statement, EVICTED, episode)

    def regroup(self, episode: int, into: int) -> None:
        """Move all pages of an episode into another one."""
        self._store.execute("UPDATE memory_page SET episode = ? WHERE episode = ?", into, episode)

    def features(self, item: int) -> dict[int, PageFeatures]:
        """Return the stored features of the pages (ids) that are evidence of an item, in order. O(pages)."""
        return {row[0]: self._features(*row) for row in self._store.read_rows(_FEATURES, item)}

    def sources(self, item: int, most: int) -> list[tuple[str, int]]:
        """Return the context and the index of the last *most* pages that are evidence of an item, in order."""
        return self._store.read_rows(_SOURCES, item, most)[::-1]

    def unmarked(self, episode: int, mark: int, most: int) -> list[int]:
        """Return up to *most* pages of an episode without *mark*, except those in quarantine."""
        statement = "SELECT id FROM memory_page WHERE episode = ? AND marks & ? = 0 ORDER BY id LIMIT ?"
        return self._store.read_column(statement, episode, mark | QUARANTINED, most)

    def mark(self, pages: Iterable[int], mark: int = 0, *, keep: int = -1) -> None:
        """Add a *mark* to pages, and *keep* only some of the others; default: all."""
        self._store.executemany(_MARK, [(keep, mark, each) for each in pages])

    def all_there(self, pages: Collection[int]) -> bool:
        """Return whether all *pages* exist and none is in quarantine. O(pages)."""
        return len(set(pages)) == self._store.read_value(_COUNT, json.dumps(list(pages)), QUARANTINED)

    def new(self, most: int) -> list[tuple[int, int, float | None]]:
        """Return pages whose events were not detected yet: id, mark of the quarantine, time. O(most)."""
        return self._store.read_rows(_NEW, QUARANTINED, self._owner.name, most)

    def set_detected(self, page: int) -> None:
        """Store that the events of all pages up to *page* were detected."""
        self._store.execute("UPDATE memory_owner SET detected = ? WHERE nr = ?", page, self._owner.nr)

    def between(self, context: int, first: int, last: int, most: int) -> list[int]:
        """Return the last *most* pages of a context with ids from *first* to *last*, in order."""
        return self._store.read_column(_BETWEEN, context, first, last, QUARANTINED, most)[::-1]

    def until(self, last: int, most: int) -> list[int]:
        """Return the last *most* pages with ids up to *last*, the latest first."""
        return self._store.read_column(_UNTIL, self._owner.nr, last, QUARANTINED, most)

    def conversation_before(self, page: int) -> list[tuple[int, int | None, int | None, float | None]]:
        """Return the conversation of the context of *page* before this page; [] if there is no such page.

        It has the number of the context, the first page of its current conversation (negative: it was summarized after
        a silence), and the page before with its time.
        """
        return self._store.read_rows(_CONVERSATION_BEFORE, page)

    def open_conversations(self, context: str | None) -> list[tuple[int, str, int, int, float | None]]:
        """Return the current conversations, and that of *context* in any case. O(the owner's contexts).

        Each has the number and the name of its context, its first page, and the last one with its time.
        """
        return self._store.read_rows(_OPEN_CONVERSATIONS, self._owner.nr, context)

    def set_conversations(self, first: Mapping[int, int | None]) -> None:
        """Store where the current conversations of contexts begin (see `conversation_before`)."""
        for context, page in first.items():
            self._store.execute("UPDATE memory_context SET conversation = ? WHERE nr = ?", page, context)

    def tier_counts(self) -> dict[int, int]:
        """Return how many pages each tier has. O(pages)."""
        statement = "SELECT tier, count(*) FROM memory_page WHERE owner = ? GROUP BY tier"
        return dict(self._store.read_rows(statement, self._owner.nr))

    def states(self, context: str) -> dict[int, tuple[int, int]]:
        """Return the tier and the marks of each page of a context, by index. O(pages)."""
        rows = self._store.read_rows(_STATES, self._owner.name, context)
        return {index: (tier, marks) for index, tier, marks in rows}

    def grouped(self) -> list[tuple[str, int, int | None, int | None]]:
        """Return the pages that are in an episode or a chain, by id: context, index, episode, chain. O(pages)."""
        return self._store.read_rows(_GROUPED, self._owner.nr)

    def _described(self, page: int, title: str, keywords: Sequence[str]) -> tuple[str, str]:
        words = json.dumps(keywords, ensure_ascii=False)
        return self._seal(title, "title", page), self._seal(words, "list of keywords", page)

    def _features(self, id_: int, title: str, words: str, vector: bytes | None, at: float | None) -> PageFeatures:
        keywords = json.loads(self._unseal(words, "list of keywords", id_) or "[]")
        made = None if vector is None else read_vectors(self._unseal(vector, "vector of a page", id_))
        return PageFeatures("", self._unseal(title, "title", id_), tuple(keywords), made, at)


_ADD = """
INSERT INTO memory_page(owner, context, page, turn, at, digest, marks) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id"""
_FIND = """
SELECT g.id, g.turn, g.at, g.digest, g.tier, g.marks FROM memory_page AS g JOIN memory_context AS c ON c.nr = g.context
JOIN memory_owner AS o ON o.nr = c.owner WHERE o.name = ? AND c.name = ? AND g.page = ?"""
_GROUPED = """
SELECT c.name, g.page, g.episode, g.chain FROM memory_page AS g JOIN memory_context AS c ON c.nr = g.context
WHERE g.owner = ? AND (g.episode IS NOT NULL OR g.chain IS NOT NULL) ORDER BY g.id"""
_ACKNOWLEDGED = """
SELECT c.acknowledged FROM memory_owner AS o JOIN memory_context AS c ON c.owner = o.nr
WHERE o.name = ? AND c.name = ?"""
_ACKNOWLEDGE = """
INSERT INTO memory_context(owner, name, acknowledged) VALUES (?, ?, ?)
ON CONFLICT(owner, name) DO UPDATE SET acknowledged = excluded.acknowledged
WHERE memory_context.acknowledged < excluded.acknowledged"""
_RECOUNT = """
UPDATE memory_context SET acknowledged = (SELECT coalesce(max(page), 0) FROM memory_page WHERE context = nr)
WHERE owner = ? AND name = ? AND acknowledged > (SELECT coalesce(max(page), 0) FROM memory_page WHERE context = nr)"""
_OF_CONTEXT = """
SELECT g.page, g.id FROM memory_owner AS o JOIN memory_context AS c ON c.owner = o.nr
JOIN memory_page AS g ON g.context = c.nr WHERE o.name = ? AND c.name = ?"""
_AND_SOME = " AND g.page IN (SELECT value FROM json_each(?))"
_QUARANTINE = """
UPDATE memory_page SET tier = 0, entered = NULL, episode = NULL, chain = NULL,
title = '', keywords = '', marks = ? WHERE id = ?"""
_ENQUEUE = """
UPDATE memory_page SET tier = ?, entered = (SELECT coalesce(max(entered), 0) + 1 FROM memory_page
WHERE owner = ? AND tier = ?) WHERE id = ? AND tier = ? AND marks & ? = 0"""
# Few pages are in no tier, only those that are whole in a window: "+" makes SQLite use the index on tiers.
_OBSERVED = """
SELECT g.page FROM memory_page AS g JOIN memory_context AS c ON c.nr = +g.context
WHERE g.owner = (SELECT nr FROM memory_owner WHERE name = ?) AND g.tier = ? AND g.marks & ? = 0 AND c.name = ?
ORDER BY g.page"""
_SILENT = """
SELECT g.id FROM memory_page AS g
WHERE g.owner = (SELECT nr FROM memory_owner WHERE name = ?) AND g.tier = ? AND g.marks & ? = 0 AND
    (SELECT p.at FROM memory_page AS p WHERE p.context = g.context ORDER BY p.page DESC LIMIT 1) <= ?
ORDER BY g.id"""
_QUEUE = """
SELECT g.id FROM memory_owner AS o JOIN memory_page AS g ON g.owner = o.nr
WHERE o.name = ? AND g.tier = ? ORDER BY g.entered LIMIT ?"""
_INTO_TIER = "UPDATE memory_page SET tier = ?, title = ?, keywords = ?, chain = ?, episode = ? WHERE id = ?"
_MARK = "UPDATE memory_page SET marks = (marks & ?) | ? WHERE id = ?"
_KEEP_VECTOR = """
INSERT INTO memory_vector VALUES (?, 0, ?, ?, ?)
ON CONFLICT(page, passage, model) DO UPDATE SET vector = excluded.vector"""
_FEATURES = """
SELECT g.id, g.title, g.keywords, v.vector, g.at FROM memory_page AS g
LEFT JOIN memory_vector AS v ON v.page = g.id AND v.passage = 0
JOIN memory_evidence AS e ON e.page = g.id WHERE e.item = ? ORDER BY g.context, g.page"""
_SOURCES = """
SELECT c.name, g.page FROM memory_evidence AS e JOIN memory_page AS g ON g.id = e.page
JOIN memory_context AS c ON c.nr = g.context WHERE e.item = ? ORDER BY g.id DESC LIMIT ?"""
_COUNT = "SELECT count(*) FROM memory_page WHERE id IN (SELECT value FROM json_each(?)) AND marks & ? = 0"
_NEW = """
SELECT g.id, g.marks & ?, g.at FROM memory_owner AS o JOIN memory_page AS g ON g.owner = o.nr
WHERE o.name = ? AND g.id > o.detected ORDER BY g.id LIMIT ?"""
_BETWEEN = """
SELECT id FROM memory_page WHERE context = ? AND id BETWEEN ? AND ? AND marks & ? = 0
ORDER BY id DESC LIMIT ?"""
_UNTIL = "SELECT id FROM memory_page WHERE owner = ? AND id <= ? AND marks & ? = 0 ORDER BY id DESC LIMIT ?"
_CONVERSATION_BEFORE = """
SELECT c.nr, c.conversation, b.id, b.at FROM memory_page AS g JOIN memory_context AS c ON c.nr = g.context
LEFT JOIN memory_page AS b ON b.id = (
    SELECT p.id FROM memory_page AS p WHERE p.context = g.context AND p.page < g.page ORDER BY p.page DESC LIMIT 1)
WHERE g.id = ?"""
_OPEN_CONVERSATIONS = """
SELECT c.nr, c.name, c.conversation, b.id, b.at FROM memory_context AS c JOIN memory_page AS b ON b.id = (
    SELECT p.id FROM memory_page AS p WHERE p.context = c.nr ORDER BY p.page DESC LIMIT 1)
WHERE c.owner = ? AND (c.conversation > 0 OR c.name = ?)"""
_STATES = """
SELECT g.page, g.tier, g.marks FROM memory_owner AS o JOIN memory_context AS c ON c.owner = o.nr
JOIN memory_page AS g ON g.context = c.nr WHERE o.name = ? AND c.name = ?"""
