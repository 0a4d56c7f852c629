"""Scores of answers: F1 and BLEU-1 as the LoCoMo protocol and MemoryOS reckon them."""

import math

import pytest

from tests.evals_modules import metrics


def test_f1_compares_stems_without_articles_punctuation_and_case():
    """Stems are compared, "a", "an", "the" and "and" are not words, and punctuation is none."""
    assert metrics.f1("The Adoption agencies!", "adoption agency") == 1
    assert metrics.f1("an apple and the pear", "Apple pear.") == 1
    assert metrics.f1("running", "a dog runs") == pytest.approx(2 * 1 * (1 / 2) / (1 + 1 / 2))
    assert metrics.f1("cat", "dog") == 0
    assert metrics.f1("", "dog") == metrics.f1("the", "the") == 0


def test_f1_counts_a_word_as_often_as_it_comes():
    """A word that is said twice and wanted once is right once: 1 of 3 said, 1 of 1 wanted."""
    assert metrics.f1("red red red", "red") == pytest.approx(2 * (1 / 3) / (1 / 3 + 1))


def test_category_1_scores_each_part_of_the_gold_answer_by_its_best_match():
    """Both are split at commas: of "pottery, camping, swimming" two are found, in whatever order: 2/3."""
    score = metrics.scored(1, "camping, the pottery", "pottery, camping, swimming")["f1"]

    assert score == pytest.approx(2 / 3)
    assert metrics.scored(4, "camping, the pottery", "pottery, camping, swimming")["f1"] == pytest.approx(0.8)
    assert metrics.scored(1, "pottery camping", "pottery, camping")["f1"] == pytest.approx(2 / 3)


def test_category_3_takes_what_stands_before_the_semicolon():
    """What explains the gold answer is not wanted."""
    assert metrics.scored(3, "likely no", "Likely no; though she likes reading")["f1"] == 1
    assert metrics.scored(4, "likely no", "Likely no; though she likes reading")["f1"] < 0.6


def test_category_5_wants_to_hear_that_nothing_was_said():
    """Right is who says that it was not mentioned, whatever the wrong answer is that was invited."""
    assert metrics.scored(5, "That is Not Mentioned in the conversation.", "a puppy")["f1"] == 1
    assert metrics.scored(5, "No information available", "a puppy")["f1"] == 1
    assert metrics.scored(5, "a puppy", "a puppy")["f1"] == 0


def test_bleu_is_clipped_and_a_short_answer_is_paid_for():
    """Two of four words, both right: e^(1 - 4/2). A longer answer pays with its precision alone, and none is 0."""
    assert metrics.bleu1("red bicycle", "red bicycle from Oslo") == pytest.approx(math.exp(-1))
    assert metrics.bleu1("red red red", "red bicycle") == pytest.approx(1 / 3)
    assert metrics.bleu1("bicycles", "bicycle") == metrics.bleu1("", "bicycle") == 0
    assert metrics.bleu1("the red bicycle", "red bicycle!") == 1


def test_f1_of_sets_is_memoryos_own():
    """Sets of words, with articles, without stems: {the, cats, sat} and {the, cat, sat} share two of three."""
    assert metrics.f1_sets("The cats sat, sat!", "the cat sat") == pytest.approx(2 / 3)


def test_a_character_is_a_word_where_there_are_no_spaces():
    """Of two characters said and four wanted, two are shared; marks are none of them, and Latin words stay whole."""
    assert metrics.words("她搬到了成都。") == list("她搬到了成都")
    assert metrics.f1("成都", "四川成都。") == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert metrics.words("住在Chengdu,「三年」") == ["住", "在", "chengdu", "三", "年"]
    assert metrics.scored(1, "成都, 猫", "猫")["f1"] == 1
