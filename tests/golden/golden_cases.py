"""Which conversations are replayed, into which stores and with which settings; and the digests that were committed.

    .venv/bin/python tests/golden/golden_cases.py           compares, and names what differs
    .venv/bin/python tests/golden/golden_cases.py --write   takes what is shown and stored today as right

Write only what was meant to change, and say in the commit what it was.
This module knows nothing of how a digest is made.
"""

import json
import sys
import tempfile
from pathlib import Path

from golden_digests import EVERY, Case, replayed
from golden_model import prompted
from golden_texts import FOLDER, own, real

from memci import NeverRecalled, Stale

HERE = Path(__file__).parent

OWN = [
    Case("travel", "sqlite", {"window": 3_000}),
    Case("travel", "files", {"window": 2_400, "preset": "economy", "model": "gpt-4o"}),
    Case("travel", "sqlite", {"window": 4_000, "preset": "verbatim", "instruction_tokens": 0}, acts=False),
    Case("travel", "sqlite", {"window": 2_400, "never_recalled": 3, "stale": 5}, memory=True),
    Case("chinese", "sqlite", {"window": 2_000, "preset": "original"}),
    Case("chinese", "ram", {"window": 2_200, "remember": True}, memory=True),
    Case("chinese", "files", {"window": 6_000, "counter": len, "never_recalled": 3, "stale": 4, "active_pages": 3}),
    Case("mixed", "sqlite", {"window": 1_800, "archive_share": 0.9, "contents_tokens": 300, "reply": 100}),
    Case("mixed", "files", {"window": 2_500, "notice": False, "model": "claude-sonnet-4"}),
    Case("mixed", "ram", {"window": 2_500, "rules": (NeverRecalled(4), Stale(6))}),
]
PROMPTED = ("travel", "chinese")
"""conversations of which the prompts are compared, with which a memory asks its model"""
REAL = [
    Case("airline", "sqlite", {"window": 8_000}),
    Case("airline", "files", {"window": 16_000, "preset": "economy"}),
    Case("swe", "sqlite", {"window": 8_000}, acts=False),
    Case("dialogue", "sqlite", {"window": 4_000, "remember": True}, memory=True),
    Case("dialogue", "ram", {"window": 2_000, "preset": "original"}),
    Case("customer", "sqlite", {"window": 2_000, "preset": "verbatim"}),
    Case("student", "files", {"window": 2_000, "never_recalled": 5, "stale": 5}),
    Case("beam", "sqlite", {"window": 8_000, "preset": "economy"}),
    Case("beam 4", "ram", {"window": 8_000}, acts=False),
]


def committed(name: str) -> dict:
    """Return the digests that are right, by case."""
    return json.loads((HERE / f"{name}.json").read_text())


def differences(found: dict, right: dict) -> list[str]:
    """Return in which of the digests *found* differs from those that are *right*, in words; [] in none."""
    told = []
    for key in sorted({*found, *right}):
        before, now = right.get(key), found.get(key)
        if before == now:
            continue
        if isinstance(before, list) and isinstance(now, list):
            same = [old == new for old, new in zip(before, now, strict=False)]
            first = [*same, False].index(False) * EVERY
            told.append(f"{key}: first within the turns {first} to {first + EVERY - 1}")
        elif isinstance(before, dict) and isinstance(now, dict):
            told.append(f"{key}: {', '.join(each for each in {*before, *now} if before.get(each) != now.get(each))}")
        else:
            told.append(key)
    return told


def all_digests(name: str) -> dict[str, dict]:
    """Return the digests of all cases, as they are now."""
    talks, found = {"own": own, "real": real}[name](), {}
    for case in {"own": OWN, "real": REAL}[name]:
        with tempfile.TemporaryDirectory() as folder:
            found[case.name] = replayed(case, talks[case.talk], Path(folder))
    for talk in PROMPTED if name == "own" else ():
        with tempfile.TemporaryDirectory() as folder:
            found[f"prompts of {talk}"] = prompted(talks[talk], Path(folder))
    return found


def main() -> None:
    for name in ("own", "real"):
        if name == "real" and not FOLDER.is_dir():
            print(f"{FOLDER} is not here: the real conversations are left out")
            continue
        found = all_digests(name)
        if "--write" in sys.argv:
            (HERE / f"{name}.json").write_text(written(found))
        else:
            for case, digests in found.items():
                print(case, "-", "; ".join(differences(digests, committed(name).get(case, {}))) or "the same")


def written(found: dict[str, dict]) -> str:
    """Return the digests as JSON, a line for each kind of each case."""
    cases = [
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in digests.items())
        + "\n }"
        for name, digests in found.items()
    ]
    return "{\n" + ",\n".join(cases) + "\n}\n"


if __name__ == "__main__":
    main()
