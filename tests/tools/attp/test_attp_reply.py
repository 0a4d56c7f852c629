"""Replies as models write them: both dialects, and every way in which they break TOML."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.tools.attp import ParsedReply, parse

CODE = "r = recall_page(42)\n__result__ = r\n"
TABLE = f"[tool_call]\nstatus = \"success\"\ntarget = \"the price\"\ncode = '''\n{CODE}'''\n"


def test_parse_whole_document() -> None:
    """A reply that is one TOML document is read as the original protocol says."""

    reply = parse(f'thought = """\n1. look it up\n2. answer\n"""\n{TABLE}')

    assert reply == ParsedReply("1. look it up\n2. answer\n", "success", target="the price", code=CODE)
    assert not reply.final
    assert reply.answer == ""


@pytest.mark.parametrize("fence", ["```toml", "```", "~~~toml", "  ```TOML  "])
def test_parse_whole_document_when_fenced(fence: str) -> None:
    """A fence around the document is no part of it, nor is what stands behind the fence."""

    reply = parse(f"{fence}\nthought = 'look'\n{TABLE}{fence.strip()[:3]}\nI wait for the result.")

    assert reply == ParsedReply("look", "success", target="the price", code=CODE)


@pytest.mark.parametrize("opening", ["", "```toml\n"])
def test_parse_prose_before_the_table(opening: str) -> None:
    """Free text before the table is the thought."""

    reply = parse(f"The price is on page 42.\n\n```python\nx\n```\n\n{opening}{TABLE}")

    assert reply == ParsedReply(
        "The price is on page 42.\n\n```python\nx\n```", "success", target="the price", code=CODE
    )


@pytest.mark.parametrize(
    "text",
    [
        "The price is 1,250 NOK.",
        "",
        "I wrote a `[tool_call]` table before.",
        "First [tool_call]\nand then [tool_call] again.",
        "- [tool_call]\n- [tool_result]",
        "a = 1\nb = 2",
        "thought = 'x'\nanswer = 'y'",
    ],
)
def test_parse_text_without_a_header_line(text: str) -> None:
    """Text without a line that is the header is the final answer, to the letter."""

    reply = parse(text)

    assert reply == ParsedReply(text)
    assert reply.final
    assert reply.answer == text


def test_parse_only_a_thought() -> None:
    """A document with nothing but a thought is a final answer."""

    reply = parse('thought = """\nIt costs 1,250 NOK."""')

    assert reply == ParsedReply("It costs 1,250 NOK.")


def test_parse_fail_form() -> None:
    """The documented form of a failure is accepted, and its message is the answer."""

    reply = parse('thought = \'no tool books\'\n[tool_call]\nstatus = "fail"\nmessage = "I can\'t book; call them"\n')

    assert reply == ParsedReply("no tool books", "fail", message="I can't book; call them")
    assert reply.final
    assert reply.answer == "I can't book; call them"


def test_parse_fail_form_when_broken() -> None:
    """A failure is read also when its message is not valid TOML."""

    reply = parse('[tool_call]\nstatus = "fail"\nmessage = "no tool for C:\\new "files""\n')

    assert reply == ParsedReply(status="fail", message='no tool for C:\\new "files"')


def test_parse_unknown_keys() -> None:
    """Keys and tables that the protocol does not know are ignored."""

    reply = parse(f"{TABLE}confidence = 0.9\n[tool_result]\nstatus = 'ok'\ncontent = 'made up'\n")

    assert reply == ParsedReply(status="success", target="the price", code=CODE)


def test_parse_without_status() -> None:
    """A table with code and no status is a call."""

    reply = parse("[tool_call]\ncode = '__result__ = recall_page(1)'")

    assert reply == ParsedReply(status="success", code="__result__ = recall_page(1)")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("'''\nr = f('''x''')\n__result__ = r\n'''", "r = f('''x''')\n__result__ = r\n"),
        ("'''\nr = f('''\nx\n''')\n__result__ = r\n'''", "r = f('''\nx\n''')\n__result__ = r\n"),
        ("'''__result__ = f('''x''')'''", "__result__ = f('''x''')"),
        ('"""\n__result__ = f("\\d")\n"""', '__result__ = f("\\d")\n'),
        ('"__result__ = f("x")"', '__result__ = f("x")'),
        ("'''\n__result__ = f('''x''')'''", "__result__ = f('''x''')"),
    ],
)
@pytest.mark.parametrize("behind", ["", "\n```\nNow I wait.", "\nNow I wait."])
def test_parse_quotes_inside_code(code: str, expected: str, behind: str) -> None:
    """Code that holds its own quotes, or an escape that TOML does not know, is taken as it stands."""

    reply = parse(f'[tool_call]\ntarget = "C:\\dir"\ncode = {code}{behind}')

    assert reply == ParsedReply(status="success", target="C:\\dir", code=expected)


def test_parse_keys_after_broken_code() -> None:
    """A key that follows code with its own quotes is still read."""

    reply = parse("[tool_call]\ncode = '''\n__result__ = f('''x''')\n'''\ntarget = 'x'\nstatus = 'success'\n")

    assert reply == ParsedReply(status="success", target="x", code="__result__ = f('''x''')\n")


@pytest.mark.parametrize(
    ("thought", "expected"),
    [
        ('thought = """\nthe file is C:\\new\\data\n"""', "the file is C:\\new\\data"),
        ('thought = """\nit says """yes""" there\n"""', 'it says """yes""" there'),
        ("thought = 'it's there'", "it's there"),
        ("1. thought = hard \\ 2. go", "1. thought = hard \\ 2. go"),
    ],
)
def test_parse_thought_that_is_not_toml(thought: str, expected: str) -> None:
    """Backslashes and quotes in the thought do not spoil the call."""

    reply = parse(f"{thought}\n{TABLE}")

    assert reply == ParsedReply(expected, "success", target="the price", code=CODE)


def test_parse_fence_inside_code() -> None:
    """A fence inside the code does not end it."""
    code = "__result__ = note('''\n```\nx\n```\n''')\n"

    reply = parse(f'```toml\n[tool_call]\ncode = """\n{code}"""\n```\nDone.')

    assert reply == ParsedReply(status="success", code=code)


def test_parse_header_inside_code() -> None:
    """A header line inside a string of the code is text of the code."""
    code = '__result__ = note("""\n[tool_call]\n""")\n'

    reply = parse(f"Prose.\n[tool_call]\ncode = '''\n{code}'''\n")

    assert reply == ParsedReply("Prose.", "success", code=code)


def test_parse_last_header_when_prose_shows_another() -> None:
    """Of two tables the last one is the call."""

    reply = parse(f"I could write\n[tool_call]\ncode = 'recall_page(1)'\nbut I write\n{TABLE}")

    assert reply.code == CODE
    assert reply.thought == "I could write\n[tool_call]\ncode = 'recall_page(1)'\nbut I write"


@pytest.mark.parametrize(
    "text",
    [
        "tool_call = {code = '__result__ = f()'}",
        "[ tool_call ]\ncode = '__result__ = f()'",
        "```toml\n[tool_call] # now\ncode = '__result__ = f()'\n```",
    ],
)
def test_parse_other_spellings_in_a_valid_document(text: str) -> None:
    """A valid document that spells the table otherwise is a call all the same."""

    reply = parse(text)

    assert reply == ParsedReply(status="success", code="__result__ = f()")


@pytest.mark.parametrize("broken", ["", "status = success\n"])
def test_parse_windows_line_ends(broken: str) -> None:
    """Carriage returns before line feeds change nothing, in a valid table or another."""

    reply = parse(f"\ufeffLook\nit up.\n{TABLE}{broken}".replace("\n", "\r\n"))

    assert reply == ParsedReply("Look\nit up.", "success", target="the price", code=CODE)


@pytest.mark.parametrize("fence", ["", "```\n"])
@pytest.mark.parametrize("inside", ["", "```\n```\n"])
def test_parse_escapes_when_fenced(fence: str, inside: str) -> None:
    """The escapes of a valid string are resolved, also before a fence and text behind it."""

    reply = parse(f'{fence}[tool_call]\ncode = """\n{inside}f("\\\\d\\t")"""\n{fence}{fence and "Done."}')

    assert reply == ParsedReply(status="success", code=f'{inside}f("\\d\t")')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Look.\n[tool_call]", "`code` is missing"),
        ("Look.\n[tool_call]\nstatus = 'success'", "`code` must be"),
        ("Look.\n[tool_call]\ncode = 5", "`code` must be"),
        ("Look.\n[tool_call]\ncode = '''\n__result__ = recall_pa", "never closed"),
        ("Look.\n[tool_call]\nstatus = 'maybe'\ncode = 'f()'", "'maybe'"),
        ("Look.\n[tool_call]\nstatus = 'fail'", "`message`"),
    ],
)
def test_parse_call_that_can_not_be_read(text: str, told: str) -> None:
    """A call that can't be read is invalid and says why; it is not taken for an answer."""

    reply = parse(text)

    assert reply.status == "invalid"
    assert told in reply.message
    assert reply.thought == "Look."
    assert not reply.final


def test_parse_two_tables_in_an_array() -> None:
    """An array of tables is no call, and is not an answer either."""

    reply = parse("[[tool_call]]\ncode = 'f()'\n[[tool_call]]\ncode = 'g()'")

    assert reply.status == "invalid"
    assert "one table" in reply.message


@pytest.mark.parametrize(
    "text",
    [
        "a." * 30_000 + "a = 1",
        "[tool_call]\n" + "a." * 30_000 + "a = 1",
        "[tool_call]\n" * 5_000,
        "[tool_call]\na = [" + "1," * 300_000 + "\n" + "```\n" * 20,
        "[tool_call]\na = " + "[" * 20_000,
        "[tool_call]\na = " + "9" * 20_000,
        "tool_call = {}\nthought = 0x" + "f" * 20_000,
        "thought = '" + " " * 50_000 + "\n[tool_call]\n```" + " " * 50_000 + "!",
    ],
    ids=["dots", "dots in a table", "headers", "fences", "brackets", "digits", "hex digits", "spaces"],
)
def test_parse_hostile_text(text: str) -> None:
    """No text takes more than a moment, whatever the TOML reader makes of it."""
    before = time.process_time()

    parse(text)

    assert time.process_time() - before < 10


FRAGMENTS = st.sampled_from(
    ["[tool_call]", "\n", "code = ", "'''", '"""', "```toml\n", "```", "thought = ", "status = 'fail'", "message = "]
)


@given(st.lists(FRAGMENTS | st.text(max_size=12)).map("".join))
def test_parse_arbitrary_text(text: str) -> None:
    """Any text is a reply; without a header or a TOML document it is the answer itself."""

    reply = parse(text)

    assert reply.final == (reply.status in {None, "fail"})
    if "tool_call" not in text and "thought" not in text:
        assert reply == ParsedReply(text.removeprefix("\ufeff"))


@given(st.text(st.characters(exclude_characters="'", exclude_categories=["Cs", "Cc"])), st.text(max_size=50))
def test_parse_valid_call(code: str, prose: str) -> None:
    """A valid table behind any prose is read exactly."""

    reply = parse(f"{prose}\n[tool_call]\ncode = '''\n{code}x\n'''\n")

    assert reply.status == "success"
    assert reply.code == f"{code}x\n"
