"""Standing instructions: found in what users say, kept in their words, and shown within bounds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.instructions import HEADING, LONGEST, Instruction, instructions, sentences, shown

STANDING = """
Always answer in French.
Never book before 11.
I prefer aisle seats.
From now on, call me Captain.
Please don't use emojis.
Remember that I'm allergic to peanuts.
I'm allergic to shellfish.
I am vegetarian.
When I ask about recipes, include calories.
Always include cultural references when I ask about holidays.
Whenever I ask for code, please add comments.
Provide step-by-step calculations when I ask about probability.
Format code examples with syntax highlighting whenever I ask about implementation details.
If I ask about dates, use the ISO format.
Make sure to cite your sources.
Could you please always reply in English?
Keep your answers short.
Please remember my budget is $500.
Don't book anything without asking me.
In your answers, always include sources.
I'd like you to always confirm before paying.
By default, use metric units.
I don't want you to use jargon.
You should always wait for feedback after every command.
Going forward, please use bullet points.
以后请用中文回答。
请记住我对花生过敏。
以后都叫我小明。
不要再推荐海鲜餐厅。
我更喜欢靠窗的座位。
我喜欢靠走道的座位
请总是先列出要点。
当我问到天气时，请用摄氏度。
每次回答都要附上来源。
記住，我不吃牛肉。
以後請用繁體中文回覆。
千万不要在晚上给我打电话。
いつも日本語で答えてください。
必ず出典を付けてください。
これからは敬語で話してね。
私が天気を聞いたときは、摂氏で答えてください。
卵アレルギーがあることを覚えておいて。
絵文字は使わないでください。
窓側の席のほうが好きです。
今後は箇条書きでお願いします。
항상 한국어로 대답해 주세요.
앞으로는 반말로 말해줘.
절대 밤에 전화하지 마세요.
제가 땅콩 알레르기가 있다는 걸 기억해 주세요.
저는 창가 자리를 더 좋아해요.
이모티콘은 쓰지 마.
제가 날씨를 물어보면 섭씨로 알려 주세요.
""".strip().splitlines()

PASSING = """
Do you always book so early?
I always run late.
She always says that.
He told me to always be kind.
Do you remember when we met?
I remember that day.
I'll always remember you.
Please don't worry.
What do you prefer?
Can I change my flight?
Yes, please proceed with the booking.
I love it and always go there with my kids.
My dog always barks.
{"note": "always retry"}
> always do this
WARNING: always check the result
2024-05-01 12:00:00 always retry
I will make sure to call you.
Never mind.
Always a pleasure!
You always make me laugh.
When I was young I always wanted to fly.
"Always be closing" is a great line.
Call me back tomorrow.
I want you to book a flight to Denver.
From now on I'll go running every day.
Thanks, always great to talk with you.
Lately I think about where I want to be in the future.
你总是这么早预订吗？
我总是迟到。
我以后要去日本。
别担心。
你还记得我吗？
毕业以后你想做什么？
每次我都会迷路。
いつもお世話になっております。
覚えていますか？
心配しないでください。
彼は必ず来る。
いつも遅刻します。
予約を変更してください。
저는 항상 늦어요.
걱정하지 마세요.
예약을 변경해 주세요.
항상 이렇게 일찍 예약하나요?
친구는 해산물을 못 먹어요.
""".strip().splitlines()

SAID = [Instruction(f"Always do the thing number {number}.", "trip", number) for number in range(200)]


def count(text):
    return len(text) // 4 + 1


@pytest.mark.parametrize("sentence", STANDING)
def test_instructions_of_one_that_stands_is_itself(sentence):
    """What a user asks for good, or says of lasting preferences, is found in every language, in the user's words."""
    assert instructions(sentence) == [sentence]


@pytest.mark.parametrize("sentence", PASSING)
def test_instructions_of_other_talk_is_nothing(sentence):
    """Questions, habits, plans, quotations, single requests and machines' lines are no instructions."""
    assert instructions(sentence) == []


def test_instructions_are_found_between_other_sentences():
    """Of a long message, only the sentence that stands is kept, whole, and once."""
    text = (
        "Hi! Book e.g. flight HAT1 for me. Always answer in French.\n- Never book before 11!\n"
        "```\nalways()\n```\nThanks. Always answer in French."
    )

    assert instructions(text) == ["Always answer in French.", "Never book before 11!"]


def test_instructions_that_go_on_and_on_are_none():
    """A sentence longer than the bound is never cut: it is left out."""
    assert instructions("Always answer " + "very " * LONGEST + "briefly.") == []


@given(st.text(alphabet='Alwys neverdt.!?。？ 请以后总是用いつも항상\n"“”`>-', max_size=200))
def test_instructions_are_pieces_of_the_text(text):
    """Whatever is found stands in the text, letter by letter."""
    assert all(found in text and len(found) <= LONGEST for found in instructions(text))
    assert all(sentence in text for sentence in sentences(text))


def test_shown_keeps_the_newest_and_says_them_oldest_first():
    """When there are too many, the newest stay; the text says them in order, each with its page, under one line."""
    found = shown(SAID, count, 100_000, context="trip")

    lines = found.text.splitlines()
    assert lines[0] == HEADING
    assert lines[-1] == "#199 Always do the thing number 199."
    assert [each.index for each in found.instructions] == list(range(200 - len(found.instructions), 200))
    assert found.omitted == 200 - len(found.instructions) > 0


@given(st.integers(0, 200), st.integers(0, 40_000), st.integers(0, 800))
def test_shown_never_costs_more_than_allowed(number, window, limit):
    """Shown instructions cost at most their limit and 5 % of the window; one more would not have fit."""
    found = shown(SAID[:number], count, window, context="trip", limit=limit)

    budget = min(limit, int(window * 0.05))
    assert found.text == "" or count(found.text) <= budget
    assert bool(found.text) == bool(found.instructions)
    if found.omitted:
        assert count(found.text or HEADING) + 12 > budget


def test_shown_of_contradicting_ones_says_both():
    """Patterns supersede nothing: of two that contradict, both are shown, the later one later."""
    said = [Instruction("Always answer in French.", "c", 1), Instruction("Always answer in German.", "c", 2)]

    assert shown(said, count, 100_000, context="c").instructions == tuple(said)


def test_shown_says_no_older_one_where_a_newer_one_did_not_fit():
    """An older instruction that would still fit could be what the newer one took back: it is left out too."""
    said = [Instruction("Answer briefly.", "c", 1), Instruction("Always " + "very " * 60 + "long.", "c", 2)]

    found = shown(said, count, 100_000, context="c", limit=60)

    assert (found.text, found.omitted) == ("", 2)


def test_shown_leaves_out_what_a_model_superseded():
    """Only a verdict takes one away."""
    said = [Instruction("Always answer in French.", "c", 1), Instruction("Always answer in German.", "c", 2)]

    found = shown([replace(said[0], superseded=True), said[1]], count, 100_000, context="c")

    assert found.instructions == (said[1],)


def test_shown_of_a_repetition_is_its_latest_form():
    """Who says a thing twice is shown once, where it was said last."""
    said = [Instruction("Always answer in French.", "c", 1), Instruction("always answer in french!", "c", 8)]

    assert shown(said, count, 100_000, context="c").instructions == (said[1],)


def test_shown_from_another_context_says_so():
    """A page of another context is never a bare index; and no text breaks out of its line."""
    said = [Instruction("Always\nsay <b>hi</b>.", "other", 3)]

    assert shown(said, count, 100_000, context="c").text == f"{HEADING}\n#3 of other Always say ‹b›hi‹/b›."
