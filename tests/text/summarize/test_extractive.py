"""What a summary without a model keeps."""

import json
import os
import subprocess
import sys

import pytest

from memci.errors import InvalidMessage
from memci.text.language import salience
from memci.text.sanitize import width
from memci.text.summarize import extract
from memci.text.summarize.extractive import titled
from tests.text.summarize.summary_kit import Message, answered, called, line, said


def test_a_message_stands_as_it_is_when_it_fits() -> None:
    """A short message is its own line."""
    text = "Yes, but keep seat 14C for Maya Brandt."

    assert line(said("user", text)) == text


@pytest.mark.parametrize("message", ["hello", None, {"role": "user", "content": 3}, {"role": "tool", "content": "a"}])
def test_a_message_of_another_form_is_named(message: Message) -> None:
    with pytest.raises(InvalidMessage, match="give messages in the form of Chat Completions"):
        extract([message])


def test_a_quotation_behind_words_that_fill_a_line_is_no_error() -> None:
    assert line(said("user", "-".join(["abcdefghij"] * 33) + "\n\n> Yes. Go now.")).startswith("abcdefghij")


LONG = [
    (
        (
            "Hello! Thanks for calling back. My parcel from the Lisbon warehouse never "
            "arrived and the driver left a note that "
            "nobody could read, which is quite annoying. The order is PT-88412-K, I paid "
            "€1,249.90 on 14 March 2025 and the "
            "receipt went to ines.faro@example.org. Please ask Rui Tavares to ring me at 16:45, thank you and goodbye!"
        ),
        ["PT-88412-K", "€1,249.90", "14 March 2025", "ines.faro@example.org", "Rui Tavares", "16:45", "My parcel"],
    ),
    (
        (
            "I looked at the service and found why the nightly job stops. The loader in src/ingest/loader.py reads "
            "config/prod.yaml before it exists, so `make seed --force` has to run first. "
            "Commit 9f3c2ab introduced it, and the "
            "log says ConnectionError: port 5433 refused. I would then restart with 4 workers and watch it a while."
        ),
        [
            "src/ingest/loader.py",
            "config/prod.yaml",
            "make seed --force",
            "9f3c2ab",
            "ConnectionError: port 5433 refused",
        ],
    ),
    (
        (
            "您好！我叫赵晓梅，上周在你们网店买了一台空气净化器，到现在一直没有收到，"
            "页面上显示的状态也很奇怪，想请你们帮忙查一查到底是怎么回事。"
            "订单号是 HZ20250314-0088，2025年3月14日付款￥2,380.00，快递单号YT5566778899001。"
            "客服周女士说三月二十日之前能到，商品叫《清风三号》。"
        ),
        [
            "赵晓梅",
            "HZ20250314-0088",
            "2025年3月14日",
            "￥2,380.00",
            "YT5566778899001",
            "周女士",
            "三月二十日",
            "《清风三号》",
        ],
    ),
    (
        (
            "お世話になっております。先日お願いした機材の搬入について、少し予定を変えていただきたく"
            "ご連絡しました。現場の都合で開始が遅れております。"
            "新しい日程は2025年4月8日の午後2時、場所は第3倉庫です。担当は高橋さん、番号はMK-7702、"
            "費用は85万円、図面は /share/図面/hall_b.dwg です。『春の企画展』用です。"
        ),
        ["2025年4月8日", "午後2時", "高橋さん", "MK-7702", "85万円", "/share/図面/hall_b.dwg", "『春の企画展』"],
    ),
    (
        (
            "안녕하세요. 지난번에 주문한 의자 때문에 연락드립니다. 배송된 상자를 열어 보니 "
            "다리 하나가 부러져 있어서 사용할 수 없는 상태였습니다. "
            "주문번호는 KR-55120이고 3월 9일에 189,000원을 결제했습니다. 상담원 최유진님이 "
            "금요일까지 답을 준다고 했고 메일은 jh.park@example.kr 입니다."
        ),
        ["KR-55120", "3월 9일", "189,000원", "최유진님", "금요일", "jh.park@example.kr"],
    ),
]


@pytest.mark.parametrize(("text", "facts"), LONG)
def test_facts_survive_when_a_long_message_is_cut(text: str, facts: list[str]) -> None:
    """Names, numbers, money, dates, times, paths, commands, ids, addresses and errors outlive the words around them."""
    made = line(said("user", text))

    assert [fact for fact in facts if fact not in made] == []
    assert width(made) < width(text)


TRACEBACK = """$ python -m shop.reindex --all
loading 1,204 rows
Traceback (most recent call last):
  File "/srv/shop/reindex.py", line 88, in main
    rows = load(path)
  File "/srv/shop/rows.py", line 12, in load
    return parse(path.read_text())
shop.errors.RowError: row 977 has no sku
"""
PYTEST = """============================= test session starts ==============================
platform linux -- Python 3.12.1, pytest-8.1
collected 31 items

tests/test_cart.py ......F...

=================================== FAILURES ===================================
    def test_total():
>       assert total(cart) == 30
E       assert 27 == 30

tests/test_cart.py:41: AssertionError
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total - assert 27 == 30
========================= 1 failed, 30 passed in 1.27s =========================
"""


@pytest.mark.parametrize(
    ("output", "facts"),
    [
        (
            TRACEBACK,
            ["8 lines", "shop.errors.RowError: row 977 has no sku", "python -m shop.reindex --all", "/srv/shop/"],
        ),
        (PYTEST, ["15 lines", "FAILED tests/test_cart.py::test_total", "test_cart.py:41: AssertionError"]),
        ("ls: cannot access '/opt/nowhere': No such file or directory", ["cannot access '/opt/nowhere': No such file"]),
        ("Error: seat 14C is taken", ["Error: seat 14C is taken"]),
        (
            "step one is done\n" * 400 + "fatal: no disk left on /dev/sdb1\n",
            ["401 lines", "fatal: no disk left on /dev/sdb1"],
        ),
        ("错误：找不到订单 DD-4410\n" + "重试中\n" * 60, ["错误：找不到订单 DD-4410"]),
    ],
)
def test_errors_and_paths_survive_when_a_tool_prints_text(output: str, facts: list[str]) -> None:
    """A tool's text keeps its errors, how many lines it had, its commands and paths."""
    made = extract([called("shell", {"cmd": "x"}), answered(output)]).lines[1]

    assert made.startswith("shell → ")
    assert [fact for fact in facts if fact not in made] == []


BOOKING = {
    "booking_id": "ZQ81LM",
    "guest": {"first_name": "Maya", "last_name": "Brandt", "email": "maya.brandt@example.org"},
    "nights": [{"date": "2025-06-01", "rate": 120.50}, {"date": "2025-06-02", "rate": 99.90}],
    "status": "confirmed",
    "remarks": None,
    "terms": "You may cancel free of charge until a week before the day of arrival. " * 20,
}


def test_a_json_object_keeps_its_identifiers_when_it_is_long() -> None:
    """An object's line has its ids, status, names, dates and money, as they were written, and its number of keys."""
    made = extract([called("find_booking", {"q": "Brandt"}), answered(BOOKING)]).lines[1]

    assert made.startswith("find_booking → {")
    for fact in ("ZQ81LM", "confirmed", "maya.brandt@example.org", "2025-06-01|2025-06-02", "6 keys"):
        assert fact in made


def test_a_json_list_keeps_its_length_and_the_ids_of_its_rows() -> None:
    """A list's line has its length, and one column for each key, the identifiers first."""
    rows = [
        {"blurb": "words " * 30, "flight": f"QX{n:03}", "price": 100 + n, "seats": {"economy": n}} for n in range(12)
    ]
    made = extract([called("search", {}), answered(rows)]).lines[1]

    assert made.startswith("search → 12×{")
    assert "flight: QX000|QX001|QX002|QX003|QX004|QX005" in made
    assert "price: 100" in made


@pytest.mark.parametrize("number", ["123456789012345678901234567890", "12.50", "1e400", "-0.0"])
def test_numbers_are_verbatim_whatever_their_size(number: str) -> None:
    """A number in a result is written as the tool wrote it."""
    made = extract([called("sum", {}), answered(f'{{"total": {number}}}')]).lines[1]

    assert made == f"sum → {{total: {number}}}"


def test_a_json_object_stands_whole_when_it_fits() -> None:
    """A small object keeps its keys in their order, and all of its values."""
    result = '{"note": "paid twice", "total": 12.50, "refunded": false, "order_id": "PT-88412-K", "agent": null}'

    shown = "{note: paid twice, total: 12.50, refunded: false, order_id: PT-88412-K, agent: null}"
    assert line(answered(result)) == shown


def test_an_identifier_survives_when_wide_characters_fill_the_line() -> None:
    """A result of few characters but many columns is shortened where it is plain, not at its end."""
    assert "order_id: PT-88412-K" in line(answered({"note": "已经付款" * 30, "order_id": "PT-88412-K"}))


@pytest.mark.parametrize("key", ["orderId", "order_id", "orderID"])
def test_an_identifier_survives_when_its_key_says_what_it_is(key: str) -> None:
    """A key that ends in id, in any of the usual spellings, comes before the plain values."""
    result = {f"field_{n}": f"plain words {'abcdefgh'[n % 8]}" for n in range(40)} | {key: "lavender"}

    assert f"{key}: lavender" in line(answered(result))


def test_an_error_survives_when_a_json_result_is_large() -> None:
    """An object's error stands before all else."""
    result = {f"field_{n}": f"value {n}" for n in range(80)} | {"error": "quota of 500 calls exceeded for key k_19"}

    assert "error: quota of 500 calls exceeded for key k_19" in line(answered(result))


def test_pairs_survive_when_a_json_result_is_broken_or_too_long() -> None:
    """JSON that can't be parsed still gives the values that can be seen."""
    broken = '{"order_id": "PT-88412-K", "state": "lost", "steps": [1, 2, '
    huge = json.dumps([{"sku": f"SKU{n:05}", "note": "x" * 90} for n in range(2_000)])

    assert "order_id: PT-88412-K, state: lost" in line(answered(broken))
    assert "SKU00000|SKU00001" in line(answered(huge))


@pytest.mark.parametrize("empty", ["", "  \n", "{}", "[]", "null"])
def test_an_empty_result_says_so(empty: str) -> None:
    """A result without content is named."""
    made = extract([called("delete_file", {"path": "/srv/old.log"}), answered(empty)])

    assert made.lines == ("delete_file(path=/srv/old.log)", "delete_file → empty result")


def test_calls_keep_name_and_arguments() -> None:
    """A call's line is its name and its arguments, in their order."""
    message = called("move", {"ref": "ZQ81LM", "to": "2025-06-03", "notify": True})

    assert line(message) == "move(ref=ZQ81LM, to=2025-06-03, notify=true)"


def test_calls_stand_side_by_side_when_there_are_several() -> None:
    """Several calls share the line, after the text that came with them."""
    one, two = called("a", {"id": 7}, content="Let me look."), called("b", {}, call_id="c2")
    one["tool_calls"] = [*one["tool_calls"], *two["tool_calls"]]  # type: ignore[misc]

    assert line(one) == "Let me look. · a(id=7), b()"


def test_short_arguments_survive_when_another_is_long() -> None:
    """A long argument is shortened, the short ones are not."""
    made = line(called("write", {"text": "lorem ipsum " * 900, "path": "/srv/www/index.html", "mode": "0644"}))

    assert "path=/srv/www/index.html" in made
    assert "mode=0644" in made
    assert "text=lorem ipsum" in made


def test_arguments_survive_when_their_json_is_broken() -> None:
    """Arguments that are not JSON give what can be seen, or are clipped raw."""
    assert line(called("run", '{"cmd": "make all", "cwd": "/srv')) == "run(cmd=make all, cwd=/srv)"
    assert line(called("run", "make all")) == "run(make all)"


def test_results_are_named_after_their_call_when_ids_repeat() -> None:
    """Each result takes the oldest open call with its id."""
    page = [called("first", {}), answered("1"), called("second", {}), answered("2")]

    assert extract(page).lines == ("first()", "first → 1", "second()", "second → 2")


def test_a_recalled_message_shows_only_its_source() -> None:
    """The answer of a recall is a pointer, with nothing of its content."""
    page = [said("user", "What was it?"), called("recall_page", {"index": 42}), answered("the secret is 7741")]

    assert extract(page, [None, None, (42, None)]).lines[2] == "recalled #42"
    assert extract(page, [None, None, (42, 3)]).lines[2] == "recalled #42 entry 3"


PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAYAAAC6uhUNAAAA"


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "image_url", "image_url": {"url": PNG}}, "[image 1024×768 png]"),
        ({"type": "image_url", "image_url": {"url": "https://a.io/x/cat.jpg?w=1"}}, "[image cat.jpg]"),
        ({"type": "input_image", "image_url": PNG}, "[image 1024×768 png]"),
        ({"type": "input_audio", "input_audio": {"data": "UklGRg", "format": "wav"}}, "[audio wav]"),
        ({"type": "file", "file": {"filename": "tax 2024.pdf", "file_data": "JVBERi0"}}, "[file tax 2024.pdf]"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0"}}, "[image gif]"),
        ({"type": "refusal", "refusal": "I won't."}, "refused: I won't."),
        ({"type": "hologram", "beam": "0" * 9_000}, "[hologram]"),
    ],
)
def test_a_part_that_is_not_text_has_a_placeholder(part: object, shown: str) -> None:
    """Images, audio, files and unknown parts are named by their own facts, never copied."""
    assert line(said("assistant", [{"type": "text", "text": "See:"}, part])) == f"See: {shown}"


def test_a_message_without_content_is_named() -> None:
    """Empty content and refusals have their words."""
    assert line(said("assistant", "")) == "(empty)"
    assert line(said("assistant", None)) == "(empty)"
    assert line({"role": "assistant", "content": None, "refusal": "I can't do that."}) == "refused: I can't do that."


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ([said("user", "Could you please move my stay?")], "Could you please move my stay?"),
        (
            [said("user", f"Hi there! Could you please move my stay to 3 June? Thanks!{' It is OK.' * 8}")],
            "move stay to 3 June?",
        ),
        (
            [said("user", f"Hello. My heater is broken since Sunday. It is unit HX-410.{' It is OK.' * 8}")],
            "heater is broken since Sunday, unit HX-410",
        ),
        ([said("user", "Thanks!")], "Thanks!"),
        ([said("user", "你好！请帮我查一下订单 HZ-0088。谢谢")], "你好！请帮我查一下订单 HZ-0088。谢谢"),
        ([said("user", "Yes"), called("pay", {"order": "PT-88412-K"})], "pay PT-88412-K → no result"),
        ([said("assistant", "Welcome back, Maya."), said("assistant", "More.")], "· Welcome back, Maya. More."),
        (
            [said("user", f"Thanks!{' It is good.' * 8}"), said("assistant", "I won a medal at the Kiel regatta.")],
            "· won medal at Kiel regatta",
        ),
        ([called("sync", {"since": "2025-06-01"})], "sync 2025-06-01 → no result"),
        ([], "(empty)"),
    ],
)
def test_the_title_says_what_the_page_is_about(page: list[Message], title: str) -> None:
    """A short page stands as it is; a longer one has what says most of both sides, and what was done."""
    assert extract(page).title == title


def test_a_summary_is_the_same_when_its_words_were_read_before() -> None:
    """What the words of other pages were does not change a summary, nor do they pile up."""
    page = [said("user", text) for text, _ in LONG]
    before = extract(page)

    extract([said("user", " ".join(f"W{n}x{m}" for m in range(3_000))) for n in range(4)])

    assert extract(page) == before
    assert salience._token.cache_info().maxsize == 8_192


PROGRAM = """
import json, sys
from memci.text.summarize import extract
summary = extract(json.load(sys.stdin))
print(json.dumps([summary.title, *summary.lines]))
"""


def test_a_summary_is_the_same_in_every_process() -> None:
    """Neither the hash seed nor the locale of a process changes a summary."""
    page = [
        *(said("user", text) for text, _ in LONG),
        called("find_booking", BOOKING),
        answered(BOOKING),
        answered(PYTEST),
    ]
    made = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=json.dumps(page),
            env=os.environ | {"PYTHONHASHSEED": seed, "LC_ALL": locale, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed, locale in (("1", "C"), ("2", "C.UTF-8"), ("3", "C"))
    }

    assert len(made) == 1


def test_id_is_the_last_to_leave_a_narrow_title():
    """What a page can be looked up by stays where other words have no room."""
    page = [
        {"role": "user", "content": "Sure, my user ID is mei_brown_7075. I'm also a valued Gold member, by the way."},
        {"role": "assistant", "content": "Could you please provide your reservation ID, so I can look into it?"},
    ]

    assert "mei_brown_7075" in titled([page], columns=30)[0].text


def test_a_title_says_what_was_asked_when_the_answer_is_long_and_full_of_rare_words():
    """What was asked stands in the title; neither the code of a long answer nor words from its middle do."""
    asked = "How do I add a loading spinner while waiting for autocomplete results?"
    code = "```css\n.spinner {\n  border: 4px solid #f3f3f3;\n  animation: spin 1s linear;\n}\n```"
    answer = f"Of course! {'It tells people that results are coming. ' * 8}\n\n{code}\n" + "\n".join(
        f"{n}. **Qix{n}zar**: veb{n}lo the krum{n}tal" for n in range(80)
    )

    title = titled([[{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]])[0].text

    assert "loading spinner" in title
    assert "autocomplete" in title
    assert "Qix" not in title
    assert "4px" not in title


def test_a_short_command_between_fences_stays_in_a_title():
    """A fence with one line is a command, not a program."""
    said = {"role": "assistant", "content": "Let us look:\n```\npytest tests/test_fields.py\n```"}

    assert "tests/test_fields.py" in titled([[{"role": "user", "content": "Does it work?"}, said]])[0].text


@pytest.mark.parametrize("said", ["That's all. ###STOP###", "I'd. I'll. I'm. I've."])
def test_contractions_and_marks_of_an_end_tell_nothing(said: str):
    """A page that only ends the talk, or has only contractions, is an acknowledgement."""
    assert not titled([[{"role": "user", "content": said}]] * 2)[0].tells


def test_the_beginning_of_a_long_command_stands_in_a_title():
    """A call whose only argument is wider than its place is not shown without it."""
    command = "curl -X POST -d 'name=test&age=123' http://web.example.org:8000/cgi-bin/forms.pl"
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
    page = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "", "tool_calls": [call]}]

    assert titled([page])[0].text.startswith("bash curl -X POST -d 'name=test")


def test_a_title_names_several_calls_before_it_says_what_the_last_one_printed():
    """What was done comes first; what came back takes the room that is left, and is never nothing for a single call."""
    steps = [("python reproduce.py", "344"), ("ls -F", "\n".join(f"folder_{n}/  file_{n}.py" for n in range(40)))]
    page = [{"role": "user", "content": "Go on."}]
    for number, (command, printed) in enumerate(steps):
        name = f"c{number}"
        page += [called("bash", {"command": command}, call_id=name), answered(printed, call_id=name)]

    both, single = (title.text for title in titled([page, page[-2:]], columns=44))

    assert both.startswith("bash python reproduce.py; bash ls -F")
    assert single.startswith("bash ls -F → 40 lines")
