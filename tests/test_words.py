"""The words of the package and of its documents: plain ones, the same one for the same thing, none that was replaced.

    "The revision is reckoned anew."    line 1: 'reckoned': say computed, counted · line 1: 'anew': say again

What is stored keeps its names; each such name is listed with its reason. This module knows nothing of grammar.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = sorted(
    path
    for pattern in ("memci/**/*.py", "memci/**/*.md", "benchmarks/**/*.py", "docs/**/*.md", "tools/*.py", "*.md")
    for path in ROOT.glob(pattern)
)

BANNED = {
    "reckon": "compute, count",
    "reckons": "computes, counts",
    "reckoned": "computed, counted",
    "reckoning": "computing, counting",
    "anew": "again",
    "whoever": "the one who, anyone who",
    "likewise": "the same, also",
    "edition": "compaction",
    "editions": "compactions",
    "memo": "window state",
    "memos": "window states",
    "lease": "revision check, `WriteConflict`",
    "leases": "revision checks",
    "overtaken": "conflict",
    "fate": "state change",
    "fates": "state changes",
    "handover": "memory feed",
    "hand-over": "memory feed",
    "breathe": "yield",
    "breathes": "yields",
    "breathing": "yielding",
    "upkeep": "maintenance",
    "noticing": "event detection",
    "surroundings": "context view",
}
"""word: what to say in its place"""

STORED = {
    r'"editions?"|\\"editions?\\"|`editions?`': "the key of a compaction in exports and in the files of a context",
    r"\beditions/": "the folder of compactions in the store of files",
    r"\beditions: Count|end\.editions": "a field that has the name of its key in an export",
    r"(TABLE|FROM|INTO|TO) edition(_1)?\b": "the table of compactions in SQLite",
    r'"handover"': "the kind of a job in the queue of the memory",
}
"""pattern: why what it matches keeps its old name"""


def pattern(word: str) -> str:
    """Match *word* in prose and within names, as `word`, `some_word` and `SomeWord`, but in no longer word."""
    return rf"(?<![A-Za-z]){word}(?![a-z])|{word.capitalize()}(?![a-z])"


WORDS = re.compile("|".join(pattern(word) for word in sorted(BANNED, key=len, reverse=True)))
KEPT = re.compile("|".join(STORED), re.MULTILINE)


def found(text: str) -> list[str]:
    """Return the banned words of *text*, each with its line and what to say in its place."""
    lines = KEPT.sub("", text).splitlines()
    return [
        f"line {number}: {match[0]!r}: say {BANNED[match[0].lower()]}"
        for number, line in enumerate(lines, 1)
        for match in WORDS.finditer(line)
    ]


def test_no_banned_word_is_used():
    """Code, comments, docstrings and documents use none of the banned words, but for the names of what is stored."""
    told = [f"{path.relative_to(ROOT)}, {each}" for path in FILES for each in found(path.read_text(encoding="utf-8"))]

    assert not told, "\n".join(told)


def test_a_banned_word_is_found_wherever_it_stands():
    """In prose, in a name and at the head of a class it is found; within another word and as a stored key it is not."""
    assert len(found("It is reckoned\nanew. Whoever last_edition EditionRow")) == 5
    assert found('an expedition in "editions" with sememes, SELECT text FROM edition') == []


def test_every_exception_is_needed():
    """A name that is stored no more is no exception any more."""
    texts = [path.read_text(encoding="utf-8") for path in FILES]

    assert [each for each in STORED if not any(re.search(each, text, re.MULTILINE) for text in texts)] == []
