"""The words of a query within a text that is shown."""

import pytest

from memci.serve.query_words import find_words


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("We flew to Oslo.", "flights to Oslo", ["Oslo"]),
        ("मैंने तीन किताबें खरीदीं।", "किताब", ["किताबें"]),
        ("We met Zoe\u0301 there.", "Zoé", ["Zoe\u0301"]),
    ],
)
def test_words_of_a_query_are_marked_whole(text, query, marked):
    """A word is marked with the marks of its letters, also in another form."""
    assert [text[start:end] for start, end in find_words(text, query)] == marked
