"""Knowledge: two bounded lists of facts, each with the pages that said it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.backend import PageRecord
from memci.memory.knowledge import LONGEST, PER_PAGE, Knowledge, Known, facts, same


def page(*messages, quotes=(), index=1):
    return PageRecord("c", index, 1, tuple(enumerate(messages, 1)), at=9.0, quotes=frozenset(quotes))


def user(text, **more):
    return {"role": "user", "content": text, **more}


def assistant(text, *calls):
    made = [{"id": "1", "type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def known(text, index=1, **more):
    return Known(text, "user", "c", index, 1, **more)


def learned(knowledge, *new):
    for key, fact in enumerate(new, 100):
        change = knowledge.change(fact)
        knowledge.apply(change, key if change.id is None else change.id)
    return [fact.text for fact in knowledge.facts.values()]


@pytest.mark.parametrize(
    "said",
    [
        "I live in Oslo with my dog Rex.",
        "I am a nurse.",
        "My wife is called Anna.",
        "I have two kids.",
        "I've been working at the bakery since May.",
        "My user id is mia_li_3668.",
        "I was born in 1985.",
        "我住在上海，是一名护士。",
        "我叫小明",
        "我喜歡靠窗的座位",
        "私は東京に住んでいます。",
        "犬を飼っています。",
        "저는 서울에 살아요.",
    ],
)
def test_facts_of_a_user_are_what_is_told_in_the_first_person(said):
    """What users say of themselves is a fact, in their words, whatever the language."""
    assert [(each.about, each.text) for each in facts(page(user(f"{said}")))] == [("user", said)]


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry.",
        "I have a question.",
        "I love this!",
        "If I lived in Oslo I would ski.",
        "Do I live in Oslo?",
        "Where is my dog?",
        "I'm a bit tired",
        '"I am a nurse," she said.',
        "我有一个问题",
        "我住在哪里呢？",
        "私は何歳ですか？",
        "저는 어디에 살아요?",
        "book it",
    ],
)
def test_facts_of_other_talk_are_none(said):
    """Questions, moods, hypotheses and requests tell nothing lasting of the user."""
    assert facts(page(user(said))) == []


def test_facts_of_an_assistant_are_what_it_did():
    """Deeds, promises and calls that change something are facts about the assistant; looking things up is none."""
    done = facts(
        page(
            assistant("I have cancelled your reservation. Can I help you?"),
            assistant(None, ("cancel", '{"id": "OI5L9G"}'), ("get_user", "{}")),
            assistant("已为您取消了预订。予約をキャンセルいたしました。"),
        )
    )

    assert [(each.about, each.text) for each in done] == [
        ("assistant", "I have cancelled your reservation."),
        ("assistant", "called cancel(id=OI5L9G)"),
        ("assistant", "已为您取消了预订。"),
        ("assistant", "予約をキャンセルいたしました。"),
    ]


def test_facts_know_who_said_them_and_where():
    """A fact names its speaker, if the message does, its page and its time."""
    (fact,) = facts(page(user("I live in Oslo.", name="Mel"), index=7))

    assert fact.text == "Mel: I live in Oslo."
    assert (fact.context, fact.index, fact.pages, fact.at) == ("c", 7, (("c", 7),), 9.0)


def test_facts_of_quotes_and_tools_are_none():
    """What only quotes another page, or what a tool printed, says nothing new."""
    messages = (user("I live in Oslo."), {"role": "tool", "tool_call_id": "1", "content": "I am a nurse."})

    assert facts(page(*messages, quotes=[1])) == []


@given(st.lists(st.text(alphabet="I livenOso.我住在上海。\n私は犬", max_size=400), max_size=4))
def test_facts_are_bounded(texts):
    """A page yields at most a dozen facts of each kind, each short and in one line."""
    found = facts(page(*map(user, texts), *map(assistant, texts)))

    assert sum(each.about == "user" for each in found) <= PER_PAGE
    assert all(len(each.text) <= LONGEST and "\n" not in each.text for each in found)


def test_knowledge_of_the_same_said_twice_is_one_fact():
    """P16: near-duplicates merge; the later words stand, and both pages are evidence."""
    knowledge = Knowledge()

    texts = learned(knowledge, known("I live in Oslo.", at=1.0), known("i LIVE in oslo!", index=5, at=2.0))

    assert texts == ["i LIVE in oslo!"]
    (fact,) = knowledge.facts.values()
    assert (fact.index, fact.pages) == (5, (("c", 1), ("c", 5)))


def test_knowledge_of_an_old_page_that_comes_late_keeps_the_newer_words():
    """Pages may be analysed out of order: what was said later stays."""
    knowledge = Knowledge()

    assert learned(knowledge, known("I live in Oslo!", index=5, at=2.0), known("I live in Oslo.", at=1.0)) == [
        "I live in Oslo!"
    ]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("I have 2 dogs at home now", "I have 3 dogs at home now"),
        ("I like this old violin", "I don't like this old violin"),
        ("I live in Oslo", "I live in Bergen"),
        ("我喜欢辣的菜和面条", "我不喜欢辣的菜和面条"),
        ("저는 해산물을 먹어요", "저는 해산물을 안 먹어요"),
    ],
)
def test_knowledge_that_figures_or_a_not_tell_apart_stays_apart(one, two):
    """P16: facts that contradict each other are both kept, however alike their vectors are."""
    vector = np.ones(3, dtype=np.float32)

    assert not same(known(one, vector=vector), known(two, vector=vector))
    assert len(learned(Knowledge(), known(one, vector=vector), known(two, vector=vector))) == 2


def test_knowledge_that_is_alike_in_words_and_vectors_is_the_same():
    """Another way to say it is no other fact."""
    vector = np.ones(3, dtype=np.float32)
    one, two = known("I work as a nurse in Oslo", vector=vector), known("I am working as an Oslo nurse", vector=vector)

    assert same(one, two)
    assert same(one, replace(two, vector=None))
    assert not same(one, replace(two, about="assistant"))


def test_knowledge_that_is_full_loses_what_was_retrieved_longest_ago():
    """P16, M10: least recently retrieved goes first, not the oldest; and never the one that comes."""
    knowledge = Knowledge({1: known("a b", retrieved=1.0), 2: known("c d", retrieved=2.0)}, limit=2)
    knowledge.retrieved([1], 5.0)

    change = knowledge.change(known("e f", retrieved=0.0))

    assert (change.id, change.evicted) == (None, (2,))


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 9)), max_size=30), st.integers(1, 4))
def test_knowledge_never_exceeds_its_limit(said, limit):
    """P25: the limit that is asked for is the one that holds, and the latest fact is always there."""
    knowledge = Knowledge(limit=limit)
    for key, (letter, at) in enumerate(said):
        change = knowledge.change(known(f"{letter}{letter} word", index=key, at=float(at), retrieved=float(at)))
        knowledge.apply(change, key if change.id is None else change.id)

        assert len(knowledge) <= limit
        assert any(("c", key) in fact.pages for fact in knowledge.facts.values())
