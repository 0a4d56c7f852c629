"""Words of similar meaning: what the table says, and what a search makes of it."""

import pytest

from memci.text.language.similar import similar
from memci.text.language.terms import terms
from tests.talks import told


@pytest.mark.parametrize(
    ("word", "other"),
    [("sport", "football"), ("pet", "puppies"), ("job", "career"), ("food", "sausage"), ("countries", "mexico")],
)
def test_words_of_similar_meaning_are_listed_by_their_terms(word, other):
    """The most similar come first, each less similar than the word itself, which is not among them."""
    near = similar(*terms(word))

    assert terms(other)[0] in dict(near) and terms(word)[0] not in dict(near)
    assert all(1 > how > 0 for _, how in near)
    assert [how for _, how in near] == sorted((how for _, how in near), reverse=True)


def test_word_that_the_table_lacks_has_no_similar_ones():
    assert similar("qzxv") == []


def found(question, *said):
    """Return what a search among *said*, each "name: text", finds, best first."""
    with told(*said) as context:
        return [page.text for page in context.search_memory(question, k=9).pages]


APART = ["Ann: The harbour was quiet.", "Ben: A lantern fell over.", "Ann: The kettle is blue."] * 3


@pytest.mark.parametrize("more", [[], APART])
def test_search_finds_a_word_of_similar_meaning_behind_the_word_itself(more):
    said = ["Ben: Football takes all my evenings.", *APART, "Ann: Any sport wears me out."]

    best = found("Which sport?", *said, *more)

    assert best[0] == said[-1][5:] and said[0][5:] in best


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Which sport?", f"Ben: Football, {' '.join(f'thing{number}' for number in range(40))}."),  # a long text
        ("Wo ist der Sport?", "Ben: Football takes all my evenings."),  # another language
        ("Which sport?", "Ben: Lighthouses take all my evenings."),
    ],
)
def test_search_finds_no_word_of_similar_meaning_elsewhere(question, said):
    assert said[5:] not in found(question, *APART, said, *APART)


def test_search_of_a_groups_talk_finds_no_word_of_similar_meaning():
    group = [each.replace("Ben", "Cleo") for each in APART]

    assert "Football it is." in found("Which sport?", *APART, "Ben: Football it is.", *APART)
    assert "Football it is." not in found("Which sport?", *APART, *group, "Ben: Football it is.", *group, *APART)


def test_name_of_a_speaker_has_no_similar_words():
    said = [*(f"Rose: The harbour was quiet {number} times." for number in range(6)), "Ben: A tulip fell over."]

    assert "A tulip fell over." not in found("What of Rose?", *said)
