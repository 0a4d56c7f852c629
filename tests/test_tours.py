"""The tours in examples/ run offline, and show what their pages promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tour_airline.py", ["model  recall_page", "model  It has seat 8B."]),
        ("tour_coding.py", ["297 calls of run", "totals 1,204.50, expected 1,240.50 (rounding.py:88)"]),
        ("tour_companion.py", ["小雨的生日是3月5日。", "您现在住在成都。", "别点有花生的菜。"]),
    ],
)
def test_a_tour_ends_with_the_answer(name, told):
    """What was said at the beginning is answered at the end, though it left the window long ago."""
    run = [sys.executable, str(FOLDER / name)]
    done = subprocess.run(run, capture_output=True, encoding="utf-8", check=False, env=os.environ | {"PYTHONUTF8": "1"})

    assert done.returncode == 0, done.stderr
    assert [each for each in told if each not in done.stdout] == []
