"""Scores of an answer, as LoCoMo's own evaluation gives them, and two others to compare tables by.

    f1("The adoption agencies", "Adoption agency")      1.0: no articles, stems of words
    scored(1, "clay, a rug", "rug; or clay")            …: per category, {"f1": …, "bleu1": …, "f1_sets": …}

F1 follows task_eval/evaluation.py of github.com/snap-research/locomo (Maharana et al., 2024, arXiv 2402.17753): lower
case, no punctuation, no "a", "an", "the", "and", stems by Porter, words counted as often as they come. Category 1: both
are split at commas, and each part of the gold answer takes its best match. Category 3: gold is what stands before ";".
Category 5: right is an answer that says "not mentioned" or "no information available". Its stemmer is NLTK's variant
of Porter's, ours is Porter's own; LOG.md says what that moves.

Chinese, Japanese and Korean have no spaces: each of their characters counts as a word here, where LoCoMo's own code
would take a sentence for one word. For English nothing changes. This module knows nothing of models or memories.
"""

import math
import re
import string
from collections import Counter
from functools import cache
from statistics import fmean

import snowballstemmer

NOT_MENTIONED = ("not mentioned", "no information available")
"""what an answer to a question of category 5 has to say"""

_PORTER = snowballstemmer.stemmer("porter")
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ARTICLES = re.compile(r"\b(?:a|an|the|and)\b")
_EAST = "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_EASTERN = re.compile(f"([{_EAST}]|[\U00020000-\U0003ffff])")
_EASTERN_PUNCTUATION = re.compile("[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")


def scored(category: int, answer: str, gold: str) -> dict[str, float]:
    """Return the scores of *answer*, each from 0 to 1; in category 5 there is only right and wrong."""
    if category == 5:
        right = float(any(phrase in answer.lower() for phrase in NOT_MENTIONED))
        return {"f1": right, "bleu1": right, "f1_sets": right}
    gold = wanted_of(category, gold)
    official = f1_of_parts(answer, gold) if category == 1 else f1(answer, gold)
    return {"f1": official, "bleu1": bleu1(answer, gold), "f1_sets": f1_sets(answer, gold)}


def wanted_of(category: int, gold: str) -> str:
    """Return what of the gold answer is wanted: in category 3 it goes on with a reason."""
    return gold.partition(";")[0].strip() if category == 3 else gold


def words(text: str) -> list[str]:
    """Return what is compared of *text*: words in lower case, without punctuation and articles."""
    plain = _EASTERN_PUNCTUATION.sub(" ", text.lower()).translate(_PUNCTUATION)
    return _EASTERN.sub(r" \1 ", _ARTICLES.sub(" ", plain)).split()


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of stems, each counted as often as it comes."""
    said, wanted = Counter(map(stem, words(answer))), Counter(map(stem, words(gold)))
    return _harmonic((said & wanted).total(), said.total(), wanted.total())


def f1_of_parts(answer: str, gold: str) -> float:
    """Return the mean, over the parts of *gold* between commas, of the best F1 of any part of *answer*."""
    parts = answer.split(",")
    return fmean(max(f1(part, wanted) for part in parts) for wanted in gold.split(","))


def bleu1(answer: str, gold: str) -> float:
    """Return BLEU of single words: clipped precision, times exp(1 - gold/answer) if the answer is the shorter one.

    Papineni et al., 2002, of one sentence and one reference, without smoothing. Words are as for F1, but not stemmed.
    """
    said, wanted = Counter(words(answer)), Counter(words(gold))
    same, length, reference = (said & wanted).total(), said.total(), wanted.total()
    if not same:
        return 0.0
    return same / length * (1.0 if length >= reference else math.exp(1 - reference / length))


def f1_sets(answer: str, gold: str) -> float:
    """Return F1 as MemoryOS's evaluation computes it (eval/evalution_loco.py): of sets of words in lower case.

    No stems, articles count, nothing is split, and nothing is counted twice.
    """
    said, wanted = (set(re.findall(r"\w+", text.lower())) for text in (answer, gold))
    return _harmonic(len(said & wanted), len(said), len(wanted))


@cache
def stem(word: str) -> str:
    """Return the stem of *word*, which is in lower case, by Porter's algorithm; words of two letters are stems."""
    return word if len(word) <= 2 else str(_PORTER.stemWord(word))


def _harmonic(same: int, said: int, wanted: int) -> float:
    return 2 * same / (said + wanted) if same else 0.0
