"""No line states the opposite of its text: negators, signs, units and modal words stay with their words."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.summarize import extract, titled
from memci.text.summarize.bounds import clip

REST = " Ok, that is all about it for now, and I will let you know how it goes."
"""makes a message longer than its line"""


def title_of(said: str, columns: int = 60) -> str:
    """Return the title of a page of one message."""
    return titled([[{"role": "user", "content": said}]], columns=columns)[0].text


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I can't drink milk.", "can't drink milk"),
        ("The contract has not been signed yet.", "contract has not been signed yet"),
        ("I have never submitted or uploaded the forms.", "never submitted or uploaded"),
        ("You may deploy on Friday.", "may deploy"),
        ("We might ship the piano via freight.", "might ship piano via freight"),
        ("I'm considering the white Volvo.", "considering white Volvo"),
        ("If the tenants leave the cottage, the roof gets panels.", "If tenants leave cottage"),
        ("Could you repaint the cottage in Galway?", "repaint cottage"),
        ("Everyone is coming except Priya.", "coming except Priya"),
        ("It was −8 °C in the cellar.", "−8 °C in cellar"),
        ("Rent went up by 30 % in one year.", "Rent"),
        ("The pump runs at 230 V, the lamp at 12 V.", "lamp at 12 V"),
        ("Wir heizen nicht mehr mit Öl.", "Wir heizen nicht mehr mit Öl"),
        ("Den Vertrag unterschreibe ich nicht.", "Vertrag unterschreibe ich nicht"),
        ("Mon père n'a jamais fumé la pipe.", "n'a jamais fumé"),
        ("Todavía no he vendido la moto.", "no he vendido la moto"),
        ("Non mangio carne di maiale.", "Non mangio carne"),
        ("Já não moro em Braga.", "não moro em Braga"),
        ("Счёт за воду ещё не оплачен.", "не оплачен"),
        ("我不喝咖啡。", "不喝咖啡"),
        ("私はコーヒーを飲みません。", "コーヒーを飲みません"),
        ("저는 돼지고기를 먹지 않아요.", "먹지 않아요"),
        ("Pay Mr. Sato unless the balance falls below 3,000.", "Sato unless balance falls below 3,000"),
        ("If Bosch pays, we sell the house in Gdansk.", "If Bosch pays, we sell house"),
        ("Si el banco acepta, compramos la casa vieja.", "Si el banco acepta, compramos"),
        ("銀行が融資してくれたら、別荘を買います。", "銀行が融資してくれたら、別荘"),
        ("Tomorrow I see the dentist Weiss in Taipei.", "Tomorrow I see dentist Weiss"),
        ("Ich treffe den Notar in Graz morgen.", "Notar in Graz morgen"),
        ("明天去大理看房子。", "明天去大理"),
        ("Did Maria sign the contract in Leipzig?", "Maria sign contract in Leipzig?"),
        ("三月份的旧备份全部删除了吗？我担心磁盘。", "旧备份全部删除?"),
        ("I met Mr. Sato at No. 5 Elm St. in Bath.", "met Mr. Sato at No. 5 Elm St. in Bath"),
        ("Der Notar Weiss kommt am 12. Juni z. B. nach Graz.", "12. Juni z. B. nach Graz"),
        ("It left Leipzig at 04:12 but it will arrive.", "left Leipzig at 04:12"),
    ],
)
def test_a_span_has_what_turns_its_words(said: str, kept: str) -> None:
    """Where the line takes words from a text, it takes the negator, the modal word, the sign or the unit too."""
    assert kept in title_of(said + REST)


def test_a_short_message_stands_whole_and_a_speaker_with_it() -> None:
    """A page that fits on its line stands as it was said, without an answer that only acknowledges."""
    asked = {"role": "user", "name": "Mara", "content": "Is the shop open on Monday?"}
    assert titled([[asked, {"role": "assistant", "content": "No, not on Mondays."}]])[0].text == (
        "Mara: Is the shop open on Monday? · No, not on Mondays."
    )
    assert titled([[asked, {"role": "assistant", "content": "Noted."}]])[0].text == "Mara: Is the shop open on Monday?"
    everyday = {"role": "user", "name": "{Bo}", "content": "I have a cat."}
    assert titled([[everyday, {"role": "assistant", "content": "Noted."}]])[0].text == "{Bo}: I have a cat."


def test_a_question_with_a_mark_of_its_script_is_no_statement():
    """Arabic and Ethiopic have question marks of their own."""
    assert title_of("متى تصل الرحلة القادمة إلى القاهرة؟" + REST).startswith("متى تصل الرحلة القادمة إلى القاهرة?")
    assert title_of("ባቡሩ መቼ ይደርሳል፧" + REST).startswith("ባቡሩ መቼ ይደርሳል?")


def test_a_statement_with_many_colons_is_read_once():
    """There is one way to read each of them: where it is no question, two would be a million for twenty."""
    assert "timetable" in title_of("The timetable of the ferry " + "7:15 " * 36 + "holds." + REST)


@pytest.mark.parametrize(
    ("asked", "answered", "shown"),
    [
        (
            "Have you already ordered the 40 chairs?",
            "I have not ordered them because the supplier only has 25 in stock.",
            "ordered 40 chairs? · not, supplier only has 25 in stock",
        ),
        (
            "Is it true that you deleted my account?",
            "No, your account was never deleted, only suspended for 14 days.",
            "true you deleted account? · No, only suspended for 14 days",
        ),
        (
            "¿Has reservado ya el hotel Miramar en Cádiz para el 14 de agosto?",
            "No, todavía no lo he reservado porque el hotel pide una tarjeta de crédito válida hasta 2027.",
            "hotel Miramar en Cádiz? · No, todavía, pide una tarjeta de crédito válida hasta 2027",
        ),
    ],
)
def test_a_question_is_no_statement_and_an_answer_keeps_its_no(asked: str, answered: str, shown: str) -> None:
    """What was asked has its mark, and an answer that denies it says so, though it repeats words of the question."""
    page = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    assert titled([page])[0].text == shown


LETTER = """Dear Ms Howe,

I am writing to apply for the post of gardener. I have kept orchards in Devon and I prune every winter. I bring my
own saws, a ladder and a letter of the vicar.

Kind regards,
Tom Ash"""
ROTA = """Mon: Ada opens the cellar
Tue: closed
Wed: Pino polishes the copper kettles of the brewery until noon
Thu: the inspector comes, everybody wears a cap
Fri: Ada and Pino carry barrels to the harbour"""
PROGRAM = """```
def close(socket):  # drain the buffer before the handshake ends
    socket.drain()
    for listener in socket.listeners:
        listener.forget(socket)
    return socket.shutdown(handshake=True)
```"""


ASKED = ("{}\n\nWhat do you make of this?", "Shorten it a little, please.\n\n{}", "Is it clear?\n\n{}")


@pytest.mark.parametrize(
    ("said", "pasted"), [("{}", LETTER), ("{}", PROGRAM), *product(ASKED, (LETTER, ROTA, PROGRAM))]
)
def test_what_is_quoted_stands_in_quotation_marks(said: str, pasted: str) -> None:
    """Words that the user pastes above or below a request, or without one, do not stand as the user's own in a line."""
    said = said.format(pasted)
    for shown in (title_of(said), extract([{"role": "user", "content": said}]).lines[0]):
        own = re.sub("“[^”]*”?", "", shown)
        assert not set(re.findall(r"\w{5,}", own)) & set(re.findall(r"\w{5,}", pasted))


@pytest.mark.parametrize(
    ("asked", "pasted"),
    [
        ("Is this a scam?", "Your account is locked. Always enter your PIN."),
        ("这是诈骗吗？", "您的账户已被冻结。以后请始终按提示输入密码，切勿联系银行。"),
        ("これは詐欺？", "口座は凍結されました。今後は必ず暗証番号を入力してください。"),
        ("이거 사기야?", "고객님의 계좌가 정지되었습니다. 앞으로 항상 비밀번호를 입력해 주세요."),
    ],
)
def test_what_is_pasted_below_a_request_stands_in_quotation_marks_however_short(asked: str, pasted: str) -> None:
    """Whose words they are is told as well where all of it has room, and where few characters take many columns."""
    for shown in (
        title_of(f"{asked}\n{pasted}"),
        extract([{"role": "user", "content": f"{asked}\n{pasted}"}]).lines[0],
    ):
        own, _, quoted = shown.partition("“")

        assert pasted[:4] not in own
        assert quoted.endswith("”")


def test_a_line_shows_the_users_own_words_before_what_they_quote() -> None:
    """A long paste leaves room for the request below it, a long request for what it is about."""
    line = extract([{"role": "user", "content": f"{ROTA * 9}\n\nWhat do you make of it?"}]).lines[0]
    assert line.startswith("What do you make of it? · “Mon: Ada")
    line = extract([{"role": "user", "content": f"Shorten this letter{', please' * 60}:\n\n{LETTER}"}]).lines[0]
    assert "I am writing" in line.partition("“")[2]


def test_captions_of_pictures_do_not_stand_for_what_was_said() -> None:
    """What a picture shows is not told, if anything was said."""
    said = "We painted the barn at the lake last summer with the twins. [Image: a photo of a red tractor in a meadow]"
    assert "barn" in title_of(said)
    assert "tractor" not in title_of(said)


@pytest.mark.parametrize(
    ("said", "negator"),
    [
        (
            "Den Vertrag mit dem neuen Vermieter in der Gartenstraße unterschreibe ich ganz bestimmt heute nicht mehr.",
            "nicht",
        ),
        ("Le nouveau propriétaire de la maison nous rembourse pas la caution avant la fin des travaux.", "pas"),
    ],
)
def test_a_cut_line_keeps_the_negator_of_its_clause(said: str, negator: str) -> None:
    """A line that is cut before the word that denies it ends before the clause, or goes on to it."""
    for columns in range(8, 110):
        shown = clip(said, columns, 110).rstrip("…")
        assert not shown or negator in shown


FORMS = {
    "en": ("the {noun} {verb} its {thing}", "the {noun} never {verb} its {thing}", "never {verb}"),
    "de": ("Der {noun} {verb} das {thing}", "Der {noun} {verb} das {thing} nicht", "{verb} das {thing} nicht"),
    "fr": ("le {noun} {verb} son {thing}", "le {noun} ne {verb} pas son {thing}", "ne {verb} pas"),
    "es": ("el {noun} {verb} su {thing}", "el {noun} no {verb} su {thing}", "no {verb}"),
    "ru": ("{noun} {verb} {thing}", "{noun} не {verb} {thing}", "не {verb}"),
    "ko": ("{noun} {thing} {verb} 했어요", "{noun} {thing} {verb} 않아요", "{verb} 않아요"),
}
"""of each language, a clause, one that is denied, and what the line must have of it if it has the verb"""
NOUNS, VERBS, THINGS = (
    ["baker", "sailor", "tailor", "farmer", "miner"],
    ["paints", "sells", "lends", "mends", "rents"],
    (["boat", "lamp", "cart", "door", "wheel"]),
)


@given(st.sampled_from(sorted(FORMS)), st.lists(st.booleans(), min_size=1, max_size=5), st.integers(16, 92))
def test_negators_of_a_line_are_those_of_its_text(language: str, denied: list[bool], columns: int) -> None:
    """A verb of a line is denied there if, and only if, it is denied in the text; and a line has verbs."""
    plain, denial, kept = FORMS[language]
    parts = [dict(zip(("noun", "verb", "thing"), each, strict=True)) for each in zip(NOUNS, VERBS, THINGS, strict=True)]
    clauses = [(denial if no else plain).format(**part) for no, part in zip(denied, parts, strict=False)]
    shown = title_of(f"{'. '.join(clauses)}.{REST}", columns)
    for no, part in zip(denied, parts, strict=False):
        if part["verb"] in shown:
            assert (kept.format(**part) in shown) == no
    if columns > 60:
        assert any(part["verb"] in shown for part in parts)
