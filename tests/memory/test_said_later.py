"""A search says what was said later about the same thing, and counts what was said again."""

from datetime import UTC, datetime, timedelta

import pytest

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.memory.retrieval.ranking import Weights

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
TALK = ["Tell me a riddle.", "Suggest a soup.", "Name a tall tree.", "What is felt?", "Who was Ada?"]


def told(*said, store=None):
    """Return a context whose user said this, a day apart, and whose pages have left the window."""
    context = Context.open(store or EphemeralStorage(), "talk", window=8_000, clock=None)
    for day, text in enumerate([*said, *TALK]):
        context.append_turn(text, {"role": "assistant", "content": f"Fine, {day}."}, at=START + timedelta(days=day))
    context.archive(keep=0)
    context.flush()
    return context


def found(context, query, **more):
    return context.search_memory(query, seen=False, **more).pages


def test_a_result_has_its_latest_successor_with_its_date():
    said = ["I live in Malmö.", "We moved to Turku.", "We have moved to Oulu now."]
    with told(*said) as context:
        pages = {page.text: page for page in found(context, "Where do I live?")}
        assert pages[said[0]].later.text == said[2]
        assert pages[said[0]].later.said.date().isoformat() == "2026-01-07"
        assert next(text for text in pages if text in said) == said[2], "the latest comes first"
        answer = context.answer(
            {"id": "c", "type": "function", "function": {"name": "search_memory", "arguments": '{"query": "Malmö"}'}}
        )
        lines = answer["content"].splitlines()
        [at] = [at for at, line in enumerate(lines) if said[0] in line]
        assert "a later one below" in lines[at]
        assert "7 Jan" in lines[at + 1]
        assert said[2] in lines[at + 1]


@pytest.mark.parametrize(
    ("before", "later", "query"),
    [
        ("Mein Zug nach Wien fährt um 7:32 Uhr.", "Der Zug nach Wien geht erst um 8:02 Uhr.", "Wann fährt der Zug?"),
        ("강아지 몸무게는 6kg예요.", "오늘 재 보니 강아지 몸무게가 7.2kg였어요.", "강아지 몸무게가 얼마예요?"),
    ],
)
def test_a_later_result_with_another_value_of_the_same_thing_comes_first(before, later, query):
    """No word of either tells that something changed."""
    with told(before, later) as context:
        texts = [page.text for page in found(context, query)]
        assert texts.index(later) < texts.index(before)


def test_a_loose_correction_belongs_to_the_last_time_before_it():
    with told("The team lunch is on Wednesday.", "Tea is on Friday.", "Actually make it Thursday.") as context:
        [lunch] = [page for page in found(context, "team lunch") if "lunch" in page.text]
        assert lunch.later is None, "the tea was said between"
    with told("The team lunch is on Wednesday.", "I like soup.", "Actually make it Thursday.") as context:
        [lunch] = [page for page in found(context, "team lunch") if "lunch" in page.text]
        assert lunch.later.text == "Actually make it Thursday."


def test_what_changed_without_links_is_not_said():
    with told("The garage code is 4417.", "They changed the garage code, it is 9020 now.") as context:
        context.memory.session.weights = Weights(follows=False)
        assert all(page.later is None for page in found(context, "What is the garage code?"))


@pytest.mark.parametrize("erased", [1, 2])
def test_what_is_erased_takes_nothing_up(tmp_path, erased):
    with told("The garage code is 4417.", "They changed the garage code, it is 9020 now.",
              store=SQLiteStorage(tmp_path / "a.db")) as context:  # fmt: skip
        assert [page.later is None for page in found(context, "garage code 4417")[:2]] == [True, False]
        context.erase(erased)
        assert [page.later for page in found(context, "garage code") if "code" in page.text] == [None]


def test_later_words_are_within_the_budget():
    with told("The garage code is 4417.", "They changed the garage code, it is 9020 now.") as context:
        for budget in range(1, 60):
            pages = found(context, "What is the garage code?", budget=budget)
            shown = [each for page in pages for each in (page, page.later) if each is not None]
            assert sum(context.memory.session.count(each.text) for each in shown) <= budget


def test_equal_words_are_one_result_with_their_number_and_the_last_time():
    with told(*["The cat gets half a tablet at six."] * 5, "The cat gets a tablet at six.") as context:
        pages = found(context, "When does the cat get its tablet?")
        assert [(page.text, page.times) for page in pages[:2]] == [
            ("The cat gets half a tablet at six.", 5),
            ("The cat gets a tablet at six.", 1),
        ]
        assert pages[0].index == 5


def test_a_question_that_was_asked_again_and_again_hides_no_fact():
    context = Context.open(EphemeralStorage(), "talk", window=8_000, clock=None)
    turns = [
        ("Our inn in Visby is the Lime Tree.", "Noted."),
        *[("What is our inn in Visby?", "I don't know that.")] * 9,
    ]
    for day, (asked, answered) in enumerate([*turns, *((text, "Fine.") for text in TALK)]):
        context.append_turn(asked, {"role": "assistant", "content": answered}, at=START + timedelta(days=day))
    context.archive(keep=0)
    context.flush()
    assert found(context, "What is our inn in Visby?")[0].text == "Our inn in Visby is the Lime Tree."
    context.close()


def test_what_is_pasted_takes_up_nothing_that_the_user_said():
    pasted = "Proofread this:\n\nThey changed the garage code, it is 9020 now."
    with told("The garage code is 4417.", pasted) as context:
        assert all(page.later is None for page in found(context, "What is the garage code?"))


def test_an_answer_that_quotes_what_was_said_later_goes_with_it(tmp_path):
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "search_memory", "arguments": '{"query": "garage code"}'},
    }
    with told("The garage code is 4417.", "They changed the garage code, it is 9020 now.",
              store=SQLiteStorage(tmp_path / "a.db")) as context:  # fmt: skip
        asked = {"role": "assistant", "content": None, "tool_calls": [call]}
        context.append_turn("What is the garage code?", asked, context.answer(call))
        assert "9020" in "".join(context.export())
        context.erase(2)
        assert "9020" not in "".join(context.export())


def test_a_fact_is_returned_in_its_latest_version_with_those_before():
    with told("I live in Malmö.", "I live in Turku now.") as context:
        memory = context.memory
        for index, text in ((2, "I live in Turku now."), (1, "I live in Malmö.")):
            memory.learn(text, context="talk", index=index)
        [fact] = context.search_memory("Where do I live?", seen=False).user_facts
        assert (fact.text, [each.text for each in fact.before]) == ("I live in Turku now.", ["I live in Malmö."])
        assert memory.session.tiers().portrait == "I live in Turku now. (6 Jan 2026)"


@pytest.mark.parametrize(
    ("given", "asked", "taken"),
    [
        ("Always answer in French, please.", "Can you help me to answer in French?", "You can go back to English now."),
        ("Antworte bitte immer auf Französisch.", "Immer auf Französisch?", "Du kannst wieder auf Deutsch antworten."),
        ("以后请一直用英语回答我。", "一直用英语回答吗？", "现在可以改回中文了。"),
    ],
)
def test_instruction_is_found_with_what_took_it_back(given, asked, taken):
    """A result that is a lasting instruction has the later sentence that takes it back, and no earlier one."""
    with told(taken, given, "The boat is blue.", f"The boat is sold. {taken}") as context:
        page = next(page for page in found(context, asked) if page.index == 2)

    assert page.later is not None and (page.later.index, page.later.text) == (4, taken)


def test_instruction_that_the_window_shows_is_no_result():
    """A request gets the lasting instructions that its window does not show already."""
    with told("I prefer trains to planes.", "The harbour is old.") as context:
        assert [each.shown for each in context.instructions()] == [True]
        asked = "How do I get to the harbour?"
        seen, unseen = (context.search_memory(asked, seen=seen).pages for seen in (True, False))

    assert [page.text for page in unseen if page.source == "standing"] == ["I prefer trains to planes."]
    assert not any(page.source == "standing" for page in seen)
