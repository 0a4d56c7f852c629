"""What every memory must forget: a page, a context, everything; and nothing else.

    erase(Scope("alice", (2, 4)))    ──▶  #2 and #4 are not found any more, #1 and #3 are

This is a part of `memci.testing.memory.conformance.MemoryConformance`, which has the fixtures; inherit that one.
This module knows nothing of how a memory keeps things.
"""

from ...memory.backend import MemoryBackend, Scope
from .pages import Tell, found, saying


class MemoryErasure:
    """What was erased is gone."""

    def test_erased_page_is_not_found_any_more(self, memory: MemoryBackend, tell: Tell) -> None:
        """An erased page is gone, others stay; it is counted; erasing it again is fine, and counts nothing."""
        for index in range(1, 6):
            memory.admit(tell(index, f"zeppelin quokka{index}"))

        gone = memory.erase(Scope("alice", (2, 4)))

        assert gone.pages == 2
        assert sorted(found(memory, "zeppelin")) == [("alice", 1), ("alice", 3), ("alice", 5)]
        assert saying(memory, "quokka2") == []
        assert memory.erase(Scope("alice", (2, 4, 77))).pages == 0
        assert memory.erase(Scope("nobody", (1,))).pages == 0
        assert memory.erase(Scope("alice", ())).pages == 0
        assert sorted(found(memory, "zeppelin")) == [("alice", 1), ("alice", 3), ("alice", 5)]

    def test_erased_page_can_be_told_again(self, memory: MemoryBackend, tell: Tell) -> None:
        """A page that was erased and is observed again is found again."""
        tell(1, "the zeppelin lands")
        memory.erase(Scope("alice", (1,)))

        tell(1, "the zeppelin starts")

        assert found(memory, "zeppelin") == [("alice", 1)]

    def test_erased_context_leaves_the_others(self, memory: MemoryBackend, tell: Tell) -> None:
        """A context goes whole, as if it had never been observed; another one stays."""
        for name in ("alice", "bob"):
            for index in (1, 2):
                memory.admit(tell(index, f"zeppelin {name} {index}", context=name))

        assert memory.erase(Scope("alice")).pages == 2

        assert sorted(found(memory, "zeppelin")) == [("bob", 1), ("bob", 2)]
        assert memory.acknowledged("alice") == 0
        assert memory.acknowledged("bob") in {0, 2}
        assert memory.erase(Scope("alice")).pages == 0

    def test_everything_is_erased(self, memory: MemoryBackend, tell: Tell) -> None:
        """An empty scope is all that the owner has; the memory can be used afterwards."""
        for name in ("alice", "bob"):
            memory.admit(tell(1, f"I like zeppelins, says {name}", context=name))
        memory.maintain(9.0)

        assert memory.erase(Scope()).pages == 2

        assert not memory.search("zeppelins")
        assert memory.acknowledged("alice") == memory.acknowledged("bob") == 0
        tell(2, "the zeppelin lands")
        assert found(memory, "zeppelin") == [("alice", 2)]
