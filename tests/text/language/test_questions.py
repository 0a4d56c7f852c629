"""The form of a question, in three languages."""

import tomllib
from pathlib import Path

import pytest

from memci.text.language.questions import LONGEST, asks_own, form_of, split_questions

FORMS = tomllib.loads(Path(__file__).with_name("questions.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("language", "form"), [(language, form) for language in FORMS for form in FORMS[language]])
def test_form_of_plain_questions(language, form):
    """Of a hundred questions in plain words, at least 92 are recognised: a guess would be right in 25."""
    asked = FORMS[language][form].split("\n")[:-1]

    wrong = [(found, text) for text in asked if (found := form_of(text)) != form.removeprefix("none")]

    assert len(wrong) <= 0.08 * len(asked), wrong


def test_form_of_a_long_text_is_that_of_its_ends():
    """A request behind a long paste is one; what the paste asks is none."""
    paste = "x = 1\n" * LONGEST

    assert form_of(f"{paste}\nCan you help me with this?") == form_of(f"Fix this please.\n{paste}") == "request"
    assert form_of(f"{paste}\nsummarize\n{paste}") == ""


def test_own_questions_say_i_or_my():
    """Who asks about themselves says so."""
    assert asks_own("In what order did I visit them?") and asks_own("我先去的是哪个城市？")
    assert not asks_own("In what order did Anna visit them?")


def test_questions_in_one_text_are_split():
    """Each has the statements before it; a single question, and a text that ends otherwise, are not split."""
    assert split_questions("I sail. Where is the boat? And who has the key?") == [
        "I sail. Where is the boat?",
        "And who has the key?",
    ]
    assert split_questions("船在哪里？另外，钥匙在谁那里？") == ["船在哪里？", "另外，钥匙在谁那里？"]
    assert not split_questions("Where is the boat?")
    assert not split_questions("Where is the boat? Who has the key? Tell me soon.")
