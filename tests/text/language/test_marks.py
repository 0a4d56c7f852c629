"""Marks of letters: what belongs to a word, and a normal form that takes no longer for many marks."""

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.language.marks import compose, normalize, with_marks


def test_a_letter_has_its_marks():
    """Each mark of a letter belongs to the word; what chooses the form of an emoji and encloses a digit does not."""
    word = re.compile(with_marks("[a-z]"))
    marks = [chr(code) for code in range(0x10000) if unicodedata.category(chr(code)) in ("Mn", "Mc")]
    others = [mark for mark in marks if "\u20d0" <= mark <= "\u20f0" or "\ufe00" <= mark <= "\ufe0f"]

    assert [mark for mark in marks if not word.fullmatch(f"a{mark}b")] == others
    assert [found[0] for found in word.finditer("no\u0301 \u0301ab।")] == ["no\u0301", "ab"]
    assert all(word.fullmatch(f"a{mark}b") for mark in "\U0001e947\u00ad՞")


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u20d0\u20d2", "\U0001d165\U0001d167", "\uff9e\u0301"])
def test_a_letter_has_thirty_marks_at_most(marks):
    """The time to sort them is the square of their number: with each letter of 40,000 it was a second."""
    piled = normalize("NFKC", f"e{marks * 50}x🦉{marks * 50}")

    assert max(map(len, re.split("[ex🦉]", unicodedata.normalize("NFD", piled)))) == 30


@given(st.text(alphabet="aeé क\u093f\u0301\u0323\u3099か\u1112\u1161ﾞ\uff8aＡ🦉\u200d\ud800ΐ", max_size=30))
def test_a_normal_form_is_that_of_unicode(text):
    for form in ("NFC", "NFKC"):
        assert normalize(form, text) == unicodedata.normalize(form, text)


@given(st.text(alphabet="aeé\u0301\u0323か\u3099가\u1100\u1161\u11a8🦉", max_size=30))
def test_composed_text_knows_where_each_character_begins(text):
    """It is the normal form, and its pieces at these places are the text."""
    made, places = compose(text)

    assert made == normalize("NFC", text)
    assert len(places) == len(made) + 1
    assert [*places] == sorted(places)
    assert "".join(text[a:b] for a, b in pairwise(places)) == text
