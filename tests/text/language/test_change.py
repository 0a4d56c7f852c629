"""A statement takes up an earlier one about the same thing if it says something else of it, in any language."""

import pytest

from memci.text.language.change import asked_topics, claims, knows_nothing, signs, takes_up

CHANGED = [
    ("I live in Malmö, on the third floor.", "We have moved to Turku, boxes everywhere."),
    ("I'm a nurse at the eye clinic.", "On Monday I start at the print shop, as a trainee."),
    ("The garage code is 4417.", "They changed the code of the garage, now it is 9020."),
    ("The book club is on Tuesday at 19:00.", "The book club has moved to Thursday at 19:00."),
    ("The picnic with the choir is on Sunday.", "The picnic with the choir was called off."),
    ("My son's shoe size is 34.", "His feet have grown, he takes 36 these days."),
    ("I eat fish.", "I don't eat fish."),
    ("Our dinner on the boat is at Luigi's.", "We have our dinner on the boat at Nonna's instead."),
    ("My car is a red Fiat.", "I sold the Fiat and drive a grey Skoda."),
    ("I take 10 mg of the pills.", "The doctor cut the pills to 5 mg."),
    ("Ich wohne in Celle, am Markt.", "Der Umzug nach Fulda ist geschafft."),
    ("Das Turnier ist am Samstag um 10 Uhr.", "Das Turnier wurde auf Sonntag um 11 Uhr verschoben."),
    ("我住在厦门，离海很近。", "上周我们搬到了成都。"),
    ("车库的密码是2210。", "车库换了密码，现在是8891。"),
    ("J'habite à Brest, au port.", "Le déménagement à Dijon est terminé."),
    ("Le code de la cave est 3312.", "La cave a un nouveau code : 5540."),
    ("Vivo en Gijón, cerca del puerto.", "Nos hemos mudado a Toledo."),
    ("El ensayo es los lunes.", "Han cancelado el ensayo."),
    ("私は広島に住んでいます。", "先月、長野に引っ越しました。"),
    ("歯医者は月曜日の午後二時です。", "歯医者は木曜日の午後四時に変更になりました。"),
]
"""what was said, and what was said later"""
SAME = [
    ("My sister lives in Porto.", "I moved to Ghent in May."),
    ("The meeting with Ann is on Monday at 10:00.", "The meeting with Bob is on Tuesday at 11:00 now."),
    ("The alarm code of the studio is 5190.", "The code of the garage is 7264 now."),
    ("My daughter's shoe size is 31.", "My son takes 33 these days."),
    ("We visited Rome in 2019.", "We moved the sofa to the other room."),
    ("Room 12 is free.", "Room 21 is free."),
    ("I live in Tromsø.", "I would love to live in Ghent."),
    ("Die Probe ist donnerstags um 20 Uhr.", "Das Training ist jetzt dienstags um 19 Uhr."),
    ("仓库的密码是4082。", "办公室换了密码，现在是9371。"),
    ("J'habite à Nantes.", "Mon frère a déménagé à Annecy."),
    ("私は金沢に住んでいます。", "妹が松本に引っ越しました。"),
    ("I met Anna at the lake.", "I quit my coffee habit, Anna is proud."),
]
"""two statements about different things"""


@pytest.mark.parametrize(("before", "later"), CHANGED)
def test_what_says_something_else_of_the_same_thing_takes_it_up(before, later):
    assert takes_up(claims(later), claims(before))


@pytest.mark.parametrize(("before", "later"), SAME)
def test_what_tells_of_another_thing_takes_nothing_up(before, later):
    """Nothing is called changed that is not."""
    assert not takes_up(claims(later), claims(before))


@pytest.mark.parametrize(("before", "later"), CHANGED)
def test_a_question_and_an_echo_take_nothing_up(before, later):
    assert not takes_up(claims(later.rstrip(".。") + "?"), claims(before))
    assert not takes_up(claims(before), claims(before))


def test_another_speaker_moved_and_not_this_one():
    assert not takes_up(claims("I moved to Turku.", "Tom"), claims("I live in Malmö.", "Ann"))
    assert takes_up(claims("Ann moved to Turku.", "Tom"), claims("I live in Malmö.", "Ann"))


@pytest.mark.parametrize(
    ("question", "topics"),
    [
        ("In which city do I live?", ["home"]),
        ("What do I do for a living?", ["work"]),
        ("Was ist mein Beruf?", ["work"]),
        ("我现在住在哪里？", ["home"]),
        ("¿Dónde vivo ahora?", ["home"]),
        ("Which lamp did I buy?", []),
    ],
)
def test_a_question_asks_for_its_topic(question, topics):
    assert asked_topics(question) == topics


@pytest.mark.parametrize("text", ["Actually make it Thursday.", "取消了", "Doch nicht.", "Plutôt jeudi."])
def test_a_correction_that_names_nothing_is_loose(text):
    assert "loose" in signs(text)


@pytest.mark.parametrize(
    "text", ["I don't know the name of the inn.", "Das weiß ich leider nicht.", "我不知道您的航班号。"]
)
def test_an_answer_may_know_nothing(text):
    assert knows_nothing(text)
    assert not knows_nothing("The inn is called Lime Tree.")
