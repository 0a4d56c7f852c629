"""Days that questions name, in ten languages, by the day on which they are asked."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.language.dates import asked_dates, date_terms, meant, named_days
from memci.tools.search_memory import bounded, parse

CASES = [
    ("What did I say yesterday?", "2026-11-24", "2026-11-23", "2026-11-23"),
    ("what happened last Friday", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("我昨天说了什么？", "2026-03-01", "2026-02-28", "2026-02-28"),
    ("前天去了哪里", "2026-03-01", "2026-02-27", "2026-02-27"),
    ("上周五我做了什么？", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("4月5日发生了什么", "2026-11-24", "2026-04-05", "2026-04-05"),
    ("2024年4月5日的会议", "2026-11-24", "2024-04-05", "2024-04-05"),
    ("Was habe ich gestern gesagt?", "2026-11-24", "2026-11-23", "2026-11-23"),
    ("Was war vorgestern?", "2026-11-24", "2026-11-22", "2026-11-22"),
    ("Was war letzten Freitag?", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("am 31.12.2023", "2026-11-24", "2023-12-31", "2023-12-31"),
    ("letzte Woche", "2026-11-24", "2026-11-16", "2026-11-22"),
    ("vor zwei Wochen", "2026-11-24", "2026-11-10", "2026-11-10"),
    ("am 5. Mai", "2026-11-24", "2026-05-05", "2026-05-05"),
    ("im März 2025", "2026-11-24", "2025-03-01", "2025-03-31"),
    ("cosa ho detto ieri?", "2026-11-24", "2026-11-23", "2026-11-23"),
    ("venerdì scorso", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("due settimane fa", "2026-11-24", "2026-11-10", "2026-11-10"),
    ("qu'ai-je dit hier ?", "2026-11-24", "2026-11-23", "2026-11-23"),
    ("vendredi dernier", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("le 14 juillet 2025", "2026-11-24", "2025-07-14", "2025-07-14"),
    ("la semaine dernière", "2026-11-24", "2026-11-16", "2026-11-22"),
    ("что я сказал вчера?", "2026-11-24", "2026-11-23", "2026-11-23"),
    ("в прошлую пятницу", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("5 мая 2024", "2026-11-24", "2024-05-05", "2024-05-05"),
    ("две недели назад", "2026-11-24", "2026-11-10", "2026-11-10"),
    ("어제 뭐라고 했지?", "2026-11-24", "2026-11-23", "2026-11-23"),
    ("지난주 금요일", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("4월 5일에", "2026-11-24", "2026-04-05", "2026-04-05"),
    ("昨日何を話した？", "2026-11-24", "2026-11-23", "2026-11-23"),
    ("先週の金曜日", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("3日前", "2026-11-24", "2026-11-21", "2026-11-21"),
    ("¿qué dije ayer?", "2026-11-24", "2026-11-23", "2026-11-23"),
    ("el viernes pasado", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("hace dos semanas", "2026-11-24", "2026-11-10", "2026-11-10"),
    ("o que eu disse ontem?", "2026-11-24", "2026-11-23", "2026-11-23"),
    ("sexta-feira passada", "2026-11-24", "2026-11-20", "2026-11-20"),
    ("há duas semanas", "2026-11-24", "2026-11-10", "2026-11-10"),
    ("on 12/31/2023", "2026-11-24", "2023-12-31", "2023-12-31"),
    ("on 2024-4-5", "2026-11-24", "2024-04-05", "2024-04-05"),
    ("on 5 May", "2026-11-24", "2026-05-05", "2026-05-05"),
    ("in May", "2026-11-24", "2026-05-01", "2026-05-31"),
    ("in December", "2026-11-24", "2025-12-01", "2025-12-31"),
    ("last week", "2026-11-24", "2026-11-16", "2026-11-22"),
    ("two weeks ago", "2026-11-24", "2026-11-10", "2026-11-10"),
    ("a month ago", "2026-11-24", "2026-10-24", "2026-10-24"),
    ("last month", "2026-11-24", "2026-10-01", "2026-10-31"),
    ("last year", "2026-11-24", "2025-01-01", "2025-12-31"),
    ("on May 5th, 2024", "2026-11-24", "2024-05-05", "2024-05-05"),
    ("May I march on?", "2026-11-24", None, None),
    ("version 1.12.2023 of x", "2026-11-24", "2023-12-01", "2023-12-01"),
    ("last time we met", "2026-11-24", None, None),
    ("did we talk the day before yesterday", "2026-03-10", "2026-03-08", "2026-03-08"),
    ("what did I promise last Monday?", "2026-03-10", "2026-03-09", "2026-03-09"),
    ("on the 3rd of February 2026", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("Feb 3, 2026", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("3/2/2026", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("in September", "2026-03-10", "2025-09-01", "2025-09-30"),
    ("10 days ago", "2026-03-10", "2026-02-28", "2026-02-28"),
    ("a year ago", "2026-03-10", "2025-03-10", "2025-03-10"),
    ("Was war vor einem Monat?", "2026-03-31", "2026-02-28", "2026-02-28"),
    ("was am Donnerstag war", "2026-03-10", "2026-03-05", "2026-03-05"),
    ("am 3.2.2026", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("am 3. Februar", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("vor 3 Tagen", "2026-03-10", "2026-03-07", "2026-03-07"),
    ("qu'est-ce que j'ai dit avant-hier ?", "2026-03-10", "2026-03-08", "2026-03-08"),
    ("il y a trois jours", "2026-03-10", "2026-03-07", "2026-03-07"),
    ("le mois dernier", "2026-03-10", "2026-02-01", "2026-02-28"),
    ("le 1er février 2026", "2026-03-10", "2026-02-01", "2026-02-01"),
    ("anteayer", "2026-03-10", "2026-03-08", "2026-03-08"),
    ("la semana pasada", "2026-03-10", "2026-03-02", "2026-03-08"),
    ("el 3 de febrero de 2026", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("l'altro ieri", "2026-03-10", "2026-03-08", "2026-03-08"),
    ("il mese scorso", "2026-03-10", "2026-02-01", "2026-02-28"),
    ("il 3 febbraio", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("anteontem", "2026-03-10", "2026-03-08", "2026-03-08"),
    ("na semana passada", "2026-03-10", "2026-03-02", "2026-03-08"),
    ("em 3 de fevereiro de 2026", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("позавчера", "2026-03-10", "2026-03-08", "2026-03-08"),
    ("в прошлом месяце", "2026-03-10", "2026-02-01", "2026-02-28"),
    ("в феврале", "2026-03-10", "2026-02-01", "2026-02-28"),
    ("три дня назад", "2026-03-10", "2026-03-07", "2026-03-07"),
    ("03.02.2026", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("上个月我买了什么", "2026-03-10", "2026-02-01", "2026-02-28"),
    ("三天前", "2026-03-10", "2026-03-07", "2026-03-07"),
    ("上星期天", "2026-03-10", "2026-03-08", "2026-03-08"),
    ("去年的计划", "2026-03-10", "2025-01-01", "2025-12-31"),
    ("2月3号", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("2026/02/03", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("一昨日の会議", "2026-03-10", "2026-03-08", "2026-03-08"),
    ("先月", "2026-03-10", "2026-02-01", "2026-02-28"),
    ("2週間前", "2026-03-10", "2026-02-24", "2026-02-24"),
    ("先週", "2026-03-10", "2026-03-02", "2026-03-08"),
    ("그저께", "2026-03-10", "2026-03-08", "2026-03-08"),
    ("지난달", "2026-03-10", "2026-02-01", "2026-02-28"),
    ("3일 전", "2026-03-10", "2026-03-07", "2026-03-07"),
    ("2026년 2월 3일", "2026-03-10", "2026-02-03", "2026-02-03"),
    ("지난주", "2026-03-10", "2026-03-02", "2026-03-08"),
    ("mar is short for the sea", "2026-03-10", None, None),
    ("the last week of school", "2026-03-10", "2026-03-02", "2026-03-08"),
    ("I had seven eggs", "2026-03-10", None, None),
    ("今日は何をする", "2026-03-10", "2026-03-10", "2026-03-10"),
    ("1/2 cup of flour", "2026-03-10", None, None),
    ("ein Jahr lang", "2026-03-10", None, None),
]
"""question, the day on which it is asked, the first and the last day that it names"""


def days(text, now):
    return [found for each in named_days(text, now) if (found := each.days(now)) is not None]


@pytest.mark.parametrize(("text", "now", "first", "last"), CASES)
def test_days_are_those_that_a_question_names(text, now, first, last):
    """Usual forms of dates, and what is relative to the question; numbers and verbs are none."""
    found = days(text, date.fromisoformat(now))

    if first is None:
        assert found == []
    else:
        assert (date.fromisoformat(first), date.fromisoformat(last)) in found
        assert len(found) <= 2  # 3/2 may be two days


def test_what_is_relative_needs_the_day_of_the_question():
    """Without it, nothing is guessed; a month without a year is one of any year."""
    assert named_days("yesterday, last Friday, vor zwei Wochen, 昨天") == []
    assert asked_dates("in May") == ["@may"]
    assert [each.days(None) for each in named_days("in May")] == [None]


@given(
    st.dates(date(1950, 1, 1), date(2090, 1, 1)), st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y年%m月%d日"])
)
def test_a_written_day_is_found_by_its_terms(day, form):
    """However it is written, a day is asked for by the terms of what was said on it."""
    assert set(date_terms(day)) <= set(asked_dates(day.strftime(form)))
    assert (day, day) in days(day.strftime(form), None)


@given(st.text(max_size=80), st.dates(date(1, 1, 1), date(9999, 12, 31)))
def test_any_text_is_read(text, now):
    """No text and no day is an error."""
    assert all(first <= last for first, last in days(text, now))


@pytest.mark.parametrize(
    ("value", "since", "until"),
    [
        ("2024-4-5", "2024-04-05", "2024-04-05"),
        ("31.12.2023", "2023-12-31", "2023-12-31"),
        ("12/31/2023", "2023-12-31", "2023-12-31"),
        ("4月5日", "2026-04-05", "2026-04-05"),
        ("5 May", "2026-05-05", "2026-05-05"),
        ("in May", "2026-05-01", "2026-05-31"),
        ("1 April 2024", "2024-04-01", "2024-04-01"),
        ("April 2024", "2024-04-01", "2024-04-30"),
        ("2024", "2024-01-01", "2024-12-31"),
        ("yesterday", "2026-11-23", "2026-11-23"),
        ("letzte Woche", "2026-11-16", "2026-11-22"),
    ],
)
def test_bounds_in_usual_forms_are_understood(value, since, until):
    """As a bound, a span means its beginning, or its end."""
    now = date(2026, 11, 24)

    assert bounded("q", value, value, now) == bounded("q", since, until)


@pytest.mark.parametrize("value", ["soon", "13月", "40.40.2024", "2024-13-01"])
def test_a_bound_that_is_no_day_is_named(value):
    """The model reads which argument is wrong, and a right form."""
    told = parse({"query": "x", "since": None, "until": value}, date(2026, 11, 24))

    assert told.startswith("error: until: expected a datetime or a date, as 2026-03-01")


def test_a_bound_that_can_be_two_days_is_named():
    """Months and days are not guessed."""
    told = parse({"query": "x", "since": "5/12/2023", "until": None})

    assert "can be several days: write it as 2026-03-01" in told


@pytest.mark.parametrize(
    ("said", "words", "day"),
    [
        ("Tomorrow I fly to Malta.", "tomorrow", 19),
        ("The exam is the day after tomorrow.", "the day after tomorrow", 20),
        ("I moved in three days ago, on Monday.", "three days ago", 15),
        ("Letzten Freitag kam der Hund.", "letzten freitag", 13),
        ("Guten Morgen, übermorgen ist die Prüfung.", "übermorgen", 20),
        ("Après-demain, c'est l'examen.", "après-demain", 20),
        ("Pasado mañana por la mañana vuelo.", "pasado mañana", 20),
        ("Dopodomani parto.", "dopodomani", 20),
        ("Depois de amanhã viajo.", "depois de amanhã", 20),
        ("Послезавтра лечу.", "послезавтра", 20),
        ("大后天出发。", "大后天", 21),
        ("明後日は試験です。", "明後日", 20),
        ("내일 가요.", "내일", 19),
    ],
)
def test_what_is_said_of_another_day_names_that_day(said, words, day):
    """A result tells the day that its words meant on the day on which they were said, and none that may be two."""
    assert meant(said, date(2026, 3, 18)) == {words: date(2026, 3, day)}
    assert meant("Today is fine, or on Friday.", date(2026, 3, 18)) == {}


@pytest.mark.parametrize(
    ("said", "words", "day"),
    [
        ("Next Monday I start.", "next monday", 23),
        ("The exam is in two days.", "in two days", 20),
        ("I fly to Rome in 3 days.", "in 3 days", 21),
        ("Nächsten Dienstag ziehe ich um.", "nächsten dienstag", 24),
        ("Wir fliegen in zwei Tagen.", "in zwei tagen", 20),
        ("Freitag nächster Woche bin ich weg.", "freitag nächster woche", 27),
        ("Voy a Roma en dos días.", "en dos días", 20),
        ("El próximo lunes empiezo.", "el próximo lunes", 23),
        ("Lundi prochain, je pars.", "lundi prochain", 23),
        ("Je pars dans trois jours.", "dans trois jours", 21),
        ("下周五考试。", "下周五", 27),
        ("我三天后要考试。", "三天后", 21),
        ("来週の月曜日に始めます。", "来週の月曜日", 23),
        ("試験は3日後です。", "3日後", 21),
        ("The parcel should be here in 10 days.", "in 10 days", 28),
        ("The rent is due this Friday.", "this friday", 20),
        ("Diesen Freitag ziehe ich um.", "diesen freitag", 20),
        ("Je pars ce vendredi.", "ce vendredi", 20),
        ("Me mudo este viernes.", "este viernes", 20),
        ("Parto tra dieci giorni.", "tra dieci giorni", 28),
        ("L'esame è questo venerdì.", "questo venerdì", 20),
        ("Viajo daqui a 10 dias.", "daqui a 10 dias", 28),
        ("A prova é nesta sexta.", "nesta sexta", 20),
        ("Через десять дней экзамен.", "через десять дней", 28),
        ("Экзамен в эту пятницу.", "в эту пятницу", 20),
        ("这周五考试。", "这周五", 20),
        ("今週の金曜日に引っ越します。", "今週の金曜日", 20),
        ("이번 주 금요일에 시험이 있어요.", "이번 주 금요일", 20),
    ],
)
def test_what_lies_ahead_names_its_day(said, words, day):
    """A count of days to come, and a weekday of the next week."""
    assert meant(said, date(2026, 3, 18)) == {words: date(2026, 3, day)}


def test_what_may_be_two_days_or_took_so_long_names_none():
    """A weekday that this week still has; a week that begins on Sunday; a length of time; what is told of the past."""
    for said in (
        "Next Friday I start.",
        "Next Sunday we leave.",
        "I read the book in two days.",
        "We did it in two days.",
        "The next Monday he was gone.",
        "We are back in a couple of days.",
        "Ich habe das Buch in zwei Tagen gelesen.",
        "Er ist in zwei Tagen hingefahren.",
        "Leí el libro en dos días.",
        "三天后他走了。",
        "下下周一开会。",
        "来週の日曜日に会う。",
        "その3日後に行きました。",
        "Vendredi prochain, je pars.",
        "This Monday suits me.",
        "Мы летим в пятницу.",
        "Через два дня он вернулся.",
    ):
        assert meant(said, date(2026, 3, 18)) == {}, said
    assert meant("Next Monday I start.", date(2026, 3, 22)) == {}
