"""What a program had stored stays what it is: in exports, in copies, and in a memory that is made again."""

from contextlib import closing

import pytest

from memci import Context, SQLiteStorage
from memci.errors import InvalidSetting, LimitExceeded
from memci.history.copying import copy_contexts
from memci.memory import TieredMemory
from memci.memory.backend import Scope
from memci.memory.consolidation.fact_extraction import keep_fact
from memci.memory.inspect import overview
from memci.memory.tiers.facts import Known
from memci.window.state import LEARNED

SAID = "I play the violin in the harbour orchestra."


def opened(store, **more):
    return Context.open(store, "talk", owner="owner", window=8_000, **more)


def told(store):
    """Return a context of two closed pages, which the memory knows."""
    context = opened(store)
    context.append_turn(SAID, {"role": "assistant", "content": "Nice."})
    context.append_turn("The vet was here.", {"role": "assistant", "content": "I see."})
    context.append_turn("Bye.", {"role": "assistant", "content": "Bye."})
    context.flush()
    return context


def facts(context):
    context.flush()
    return {fact.text: fact.id for fact in overview(context.memory).user_facts}


def made_again(context):
    """Make the memory of *context* again, from what its store has."""
    context.memory.erase(Scope())
    store = context._storage
    context.close()
    again = opened(store)
    again.flush()
    again.archive(keep=0)
    again.flush()
    return again


@pytest.fixture
def store(tmp_path):
    with closing(SQLiteStorage(tmp_path / "agent.db", durability="fast")) as store:
        yield store


def test_a_learned_fact_is_in_exports_copies_and_a_memory_made_again(store, tmp_path):
    context = told(store)
    context.memory.learn("Bruno, the horse, must not get oats.", context="talk", index=2)
    assert list(facts(context)) == ["Bruno, the horse, must not get oats."]
    lines = list(context.export())
    with closing(SQLiteStorage(tmp_path / "copy.db")) as copy:
        assert len(list(copy_contexts(store, copy))) == 1
        with opened(copy) as there:
            assert "Bruno, the horse, must not get oats." in facts(there)
    with Context.import_(tmp_path / "imported.db", lines) as there:
        assert "Bruno, the horse, must not get oats." in facts(there)
    with made_again(context) as again:
        assert "Bruno, the horse, must not get oats." in facts(again)


def test_a_corrected_fact_keeps_its_new_words(store):
    context = told(store)
    context.memory.learn("Bruno is a horse.", context="talk", index=2)
    context.memory.correct(facts(context)["Bruno is a horse."], "Bruno is a mule.")
    assert list(facts(context)) == ["Bruno is a mule."]
    with made_again(context) as again:
        assert list(facts(again)) == ["Bruno is a mule."]


def test_a_forgotten_fact_is_not_derived_again(store):
    context = told(store)
    memory = context.memory
    memory.learn(SAID, context="talk", index=1)
    memory.learn("Bruno is a horse.", context="talk", index=2)
    memory.forget(facts(context)[SAID])
    assert list(facts(context)) == ["Bruno is a horse."]
    with made_again(context) as again:
        owner = again.memory.session.owner
        with owner.change():  # as the rules do, and a model
            keep_fact(owner, Known(SAID.upper(), "user", "talk", 1, 1), [], 0.0)
        assert list(facts(again)) == ["Bruno is a horse."]


def test_a_fact_goes_with_its_page(store):
    context = told(store)
    context.memory.learn("Bruno is a horse.", context="talk", index=2)
    context.memory.learn("Ilse paints.", context="talk", index=1)
    context.erase(2)
    assert list(facts(context)) == ["Ilse paints."]
    assert "Bruno" not in store.load("talk")[0].state
    with made_again(context) as again:
        assert list(facts(again)) == ["Ilse paints."]


def test_a_fact_of_a_page_that_is_taken_back_goes(store):
    context = told(store)
    context.memory.learn("Ilse paints.", context="talk", index=3)
    context.undo()
    assert facts(context) == {}
    with made_again(context) as again:
        assert facts(again) == {}


def test_another_owner_gets_no_fact_that_a_program_stored(store):
    """Its words may stand in no message that the other owner gets; another context of the same owner keeps it."""
    context = told(store)
    context.memory.learn("Ilse paints.", context="talk", index=1)
    for owner, kept in ((None, True), ("other", False)):
        with context.fork(f"twin of {owner}", owner=owner) as twin:
            twin.flush()
            assert ("Ilse paints." in {fact.text for fact in overview(twin.memory).user_facts}) is kept
            assert ("Ilse paints." in str([*twin.export()])) is kept
    context.close()
    with Context.open(store, "talk", owner="third", change_owner=True, window=8_000) as changed:
        assert "Ilse paints." not in str([*changed.export()])


def test_what_is_wrong_is_refused(store):
    with told(store) as context:
        for wrong in (lambda m: m.correct(99, "x"), lambda m: m.forget(99), lambda m: m.correct(99, " ")):
            with pytest.raises(InvalidSetting):
                wrong(context.memory)
        for number in range(LEARNED):
            context.memory.learn(f"Lamp {number} is red.", context="talk", index=1)
        with pytest.raises(LimitExceeded):
            context.memory.learn("One more lamp is red.", context="talk", index=1)


def test_a_memory_without_an_open_context_keeps_a_fact_in_its_own_rows(store):
    told(store).close()
    memory = TieredMemory(store, owner="owner")
    memory.learn("Ilse paints.", context="talk", index=1)
    assert "Ilse paints." in {fact.text for fact in overview(memory).user_facts}
    memory.close()
