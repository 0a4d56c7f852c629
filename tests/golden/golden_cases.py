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


def differences(case: Case, talk, folder: Path, right: dict) -> list[str]:
    """Return what of *case* is not as it was, in words; [] if all is."""
    found = replayed(case, talk, folder)
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


def main() -> None:
    for name, cases, talks in (("own", OWN, own), ("real", REAL, real)):
        if name == "real" and not FOLDER.is_dir():
            print(f"{FOLDER} is not here: the real conversations are left out")
            continue
        there, found = talks(), {}
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                if "--write" in sys.argv:
                    found[case.name] = replayed(case, there[case.talk], Path(folder))
                else:
                    told = differences(case, there[case.talk], Path(folder), committed(name).get(case.name, {}))
                    print(case.name, "-", "; ".join(told) or "the same")
        if "--write" in sys.argv:
            (HERE / f"{name}.json").write_text(written(found))


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
