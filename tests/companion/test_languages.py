"""A companion speaks to its model in the language of the talk, and changes nothing that a provider's cache keeps."""

import re
from datetime import UTC, datetime

import pytest

from memci import Context, EphemeralStorage, InvalidSetting
from memci.companion import Companion
from memci.text.interface import LANGUAGES, section
from memci.text.language.sentences import main_language

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
TALKS = {
    "zh": ("我喜欢靠窗的座位，请记住。", "我喜欢坐哪里？我忘了。", "星期六"),
    "ja": ("窓側の席が好きです。覚えておいて。", "私はどの席が好きでしたか？", "土曜日"),
    "ko": ("나는 창가 자리를 좋아해요. 기억해 주세요.", "내가 어떤 자리를 좋아한다고 했죠?", "토요일"),
}
WANTED = {"thinking": "", "need_memory_search": True, "should_save_memory": False}


@pytest.mark.parametrize("language", TALKS)
def test_no_english_heading_stands_in_a_talk_in_another_language(scripted, language):
    """Neither in the rules, nor in the memory prompt, nor in the analysis."""
    told, question, day = TALKS[language]
    store, chat = EphemeralStorage(), scripted(analysis=lambda _: WANTED | {"memory_search_query": question})
    with Context.open(store, "before", owner="ada", window=8_000) as before:
        before.append_turn(told, {"role": "assistant", "content": "12A."}, at="2026-03-02")
    with Context.open(store, "now", owner="ada", window=8_000) as context:
        Companion(context, chat).respond(question, at=NOW)

    (analysis,), (answered,) = chat.asked("analysis"), chat.asked("chat")
    remembered = next(each["content"] for each in answered if "<memci:companion" in str(each["content"]))
    assert told in remembered and day in remembered and section("companion", language)["friend"] in remembered
    rules = section("companion", language)["instructions"]
    assert answered[0]["content"].endswith(rules)
    names = r"memci|companion|turns|recall_page|index|JSON|thinking|need_memory_search|memory_search_query|fact|content"
    more = r"should_save_memory|memory_to_save|true|false|null|type|relationship"
    for text in (remembered, rules, *(each["content"] for each in analysis)):
        assert re.findall(r"[A-Za-z]{3,}", re.sub(rf"\b(?:{names}|{more})\b|{context.nonce}", "", text)) == []


def test_the_rules_stay_when_the_talk_changes_its_language(scripted):
    """They are in the language of the role, so that the provider's cache keeps them; the labels follow the talk."""
    chat = scripted()
    with Context.open(EphemeralStorage(), "a", window=8_000) as context:
        ada = Companion(context, chat, analysis=False, search=False, role="You are Ada's companion.")
        for said in ("Hello!", "请说中文，谢谢。", "我明天去奥斯陆。", "今天天气怎么样？"):
            ada.respond(said, at=NOW)

    asked = chat.asked("chat")
    assert len({each[0]["content"] for each in asked}) == 1 and "never an instruction" in asked[0][0]["content"]
    assert ["now: " in each[-2]["content"] for each in asked] == [True, False, False, False]


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["How do I say 你好?"], "en"),
        (["我想用 Kubernetes 部署 application"], "zh"),
        (["OK", "我想看の那个", "明天见，谢谢", "好的，没问题"], "zh"),
        (["¿Qué tal?"], "en"),
        ([], "en"),
    ],
)
def test_the_main_language_of_texts_with_words_of_two(texts, language):
    """A foreign word, or one short message, does not change it."""
    assert main_language(texts) == language


def test_every_language_says_all_of_it():
    """No label is missing, and a setting that is none of them is refused."""
    whole = set(section("companion"))
    assert [whole - set(section("companion", each)) for each in LANGUAGES] == [set()] * len(LANGUAGES)
    english = section("companion")
    same = {each: [key for key in whole if section("companion", each)[key] == english[key]] for each in LANGUAGES[1:]}
    assert same == {each: [] for each in LANGUAGES[1:]}
    with (
        Context.open(EphemeralStorage(), "a", window=8_000) as context,
        pytest.raises(InvalidSetting, match="language"),
    ):
        Companion(context, lambda *_, **__: None, language="klingon")
