"""The form of a question, in three languages."""

import tomllib
from pathlib import Path

import pytest

from memci.text.language.questions import LONGEST, asks_last, asks_own, asks_talk, asks_who, form_of, split_questions

FORMS = tomllib.loads(Path(__file__).with_name("questions.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("language", "form"), [(language, form) for language in FORMS for form in FORMS[language]])
def test_form_of_plain_questions(language, form):
    """Of a hundred questions in plain words, at least 92 are recognised: a guess would be right in 25."""
    asked = FORMS[language][form].split("\n")[:-1]

    wrong = [(found, text) for text in asked if (found := form_of(text)) != form.removeprefix("none")]

    assert len(wrong) <= 0.08 * len(asked), wrong


def test_form_of_a_long_text_is_that_of_its_ends():
    """A request behind a long paste is one; what the paste asks is none."""
    paste = "x = 1\n" * LONGEST

    assert form_of(f"{paste}\nCan you help me with this?") == form_of(f"Fix this please.\n{paste}") == "request"
    assert form_of(f"{paste}\nsummarize\n{paste}") == ""


def test_own_questions_say_i_or_my():
    """Who asks about themselves says so."""
    assert asks_own("In what order did I visit them?") and asks_own("我先去的是哪个城市？")
    assert not asks_own("In what order did Anna visit them?")


def test_questions_in_one_text_are_split():
    """Each has the statements before it; a single question, and a text that ends otherwise, are not split."""
    assert split_questions("I sail. Where is the boat? And who has the key?") == [
        "I sail. Where is the boat?",
        "And who has the key?",
    ]
    assert split_questions("船在哪里？另外，钥匙在谁那里？") == ["船在哪里？", "另外，钥匙在谁那里？"]
    assert not split_questions("Where is the boat?")
    assert not split_questions("Where is the boat? Who has the key? Tell me soon.")


@pytest.mark.parametrize("asked", [
    "Can we continue where we left off?", "What was the last thing we talked about?", "之前我们聊到哪了？",
    "What did we talk about last time?", "Where did we leave off?", "What was our last conversation about?",
    "Summarize our previous chat.", "我们上次聊了什么？", "上次说到哪儿了？",
    "Worüber haben wir letztes Mal gesprochen?",
    "Wo waren wir stehen geblieben?", "¿De qué hablamos la última vez?", "De quoi avons-nous parlé la dernière fois ?",
    "Di cosa abbiamo parlato l'ultima volta?", "Sobre o que falamos da última vez?",
    "О чём мы говорили в прошлый раз?",
    "前回何を話しましたか？", "지난번에 무슨 얘기를 했지?",
])  # fmt: skip
def test_a_question_for_the_last_conversation_is_one_in_ten_languages(asked):
    """It asks what a talk was about, and names nothing of it."""
    assert asks_last(asked) and asks_talk(asked) and not asks_who(asked)


@pytest.mark.parametrize("asked", [
    "When was the last time Elise saw her ex?", "What did I say about the boiler last time?", "上次去杭州是什么时候？",
    "What was the last book that I read?", "Wann war ich zuletzt in Rom?",
])  # fmt: skip
def test_what_names_a_thing_does_not_ask_for_the_last_conversation(asked):
    """Whenever that was, messages about the thing answer."""
    assert not asks_last(asked)


@pytest.mark.parametrize("asked", [
    "Who is the user?", "What have I told you about myself?", "Do you remember me?", "说说我的情况", "Kennst du mich?",
    "What do you know about me?", "Who am I? Tell me what you have learned about me.", "Describe me.",
    "你对我了解多少？",
    "介绍一下我这个人。", "Was weißt du über mich?", "Beschreibe mich.", "¿Qué sabes de mí?", "Que sais-tu de moi ?",
    "Cosa sai di me?", "O que você sabe sobre mim?", "Что ты знаешь обо мне?", "私について何を知っていますか？",
    "나에 대해 뭘 알아?",
])  # fmt: skip
def test_a_question_for_the_user_is_one_in_ten_languages(asked):
    """It asks for all that is known of the one who asks; one about somebody or something else does not."""
    assert asks_who(asked) and not asks_last(asked)
    assert not any(
        map(
            asks_who,
            (
                "What do you know about Caroline?",
                "What do you know about my dog?",
                "你了解杭州吗？",
                "请介绍一下我的理财情况。",
            ),
        )
    )
