"""Pages into passages: whole, at borders, and with who says them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.formats.utterance import entry_text
from memci.memory.retrieval.passages import LONGEST, MOST, Passage, passage_terms, passages, pieces

WORDS = "One short sentence about the boat. "
CALL = {"id": "c1", "type": "function", "function": {"name": "book_flight", "arguments": '{"flight": "HAT170"}'}}


@given(st.text(alphabet=st.sampled_from("ab .\n,!?。，中文字한글かな\u2003😀"), max_size=4000))
def test_pieces_joined_are_the_text(text):
    """No character is lost, none comes twice; a text of nothing has no piece."""
    cut = pieces(text)

    assert "".join(cut) == (text if text.strip() else "")
    assert all(cut)


@given(st.integers(min_value=1, max_value=60))
def test_pieces_of_sentences_end_where_sentences_do(count):
    """A text of sentences is cut between them, into pieces that are no longer than they may be and no crumbs."""
    cut = pieces(WORDS * count)

    assert all(piece.endswith(". ") for piece in cut)
    assert all(len(piece) <= LONGEST * 5 // 4 for piece in cut)
    assert all(len(piece) >= LONGEST // 4 for piece in cut) or len(cut) == 1


def test_pieces_prefer_paragraphs():
    """Where there are paragraphs, a piece ends with one."""
    first, second = WORDS * 12, WORDS * 10

    cut = pieces(f"{first}\n\n{second}")

    assert cut == [f"{first}\n\n", second]


def test_pieces_of_chinese_are_a_third_as_long():
    """A character of a writing without spaces is about a token: a piece has about two hundred of them."""
    cut = pieces("今天我们去了湖边，画了一下午的画。" * 60)

    assert all(piece.endswith("。") for piece in cut)
    assert all(len(piece) <= LONGEST // 3 * 5 // 4 for piece in cut)


def test_pieces_of_hindi_end_where_sentences_do():
    """A script may have a full stop of its own; the blank behind it is no beginning."""
    cut = pieces("मैं हर शनिवार मिट्टी के बर्तन बनाना सीख रहा हूँ। मेरी शिक्षिका का नाम सुनीता है। " * 60)

    assert all(piece.endswith("। ") for piece in cut)


def test_pieces_of_a_huge_text_are_bounded_in_number():
    """However long a tool's answer is, all of it is in its pieces, and there are not too many of them."""
    text = "word " * 400_000

    cut = pieces(text)

    assert "".join(cut) == text
    assert len(cut) <= MOST * 3 // 2


def test_pieces_without_a_border_are_cut_anyway():
    """A text without a space, such as base64, is cut by length."""
    cut = pieces("a" * 5000)

    assert "".join(cut) == "a" * 5000
    assert max(map(len, cut)) <= LONGEST * 5 // 4


def test_passages_name_role_speaker_and_place():
    """A passage says which message it is a piece of, where it begins there, and who says it."""
    long = WORDS * 30

    found = passages(
        [(4, {"role": "user", "name": "Mel", "content": long}), (5, {"role": "assistant", "content": "Oh."})]
    )

    assert [passage.entry for passage in found[:-1]] == [4] * (len(found) - 1)
    assert all(long[passage.start :].startswith(passage.text) for passage in found[:-1])
    assert [passage.part for passage in found[:-1]] == list(range(len(found) - 1))
    assert {passage.speaker for passage in found[:-1]} == {"Mel"}
    assert found[-1] == Passage(5, 0, "assistant", "", "Oh.")


def test_passages_of_a_call_and_its_answer_have_the_tool():
    """A tool's call is text with name and arguments; its answer is said by the tool, though only its id names it."""
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}

    asked, answered = passages([(1, call), (2, {"role": "tool", "tool_call_id": "c1", "content": "Booked."})])

    assert asked.text == 'book_flight {"flight": "HAT170"}'
    assert answered == Passage(2, 0, "tool", "book_flight", "Booked.")
    assert {"flight", "hat170"} <= set(passage_terms(asked, None))
    assert {"flight", "book"} <= set(passage_terms(answered, None))


def test_passages_of_a_transcript_are_said_by_whom_they_name():
    """Texts of a page that all begin with a name and a colon are said by them, after a date or not."""
    texts = ["Mel: I painted it.", "[8 May, 13:56] Mary Ann: Wow!", "小明：我画的。", "सीता: हाँ।"]

    found = passages([(number, {"role": "user", "content": text}) for number, text in enumerate(texts)])

    assert [passage.speaker for passage in found] == ["Mel", "Mary Ann", "小明", "सीता"]
    assert [passage.text for passage in found] == texts


@pytest.mark.parametrize(
    "texts",
    [
        ["Deadline: the poster goes to print at Easter.", "Noted."],
        ["地址：人民路十八号二楼。", "好的。"],
        ["Kennwort: möwe-elf für das Gästenetz."],
        ["Code: tidy the imports", "Code: drop the shim"],
        ["Question: does the ferry carry bikes?", "Answer: it does."],
        ["Mel: I painted it.", "Remember this one thing: salt."],
    ],
)
def test_labels_are_no_speakers(texts):
    """A label is no speaker where the other messages of the page have none, or the same one, or where it is no name."""
    found = passages([(number, {"role": "user", "content": text}) for number, text in enumerate(texts)])

    assert {passage.speaker for passage in found} == {""}


def test_passages_of_parts_are_of_their_texts():
    """Of a content in parts the texts are searched; a message without any has no passage."""
    parts = [
        {"type": "text", "text": "A lake."},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "B."},
    ]

    assert entry_text({"role": "user", "content": parts}) == "A lake.\nB."
    assert passages([(0, {"role": "user", "content": parts[1:2]})]) == []


def test_passage_terms_have_the_date():
    """When something was said is searched like what was said."""
    passage = Passage(1, 0, "user", "Mel", "I painted.")

    assert passage_terms(passage, datetime(1970, 1, 1, tzinfo=UTC)) == ["paint", "@1970", "@jan", "@1970-01", "@jan-1"]
    assert passage_terms(passage, None) == ["paint"]
