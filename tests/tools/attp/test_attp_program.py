"""The part of Python that a model may write, and all that it may not."""

import ast
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memci.tools.attp
from memci.errors import InvalidMessage, PageNotFound, StorageBusy
from memci.tools.attp.program import check, perform

from .recorder import Recorder


def value_of(code: str, recorder: Recorder, *, call_limit: int = 8) -> object:
    """Check and perform *code*."""
    return perform(check(code, recorder.tools, call_limit=call_limit), recorder.tools)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("__result__ = recall_page(42)", "page 42 from 1"),
        ("r = recall_page(42, 3)\n__result__ = r", "page 42 from 3"),
        ("a = b = 7\n__result__ = recall_page(page=a, offset=b)", "page 7 from 7"),
        ("__result__ = r = recall_page(1)", "page 1 from 1"),
        ("__result__ = [recall_page(1), recall_page(2)]", ["page 1 from 1", "page 2 from 1"]),
        ("a = recall_page(1)\n__result__ = {'a': a, 'b': (1, -2.5)}", {"a": "page 1 from 1", "b": (1, -2.5)}),
        ("recall_page(1)\n__result__ = None", None),
        ("__result__ = 1\n__result__ = [__result__, True, 'x' 'y']", [1, True, "xy"]),
        ("import json\nfrom math import sqrt, pi\nimport re as r, random\n__result__ = 'ok'", "ok"),
        ("    a = 'indented'  # as a whole\n    __result__ = a\n", "indented"),
        (
            "r = search_memory('''two\n  lines''')\n\n__result__ = search_memory(r, k=None)",
            "hits for hits for two\n  lines",
        ),
        ("__result__ = search_memory('x', least=1)", "hits for x"),
        ("价格 = recall_page(1)\n__result__ = 价格", "page 1 from 1"),
        ("# coding: utf-16\n__result__ = 'é'", "é"),
        ("a = 1\r\n__result__ = [\r\n  a,\r\n]", [1]),
        ("__result__ = 0xFFFF_FFFF_FFFF_FFFF", 2**64 - 1),
    ],
)
def test_perform_allowed_code(code: str, expected: object, recorder: Recorder) -> None:
    """Calls, literals, names and containers have the value that Python gives them."""

    value = value_of(code, recorder)

    assert value == expected


ESCAPES = [
    "__result__ = ().__class__.__bases__[0].__subclasses__()",
    "__result__ = ''.__class__.__mro__[-1]",
    "__result__ = recall_page.__globals__['__builtins__']",
    "__result__ = recall_page.__self__.calls",
    "__result__ = recall_page",
    "__result__ = [recall_page]",
    "x = recall_page\n__result__ = x(1)",
    "(recall_page)(1).__class__",
    "recall_page(1).upper()",
    "__import__('os').system('true')",
    "__builtins__.exec('1')",
    "__builtins__['exec']('1')",
    "open('/etc/passwd').read()",
    "__result__ = open('/etc/passwd')",
    "exec('__result__ = 1')",
    "__result__ = eval('recall_page(1)')",
    "__result__ = compile('1', '', 'eval')",
    "__result__ = getattr(recall_page, '__globals__')",
    "setattr(recall_page, 'x', 1)",
    "__result__ = globals()",
    "__result__ = vars()",
    "__result__ = type('X', (), {})",
    "__result__ = input()",
    "breakpoint()",
    "print(recall_page(1))",
    "help(recall_page)",
    "import os",
    "import os.path as json",
    "import json, os",
    "import json.decoder",
    "from os import system as recall_page",
    "from math import *",
    "from . import json",
    "from __future__ import annotations",
    "__result__ = f'{recall_page(1)}'",
    "__result__ = f'{().__class__!r:{recall_page(1)}}'",
    "__result__ = '%s' % recall_page(1)",
    "__result__ = '{0.__class__}'.format(recall_page(1))",
    "__result__ = [recall_page(x) for x in (1, 2)]",
    "__result__ = {recall_page(x) for x in (1, 2)}",
    "__result__ = {str(x): recall_page(x) for x in (1, 2)}",
    "__result__ = (recall_page(x) for x in (1, 2))",
    "__result__ = (lambda: recall_page(1))()",
    "__result__ = (lambda x=recall_page(1): x)",
    "def f(x=recall_page(1)): pass",
    "@recall_page\ndef f(): pass",
    "@recall_page(1)\nclass A: pass",
    "class A(metaclass=recall_page): pass",
    "class __result__: x = recall_page(1)",
    "async def f(): await recall_page(1)",
    "await recall_page(1)",
    "__result__ = yield recall_page(1)",
    "(x := recall_page(1))",
    "__result__ = [y := recall_page(1), y]",
    "match recall_page(1):\n  case __result__: pass",
    "for __result__ in [1]: recall_page(1)",
    "while True: recall_page(1)",
    "if True: recall_page(1)",
    "__result__ = recall_page(1) if True else 2",
    "try:\n  recall_page(1)\nexcept: pass",
    "with recall_page(1) as __result__: pass",
    "global recall_page\nrecall_page(1)",
    "del recall_page",
    "assert recall_page(1)",
    "raise recall_page(1)",
    "return recall_page(1)",
    "pass",
    "recall_page = 1",
    "search_memory = recall_page",
    "__builtins__ = {}\n__result__ = 1",
    "__class__ = 1",
    "x.y = recall_page(1)",
    "x = []\nx[recall_page(1)] = 1",
    "[__result__, y] = [recall_page(1), 2]",
    "__result__, y = recall_page(1), 2",
    "*__result__, = recall_page(1)",
    "__result__: recall_page(1) = 1",
    "__result__ = 1\n__result__ += recall_page(1)",
    "__result__ = recall_page(*[1])",
    "__result__ = recall_page(**{'page': 1})",
    "__result__ = [*recall_page(1)]",
    "__result__ = {**recall_page(1)}",
    "__result__ = {recall_page(1): 1}",
    "__result__ = {1: recall_page(1)}",
    "__result__ = {recall_page(1)}",
    "__result__ = recall_page(1)[0]",
    "__result__ = recall_page(1) + 'x'",
    "__result__ = not recall_page(1)",
    "__result__ = -recall_page(1)",
    "__result__ = -'x'",
    "__result__ = ~1",
    "__result__ = recall_page(1) == 1 and 2",
    "__result__ = recall_page(int('1'))",
    "__result__ = search_memory(recall_page(1))",
    "__result__ = search_memory([recall_page(1)])",
    "__result__ = b'x'",
    "__result__ = 1j",
    "__result__ = ...",
    "ｒecall_page(1)\n__result__ = 1",
    "__result__ = recall_pagｅ(1)",
    "__result__ = 𝓻ecall_page(1)",
    "__result__ = recall_page(ｐage=1)",
    "__ｒesult__ = recall_page(1)",
    "a = 1\n__result__ = recall_page(ａ)",
    "__result__ = rеcall_page(1)",  # a Cyrillic letter
    "__result__ = unknown(1)",
    "__result__ = name",
    "r = recall_page(1)\nr",
    "__result__ = recall_page(page=1, page=2)",
]


@pytest.mark.parametrize("code", ESCAPES)
@pytest.mark.parametrize("before", ["", "r0 = recall_page(9)\n__result__ = r0\n"])
def test_check_refused_code(code: str, before: str, recorder: Recorder) -> None:
    """What the grammar does not name is refused as a whole, before any call."""

    with pytest.raises(InvalidMessage):
        check(before + code, recorder.tools, call_limit=8)

    assert recorder.calls == []


@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        ("a = 1\nfor x in [a]: pass", "line 2", "a loop"),
        ("__result__ = 'a' + 'b'", "line 1", "an operator"),
        ("__result__ = f'x'", "line 1", "an f-string"),
        ("__result__ = a.b", "line 1", "an attribute"),
        ("lambda: 1", "line 1", "a definition"),
        ("try:\n  pass\nfinally: pass", "line 1", "try"),
        ("print('x')", "line 1", "assign to __result__"),
        ("recall_page(1)", "code", "to __result__"),
        ("x = recall_pages(1)", "line 1", "no function recall_pages"),
        ("x = [\n  hello]", "line 2", "text needs quotes"),
        ("import os", "line 1", "import"),
        ("x = (", "line 1", "not valid Python"),
        ("ｒecall_page(1)", "line 1", "look-alike"),
        ("__result__ = recall_page()", "line 1", "'page'; it is recall_page(page: int, offset: int = 1) -> str"),
        ("__result__ = recall_page(1, 2, 3)", "line 1", "too many positional"),
        ("__result__ = recall_page(index=1)", "line 1", "recall_page"),
        ("__result__ = recall_page('42')", "line 1", "page must be int, not the str '42'"),
        ("__result__ = recall_page(True)", "line 1", "page must be int, not the bool True"),
        ("__result__ = recall_page(1.0)", "line 1", "not the float 1.0"),
        ("__result__ = recall_page(1, None)", "line 1", "not the NoneType None"),
        ("__result__ = search_memory(1)", "line 1", "query must be str"),
        ("__result__ = search_memory('x', k='5')", "line 1", "k must be int | None"),
        ("__result__ = search_memory('x', exact=1)", "line 1", "exact must be bool"),
        ("__result__ = search_memory('x', least=False)", "line 1", "least must be float"),
        ("r = recall_page(1)\n__result__ = recall_page([r])", "line 2", "not the list [<result>]"),
    ],
)
def test_check_tells_what_is_wrong(code: str, line: str, told: str, recorder: Recorder) -> None:
    """A refusal names the line and the construct, the function or the argument."""

    with pytest.raises(InvalidMessage) as caught:
        check(code, recorder.tools, call_limit=8)

    assert caught.value.path == line
    assert told in caught.value.reason
    assert recorder.calls == []


@pytest.mark.parametrize(
    "code",
    [
        "__result__ = '" + "x" * 16_384 + "'",
        "__result__ = " + "[" * 150 + "]" * 150,
        "__result__ = " + "[" * 1_000 + "]" * 1_000,
        "a = []\n" + "a = [a]\n" * 30 + "__result__ = a",
        "a = 'xx'\n" + "a = [a, a]\n" * 19 + "__result__ = a",
        "a = '" + "x" * 9_000 + "'\n__result__ = [a, a, a, a, a, a, a, a]",
        "a = recall_page(1)\n__result__ = [a, a]",
        "a = recall_page(1)\nb = [a]\n__result__ = {'x': a, 'y': b}",
        "__result__ = " + "-" * 10_000 + "1",
        "__result__ = " + "not " * 4_000 + "1",
        "__result__ = a" + ".b" * 8_000,
        "__result__ = " + "9" * 5_000,
        "__result__ = 0x" + "f" * 5_000,
        "__result__ = 1e999",
        "__result__ = -1e999",
        "__result__ = 1\x00",
        "__result__ = '\ud800'",
        "__result__ = 1\n" + "recall_page(1)\n" * 9,
        "",
        "\n \n",
    ],
)
def test_check_limits(code: str, recorder: Recorder) -> None:
    """Code that is too long, too deep, too large or has too many calls is refused before any call."""

    with pytest.raises(InvalidMessage):
        check(code, recorder.tools, call_limit=8)

    assert recorder.calls == []


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ("{'a': ", "}"), ("(", ",)")])
def test_check_nesting_limit(opened: str, closed: str, recorder: Recorder) -> None:
    """Twenty levels are taken, written at once or by names, and one more is not."""
    code = f"a = {opened * 20}1{closed * 20}\n__result__ = "

    assert check(f"{code}a", recorder.tools, call_limit=8)
    for deeper in (f"{code}[a]", f"__result__ = {opened * 21}1{closed * 21}"):
        with pytest.raises(InvalidMessage, match="deeper than 20 levels"):
            check(deeper, recorder.tools, call_limit=8)


def test_check_call_limit(recorder: Recorder) -> None:
    """As many calls as the limit says are made, and not one more."""
    code = "recall_page(1)\n" * 3 + "__result__ = 1"

    value = value_of(code, recorder, call_limit=3)

    assert value == 1
    assert len(recorder.calls) == 3
    with pytest.raises(InvalidMessage, match="at most 2"):
        check(code, recorder.tools, call_limit=2)


def test_perform_result_of_another_type(recorder: Recorder) -> None:
    """A result that another tool does not take is refused when it is known, and that tool is not called."""
    program = check("r = search_memory('x')\n__result__ = recall_page(r)", recorder.tools, call_limit=8)

    with pytest.raises(InvalidMessage, match="line 2: recall_page: page must be int"):
        perform(program, recorder.tools)

    assert [call[0] for call in recorder.calls] == ["search_memory"]


def test_perform_tool_that_fails() -> None:
    """What a tool raises becomes a mistake that names line, tool and error, but for a fault of the store."""

    def recall_page(page: int) -> str:
        raise StorageBusy("held") if page else PageNotFound(page, (1, 7))

    tools = {"recall_page": recall_page}

    with pytest.raises(InvalidMessage, match=r"line 2: recall_page: it failed with PageNotFound: no page 0: .* #7"):
        perform(check("\n\na = 1\n__result__ = recall_page(0)", tools, call_limit=8), tools)
    with pytest.raises(StorageBusy):
        perform(check("__result__ = recall_page(1)", tools, call_limit=8), tools)


TOKENS = st.sampled_from(
    [
        *("recall_page", "search_memory", "__result__", "x", "open", "print", "exec", "().__class__", ".x", "[0]"),
        *("(", ")", "[", "]", "{", "}", ",", ":", "=", ":=", "*", "**", "-", "+", ".", " ", "\n", "\n  ", "'", "'a'"),
        *("1", "2.5", "None", "True", "f'", "lambda", "for", " in ", "if", "import ", "from ", "math", "def ", "@"),
    ]
)


@given(code=st.lists(TOKENS, max_size=25).map("".join) | st.text(string.printable, max_size=60) | st.text())
@settings(max_examples=300)
def test_check_arbitrary_code(code: str) -> None:
    """Any code is refused or holds nothing but calls of known tools; a check calls nothing."""
    recorder = Recorder()

    try:
        program = check(code, recorder.tools, call_limit=8)
    except InvalidMessage:
        assert recorder.calls == []
        return

    nodes = list(ast.walk(program.tree))
    called = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    assert called <= recorder.tools.keys()
    assert not any(isinstance(node, ast.Attribute | ast.Subscript | ast.JoinedStr | ast.Lambda) for node in nodes)
    assert recorder.calls == []


LITERALS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
        | st.tuples(inner, inner)
    ),
    max_leaves=10,
)


@given(value=LITERALS)
def test_perform_arbitrary_literal(value: object) -> None:
    """A literal has the value that Python gives it."""

    result = value_of(f"__result__ = {value!r}", Recorder())

    assert repr(result) == repr(value)


def test_source_when_it_runs_nothing() -> None:
    """The package has no means to run text, or to reach an attribute by a name that came in."""
    means = {"exec", "eval", "literal_eval", "compile", "__import__", "importlib", "getattr", "setattr", "globals"}
    sources = sorted(Path(memci.tools.attp.__file__).parent.glob("*.py"))

    nodes = [node for source in sources for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))]
    words = {ast.unparse(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}

    assert "ast.parse" in words
    assert {word for word in words if word.split(".")[-1] in means} <= {"re.compile"}
