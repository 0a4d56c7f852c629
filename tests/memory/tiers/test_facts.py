"""Facts: what a page tells of the user, and of what the assistant did."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.backend import PageRecord
from memci.memory.tiers.facts import LONGEST, PER_PAGE, digest_of, facts, facts_of, versions

TOLD = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))


def page(*messages, quotes=(), index=1):
    return PageRecord("c", index, 1, tuple(enumerate(messages, 1)), at=9.0, quotes=frozenset(quotes))


def user(text, **more):
    return {"role": "user", "content": text, **more}


def assistant(text, *calls):
    made = [{"id": "1", "type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


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
        "I'm a big fan of pottery.",
        "I won the regional tournament.",
        "My kids love dinosaurs.",
        "We have two rabbits, Flip and Floor.",
        "I love hiking in the mountains.",
        "I was diagnosed with asthma last year.",
        "我住在上海，是一名护士。",
        "我叫小明",
        "我喜歡靠窗的座位",
        "私は東京に住んでいます。",
        "犬を飼っています。",
        "저는 서울에 살아요.",
        "Ich bin gegen Haselnüsse allergisch.",
        "Meine Schwester Greta lebt in Lissabon.",
        "Trabajo como bibliotecaria en un pueblo.",
        "Mi hermana Aurora vive en Dublín.",
        "J'habite à Lyon avec mon frère.",
        "Mon fils étudie la médecine.",
        "Vivo a Torino con due gatti.",
        "Minha irmã mora em Porto.",
        "Я работаю учителем.",
    ],
)
def test_facts_of_a_user_are_what_is_told_in_the_first_person(said):
    """What users say of themselves is a fact, in their words, whatever the language."""
    assert [(each.about, each.text) for each in facts(page(user(f"{said}")))] == [("user", said)]


@pytest.mark.parametrize(
    ("opener", "said"),
    [
        ("By the way, ", "I bought a mouse."),
        ("Well, you know ", "I live in Oslo."),
        ("Got some great news to share - ", "my partner is pregnant!"),
        ("Sure, ", "my user ID is mia_li_3668."),
        ("Exciting news: ", "I started a new job."),
        ("", "Yesterday, I moved to Oslo."),
        ("", "Just yesterday I joined a gym."),
        ("Also ", "my wife is called Anna."),
        ("对了，", "我住在上海。"),
        ("ちなみに、", "私は東京に住んでいます。"),
    ],
)
def test_fact_begins_with_what_it_tells(opener, said):
    """Words that only lead to it are left out; when it was, and all that it says, stays as it was said."""
    assert [each.text for each in facts(page(user(f"{opener}{said}")))] == [said]


@pytest.mark.parametrize(
    "said",
    [
        "Let's do some role-play. I am a knight and I live in Camelot.",
        "Machen wir ein Rollenspiel. Ich wohne in Camelot.",
        "Jeu de rôle : je suis un pirate et j'habite à Tortuga.",
        "Juego de rol: soy un pirata y vivo en Tortuga.",
        "角色扮演：我是海盗，我住在岛上。",
        "ロールプレイです。私は海賊です。島に住んでいます。",
        "Her text read: I have two kids and I live in Perth.",
        "I'm sorry.",
        "I have a question.",
        "I love this!",
        "If I lived in Oslo I would ski.",
        "Do I live in Oslo?",
        "Where is my dog?",
        "I'm a bit tired",
        "I'm into it.",
        "My team is like a family.",
        '"I am a nurse," she said.',
        "我有一个问题",
        "我住在哪里呢？",
        "私は何歳ですか？",
        "저는 어디에 살아요?",
        "book it",
        "As a joke I told them I'm a pilot.",
        "In my novel, I live in Cairo.",
        "要是我住在巴黎就好了。",
        "他说我住在上海。",
        "もし私が医者なら楽です。",
        "友達は卵アレルギーです。",
        "만약 저는 서울에 살아요.",
    ],
)
def test_facts_of_other_talk_are_none(said):
    """Questions, moods, hypotheses and requests tell nothing lasting of the user."""
    assert facts(page(user(said))) == []


@pytest.mark.parametrize("language", TOLD)
def test_what_is_embedded_denied_or_taken_back_is_no_fact(language):
    """What others say or believe, what nearly was, plays, dreams and slips tell nothing; plain statements do."""
    untold = {said: [each.text for each in facts(page(user(said)))] for said in TOLD[language]["nothing"]}

    assert {said: found for said, found in untold.items() if found} == {}
    assert [said for said in TOLD[language]["facts"] if not facts(page(user(said)))] == []


def test_facts_of_an_assistant_are_what_it_did():
    """Calls that change something are facts about the assistant; neither its prose nor looking things up is."""
    done = facts(
        page(
            assistant("I have cancelled your reservation. Can I help you?"),
            assistant(None, ("cancel", '{"id": "OI5L9G"}'), ("get_user", "{}")),
            assistant("已为您取消了预订。予約をキャンセルいたしました。"),
        )
    )

    assert [(each.about, each.text) for each in done] == [
        ("assistant", "called cancel(id=OI5L9G)"),
    ]


def test_facts_know_who_said_them_and_where():
    """A fact names its speaker, if the message does, its page and its time."""
    (fact,) = facts(page(user("I live in Oslo.", name="Mel"), index=7))

    assert fact.text == "Mel: I live in Oslo."
    assert (fact.context, fact.index, fact.at) == ("c", 7, 9.0)


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


def test_what_a_machine_printed_is_no_fact():
    """An agent without tools is told in the user's role what its shell printed."""
    assert facts(page(user("cat notes\nI live in Oslo with my dog Rex.\nbash-$"))) == []


@pytest.mark.parametrize(
    ("known", "changed"),
    [
        ("I'm moving to Perth in May.", "The move to Perth is off, I'm staying in Hull."),
        ("Ich wohne in Kassel.", "Ich wohne nicht mehr in Kassel, sondern in Fulda."),
        ("我住在成都。", "我已经不住成都了，搬到了昆明。"),
        ("我在华为上班。", "我从华为辞职了，现在在小米上班。"),
        ("私は仙台に住んでいます。", "福岡に引っ越しました。"),
        ("저는 삼성에서 일해요.", "지금은 네이버에서 일해요."),
        ("I have a cat named Miso.", "Forget what I said about the cat."),
        ("I play the oboe.", "I was wrong about the oboe."),
        ("Ich spiele Oboe.", "Streich das mit der Oboe."),
        ("J'habite à Rennes.", "Oublie ce que j'ai dit sur Rennes."),
        ("Trabajo en un banco.", "Olvida lo del banco."),
        ("我养了一只猫，叫咪咪。", "之前说的猫的事不算了。"),
        ("猫を飼っています。", "猫の話はなかったことにしてください。"),
        ("저는 땅콩 알레르기가 있어요.", "알레르기 얘기는 잊어 주세요."),
        ("У меня есть кошка Муся.", "Забудь, что я говорил про кошку."),
    ],
)
def test_what_says_that_a_fact_is_otherwise_is_a_fact(known, changed):
    """It has not the form of a fact, but without it the old one would stand alone; nothing else is taken for one."""
    told = facts_of([(1, page(user(known))), (2, page(user(changed), index=2))], [])

    assert [(key, each.text) for key, each in told] == [(1, known), (2, changed)]
    assert facts(page(user(changed))) == []
    assert [each.text for each in versions(told[0][1], dict(told))] == [known, changed]


@pytest.mark.parametrize(
    ("known", "back"),
    [
        ("I live in Hull.", "That's not true any more."),
        ("Ich wohne in Kassel.", "Das gilt nicht mehr."),
        ("J'habite à Rennes.", "Ce n'est plus vrai."),
        ("Vivo en Burgos.", "Eso ya no es así."),
        ("我对花生过敏。", "这个已经不是真的了。"),
        ("私は仙台に住んでいます。", "それはもう違います。"),
    ],
)
def test_what_takes_back_without_a_name_means_the_page_before(known, back):
    """It is the later version of the last fact of that page; further on, and beside another thing, it is no fact."""
    told = facts_of([(1, page(user("I have two dogs."), index=1)), (2, page(user(known), index=2))], [])
    after = [*told, *facts_of([(3, page(user(back), index=3))], [fact for _, fact in told])]

    assert [each.text for each in versions(after[1][1], dict(after))] == [known, back]
    assert versions(after[0][1], dict(after)) == [after[0][1]]
    assert facts(page(user(back), index=4), [fact for _, fact in told]) == []
    assert facts(page(user("Forget what I said about the hotel."), index=3), [fact for _, fact in told]) == []


@pytest.mark.parametrize(
    "said",
    [
        "The shop has 3 horses for sale now.",
        "My neighbour no longer lives in Kassel.",
        "Mein Kollege wohnt nicht mehr in Kassel.",
        "My sister doesn't live in Kassel any more.",
        "The Kassel office is closed now.",
        "Write a story: I moved to Kassel and sold my horses.",
        "What if I no longer lived in Kassel?",
        "我同事已经不住成都了，搬到了昆明。",
        "同僚はもう仙台に住んでいません。",
        "제 동료는 이제 대구에 안 살아요.",
    ],
)
def test_what_is_said_of_others_changes_no_fact_of_the_user(said):
    """Neither what happens to other people and things, nor what is only imagined or asked, is a later version."""
    own = [
        "I live in Kassel.",
        "I have two horses.",
        "Ich wohne in Kassel.",
        "我住在成都。",
        "私は仙台に住んでいます。",
    ]
    known = facts(page(*map(user, [*own, "저는 대구에 살아요."])))

    assert len(known) == 6
    assert facts(page(user(said), index=2), known) == []


@pytest.mark.parametrize(
    "said",
    [
        "We have two horses.",
        "Wir haben einen Obstgarten.",
        "私たちは子供が二人います。",
        "우리는 아이가 둘 있어요.",
    ],
)
def test_what_several_tell_of_themselves_is_a_fact(said):
    """A plural subject is the user's, too."""
    assert [each.text for each in facts(page(user(said)))] == [said]


def test_a_long_text_is_not_compared_with_known_facts():
    """The work for a message is bounded: only a brief one is taken for a correction."""
    known = facts(page(user("I live in Kassel.")))
    assert facts(page(user("I don't live in Kassel any more."), index=2), known)
    assert not facts(page(user("I don't live in Kassel any more. " * 30), index=2), known)


def test_facts_that_differ_in_a_vowel_sign_are_two():
    """A sign above or beside a letter counts as one; how an accent is written does not."""
    assert digest_of("लता काली है।") != digest_of("लता काला है।")
    assert digest_of("Zoe\u0301 paints.") == digest_of("Zoé paints")
