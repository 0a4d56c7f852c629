"""The modules of benchmarks/evals: a test that imports this is skipped where they, or what they need, are not there."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytest.importorskip("rich")
pytest.importorskip("openai")
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are only in the checkout", allow_module_level=True)

sys.path.insert(0, str(ROOT))
try:
    calls, dialogues, evals, figures, memoryos, metrics, oracle, prompt, running, systems = (
        importlib.import_module(f"benchmarks.evals.{name}")
        for name in (
            "calls",
            "dialogues",
            "__main__",
            "figures",
            "memoryos",
            "metrics",
            "oracle",
            "prompt",
            "running",
            "systems",
        )
    )
finally:
    sys.path.remove(str(ROOT))
