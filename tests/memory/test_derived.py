"""What is derived is used: episodes, days and overviews answer, name their pages, and go with them."""

from datetime import UTC, date, datetime

import pytest
from machine_kit import keeping

from memci import EphemeralStorage
from memci.memory import Rules, TieredMemory
from memci.memory.backend import Scope
from memci.memory.retrieval.knowledge import find_facts
from memci.memory.tiers.facts import outdates
from memci.testing.memory.pages import told

DAY = 86_400.0
MAY = datetime(2024, 5, 3, 12, tzinfo=UTC).timestamp()
TALKS = {
    0: ["My boiler bangs every morning.", "The pressure of the boiler fell."],
    2: ["My cat Miso does not eat.", "The vet pulled a tooth of the cat."],
    30: ["The plumber flushed the boiler.", "The boiler is quiet now."],
}


@pytest.fixture
def memory():
    made = TieredMemory(EphemeralStorage(), owner="o", rules=Rules(capacity=1, batch=1), clock=lambda: MAY + 90 * DAY)
    index = 0
    for day, texts in TALKS.items():
        for minute, text in enumerate(texts):
            index += 1
            page = told(index, text, "I see.", at=MAY + day * DAY + 60 * minute)
            keeping(made.session.storage)(page)
            made.admit(page)
            made.maintain(MAY + day * DAY + 60 * minute)
    return made


def statements(memory, query):
    return memory.search(query, now=date(2024, 7, 1)).statements


def test_an_episode_answers_what_was_said_about_a_thing(memory):
    """It has the words, the days and the pages; other subjects are not in it."""
    first, *others = statements(memory, "What did we say about the boiler?")

    assert (first.kind, first.date) == ("episode", "2024-05-03")
    assert first.pages == (("alice", 1), ("alice", 2))
    assert "boiler" in first.text
    assert not any("cat" in each.text for each in (first, *others))


@pytest.mark.parametrize(("query", "days"), [
    ("What happened in May?", ["2024-05-03", "2024-05-05"]),
    ("What did we talk about on 2 June 2024?", ["2024-06-02"]),
    ("5月5日我们聊了什么？", ["2024-05-05"]),
    ("How old is the cat?", []),
])  # fmt: skip
def test_a_day_answers_what_happened(memory, query, days):
    """Every day that the question names, with its pages; a question for something else gets none."""
    found = [each for each in statements(memory, query) if each.kind == "day"]

    assert [each.date for each in found] == days
    assert all(each.pages for each in found)


def test_what_is_derived_goes_with_its_pages(memory):
    """After an erasure, the texts are made of what is left."""
    memory.erase(Scope("alice", (1, 3, 4)))

    (boiler, *_) = statements(memory, "What did we say about the boiler?")
    assert "bangs" not in boiler.text
    assert boiler.pages == (("alice", 2),)
    assert [each.date for each in statements(memory, "What happened in May?")] == ["2024-05-03"]


def test_an_episode_that_answers_is_used(memory):
    """Its heat rises, and a page has the overview of its talk."""
    before = {key: each.warmth.access_count for key, each in memory.session.tiers().episodes.items()}
    found = memory.search("What did we say about the cat?")

    risen = [key for key, each in memory.session.tiers().episodes.items() if each.warmth.access_count > before[key]]
    assert len(risen) >= 1
    (overview,) = {page.overview for page in found.pages if page.index in (3, 4)} - {""}
    assert "tooth" in overview


def test_what_later_words_replace_is_marked():
    """A statement is outdated if a later fact says something else about the same thing."""
    assert outdates("We moved the deadline to 15 May.", "The deadline is 10 May.")
    assert not outdates("The cat is ill.", "The deadline is 10 May.")


def test_a_fact_is_found_with_its_page(memory):
    """Where an embedder finds the page, its fact is found, though it has no word of the question."""
    page = told(9, "I adopted a puppy from the shelter.", "Nice!", at=MAY)
    keeping(memory.session.storage)(page)
    memory.admit(page)
    memory.learn("I adopted a puppy.", context="alice", index=9)
    owner = memory.session.owner

    assert not find_facts(owner, ["hound"], Rules())
    assert [fact.text for _, fact in find_facts(owner, ["hound"], Rules(), {("alice", 9): 0.7})] == [
        "I adopted a puppy."
    ]
    assert not find_facts(owner, ["hound"], Rules(found_facts=0), {("alice", 9): 0.7})
