"""A page as a model describes it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from memci.errors import AnswerRejected
from memci.memory.backend import PageRecord
from memci.memory.consolidation.prompts.pages import describe, quoted_pages
from memci.memory.consolidation.prompts.validation import prompt_of
from memci.memory.tiers.events import LifeEvent
from memci.text.summarize import extract
from memci.tokens import counter_for

Page = Callable[..., PageRecord]
MAY = 1_714_831_200.0
LONG = (
    "I'd like to move OI5L9G to May 27 since my sister Anna gets married that weekend in Oslo, and if there is any "
    "refund, please send $157.50 of it to mia.li@example.com; the papers are in /srv/papers/oslo.pdf, thank you!"
)
CHINESE = (
    "我想把去奥斯陆的机票改到五月二十七日，因为我姐姐安娜那个周末结婚，订单号是OI5L9G，如果有退款请退157.50美元到原来的卡上，"
    "另外行李还是两件，座位要靠窗的，最好在前面几排，谢谢您的帮助，麻烦了，我会等您的回复，越快越好。"
)
GOOD: dict[str, Any] = {
    "title": "Moving the flight for Anna's wedding",
    "lines": [{"entry": 1, "line": "Wants OI5L9G moved to May 27 for Anna's wedding in Oslo."}],
    "keywords": ["Flight", "oslo", "Anna", "flights"],
    "events": [{"what": "Anna gets married in Oslo.", "who": "Anna", "when": "2024-05-25", "importance": 0.8}],
}


def test_good_answer_is_taken(says: Any, page: Page) -> None:
    """Title, lines, keywords and events of a good answer are taken, with the ids it left out."""
    chat = says(GOOD)

    note = describe(chat, page(LONG, "Sure."))

    assert note.title == "Moving the flight for Anna's wedding · OI5L9G · May 27"
    assert note.lines[1] == "Sure."
    assert note.lines[0] == (
        "Wants OI5L9G moved to May 27 for Anna's wedding in Oslo. · mia.li@example.com · $157.50 · /srv/papers/oslo.pdf"
    )
    assert note.keywords == ("flight", "oslo", "anna")
    assert note.events == (LifeEvent("Anna gets married in Oslo.", "Anna", 0.8, "alice", 1, MAY + 21 * 86_400),)
    assert chat.steps == ["page"]


def test_chinese_page_is_described_in_chinese(says: Any, page: Page) -> None:
    """A Chinese page takes Chinese lines, whose ids and numbers are kept too."""
    answer = GOOD | {
        "title": "改签去奥斯陆的机票",
        "lines": [{"entry": 1, "line": "想把机票改到五月二十七日，参加姐姐的婚礼"}],
        "keywords": ["机票", "奥斯陆"],
    }

    note = describe(says(answer), page(CHINESE, "好的。"))

    assert note.title.startswith("改签去奥斯陆的机票")
    assert note.lines[0].startswith("想把机票改到五月二十七日，参加姐姐的婚礼 · ")
    assert "OI5L9G" in note.lines[0]
    assert note.keywords == ("机票", "奥斯陆")


def test_messages_that_fit_are_not_asked_for(says: Any, page: Page) -> None:
    """A message that is its own line has no number, so that no line is written for it; one that is not, has."""
    chat = says(GOOD)

    describe(chat, page(LONG, "Sure."))

    first, second = (json.loads(line) for line in chat.shown.split("\n")[2:4])
    assert (first["entry"], "entry" in second) == (1, False)


def test_line_of_an_entry_that_was_not_offered_is_dropped(says: Any, page: Page) -> None:
    """Lines for other ordinals change nothing, and the first line of an entry is the one that counts."""
    lines = [{"entry": n, "line": f"line of {n}"} for n in (2, 9, -1, 1)] + [{"entry": 1, "line": "another"}]

    note = describe(says(GOOD | {"lines": lines}), page(LONG, "Sure."))

    assert len(note.lines) == 2
    assert note.lines[0].startswith("line of 1")
    assert note.lines[1] == "Sure."


def test_id_that_was_made_up_is_not_taken(says: Any, page: Page) -> None:
    """A title, line, keyword or event with an id that the page does not have is not taken."""
    told = page(LONG, "Sure.")
    answer = GOOD | {
        "title": "Booking ZZ99XX",
        "lines": [{"entry": 1, "line": "Moves ZZ99XX to May 27."}],
        "keywords": ["zz99xx", "oslo"],
        "events": [{"what": "ZZ99XX was paid.", "importance": 1}],
    }

    note = describe(says(answer), told)

    exact = extract([message for _, message in told.entries])
    assert (note.title, note.lines[0]) == (exact.title, exact.lines[0])
    assert (note.keywords, note.events) == (("oslo",), ())


@pytest.mark.parametrize(
    ("when", "seconds"),
    [
        ("2024-05-04", MAY),
        ("2024-05-03", MAY - 86_400),
        ("2024-05-05T10:00:00Z", MAY + 86_400),
        ("next week", None),
        ("2024-02-31", None),
        ("0001-01-01", None),
        (None, None),
    ],
)
def test_date_of_an_event_is_a_day_or_none(says: Any, page: Page, when: str | None, seconds: float | None) -> None:
    """An event is dated by an ISO date, at the page's time of day; what is no date is none."""
    events = [{"what": "It happened", "when": when, "importance": 7}]

    note = describe(says(GOOD | {"events": events}), page(LONG))

    assert note.events == (LifeEvent("It happened", "user", 1.0, "alice", 1, seconds),)


def test_empty_answer_is_rejected(says: Any, page: Page) -> None:
    """An answer without a title, or without any line that was asked for, is asked for again, and then refused."""
    reasons: list[str] = []

    for bad in ({"title": "none"}, {"lines": []}, {"lines": [{"entry": 1, "line": "Sorry, I can't help with that."}]}):
        with pytest.raises(AnswerRejected):
            chat = says(GOOD | bad)
            chat.rejected = lambda _, reason: reasons.append(reason)
            describe(chat, page(LONG))

    assert reasons == ["the title says nothing"] * 3 + ["no line is for an entry of the page"] * 6


def test_quoted_entry_keeps_the_line_that_says_so(says: Any, page: Page) -> None:
    """An answer to a recall is not shown, and its line names the page that it quotes."""
    call = {"id": "c", "type": "function", "function": {"name": "recall_page", "arguments": '{"index":4,"entry":2}'}}
    told = page(
        LONG,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "old words of page 4 " * 40},
        quotes=[3],
    )
    chat = says(GOOD | {"lines": [{"entry": 1, "line": "Wants to move."}, {"entry": 3, "line": "Old words."}]})

    note = describe(chat, told)

    assert note.lines[2] == "recalled #4 entry 2"
    assert quoted_pages(told) == [None, None, (4, 2)]
    assert "old words" not in chat.shown


def test_answer_to_a_search_keeps_the_line_that_says_so(says: Any, page: Page) -> None:
    """An answer to a search is not shown either, and its line tells of the search: it is no recall."""
    call = {"id": "c", "type": "function", "function": {"name": "search_memory", "arguments": '{"query":"dogs"}'}}
    told = page(
        LONG,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "old words of page 4 " * 40},
        quotes=[2, 3],
    )

    note = describe(says(GOOD | {"lines": [{"entry": 1, "line": "Wants to move."}]}), told)

    assert quoted_pages(told) == [None, None, None]
    assert note.lines[1].startswith("search_memory(")
    assert note.lines[2].startswith("search_memory →")


def test_prompt_is_short() -> None:
    """The instructions, which are paid at each page, take at most 350 tokens."""
    assert counter_for("gpt-4o")(prompt_of("page")) <= 350
