"""The history of a page: when it left the window, which line replaced it, why, and what that saved.

    turn 12   opened
    turn 31   left the window        1,204 tokens became a line of 18: "#13 flight to Oslo · $54"
    turn 77   its line was folded    the Contents Page was above its ceiling
    turn 140  left the Contents Page NeverRecalled(100): nobody recalled it within 100 turns

It is read from the snapshots of compactions. Each lookup is O(lines). In a context with many compactions, a short
change between two equal states may be missed.
"""

from math import ceil
from typing import Final, Literal, NamedTuple

from ...rows import CompactionRow, PageRow, PageState
from ...window.snapshot import Snapshot
from .inspected import InspectedContext

Standing = Literal["whole", "line", "folded", "unlisted"]
SAMPLES: Final = 64  # points in the past that are compared first; a change between two of them is located by bisection


class PageStanding(NamedTuple):
    """Where a page was at some time, and the line that replaced it."""

    place: Standing
    line: str = ""  # the line that the model read instead; "" if the page is whole or not listed
    tokens: int = 0  # cost of that line; for a range, the page's share


class PageEvent(NamedTuple):
    """Something that happened to a page."""

    turn: int
    what: str
    why: str = ""
    standing: PageStanding = PageStanding("whole")
    compaction: int | None = None  # the revision of the compaction that did it


class PageStory:
    """The history of one page of *context*."""

    def __init__(self, context: InspectedContext, row: PageRow) -> None:
        self._context, self._row = context, row
        self._known: dict[int, PageStanding] = {}
        self.tokens = sum(entry.tokens for entry in context.rows_of(row))
        """cost of its messages in a window"""

    def events(self) -> list[PageEvent]:
        """Return what happened to the page, oldest first. O(lines x log compactions), about a hundred lookups."""
        row, record = self._row, self._context.record
        opened = f"taken back from page #{row.continues}" if row.continues is not None else "opened"
        found = [PageEvent(row.turn, opened)]
        born = row.first if row.end is None else row.end
        heads = sorted({born + (record.head - born) * at // SAMPLES for at in range(SAMPLES + 1)})
        places = [row.first, *heads]
        made = [self._context.compaction_at(head) for head in places]
        before = PageStanding("whole")
        for at in range(1, len(places)):
            for compaction in self._changes(places[at - 1], made[at - 1], places[at], made[at]):
                after = self._standing(compaction)
                if after != before:
                    found.append(self._event(compaction, before, after))
                    before = after
        if row.last_recalled_turn is not None:
            times = "once" if row.recall_count == 1 else f"{row.recall_count} times, last in this turn"
            found.append(PageEvent(row.last_recalled_turn, f"recalled {times}", standing=before))
        if row.state in _ENDS:
            found.append(PageEvent(max(each.turn for each in found), *_ENDS[row.state], PageStanding("unlisted")))
        return sorted(found, key=lambda event: event.turn)

    def at(self, head: int) -> PageStanding:
        """Return the standing of the page when the context had *head* messages. O(lines)."""
        return self._standing(self._context.compaction_at(head))

    def _changes(
        self, first: int, made: CompactionRow | None, head: int, later: CompactionRow | None
    ) -> list[CompactionRow]:
        """Return the compactions after *made* at *first*, up to *later* at *head*, that changed the page's standing."""
        if later is None or (made is not None and made.revision == later.revision):
            return []
        if self._standing(made) == self._standing(later):
            return []
        if head - first <= 1:
            return [later]
        middle = (first + head) // 2
        between = self._context.compaction_at(middle)
        return [*self._changes(first, made, middle, between), *self._changes(middle, between, head, later)]

    def _standing(self, compaction: CompactionRow | None) -> PageStanding:
        if compaction is None:
            return PageStanding("whole")
        found = self._known.get(compaction.revision)
        if found is None:
            snapshot = self._context.snapshot(compaction)
            born = snapshot.record is None or snapshot.record.next_page > self._row.index
            active = any(row.index == self._row.index for row in snapshot.active)
            whole = active or not born
            found = PageStanding("whole") if whole else standing_on(self._context, snapshot, self._row.index)
            self._known[compaction.revision] = found
        return found

    def _event(self, compaction: CompactionRow, before: PageStanding, after: PageStanding) -> PageEvent:
        turn, revision = compaction.turn, compaction.revision
        if after.place == "whole":
            return PageEvent(turn, "came back into the window", "it is pinned", after, revision)
        if before.place == "whole":
            left = len(self._context.snapshot(compaction).active)
            saved = (
                f"{self.tokens:,} tokens became {after.tokens:,}, so that the request fits; {left} pages stayed whole"
            )
            return PageEvent(turn, "left the window", saved, after, revision)
        if after.place == "folded":
            why = "the Contents Page had reached its ceiling"
            what = "its line was folded into a range" if before.place == "line" else "its range was folded further"
            return PageEvent(turn, what, why, after, revision)
        if after.place == "line":
            listed = before.place != "line"
            what = "got a line of its own again" if listed else "its line changed"
            return PageEvent(turn, what, "it was recalled" if listed else "it says more, or shares it", after, revision)
        unloaded = self._context.snapshot(compaction).unloaded
        rule = next((f"rule {rule}" for rule, pages in unloaded.items() if self._row.index in pages), "")
        return PageEvent(turn, "left the Contents Page", rule, after, revision)


def receipt(context: InspectedContext, turn: int) -> list[tuple[int, PageStanding, PageStanding]]:
    """Return what compactions of *turn* moved: each page, where it stood before, and where it stands. O(lines)."""
    first = context.compaction_at(context.head_at(turn - 1) if turn else 0)
    last = context.compaction_at(context.head_at(turn))
    if last is None or (first is not None and first.revision == last.revision):
        return []
    before, after = None if first is None else context.snapshot(first), context.snapshot(last)
    listed = before.contents.listed if before is not None else ()
    stood = {row.index for row in (() if before is None else before.active)}
    new = 1 if before is None else before.record.next_page
    whole, moved = {row.index for row in after.active}, []
    for index in sorted({*stood, *listed, *range(new, after.record.next_page)}):
        whole_before = index in stood or index >= new
        was = PageStanding("whole") if before is None or whole_before else standing_on(context, before, index)
        now = PageStanding("whole") if index in whole else standing_on(context, after, index)
        if was.place != now.place:
            moved.append((index, was, now))
    return moved


def standing_on(context: InspectedContext, snapshot: Snapshot, index: int) -> PageStanding:
    """Return the standing of page *index*, which is not whole in the window of *snapshot*. O(lines)."""
    line = snapshot.contents.lines.get(index)
    if line is not None:
        return PageStanding("line", line.told().rstrip("\n"), line.tokens)
    for each in snapshot.contents.ranges:
        if index in each.pages:
            text = each.told().rstrip("\n")
            return PageStanding("folded", text, ceil(context.window.count(text) / len(each.pages)))
    return PageStanding("unlisted")


_ENDS: Final = {
    PageState.UNDONE: ("taken back", "by undo() or pop(): it is kept and never shown"),
    PageState.ERASED: ("erased", "on request: its messages do not exist any more"),
}
