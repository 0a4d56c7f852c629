"""What a model adds is found, by the page that it is about, and shown; it is gone with that page."""

import json

import pytest
from machine_kit import check, rows
from model_kit import DAY, HOUR, NOON, Clock, drained, modelled, obliging, page, tell

from memci import Context, EphemeralStorage, Policy
from memci.memory.backend import Scope
from memci.memory.consolidation.annotation import annotate
from memci.testing.memory.pages import told

MARKERS = {
    name: f"{name}quux"
    for name in (
        *(
            "title",
            "line",
            "keyword",
            "event",
            "theme",
            "themekeyword",
            "content",
            "dayword",
            "talk",
            "topic",
            "moment",
        ),
        *("strategy", "tag", "trait", "userfact"),
    )
}


def adding(asked):
    """Answer as a model that puts a word of its own in each thing that it adds."""
    answer, add = obliging(asked), MARKERS
    if asked.step == "page":
        answer["title"] += f" {add['title']}"
        answer["lines"] = [{**each, "line": f"{each['line']} {add['line']}"} for each in answer["lines"]]
        answer["keywords"] = [add["keyword"], *answer["keywords"]]
        answer["events"][0]["what"] += f" {add['event']}"
    elif asked.step == "topics":
        theme = answer["themes"][0]
        theme["theme"] += f" {add['theme']}"
        theme["keywords"] = [add["themekeyword"]]
        theme["content"] += f" {add['content']}"
    elif asked.step == "analysis":
        answer["traits"][0]["reason"] += f" {add['trait']}"
        answer["user"] = [{"fact": f"Knows {add['userfact']}", "page": min(each["page"] for each in answer["user"])}]
    elif asked.step == "day":
        answer["summary"] += f" {add['dayword']}"
    elif asked.step == "conversation":
        answer |= {"summary": f"They spoke, {add['talk']}", "topics": [add["topic"]], "moments": [add["moment"]]}
    elif asked.step == "strategy":
        answer = {"strategy": f"Answer warmly, {add['strategy']}", "tags": [add["tag"]]}
    return answer


@pytest.fixture(scope="module")
def lived():
    """Give a memory with a model whose pages went all roads, over two days."""
    clock, storage = Clock(), EphemeralStorage()
    memory, _ = modelled(storage, adding, clock=clock)
    long = "and so on, for long enough that a line says less than it " * 8
    for day in range(2):
        for index in range(1, 13):
            clock.now = NOON + day * DAY + 60 * index
            tell(memory, page(index + 12 * day, f"topic of violins quokka{index + 12 * day} {long}", at=clock.now))
        drained(memory, clock)
        for _ in range(3):
            memory.search("violins", k=9)
    clock.now += 9 * HOUR
    drained(memory, clock)
    drained(memory, clock)
    return memory, storage, clock


@pytest.mark.parametrize("name", MARKERS)
def test_what_a_model_adds_is_found(lived, name):
    """Each thing that a model adds is found by a word that only it has: by a page that it is about."""
    memory, *_ = lived

    found = memory.search(MARKERS[name], k=3)

    assert found.pages or name == "userfact"
    assert bool(found.user_facts) == (name == "userfact")
    if name in {"event", "dayword", "talk", "moment", "trait", "strategy"}:
        assert MARKERS[name] in found.statements[0].text
        assert found.statements[0].date or name in {"trait", "strategy"}


def test_day_is_shown_to_who_asks_for_its_date(lived):
    """A question that names a month gets the days of it; one that names another gets none."""
    memory, *_ = lived

    assert "day" in {each.kind for each in memory.search("what happened in May 2024?").statements}
    assert memory.search("what happened in June 2024?").statements == ()


def test_plain_context_shows_what_was_derived(lived):
    """The tool shows event and strategy, with the event's date, and the memory page the strategy."""
    memory, storage, _ = lived
    policy = Policy(remember=True)
    with Context.open(storage, id="bob", owner="anna", window=99_000, memory=memory, policy=policy) as context:
        texts = []
        for name in ("event", "strategy"):
            asked = {"name": "search_memory", "arguments": json.dumps({"query": MARKERS[name]})}
            texts.append(context.answer({"id": "c", "type": "function", "function": asked})["content"])
        view = str(context.render("What about quokka7?"))

    assert "it happened 2024-05-0" in texts[0]
    assert MARKERS["event"] in texts[0]
    assert f'how to treat the user: "Answer warmly, {MARKERS["strategy"]}' in texts[1]
    assert MARKERS["strategy"] in view


def test_word_of_a_model_goes_with_its_page():
    """What was written of pages is not found by any of them once one of them is erased, or in quarantine."""
    clock = Clock()
    memory, _ = modelled(EphemeralStorage(), adding, clock=clock)
    for index in range(1, 13):
        tell(memory, page(index))
    drained(memory, clock)
    clock.now += 9 * HOUR
    drained(memory, clock)
    for name in ("theme", "talk"):
        assert memory.search(MARKERS[name]).pages

    for index in range(1, 13, 2):
        memory.erase(Scope("alice", (index,)))
        memory.quarantine("alice", index + 1)

    for name, marker in MARKERS.items():
        found = memory.search(marker)
        assert not (found.pages or found.statements), name
    left = rows(memory, "SELECT term FROM memory_postings WHERE term LIKE '%quux'")
    assert left == []
    check(memory)


def test_line_belongs_to_the_page_whose_words_it_has():
    """What the page says itself is no part of it."""
    pages = {7: told(1, "I flew to Bergen and saw the fjords."), 8: told(2, "My dog is ill.")}

    found = annotate(["A getaway to the fjords of Bergen\nThe dog and a veterinarian"], pages)

    assert "getaway" in found[7]
    assert not {"fjord", "bergen"}.intersection(found[7])
    assert [word for word in found[8] if word.startswith("veterin")]
