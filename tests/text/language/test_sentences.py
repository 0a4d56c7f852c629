"""Sentences: what somebody said, cut where it ends, without what is no saying."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.language.sentences import greeted, languages, point, sentences, simplify


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hi Dr. Li! How are you?", ["Hi Dr. Li!", "How are you?"]),
        ("It costs 3.50 at e.g. Tom's. Really?!  Yes...", ["It costs 3.50 at e.g. Tom's.", "Really?!", "Yes..."]),
        ("Mr. Li came at 5 p.m. We left at 6 p.m. sharp.", ["Mr. Li came at 5 p.m.", "We left at 6 p.m. sharp."]),
        ("Room No. 5? No. I sat in it, etc. as told.", ["Room No. 5?", "No.", "I sat in it, etc. as told."]),
        ("Fr. Dr. med. Kern kommt am 12. Juni z. B. zu uns.", ["Fr. Dr. med. Kern kommt am 12. Juni z. B. zu uns."]),
        ("La Sra. Paz vive en la Av. Sol. Mme. Roux aussi.", ["La Sra. Paz vive en la Av. Sol.", "Mme. Roux aussi."]),
        ("We were 12. Then two left.", ["We were 12.", "Then two left."]),
        ('She said "go." Then he went', ['She said "go."', "Then he went"]),
        ("以后请用中文回答。谢谢！好", ["以后请用中文回答。", "谢谢！", "好"]),
        ("「行きます。」と言った。", ["「行きます。」", "と言った。"]),
        ("짧게 답해 줘. 이거 번역해 줘.", ["짧게 답해 줘.", "이거 번역해 줘."]),
        ("好。。。走吧…再见！！", ["好。。。", "走吧…", "再见！！"]),
        ("मैं पुणे में हूँ। तुम कहाँ हो?", ["मैं पुणे में हूँ।", "तुम कहाँ हो?"]),
        ("ខ្ញុំទៅផ្ទះ។ម្តាយចាំ៕ល្អ", ["ខ្ញុំទៅផ្ទះ។", "ម្តាយចាំ៕", "ល្អ"]),
        ("သွားမည်။ လာမည်။", ["သွားမည်။", "လာမည်။"]),
        ("أين القطار؟ في المحطة", ["أين القطار؟", "في المحطة"]),
        ("میں گھر میں ہوں۔ تم؟", ["میں گھر میں ہوں۔", "تم؟"]),
        ("Գնում եմ։ Արի։", ["Գնում եմ։", "Արի։"]),
        ("ነገ እሄዳለሁ። አንተስ፧ ደህና", ["ነገ እሄዳለሁ።", "አንተስ፧", "ደህና"]),
        ("- one\n2) two\n# three\n\n", ["one", "two", "three"]),
        ("before\n```\ncode. code\n```\nafter", ["before", "after"]),
        ("before\n~~~ never closed. Not", ["before"]),
        ("> as quoted\nERROR: no\n$ ls\nx = 1\n2024-05-01 12:00:00 up", []),
        (" \n ", []),
    ],
)
def test_sentences_are_what_is_said(text, found):
    """Sentences end at their marks, not at abbreviations; list marks, code, quotes and machines' lines are left out."""
    assert list(sentences(text)) == found


def test_the_point_ends_at_a_stop_of_any_script():
    """The first sentence with content is told from the next one."""
    said = "मैं पिछले महीने दिल्ली से पुणे आ गया हूँ। मेरी माँ को यह पसंद नहीं है।"

    assert said[slice(*point(said))] == "मैं पिछले महीने दिल्ली से पुणे आ गया हूँ।"


def test_decomposed_accents_change_neither_language_nor_name():
    """A letter may have its accent as a character of its own."""
    assert languages("ou\u0300 e\u0301tais-tu apre\u0300s") == languages("où étais-tu après") == ["french"]
    assert greeted("Hi Rene\u0301e!") == "Rene\u0301e"


@given(st.text(alphabet='Aa.!?。？ e.g\n"“”`>-1)', max_size=200))
def test_sentences_stand_in_the_text(text):
    """Each is there letter by letter, in order, on one line, and none is empty."""
    place = 0
    for sentence in sentences(text):
        place = text.index(sentence, place) + len(sentence)

        assert sentence == sentence.strip() != ""
        assert len(sentence.splitlines()) == 1


def test_simplified_text_is_as_long_and_reads_like_the_simplified_one():
    """Both ways to write Chinese are one for patterns, and places in the text stay where they are."""
    assert simplify("以後請用中文回覆，still") == "以后请用中文回复，still"
