"""The memory in the examples passes the contract and serves a context."""

import pytest

from examples.word_memory import WordMemory
from memci import Context, EphemeralStorage
from memci.testing.memory.conformance import MemoryContract, MemoryQuality
from memci.testing.memory.pages import told


class TestWordMemory(MemoryContract):
    @pytest.fixture
    def memory(self) -> WordMemory:
        return WordMemory()

    @pytest.fixture
    def stranger(self) -> WordMemory:
        return WordMemory()


def test_contract_and_quality_are_apart():
    """A plain memory has none of the tests of quality to pass, and these ask for more than it can."""
    named = {name for name in vars(MemoryQuality) if name.startswith("test_")}

    assert len(named) == 4
    assert not named & {name for name in dir(MemoryContract) if name.startswith("test_")}
    memory = WordMemory()
    with pytest.raises(AssertionError):
        MemoryQuality().test_rare_word_counts_more_than_common_ones(memory, lambda *texts: memory.observe(told(*texts)))


def test_context_works_with_it():
    """Pages that left the window are fed to it and found, also after it was opened again; erased ones are not."""
    memory, store = WordMemory(), EphemeralStorage()
    with Context.open(store, "alice", window=3_000, memory=memory) as context:
        for text in ("The spare key is under the blue pot.", "The vet comes on Friday.", "Bye."):
            context.append_turn(text, {"role": "assistant", "content": "Noted."})
        context.archive(keep=0)
        context.flush()
        assert context.search_memory("spare key").pages[0].index == 1
    with Context.open(store, "alice", memory=memory) as context:
        assert context.search_memory("spare key").pages[0].index == 1
        context.erase(1)
        assert not context.search_memory("spare key").pages
