"""The holders of text: each field of rows, states, snapshots and the memory that can hold words, and how these go.

A field of text that is not here fails a test (test_holders.py): who adds one says whose words it holds,
and what erases them.
"""

from typing import Final, Literal, NamedTuple

Eraser = Literal["tombstone", "rebuild", "remove", "clear", "drop", "forget", "whole"]


class Holder(NamedTuple):
    """Whose words a field may hold, and what erases them."""

    whose: Literal["context", "owner", "program"]
    """context: of its own messages. owner: also of other contexts of the owner, so that no other owner may get it.
    program: of who calls memci, and of no message"""
    eraser: Eraser
    """tombstone: another row takes its place. rebuild: it is made again of what stays (`history.erase`). remove: the
    row goes. clear: its digest does (`without_digests`). drop: `WindowState.alone`, in all contexts of the owner.
    forget: `memory.forgetting`, with all that was derived. whole: it goes with its context or owner"""


def _named(row: str, whose: Literal["context", "owner", "program"], **erasers: Eraser) -> dict[tuple[str, str], Holder]:
    return {(row, field): Holder(whose, eraser) for field, eraser in erasers.items()}


HOLDERS: Final[dict[tuple[str, str], Holder]] = {
    **_named("ContextRecord", "program", id="whole", owner="whole", settings="whole", parent="whole"),
    **_named("ContextRecord", "owner", state="rebuild"),
    **_named("EntryRow", "context", body="tombstone", digest="tombstone", at="tombstone"),
    **_named("CompactionRow", "context", text="remove"),
    **_named("OpRow", "context", digest="clear"),
    **_named("OpRow", "program", op_id="whole"),
    **_named("CallRow", "program", at="whole", model="whole", tools="whole"),
    **{("Ticket", field): Holder("program", "whole") for field in ("context", "token", "holder", "process")},
    **_named("WindowState", "program", nonce="whole", clocks="whole"),
    **_named("WindowState", "context", waiting="rebuild", learned="rebuild"),
    **_named("WindowState", "owner", recollection="drop", segments="drop"),
    **_named("SnapshotJson", "program", was="remove", settings="remove", unloaded="remove"),
    **_named("SnapshotJson", "context", contents="remove", state="remove", marks="remove"),
    **_named("Episode", "owner", summary="forget", keywords="forget", embedding="forget"),
    **_named("Chain", "owner", context="forget", points="forget", recent="forget", words="forget"),
    **_named("Rules", "program", dimensions="whole", prompts="whole", zone="whole"),
    **_named("Known", "owner", text="forget", context="forget", sayings="forget", instead="forget"),
    **_named("Relation", "owner", source="forget", kind="forget", target="forget", page="forget"),
    **_named("Profile", "owner", text="forget", traits="forget", previous="forget", strategy="forget"),
    **_named("Profile", "owner", tags="forget", conversations="forget"),
    **_named("LifeEvent", "owner", what="forget", who="forget", context="forget"),
    **_named("DailySummary", "owner", date="forget", agent="forget", summary="forget", key_events="forget"),
    **_named("DailySummary", "owner", users="forget"),
    **_named("Note", "owner", title="forget", lines="forget", keywords="forget", events="forget"),
    **_named("memory_owner", "program", name="whole"),
    **_named("memory_context", "program", name="whole"),
    **_named("memory_page", "owner", digest="forget", title="forget", keywords="forget"),
    **_named("memory_passage", "owner", role="forget", speaker="forget"),
    **_named("memory_vector", "owner", model="forget", vector="forget"),
    **_named("memory_item", "owner", kind="forget", body="forget", vector="forget"),
    **_named("memory_job", "program", kind="whole", body="whole"),
    **_named("memory_spent", "program", day="whole", step="whole"),
}
"""by the name of the row, class or table, and of the field"""
