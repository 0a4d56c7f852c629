"""The text for a system prompt."""

import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Annotated, Union

import pytest

from memci.errors import InvalidSetting
from memci.tools.attp import describe, parse, run
from memci.tools.attp.signatures import example, signature

from .recorder import Recorder


def test_describe_functions(recorder: Recorder) -> None:
    """Each tool stands there as a Python function with its signature and its docstring."""

    text = describe(recorder.tools)

    assert "def recall_page(page: int, offset: int = 1) -> str:\n" in text
    assert (
        "def search_memory(query: str, *, k: int | None = None, exact: bool = False, least: float = 0.0) -> str:\n"
        '    """Search everything that was said."""\n'
    ) in text
    for tool in recorder.tools.values():
        assert textwrap.indent(inspect.getdoc(tool) or "?", "    ").strip() in text


def test_describe_examples(recorder: Recorder) -> None:
    """The call in the text works as it stands, and so does the failure."""
    call, failure = describe(recorder.tools).split("thought = ")[1:]

    reply = parse("thought = " + call.partition("\n\n")[0])
    failed = parse("thought = " + failure.partition("\n\n")[0])

    assert (reply.status, reply.thought) == ("success", "why you call them\n")
    assert 'status = "ok"' in run(reply, recorder.tools)
    assert (failed.status, failed.thought) == ("fail", "why not\n")


def test_describe_when_order_differs(recorder: Recorder) -> None:
    """Equal tools give equal text, in whatever order they are listed."""
    reverse = dict(reversed(recorder.tools.items()))

    text = describe(reverse)

    assert text == describe(recorder.tools)


PROGRAM = """
from memci.tools.attp import describe

def f(a: int, b: set = {'x', 'y'}, c: object = object()) -> str:
    'Do.'

print(describe({'f': f, 'g': f}))
"""


def test_describe_in_another_process() -> None:
    """The text is the same bytes in each process, also with a default that prints its address."""
    path = ":".join(sys.path)
    processes = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        )
        for seed in ("1", "2")
    ]

    texts = {process.stdout for process in processes}

    assert len(texts) == 1
    assert b"def f(a: int, b: set = ..., c: object = ...) -> str:" in texts.pop()


def test_describe_docstring_that_closes_itself() -> None:
    """A docstring with triple quotes can't end early, and a tool without one is described all the same."""

    def quoted() -> str:
        '''Say """hello""".'''
        return ""

    text = describe({"quoted": quoted, "bare": lambda: ""})

    assert "    \"\"\"Say '''hello'''.\"\"\"\n" in text
    assert "def bare():\n    ...\n" in text


def test_describe_no_tools() -> None:
    """Without tools there is nothing to tell."""

    text = describe({})

    assert text == ""


@pytest.mark.parametrize("name", ["", "a b", "class", "__result__", "x.y", "ｆ"])
def test_describe_name_that_can_not_be_called(name: str) -> None:
    """A tool needs a name that a model can write."""

    with pytest.raises(InvalidSetting, match="tools"):
        describe({name: lambda: ""})


def _plain(
    a: int,
    /,
    b: "str | None",
    *rest: float,
    c: Annotated[bool, "x"],
    d: Union[int, None] = None,  # noqa: UP007, the old spelling is what is tested
    **more: str,
) -> None: ...


def _positional(a: list[int], /) -> None: ...


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (_plain, "t(a: int, /, b: str | None, *rest: float, c: bool, d: int | None = None, **more: str) -> None"),
        (_positional, "t(a: list[int], /) -> None"),
        (lambda *, a, b=1: "", "t(*, a, b=1)"),
        (dict, "t(...)"),
    ],
)
def test_signature(tool: Callable[..., object], expected: str) -> None:
    """A signature is written as Python writes it, without quotes around postponed annotations."""

    text = signature("t", tool)

    assert text == expected


@pytest.mark.parametrize(
    ("tool", "expected"),
    [(_plain, 't(1, "text", c=True)'), (_positional, "t([])"), (dict, "t()"), (lambda x: "", 't("text")')],
)
def test_example(tool: Callable[..., object], expected: str) -> None:
    """An example fills what has no default with a literal of its type."""

    text = example({"t": tool, "longer_name": tool})

    assert text == expected
