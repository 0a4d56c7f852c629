"""Texts that are made to be slow to read are read in linear time: far below a second for 20,000 characters."""

import time

import pytest

from memci.memory.backend import PageRecord
from memci.memory.retrieval.passages import passage_terms, passages
from memci.memory.tiers.events import DailySummary, conversation
from memci.memory.tiers.facts import Known, facts, same
from memci.memory.tiers.graph import Graph, name_key, seeds
from memci.memory.tiers.profile import is_usable
from memci.text.language.dates import asked_dates, asks_time, tells_time
from memci.text.language.instructions import instructions
from memci.text.language.keywords import jaccard, keywords, stems_of
from memci.text.language.sentences import sentences
from memci.text.language.telling import telling_keys
from memci.text.language.terms import query_terms, terms
from memci.text.moments import local

LENGTH = 20_000
"""characters of a hostile text"""
UNITS = (
    "a.",
    "a-",
    "A a ",
    "Aa of ",
    "1,",
    "9",
    "a_-",
    "'s",
    "don't",
    "~",
    "吗。",
    "上海",
    "강아지",
    "may ",
    "when i ask ",
)
MARKED = "a" + "-" * LENGTH + "a"
HOSTILE = [(unit * LENGTH)[:LENGTH] for unit in UNITS] + [MARKED]


def page(text, role="user"):
    return PageRecord("c", 1, 1, ((1, {"role": role, "content": text}),), at=9.0)


def known(text):
    return Known(text, "user", "c", 1, 1)


READERS = {
    "sentences": lambda text: list(sentences(text)),
    "instructions": lambda text: instructions(text, text),
    "name_key": name_key,
    "seeds": lambda text: seeds(Graph(), text),
    "facts of a user": lambda text: facts(page(text)),
    "facts of an assistant": lambda text: facts(page(text, "assistant")),
    "same": lambda text: same(known(text), known(text + "x")),
    "conversation": lambda text: conversation([page(text)]),
    "a day": lambda text: DailySummary("").updated([page(text)], []),
    "usable": is_usable,
    "keywords": lambda text: keywords([text]),
    "folded": stems_of,
    "telling_keys": telling_keys,
    "jaccard": lambda text: jaccard([text], [text]),
    "terms": terms,
    "query_terms": query_terms,
    "asked_dates": asked_dates,
    "tells_time": tells_time,
    "asks_time": asks_time,
    "passages": lambda text: [passage_terms(each, local(1.0, 0)) for each in passages(page(text).entries)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_hostile_texts_are_read_in_linear_time(name):
    """Runs of marks, figures, capitals and clitics, spaced or not, take no reader a second; a square takes many."""
    taken = {text[:12]: _seconds(READERS[name], text) for text in HOSTILE}

    assert {text: seconds for text, seconds in taken.items() if seconds >= 1} == {}


def test_hostile_sentences_are_read_in_linear_time():
    """A text of sentences, each as long as one may be, takes no longer than any other."""
    said = [(f"{lead}{unit * 390}"[:390] + ". ") * 100 for lead in ("please ", "i want you ") for unit in UNITS]

    assert max(_seconds(lambda each: instructions(each, each), text) for text in said) < 5


def _seconds(reader, text):
    began = time.process_time()
    reader(text)
    return time.process_time() - began
