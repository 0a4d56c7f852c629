"""A few words that an international reader stumbles over are not used in the package."""

import re
from pathlib import Path

import memci

ROOT = Path(next(iter(memci.__path__)))
RARE = re.compile(r"\b(?:reckon(?:s|ed|ing)?|anew|whoever|likewise)\b", re.IGNORECASE)


def test_no_rare_word_is_used():
    """Say compute or count, again, anyone who, also."""
    found = [
        f"{path.relative_to(ROOT.parent)}, line {number}: {line.strip()}"
        for path in sorted(ROOT.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if RARE.search(line)
    ]

    assert not found, "\n".join(found)
