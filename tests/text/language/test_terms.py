"""Text into terms: folded, stemmed, identifiers whole and in parts, pairs of characters where nothing is spaced."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.language import terms as module
from memci.text.language.terms import LONGEST, extent, is_single, query_terms, stems, terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("painting", "painted"),
        ("PARIS", "Paris"),
        ("café", "cafe"),
        ("Ｔｏｋｙｏ", "tokyo"),
        ("Caroline's", "Caroline"),
        ("Caroline’s", "caroline"),
        ("bought", "buying"),
        ("went", "going"),
        ("children", "kids"),
        ("1,200", "1200"),
        ("$450", "450"),
        ("Москва", "МОСКВА"),
        ("الشَّايَ الأَخْضَرَ", "الشاي الأخضر"),
        ("سيّارة", "سياره"),
        ("שָׁלוֹם", "שלום"),
        ("புத்தகங்கள்", "புத்தகத்தில்"),
        ("القطار", "بالقطار"),
        ("المدرسة", "مدرسه"),
        ("τρένου", "ΤΡΈΝΑ"),
        ("Երևանից", "Երևան"),
        ("ẹ̀kọ́", "eko"),
        ("Արա՞մն", "Արամն"),
        ("Donau\u00addampfer", "Donaudampfer"),
    ],
)
def test_terms_of_two_spellings_are_the_same(one, other):
    """What is written in two ways, or said in two forms, is found by either."""
    assert terms(one) == terms(other)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("word", ["depot", "天气", "Über", "Zürich", "é🙂", "loadLedger", "5"])
def test_terms_of_json_are_those_of_what_it_says(word, again):
    """Tools and models may escape what is not ASCII, and the lines of a text begin behind escaped breaks."""
    said = f"{word}\nplan\n{word}\t{word}\r\n{word} end"
    whole = json.dumps({"text": json.dumps(said) if again else said})
    assert Counter(terms(said)) <= Counter(terms(whole))


def test_terms_of_a_path_or_a_formula_are_its_own_words():
    r"""A letter behind a backslash is no break there: C:\table, \nabla, and half of a surrogate pair is no letter."""
    assert {"tabl", "nabla"} <= {*terms(r"C:\table \nabla")}
    assert terms(r"\ud83d") == []


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("HAT170", "hat170", {"hat", "170"}),
        ("SYD-42", "syd-42", {"syd", "42"}),
        ("mia_li_3668", "mia_li_3668", {"mia", "li", "3668"}),
        ("2024-05-15", "2024-05-15", {"2024", "05", "15"}),
        ("get_user_details", "get_user_details", {"user", "detail"}),
        ("loadCustomerLedger", "loadcustomerledg", {"load", "custom", "ledger"}),
        ("PDFExportJob", "pdfexportjob", {"pdf", "export", "job"}),
        ("getOAuth2Token", "getoauth2token", {"auth", "token"}),
    ],
)
def test_terms_of_an_identifier_are_it_and_its_parts(text, whole, parts):
    """An identifier is found whole, and by each part of it that says something."""
    found = terms(f"about {text}.")

    assert whole in found
    assert parts <= set(found)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("หมาของฉันชื่อถุงทอง", "หมา"),
        ("รถของพ่อจอดอยู่หน้าตลาด", "ตลาด"),
        ("いもうとはさくらといいます", "いもうと"),
        ("きのうみかんをかった", "みかん"),
        ("The door code is 🦉 then 4402", "🦉"),
        ("It is 🏴‍☠️ day", "🏴‍☠️"),
    ],
)
def test_terms_of_what_is_asked_are_among_those_of_the_text(text, asked):
    """Words of a script without spaces, and emoji, are found within a text."""
    assert terms(asked)
    assert set(terms(asked)) <= set(terms(text))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("रेलगाड़ी मुंबई", 2),
        ("বাংলা ভাষা", 2),
        ("சென்னையிலிருந்து", 1),
        ("హైదరాబాద్", 1),
        ("කොළඹ", 1),
        ("ශ\u0dca\u200dරී", 1),
        ("മലയാളം", 1),
        ("q\u0303ue\u0323", 1),
        ("மாதிரி-42", 3),
    ],
)
def test_a_word_with_marks_is_one_term(text, count):
    """Vowel signs and accents that are characters of their own are no borders of a word."""
    assert len(terms(text)) == count


def test_a_stop_of_khmer_or_burmese_is_in_no_term():
    """Pairs of characters end where a sentence does."""
    assert set(terms("ពេញ។ព្រឹក")) == {*terms("ពេញ"), *terms("ព្រឹក")}
    assert set(terms("သည်။ရထား")) == {*terms("သည်"), *terms("ရထား")}


def test_forms_of_a_hindi_word_have_its_stem():
    """It is found in each of its forms; a single letter, which a stemmer may leave of a short word, is no stem."""
    assert terms("किताबें किताबों किताब।") == ["किताब"] * 3
    assert terms("खाना खाते") == ["खाना", "खाते"]


def test_other_forms_of_a_decomposed_word_are_looked_for():
    """A stem is that of the word, however its accents are written."""
    assert stems("pre\u0301fe\u0301re\u0301es", ["french"]) == stems("préférées", ["french"]) != {}


def test_encoded_data_has_no_terms_of_its_inner_capitals():
    """Inner capitals of encoded data make no words."""
    assert terms("aGVsbG8gd29ybGQhIQxYzAbCdEf") == ["agvsbg8gd29ybgqhiqxyzabcdef"]


def test_terms_leave_function_words_out():
    """Words that carry no topic are no terms; numbers, negated or not, are."""
    assert terms("What is it that I've got, and didn't you have 7 of them?") == ["7"]


def test_terms_of_chinese_are_pairs_and_single_characters():
    """Han text becomes its characters, and pairs of neighbours without those that grammar binds; particles are none."""
    found = terms("我住在上海的西边。")

    assert {"住在", "上海", "西边", "我", "住", "海"} <= set(found)
    assert not {"我住", "海的", "的", "边。"} & set(found)
    assert is_single("海")
    assert not is_single("上海")
    assert not is_single("a")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("昨天我去了故宫博物院", "故宫"),
        ("東京タワーに行きました", "東京タワー"),
        ("저는 서울에서 살아요", "서울"),
        ("책을 읽었어요", "책"),
    ],
)
def test_terms_of_a_longer_text_have_those_of_a_word_in_it(text, asked):
    """A word of Chinese, Japanese or Korean is found inside a sentence, with its particles."""
    assert set(terms(asked)) & set(terms(text))


def test_terms_of_chinese_words_for_the_same_are_one():
    """Who is called by another word is found by each of them."""
    assert {"父亲"} <= set(terms("爸爸退休了")) & set(terms("父親退休了")) & set(terms("我的父亲"))


def test_terms_of_mixed_writing_have_both():
    """Latin letters inside of Han text are words of their own."""
    assert {"iphone15", "iphon", "15", "手机", "贵"} <= set(terms("iPhone15手机很贵"))


@given(st.text())
def test_terms_have_no_space_and_no_quote(text):
    """Whatever the text, its terms can be stored side by side, and quoted; they are short, and the same twice."""
    found = terms(text)

    assert found == terms(text)
    assert all(term and len(term) <= LONGEST and '"' not in term and not any(map(str.isspace, term)) for term in found)
    assert not any(term.startswith("@") for term in found)


def test_terms_of_a_long_text_are_all_there():
    """No part of a text is left out, however long it is."""
    assert terms(" ".join(f"w{number}" for number in range(3000)))[-3:] == ["w2999", "w", "2999"]


def test_terms_of_particles_alone_are_none():
    """Particles are no terms, nor are pairs with them; pairs of Hangul are."""
    assert terms("的吗。のは") == []
    assert terms("도로") == ["도로"]


def test_terms_said_twice_are_there_twice():
    """How often a word is said is kept."""
    assert terms("lake, lake and Lake") == ["lake"] * 3


def test_query_terms_leave_out_what_only_questions_say():
    """A question's own words are not searched for, unless it has no other; none comes twice."""
    assert query_terms("What kind of car, what kind of engine and car did she mention?") == ["car", "engin"]
    assert query_terms("Tell me what kind") == ["tell", "kind"]


def test_extent_of_a_text_is_its_words_in_any_writing():
    """A pair of characters is half a word, a single one none, and what stands beside a text none either."""
    assert extent(["lake", "paint", "@2023"]) == 2
    assert extent(["上海", "海浦", "上", "海"]) == 1


def test_terms_from_many_threads_are_right():
    """The stemmer is shared: threads that stem new words at once don't disturb each other."""
    texts = [
        f"painting{'s' * (number % 2)} number{chr(97 + number % 26)}ing wonderfully{number}" for number in range(400)
    ]
    alone = [terms(text) for text in texts]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(terms, texts))

    assert together == alone


def test_a_repeated_word_is_stemmed_once(monkeypatch):
    """A query of one word, 2,000 times, took four times as long as plain words."""
    stemmed = []

    class Stemmer:
        def stemWord(self, word):  # noqa: N802 -- the library's name
            stemmed.append(word)
            return word

    monkeypatch.setattr(module, "_stemmer_of", lambda _language: Stemmer())

    assert stems("Haus und Haus und Haus", ["german"]) == {"haus": "haus"}
    assert stemmed == ["haus", "und"]
