"""The tables of the languages: one shape, patterns that can be used, and the writing that chooses between them."""

import re
import tomllib
from pathlib import Path

import pytest

from memci.text import language
from memci.text.language.patterns import alternatives, finder, has, pattern, words
from memci.text.language.sentences import writing

TABLES = {
    path.stem: tomllib.loads(path.read_text("utf-8")) for path in Path(*language.__path__, "tables").glob("*.toml")
}
WRITINGS = {"english": "latin", "chinese": "han", "japanese": "kana", "korean": "hangul"} | {
    name: name for name in ("french", "german", "italian", "portuguese", "russian", "spanish")
}
LISTS = {"words", "characters", "errors"}
"""sections that hold words or letters, not patterns alone"""


@pytest.mark.parametrize("name", WRITINGS)
def test_every_pattern_of_a_table_can_be_used(name):
    """Every entry compiles, names only parts that its table has, and matches something else than nothing."""
    for section, entries in TABLES[name].items():
        for key in entries if section not in LISTS else ():
            found = alternatives(section, key, WRITINGS[name])
            assert "«" not in found
            assert "\n" not in found
            re.compile(found)


def test_tables_have_one_shape():
    """English explains every section and entry that another language has, or the section belongs to that language."""
    own = {("keywords", "grammar"), ("keywords", "particle"), ("keywords", "predicate")}
    own |= {("characters", key) for key in ("grammar", "pairs", "particles", "traditional", "simplified")}
    own |= {("items", key) for key in ("quoted", "when", "weekday", "number", "person", "name")}
    english = {(section, key) for section, entries in TABLES["english"].items() for key in entries}
    others = {
        (section, key)
        for name, table in TABLES.items()
        for section, entries in table.items()
        for key in entries
        if name != "english" and section != "parts"
    }

    assert set(TABLES) == set(WRITINGS)
    assert others - english == own


def test_pattern_when_no_language_is_named():
    """It finds what any language says; an entry that no language has finds nothing."""
    timed = pattern("dates", "timed")

    assert all(timed.search(text) for text in ("yesterday", "昨天", "先週", "어제"))
    assert not pattern("dates", "no such entry").search("yesterday")
    assert not pattern("keywords", "predicate", "latin").search("")


@pytest.mark.parametrize("section", ["instructions", "provenance"])
def test_finder_finds_what_the_pattern_finds(section):
    """Whether something is found does not depend on how its alternatives are put together."""
    table = TABLES["english"][section]
    texts = [each.lower() for key in table for each in re.split(r"[|()\n]", alternatives(section, key, "latin"))[:60]]
    for key in table:
        whole, quick = pattern(section, key, "latin"), finder(section, key, languages=("latin",))
        assert [whole.search(each) is None for each in texts] == [quick.search(each) is None for each in texts]
    assert not finder(section, "no such entry").search("")


@pytest.mark.parametrize("section", ["provenance", "questions"])
def test_no_language_is_missed_in_a_text_of_other_letters(section):
    """What any language says is found, though a text in Latin letters is searched for languages of these alone."""
    keys, languages = TABLES["english"][section], WRITINGS.values()
    parts = [
        part for each in languages for key in keys for part in re.split(r"[|()\n]", alternatives(section, key, each))
    ]
    texts = [part.lower() for part in parts[::20]]
    for key in keys:
        assert [has(section, key, each) for each in texts] == [
            pattern(section, key).search(each) is not None for each in texts
        ]


def test_words_when_they_are_separated():
    """Words come one by one, whether blanks or bars separate them."""
    assert words("words", "abbreviations")[:2] == ["mr", "mrs"]
    assert "timed out" in words("errors", "words")
    assert words("errors", "words", "hangul") == ["오류", "실패", "에러"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Always answer in French.", "latin"),
        ("Где?", "latin"),
        ("", "latin"),
        ("以后请用中文 OK", "han"),
        ("東京に住む", "kana"),
        ("ラーメン", "kana"),
        ("漢字 한국어", "hangul"),
    ],
)
def test_writing_of_a_text_is_that_of_its_language(text, written):
    """Kana are Japanese, Hangul is Korean; Han characters alone are Chinese."""
    assert writing(text) == written
