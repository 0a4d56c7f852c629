"""What the messages of a page say: ASCII and narrow texts are read by quicker patterns, to the same result."""

from unicodedata import category

from hypothesis import example, given
from hypothesis import strategies as st

from memci.text.language.sentences import languages
from memci.text.language.telling import telling_keys
from memci.text.sanitize import is_narrow, width
from memci.window.page_text import marks

ASCII = st.lists(st.sampled_from(["the", "como", "Book", "HAT170", "a@b.io", "5,000", "$7", "#9", *" \n.-_|'%/"]))


@given(ASCII.map("".join))
@example("the Book a@b.io, paid 5,000% of $7 for #9-HAT170")
def test_ascii_is_read_as_any_text(text):
    """The same marks, words and languages are found where something that is none of them is not ASCII."""
    assert marks(f"{text} ø") == marks(text)
    assert telling_keys(f"{text} —") == telling_keys(text)
    assert languages(f"{text} ø") == languages(text)


def test_narrow_characters_take_one_column():
    """What is called narrow takes one column also where each character is looked up, if it is assigned."""
    narrow = [each for each in map(chr, range(0x3000)) if is_narrow(each) and category(each) != "Cn"]
    wrong = [each for each in narrow if width(f"{each}漢") != 3]

    assert wrong == []
