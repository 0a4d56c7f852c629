"""Facts that a search returns: few, and about the question."""

from types import SimpleNamespace

import pytest

from memci.memory.owner import Tiers
from memci.memory.retrieval.knowledge import find_facts
from memci.memory.tiers.facts import Known
from memci.memory.tiers.rules import DEFAULTS
from memci.text.language.terms import query_terms

SAID = (
    "Mel: I play the violin in an orchestra.",
    "Mel: I adopted a puppy.",
    "Tim: I play the piano.",
    "Tim: I live in Oslo.",
    *(f"Tim: I bought lamp {number}." for number in range(10)),
)


FACTS = {key: Known(text, "user", "c", key, key) for key, text in enumerate(SAID)}
OWNER = SimpleNamespace(tiers=Tiers(facts=FACTS | {100: Known("called book(lamp=7)", "assistant", "c", 100, 100)}))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("What does Mel play?", ["Mel: I play the violin in an orchestra."]),
        ("Where does Tim live?", ["Tim: I live in Oslo."]),
        ("What does Mel think of modern art?", []),
        ("Mel", []),
        ("Who adopted a puppy?", ["Mel: I adopted a puppy."]),
        ("the weather in Bergen on Sunday", []),
    ],
)
def test_facts_are_found_by_the_question_not_by_the_name(query, found):
    """The speaker's name is no likeness, but what another one said is no answer; below the floor nothing is said."""
    assert [fact.text for _, fact in find_facts(OWNER, query_terms(query), DEFAULTS)] == found


def test_facts_of_an_answer_are_three_at_most():
    """Facts of the user and of the assistant share the three places."""
    found = find_facts(OWNER, query_terms("Which lamp?"), DEFAULTS)

    assert len(found) == DEFAULTS.found_facts == 3
    assert all("lamp" in fact.text for _, fact in found)
