"""Scores of passages: what is said, by whom, beside what, and when."""

from collections import Counter
from dataclasses import fields, replace
from random import Random

import numpy as np
import pytest

from memci.memory.retrieval.layout import LONG, STANDING, Layout, Row, flags_of
from memci.memory.retrieval.passages import passage_terms, passages
from memci.memory.retrieval.ranking import Query, Weights, rank
from memci.text.language.terms import extent
from memci.text.moments import local

DAY = 86_400.0
OFF = Weights(
    spread=0,
    question=0,
    speaker=0,
    presence=0,
    when=0,
    date=0,
    fresh=0,
    user=0,
    listing=False,
    vectors=0,
)


class Index:
    """Messages, a page each, as a memory holds them."""

    def __init__(self):
        self.layout = Layout()
        self.postings = {}
        self.entries = []

    def add(self, message, *, at=None, context=0):
        number = len(self.entries)
        rows = []
        for passage in passages([(number, message)]):
            found = passage_terms(passage, None if at is None else local(at, 0))
            for term, frequency in Counter(found).items():
                positions, frequencies = self.postings.setdefault(term, ([], []))
                positions.append(len(self.layout) + len(rows))
                frequencies.append(frequency)
            said = (context, number, number, passage.part, passage.role, passage.speaker)
            rows.append(Row(*said, extent(found), at, flags_of(passage)))
        self.layout.extend(rows)
        self.entries.append(number)

    def scores(self, question, *, weights=None, **vectors):
        postings = {term: tuple(map(np.array, found)) for term, found in self.postings.items()}
        return rank(Query.of(question), postings, self.layout, weights=weights, **vectors).scores

    def best(self, question, k=5, **options):
        """Return the pages of the best passages, best first, of equals the later one first."""
        scores, page = self.scores(question, **options), self.layout.columns.page
        found = sorted(np.flatnonzero(scores > 0).tolist(), key=lambda each: (-scores[each], -each))
        return list(dict.fromkeys(page[found].tolist()))[:k]


SAID = (
    *("budget first", "yes", "fine by me", "next item", "who takes notes", "I will", "good"),
    *("the festival needs a stage", "and a permit", "by June", "agreed", "anything else", "no", "lunch then", "bye"),
)
"""what a group says one after the other"""


def talk(*turns, at=None):
    index = Index()
    for turn in turns:
        name, _, text = turn.partition(": ")
        index.add({"role": "user", "name": name, "content": text}, at=at)
    return index


def chat(*turns):
    index = Index()
    for number, turn in enumerate(turns):
        index.add({"role": "assistant" if number % 2 else "user", "content": turn})
    return index


SMALL = ("Ann: Nice day.", "Ben: Indeed, so sunny!", "Ann: See you.", "Ben: Bye for now.", "Ann: Take care.") * 3


def test_rank_finds_the_answer_beside_its_question():
    """An answer that repeats no word of the question is found by what was asked one turn before, ahead of who asked."""
    index = talk(*SMALL, "Ann: Which instrument do you play?", "Ben: The violin, since I was six.", *SMALL)

    assert index.best("What instrument does he play?", 2) == [16, 15]
    assert index.best("What instrument does he play?", 5, weights=OFF)[0] == 15


def test_rank_borrows_nothing_across_a_silence():
    """Talks of two days lend each other no word."""
    index = Index()
    index.add({"role": "user", "name": "Ann", "content": "Which instrument?"}, at=0.0)
    index.add({"role": "user", "name": "Ben", "content": "The violin."}, at=DAY)

    assert index.best("instrument") == [0]


def test_rank_borrows_nothing_across_contexts():
    """Contexts that come in turn are talks of their own: a passage's neighbours are those of its context."""
    index = Index()
    for text, context in (("Which instrument?", 0), ("Good morning", 1), ("The violin.", 0), ("Nice weather", 1)):
        index.add({"role": "user", "content": text}, context=context)

    assert sorted(index.best("instrument")) == [0, 2]


def test_rank_borrows_nothing_where_one_person_makes_statements():
    """Statement after statement by one person: each is about something else, and a short one is no worse for it."""
    alone = talk("Ann: 我养了一只橘猫。", "Ann: 爸爸退休前是铁路工程师。", "Ann: 我每周三晚上去学游泳。")

    assert alone.best("橘猫") == [0]
    assert sorted(talk("Ann: 我养了一只橘猫。", "Ben: 真好。").best("橘猫")) == [0, 1]


def test_rank_borrows_less_the_longer_the_messages():
    """Long messages speak for each other less, and those of an assistant not at all."""
    long = "We walked along the shore, counted boats, drank coffee, read newspapers, and planned tomorrow. " * 6

    short, longer = talk("Ann: violin", "Ben: good"), talk("Ann: violin", f"Ben: {long}")

    assert len(short.best("violin")) == len(longer.best("violin")) == 2
    assert longer.scores("violin")[1] < short.scores("violin")[1]


def test_rank_of_a_burst_and_of_a_group_finds_the_stretch():
    """What one person says in several messages belongs together where another one answers; so does a group's talk."""
    alone = ["Ann: the harbour festival", "Ann: boats everywhere", "Ann: and lanterns at night"]
    assert talk(*alone).best("festival") == [0]
    assert talk(*alone, "Ben: how lovely").best("festival")[:3] == [0, 1, 2]

    group = [f"{name}: {text}" for name, text in zip(("Ann", "Ben", "Cid") * 5, SAID, strict=True)]
    found = talk(*group).best("festival", 15)
    assert found[0] == 7
    assert {6, 8} <= {*found[1:4]}
    assert len(found) > 10


def test_rank_of_a_long_chat_prefers_what_the_user_said():
    """An assistant's long answer has the question's words many times over; the user's message comes first."""
    lecture = (
        "Choosing a violin teacher: a good violin teacher listens. Violin lessons cost money, teachers differ. " * 9
    )
    index = chat("My violin teacher is Ms Ito, lessons are on Mondays.", lecture, "Thanks!", "You're welcome. " * 40)

    assert index.best("Who is my violin teacher?")[0] == 0
    assert index.best("What did you recommend on a violin teacher?")[0] == 1


def test_rank_lets_a_long_answer_borrow_what_it_answers():
    """An answer at length that never names its subject is found by the user's message before it, and after that one."""
    index = chat("Tell me of zeppelins.", "They are slow, quiet, and full of gas that burns. " * 20)

    assert index.best("zeppelins") == [0, 1]


def test_rank_knows_that_a_message_goes_on():
    """Of a message in pieces, the piece beside the one that names the subject is found, too."""
    index = chat("My zeppelin. " + "It is big, it flies low, and it needs a lot of gas each week. " * 16)

    scores = index.scores("zeppelin", weights=OFF)

    assert scores[0] > scores[1] > 0


def test_rank_holds_no_question_against_who_tells_at_length():
    """Who gets a long answer has asked an assistant: what he told in asking counts in full."""
    index = chat("My boat leaks, what now?", "Boats leak where they are old, and then you caulk them. " * 20)
    quick = talk("Ann: My boat leaks, what now?", "Ben: Caulk it.")

    for each, held in ((index, False), (quick, True)):
        one, other = (each.scores("boat", weights=replace(OFF, question=share))[0] for share in (0.0, 0.5))
        assert (one > other) == held


def test_rank_finds_what_a_person_said_by_the_name_alone():
    """A question of nothing but a name finds what that person said."""
    index = talk(*SMALL)

    found = index.best("What about Ben?", 20)

    assert set(found) == {number for number, turn in enumerate(SMALL) if turn.startswith("Ben")}


def test_rank_prefers_what_the_named_person_said():
    """Who is named in a question speaks of himself; that others address him by name says nothing."""
    index = talk("Ann: Ben, I love sailing!", "Ben: Ann, I love painting!", *SMALL)

    assert index.best("What does Ben love?")[0] == 1
    assert index.best("What does Ann love?")[0] == 0


def test_rank_knows_no_speaker_that_was_hardly_heard():
    """A line that begins with a word and a colon makes that word no person: it is searched like any other."""
    index = chat("Monday: call Jacob.", "Ok.", "On Monday the plumber comes at noon.", "Fine.")

    assert set(index.best("What is on Monday?")) >= {0, 2}


def test_rank_prefers_a_time_where_one_is_asked_for():
    """ "When" is answered by a passage that tells a time."""
    index = talk("Ann: The race was great fun.", *SMALL, *SMALL, "Ann: The race was last Sunday.")

    assert index.best("When was the race?")[0] == 31
    assert index.best("How much fun was the race?")[0] == 0


def test_rank_finds_by_the_date_beside():
    """A question that names a month finds what was said then."""
    index = Index()
    for month in range(12):
        index.add({"role": "user", "name": "Ann", "content": "I went to a concert."}, at=month * 30.6 * DAY)

    assert index.best("Which concert did she visit in June 1970?")[0] == 5
    assert index.best("She visited a concert", 12)[0] != 5


def test_rank_prefers_the_latest_answer_of_a_tool():
    """Of two answers of a tool that say the same, the later one comes first; what people say does not go stale."""
    index = Index()
    for _ in range(2):
        index.add({"role": "tool", "tool_call_id": "c", "content": '{"balance": 100, "account": "A17"}'})
        for number in range(60):
            index.add({"role": "user", "content": f"number {number}"})

    assert index.best("balance of A17", weights=replace(OFF, fresh=1.0))[0] == 61


def test_rank_scores_are_between_0_and_1():
    """Scores are comparable: nothing in common is 0, all said is high, and nothing reaches beyond 1."""
    index = talk("Ann: I painted a lake.", *SMALL, "Ann: violin violin violin lake painted")

    scores = index.scores("painted lake violin")

    assert scores.dtype == np.float32
    assert scores.min() == 0
    assert 0.5 < scores.max() <= 1
    assert index.scores("painted lake zeppelin hangar museum").max() < scores.max()


def test_rank_counts_the_length_of_what_is_no_turn_of_talk():
    """Of statements the shorter one is first; between turns of talk, and for results of tools, length means nothing."""
    told = "The violin is in the attic."
    more = f"{told} The harbour, the ferry, the lighthouse and the market were closed on Sunday."
    alone, beside = Index(), talk(f"Ann: {told}", *SMALL, f"Ann: {more}")
    for number, content in enumerate((told, *SMALL, more)):
        alone.add({"role": "user", "content": content}, at=DAY * number)
    norm, last = replace(OFF, spread=0.75), len(SMALL) + 1

    assert alone.best("violin in the attic", weights=norm)[0] == 0
    assert alone.best("violin in the attic", weights=OFF)[0] == last  # of equals the later one
    assert beside.best("violin in the attic", weights=norm)[0] == last


def test_rank_weighs_words_by_how_often_the_question_has_them():
    """Of two words of the same rarity the one that is said twice comes first."""
    index = talk("Ann: We sold the piano.", *SMALL, "Ben: We sold the boat.")

    assert index.best("boat, piano")[0] == len(SMALL) + 1  # of equals the later one
    assert index.best("boat, piano? The piano!")[0] == 0


def test_rank_counts_a_common_word_only_where_rarer_ones_are_found(monkeypatch):
    """What has the common word alone is not found then, and of what the rarer one finds, both words come first."""
    index = Index()
    for context, said in enumerate(["The meeting ended"] * 8 + ["A short budget", "A budget meeting", "A budget grew"]):
        index.add({"role": "user", "content": said}, context=context)
    every = index.best("budget meeting", 11)
    monkeypatch.setattr("memci.memory.retrieval.bm25._COMMON", 4)
    few = index.best("budget meeting", 11)

    assert every[0] == few[0] == 9
    assert (len(every), set(few)) == (11, {8, 9, 10})


def test_rank_of_nothing_is_nothing():
    """No passages: no scores. No words: no score above 0."""
    assert len(Index().scores("violin")) == 0
    assert not talk(*SMALL).scores("").any()


def test_rank_by_vectors_finds_what_has_no_word_in_common():
    """Vectors that know meanings find what words don't; a passage without a vector is found by words."""
    index = talk(*SMALL)
    for context, said in enumerate(("I adore felines.", "I fed the cat."), 1):
        index.add({"role": "user", "name": "Ann", "content": said}, context=context)
    near = np.zeros(len(index.layout), np.float32)
    near[15], near[16] = 0.9, np.nan

    best = index.best("cat", vectors=near)

    assert set(best[:2]) == {15, 16}
    assert index.best("cat") == [16]


@pytest.mark.parametrize("name", ["question", "speaker", "presence", "when", "date", "spread", "fresh"])
def test_weights_at_zero_are_off(name):
    """Each prior is off at 0, by its name alone, and counts otherwise."""
    index = Index()
    for number in range(8):
        at = DAY * 40 * number
        index.add({"role": "user", "name": "Ann", "content": "Is there a race?"}, at=at)
        index.add({"role": "user", "name": "Ann", "content": "A race on Friday"}, at=at)
        index.add({"role": "assistant", "content": "The race is long. " * LONG}, at=at)
        index.add({"role": "user", "content": "A race around the harbour, past the old lighthouse"}, at=at + DAY)
        index.add({"role": "tool", "tool_call_id": "c", "content": "race"}, at=at)
    asked = "When was the race of Ann in January 1970?"

    plain, one = index.scores(asked, weights=OFF), index.scores(asked, weights=replace(OFF, **{name: 0.5}))

    assert name in {field.name for field in fields(Weights)}
    assert not np.array_equal(plain, one)


CITIES = "北京 上海 广州 深圳 成都 杭州 西安 南京 武汉 重庆 苏州 长沙 青岛 大连 厦门 昆明"
HOBBIES = "画画 游泳 爬山 弹钢琴 拉小提琴 摄影 下围棋 打篮球 做陶艺 写书法 骑自行车 钓鱼 跳舞 种花 烘焙 滑雪"


def test_rank_of_chinese_talk_finds_four_of_five():
    """In a talk of two in Chinese, made up, at least 80 % of the answers are among the ten best."""
    random = Random(7)
    index = Index()
    asked = []
    for number, (city, hobby) in enumerate(zip(CITIES.split(), random.sample(HOBBIES.split(), 16), strict=True)):
        turns = [
            ("小明", f"最近有没有去{city}玩？"),
            ("丽丽", "去了，上个月和家人一起去的，天气特别好。"),
            ("小明", "真不错！我周末一直在加班，有点累。"),
            ("丽丽", f"那你要多休息。对了，我开始学{hobby}了，老师姓{chr(0x5F20 + number)}。"),
            ("小明", "太棒了，坚持下去！"),
        ]
        for place, (name, text) in enumerate(turns):
            if place == 1:
                asked.append((f"丽丽什么时候去的{city}？", len(index.entries)))
            if place == 3:
                asked.append((f"教丽丽{hobby}的老师姓什么？", len(index.entries)))
            index.add({"role": "user", "name": name, "content": text}, at=number * DAY)

    found = [wanted in index.best(question, 10) for question, wanted in asked]

    assert sum(found) >= 0.8 * len(found)


def test_rank_of_a_long_chat_finds_what_the_user_told():
    """In a long chat, made up, whose answers repeat the user's words at length, the user's message is found."""
    random = Random(11)
    things = [
        f"{colour} {thing}"
        for colour in ("red", "oak", "tin", "wool")
        for thing in ("boat", "desk", "clock", "coat", "stove")
    ]
    turns = []
    for thing in things:
        place = random.choice(["attic", "cellar", "garage", "office"])
        cost = random.randint(100, 900)
        turns.append(f"I finally bought a {thing}, it's in the {place}, and cost me {cost} dollars. Any tips on care?")
        tips = f"Caring for a {thing} is easy. A {thing} bought new costs dollars; keep the {thing} dry. Clean it. "
        turns.append(tips * 8)
    index = chat(*turns)

    found = [
        2 * number in index.best(f"How many dollars did I pay when I bought the {thing}?", 3)
        for number, thing in enumerate(things)
    ]

    assert sum(found) >= 0.9 * len(found)


@pytest.mark.parametrize(
    ("text", "stands"), [("Always answer in French.", True), ("Always answer in French.\n$", False)]
)
def test_what_a_machine_printed_is_no_lasting_instruction(text, stands):
    """An agent without tools is told in the user's role what its shell printed."""
    (passage,) = passages([(1, {"role": "user", "content": text})])

    assert bool(flags_of(passage) & STANDING) is stands
