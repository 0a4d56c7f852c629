"""The commands of docs/cli.md, typed from top to bottom beside the store of that page, print what stands there."""

import re
import shlex
from collections.abc import Iterator

from tests.test_docs import ROOT, blocks
from tests.test_docs import run as run_code

PAGE = ROOT / "docs" / "cli.md"
ELSEWHERE = re.compile(
    r"memci (demo|chat|mcp|serve|ui)\b|conversation\.json|postgresql:|sealed\.db|\.html|--watch|--model|--accept"
)
"""commands that need a server, a model, or a file of the reader's own, and those with tests of their own"""
VARYING = re.compile(
    r"\d[\d,.]* (?=bytes|lines|GiB|KiB)|\d+(\.\d+)+(?=: safe)|(?<=Pages|2,000) +\d+|(?<=flight on day ).*"
)
"""what depends on the machine, on the random name of a context, or on how far a memory was when it was closed"""


def typed() -> Iterator[tuple[str, list[str]]]:
    """Yield each command of the page with the lines that stand below it."""
    for block in blocks(PAGE):
        if block.kind == "console":
            for command in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                line, *shown = command.splitlines()
                yield line, shown


def essence(line: str) -> str:
    """What of a line is the same everywhere: without what varies, cut where a table is as narrow as the terminal."""
    return VARYING.sub("N ", line).partition("…")[0].rstrip()


def test_commands_print_what_the_page_says(run, tmp_path, monkeypatch):
    """Each line that stands below a command is printed, in this order; a page may leave out lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "88")
    list(run_code(PAGE))
    wrong = []

    for command, shown in typed():
        if ELSEWHERE.search(command):
            continue
        output = ""
        for part in command.split("|"):
            result = run(*shlex.split(part)[1:], input=output or "y\n")
            output = result.output  # both streams, as a terminal shows them
        printed = iter([essence(line) for line in output.splitlines()])
        missing = [line for line in shown if essence(line) not in printed]
        if missing or result.exit_code == 2:
            wrong.append((command, missing, output))

    assert wrong == []
