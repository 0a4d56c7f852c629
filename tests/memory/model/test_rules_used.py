"""Rules that are set take effect: each constant of a design, in the tier that it is about."""

import pytest
from model_kit import Clock, drained, modelled, obliging, page, steps, tell

from memci import EphemeralStorage
from memci.memory import Rules
from memci.memory.inspect import overview

SMALL = {"capacity": 4, "batch": 2, "promoted": 1.0, "accesses": 1}


def lived(pages=12, answers=obliging, **rules):
    """Return a memory after some pages with these rules, and the model that it asked."""
    clock = Clock()
    memory, chat = modelled(EphemeralStorage(), answers, clock=clock, rules=Rules(**SMALL | rules))
    tell(memory, *(page(index, f"I live in Oslo{index:02} with a dog.") for index in range(1, pages + 1)))
    drained(memory, clock)
    return memory, chat


def test_a_prompt_of_ones_own_is_sent():
    """In place of the one that is there."""
    _, chat = lived(prompts={"page": "Describe the page as JSON."})

    systems = {asked.step: asked.messages[0]["content"] for asked in chat.calls}
    assert systems["page"] == "Describe the page as JSON."
    assert systems["analysis"] != systems["page"]


@pytest.mark.parametrize(("interval", "due"), [(12, True), (13, False)])
def test_a_strategy_is_due_after_so_many_turns(interval, due):
    """And not a turn earlier."""
    memory, chat = lived(strategy_interval=interval, event_interval=1)

    assert overview(memory).profile.turns == 12
    assert ("strategy" in steps(chat)) == due


@pytest.mark.parametrize(("least", "events"), [(0.79, 12), (0.8, 0)])
def test_only_events_above_an_importance_are_kept(least, events):
    """The model says 0.8 of each; its notes of most pages are written after the pages were counted."""
    memory, _ = lived(event_importance=least, event_interval=1)

    assert len(overview(memory).events) == events
    assert sum(len(day.key_events) for day in overview(memory).days) == min(events, 8)


def test_lists_of_facts_are_as_long_as_the_rules_say():
    """The one that was not used for the longest time leaves."""
    assert len(overview(lived()[0]).user_facts) > 3
    assert len(overview(lived(facts=3)[0]).user_facts) == 3


def test_concepts_are_of_episodes_that_were_accessed_so_often():
    """Below that, the model is not asked for concepts."""
    for accesses, asked in ((1, True), (2, False)):
        memory, chat = lived(accesses=accesses)
        memory.search("Who lives in Oslo03?")
        drained(memory)
        assert ("concepts" in steps(chat)) == asked


def test_dimensions_that_are_not_asked_for_are_not_taken():
    """The profile has those of the rules alone."""
    assert [trait.dimension for trait in overview(lived()[0]).profile.traits] == ["curiosity"]
    assert not overview(lived(dimensions=["calm"])[0]).profile.traits


def test_as_many_facts_are_found_as_the_rules_say():
    """A search returns no more."""
    for most in (0, 1):
        memory, _ = lived(found_facts=most, fact_score=0.1)
        assert len(memory.search("Who has a dog in Oslo03?").user_facts) == most


@pytest.mark.parametrize(("goes_on", "chains"), [(False, 3), (True, 1)])
def test_a_batch_of_many_pages_may_have_more_than_two_topics(goes_on, chains):
    """A model is asked about ten pages at once, and whether these go on with those before."""

    def answers(asked):
        answer = obliging(asked)
        return answer | {"continues": goes_on} if asked.step == "topics" else answer

    memory, chat = lived(30, answers, capacity=30, batch=30)

    assert steps(chat).count("topics") == 3
    assert overview(memory).counts.chains == chains
