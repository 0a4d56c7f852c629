"""The tours in examples/ run offline, and show what their pages promise."""

import re
import runpy

import pytest

from tests.test_docs import ROOT, blocks

FOLDER = ROOT / "examples"
PAGE = ROOT / "docs" / "tour.md"
FIGURE = re.compile(r"\d[\d,]*\b")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tour_airline.py", ["model  recall_page", "model  It has seat 8B."]),
        ("tour_coding.py", ["297 calls of run", "totals 1,204.50, expected 1,240.50 (rounding.py:88)"]),
        ("tour_companion.py", ["小雨的生日是3月5日。", "您现在住在成都。", "别点有花生的菜。"]),
    ],
)
def test_a_tour_ends_with_the_answer(name, told, monkeypatch, capsys):
    """What was said at the beginning is answered at the end, though it left the window long ago."""
    monkeypatch.syspath_prepend(FOLDER)
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    output = capsys.readouterr().out

    assert [each for each in told if each not in output] == []
    section = next(part for part in PAGE.read_text("utf-8").split("\n## ") if name in part)
    shown = next(block for block in blocks(PAGE) if block.kind == "text" and block.text in section)
    assert [line for line in shown.text.splitlines() if not printed(line, output)] == []


def printed(line, output):
    """Return whether *line* of the page, as far as it is not left out (…, a note), is in *output*.

    The figures of a window differ by a few percent, since each context has another random word.
    """
    return all(alike(part.strip(), output) for part in re.split(r"…|\s{3,}\(.*", line) if part.strip())


def alike(part, output):
    """Return whether *output* has *part*, but for figures that differ by a tenth, or by 20: a page moves as a whole."""
    figures = [int(each.replace(",", "")) for each in FIGURE.findall(part)]
    text = f"({FIGURE.pattern})".join(map(re.escape, FIGURE.split(part)))
    return any(
        all(
            abs(int(other.replace(",", "")) - figure) <= max(20, figure / 10)
            for figure, other in zip(figures, found.groups(), strict=True)
        )
        for found in re.finditer(text, output)
    )
