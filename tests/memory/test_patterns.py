"""Patterns that can't explode match what their plain forms match."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.tiers import facts, profile
from memci.text.language import telling
from memci.text.language import terms as words
from memci.text.language.patterns import pattern as table

ENGLISH = table("instructions", "direct", "latin")
TESTS = Path(__file__).parents[1]
CORPUS = "\n".join(
    path.read_text(encoding="utf-8")
    for path in sorted([*TESTS.glob("memory/**/test_*.py"), *TESTS.glob("text/**/test_*.py")])
)
"""the tests of the memory have texts in every language, what is looked for in them and what is not"""

PLAIN = {
    "figures": (
        facts._FIGURE,
        r"\d+(?:[.,:/-]\d+)*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b|[一二两三四五六七八九十]",
    ),
    "runs": (telling._RUN, telling._RUN.pattern.replace("++", "+")),
    "chunks": (words._CHUNK, r"\w+(?:['’.,:/@#&+_-]+\w+)*"),
    "instructions": (ENGLISH, ENGLISH.pattern.replace(r"(?> \w+ly)", r" \w+ly")),
}
"""patterns, each with the plain form of it, in which a repeat may stand within a repeat"""

_PIECES = """a A aa Aa of the 1 12 1,200 1/12 3:4-5 .5 - -- . , : / ' ’ _ @ # & + s n't é ß 上海 は を 는 가
    강아지 좋아 살 i i'd would prefer really lyly ly2 much also that York Anna"""
PIECES = st.sampled_from(
    [*_PIECES.split(), *" \n", "York of Anna", "Anna the", "Anna de Aa", "A’s van Anna"]
) | st.just(" ")
TEXTS = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=40)


def found(pattern, text):
    """Return all that *pattern* matches, where, and in which of its groups."""
    return [(match.span(), match.lastgroup, match.groupdict()) for match in re.finditer(pattern, text)]


@pytest.mark.parametrize("name", PLAIN)
def test_pattern_differs_from_its_plain_form(name):
    """The comparison compares two patterns, not one with itself."""
    pattern, plain = PLAIN[name]

    assert pattern.pattern != plain


@pytest.mark.parametrize("name", PLAIN)
def test_pattern_matches_what_its_plain_form_does_in_sentences(name):
    """In all sentences of these tests, line by line, the same is found at the same places."""
    pattern, plain = PLAIN[name]
    again = re.compile(plain, pattern.flags)

    different = [line for line in CORPUS.splitlines() if found(pattern, line) != found(again, line)]

    assert different == []
    assert any(map(pattern.search, CORPUS.splitlines()))


@given(TEXTS)
def test_patterns_match_what_their_plain_forms_do_in_any_text(text):
    """In any text of a few words and marks, the same is found at the same places."""
    for pattern, plain in PLAIN.values():
        assert found(pattern, text) == found(re.compile(plain, pattern.flags), text)


@given(TEXTS | st.text(alphabet="ab_- .\n"))
def test_core_of_a_text_is_what_is_left_without_marks_around_it(text):
    """What stands between the first and the last letter or figure is looked at, and nothing else is cut."""
    core = profile._CORE.search(text)

    assert (core[0] if core else "") == re.sub(r"\A[\W_]+|[\W_]+\Z", "", text)


@given(st.lists(st.sampled_from(["a", "n", "n't", "'s", "'re", "'ve", "'ll", "'d", "'m", "'t", "'em", "'all", "'x"])))
def test_clitics_are_taken_off_one_after_another(pieces):
    """However many stand at the end of a word, all go; what is left ends in none."""
    word = plain = "".join(pieces)
    while (shorter := re.sub(r"(?:n't|'(?:s|re|ve|ll|d|m|t|em|all))$", "", plain)) != plain:
        plain = shorter

    assert words._strip_clitics(word) == plain
