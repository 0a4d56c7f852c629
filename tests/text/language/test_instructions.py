"""Instructions: found in what users say, and kept in their words."""

import subprocess
import sys
import tomllib
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memci
from memci.formats.provenance import clauses_of
from memci.text.language import instructions as found
from memci.text.language.instructions import LONGEST, SCANNED
from memci.text.provenance import mask, spans


def instructions(text: str) -> list[str]:
    """The instructions in what is the user's own of *text*."""
    return found.instructions(text, mask(text, spans(text)))


INSTRUCTIONS = """
Always answer in French.
Never book before 11.
I prefer aisle seats.
Honestly I prefer window seats.
For hotels my usual budget is 200.
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
From today on, tick off what is done.
Round the prices in everything you send me.
Explain the step first, every time.
Klopf mir künftig auf die Finger, wenn ich schludere.
Lass die Anrede ein für alle Mal weg.
Épelle-moi toujours les noms propres.
Deletréame siempre los apellidos.
Ripetimi sempre il numero alla fine.
Soletra-me sempre os apelidos.
Мне сложных слов никогда не вставляй.
Старые кавычки больше никогда не меняй.
From now on wrap every path in quotes.
dont ever use emojis
Désormais décris les couleurs des cartes.
Zeig mir nie wieder den ganzen Quelltext.
Number your questions from now on.
When I write "home" I always mean the flat in Leeds.
Unterschreibe meine Mails immer mit „LG, Timo“.
Und antworte künftig immer auf Englisch.
Wenn ich „heim“ schreibe, meine ich immer die Wohnung in Graz.
Signe toujours mes mails avec « Bises, Léa ».
Et à l'avenir, corrige toujours aussi la ponctuation.
Quand j'écris « maison », je parle toujours de l'appartement de Nantes.
Firma siempre mis correos con «Un abrazo, Leo».
Cuando escribo «casa», siempre me refiero al piso de Soria.
Confronta sempre i prezzi al chilo.
Quando scrivo «casa», intendo sempre l'appartamento di Lecce.
Numere sempre as suas perguntas.
Quando escrevo "casa", refiro-me sempre ao apartamento de Braga.
Подписывай мои письма всегда «Обнимаю, Лёша».
Когда я пишу «дом», я всегда имею в виду квартиру в Твери.
我说“家”的时候，都是指苏州那套房子。
「家」と書いたら、いつも京都の部屋のことです。
내가 '집'이라고 하면 항상 전주 집을 말하는 거야.
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
Hopefully I don't cough for the whole week.
Remember, the key is to keep the soil damp.
Remember my goat from earlier.
I need you to lend me a drill, it's only 30 dollars.
So just go through it step by step.
But don't put salt in it, the stew is for the dog.
You can't find the old batteries anymore for that lamp.
Going forward things look better.
From today prices rise again.
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
Ich suche immer noch eine Wohnung.
Antworte immer noch nicht auf seine Mails.
Firma de siempre, precio de siempre.
Vacances toujours annulées.
Случай всегда решает всё.
Mach's kürzer und höflicher.
Rends-le plus formel.
Fallo più breve e semplice.
Deixa mais curto e simples.
Сделай короче и проще.
もう少し短くして。
좀 더 짧게 해 줘.
""".strip().splitlines()

CLAUSES = tomllib.loads(Path(__file__).with_name("clauses.toml").read_text(encoding="utf-8"))
LASTING = ("imperative", "prohibition", "preference", "tail")


@pytest.mark.parametrize("language", CLAUSES)
def test_instructions_by_clause(language):
    """In each language, 95 of 100 lasting clauses are found, and no choice, quotation or other talk is."""
    kinds = {kind: text.strip().splitlines() for kind, text in CLAUSES[language].items()}
    lasting = [line.partition(" => ")[::2] for kind in LASTING for line in kinds[kind]]
    passing = [line for kind, lines in kinds.items() if kind not in LASTING for line in lines]

    missed = [text for text, clause in lasting if not any(_bare(clause or text) in each for each in instructions(text))]

    assert [line for line in passing if instructions(line)] == []
    assert len(missed) <= 0.05 * len(lasting), missed


def _bare(clause):
    return clause.rstrip(" .!?。！？")


@pytest.mark.parametrize("sentence", INSTRUCTIONS)
def test_instructions_of_one_that_stands_is_itself(sentence):
    """What a user asks for good, or says of lasting preferences, is found in every language, in the user's words."""
    assert instructions(sentence) == [sentence]


@pytest.mark.parametrize("sentence", PASSING)
def test_instructions_of_other_talk_is_nothing(sentence):
    """Questions, habits, plans, quotations, single requests and machines' lines are no instructions."""
    assert instructions(sentence) == []


@pytest.mark.parametrize(
    ("heading", "items"),
    [
        ("A few rules for this chat:", ["metres", "the short version first"]),
        ("From now on:", ["Oxford commas", "one source a claim"]),
        ("Regeln für dieses Gespräch", ["Maße in Zoll", "ein Absatz"]),
        ("Ab sofort gilt:", ["Namen kursiv", "kein Fazit"]),
        ("Nos règles pour cette conversation", ["les titres en gras", "deux exemples"]),
        ("Normas de esta charla:", ["precios sin IVA", "un mapa por ruta"]),
        ("Regole per questa chat", ["misure in pollici", "un solo esempio"]),
        ("Regras para esta conversa", ["medidas em polegadas", "um exemplo"]),
        ("Правила нашего общения:", ["имена полностью", "один пример"]),
        ("本次对话规则：", ["人名写全", "一个例子"]),
        ("このチャットのルール：", ["単位はセンチ", "例はひとつ"]),
        ("우리 대화 규칙:", ["이름은 전부", "예는 하나"]),
    ],
)
@pytest.mark.parametrize("shape", ["{}\n- {}\n- {}\n\n{}", "{}\n\n1. {}\n2. {}\n{}"])
def test_each_item_below_a_heading_that_holds_for_good_is_an_instruction(shape, heading, items):
    """A list ends with a blank line, or with a line without a mark; the same items below another heading are none."""
    assert found.instructions(text := shape.format(heading, *items, "The oven is warm."), text) == items
    assert found.instructions(text := shape.format("Two notes", *items, "The oven is warm."), text) == []


@pytest.mark.parametrize(
    "text",
    [
        "今後守ってほしいこと\n\n・単位はセンチ\n・例はひとつ\n\nでは昨日の続き。",
        "以后说话按下面几条来：\n一、人名写全\n二、例子一个\n\n今天呢",
    ],
)
def test_marks_of_items_may_be_those_of_chinese_and_japanese(text):
    """A list has its marks: ・ and 一、 as well as - and 1."""
    lines = text.split("\n")
    assert found.instructions(text, text)[-2:] == [line for line in lines if line[:1] in "・一二" and line]


def test_instructions_are_found_between_other_sentences():
    """Of a long message, only the sentence that stands is kept, whole, and once."""
    text = (
        "Hi! Book e.g. flight HAT1 for me. Always answer in French.\n- Never book before 11!\n"
        "```\nalways()\n```\nThanks. Always answer in French."
    )

    assert instructions(text) == ["Always answer in French.", "Never book before 11!"]


@pytest.mark.parametrize(
    "text",
    [
        "Number the steps. Always do it like that.",
        "Mach eine Tabelle daraus. Ab jetzt bitte immer so.",
        "Fais un tableau. Fais toujours comme ça, s'il te plaît.",
        "Haz una tabla. Siempre así, por favor.",
        "Сделай таблицу. Делай так всегда, пожалуйста.",
        "你提问的时候记得编号，以后都这样。",
        "番号を振ってください。これからもそうしてください。",
        "번호를 매겨 줘. 앞으로도 그렇게 해 줘.",
    ],
)
def test_an_instruction_that_only_points_back_is_kept_with_what_is_before_it(text):
    """Alone it says nothing."""
    assert found.instructions(text, text)[-1] == text


@pytest.mark.parametrize("sentence", [each for each in INSTRUCTIONS if not each.isascii()])
def test_an_instruction_is_found_however_its_letters_are_encoded(sentence):
    """A letter and its mark are one character, or two; a syllable of Hangul may be three. It is kept as it came."""
    decomposed = unicodedata.normalize("NFD", sentence)

    assert found.instructions(decomposed, decomposed) == [decomposed]


@pytest.mark.parametrize(
    "said",
    [
        "Dear Ms Fox,\nthe invoice is attached.\nBest, Ann\n\nmake it more formal, no emojis",
        "Madame,\nla facture est jointe.\nCordialement, Ann\n\nplus court stp",
        "狐様\n請求書を添付します。\n敬具\nアンナ\n\n丁寧に書いて",
    ],
)
def test_beside_a_pasted_text_what_only_says_how_is_about_it(said):
    """What holds for good is said with a word for that; the same request alone may be one."""
    asked = said.rpartition("\n")[2]

    assert all(each.takes_back for each in clauses_of({"role": "user", "content": said}))
    assert clauses_of({"role": "user", "content": f"{said}\n\nNever use slang."})
    assert clauses_of({"role": "user", "content": asked})


def test_instructions_that_go_on_and_on_are_none():
    """A sentence longer than the bound is never cut: it is left out."""
    assert instructions("Always answer " + "very " * LONGEST + "briefly.") == []


@given(st.text(alphabet='Alwys neverdt.!?。？ 请以后总是用いつも항상\n"“”`>-', max_size=200))
def test_instructions_are_pieces_of_the_text(text):
    """Whatever is found stands in the text, letter by letter."""
    assert all(found in text and len(found) <= LONGEST for found in instructions(text))


def test_instructions_are_looked_for_in_a_bounded_part():
    """What stands beyond the first 40,000 characters of a text is not read."""
    told = "Always answer in French."

    within, beyond = ("x " * (SCANNED // 2 - more) + ". " + told for more in (len(told), 0))

    assert found.instructions(within, within) == [told]
    assert found.instructions(beyond, beyond) == []


def test_instructions_load_nothing_heavy():
    """Contexts read instructions without a memory: neither numpy nor any other module of it is loaded."""
    code = """if True:
        import sys
        from memci.text.language.instructions import instructions
        assert instructions("Always answer in French.", "Always answer in French.")
        heavy = {"numpy", "snowballstemmer", "memci.text.language.terms", "memci.memory.tiered_memory"}
        print(*heavy & sys.modules.keys())
    """
    root = Path(memci.__file__).parent.parent

    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


TAKEN_BACK = tomllib.loads(Path(__file__).with_name("taken_back.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", TAKEN_BACK)
def test_what_a_user_says_to_take_an_instruction_back_is_found(language):
    """Also a short sentence whose few words do not tell its language."""
    said = TAKEN_BACK[language].strip().splitlines()
    assert [text for text in said if not found.clauses(text, text)] == []


OTHER_RETURNS = """
I went back to Berlin.
We stopped at the lake.
I no longer live there.
Let's return the shoes.
Enough rain for today.
Lass uns nach Hause gehen.
Volvamos a casa.
我回家了。
다시 비가 와요.
"""


@pytest.mark.parametrize("said", OTHER_RETURNS.strip().splitlines())
def test_other_talk_takes_no_instruction_back(said):
    """The words of a return or an end alone do not tell of an instruction."""
    assert found.clauses(said, said) == []


CONDITIONAL = """
If I mention my old company, never write its name.
Wenn es um meine Mutter geht, sprich bitte immer von Frau Doktor Reinhardt.
Cuando escriba a Hacienda, usa siempre un tono formal.
Si je parle de ma fille, ne donne jamais son prénom.
Если речь о моём бывшем муже, никогда не называй его по имени.
"""


@pytest.mark.parametrize("said", CONDITIONAL.strip().splitlines())
def test_an_instruction_behind_a_condition_stands_with_it(said):
    """Without its condition, it would say more than the user did."""
    assert instructions(said) == [said]


@pytest.mark.parametrize(
    "said", ["When I call my mother, she always answers.", "Wenn es regnet, bleibe ich immer hier."]
)
def test_a_habit_behind_a_condition_is_no_instruction(said):
    assert instructions(said) == []
