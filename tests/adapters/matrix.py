"""Writes the table of docs/adapters/index.md from what `make adapters` has seen: checks, exceptions, versions.

python -m tests.adapters.matrix
"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adapters" / "index.md"
BEGIN, END = "<!-- matrix -->\n", "<!-- end of matrix -->\n"


def main() -> None:
    """Write the table."""
    runs = {path.parent.name: json.loads(path.read_text()) for path in (ROOT / ".venv-adapters").glob("*/results.json")}
    kinds = [(name, kind, checks) for name, run in sorted(runs.items()) for kind, checks in run["checks"].items()]
    checks = list(dict.fromkeys(check for _, _, found in kinds for check in found))
    lines = ["Adapters: " + ", ".join(kind for _, kind, _ in kinds) + ".", ""]
    passed, partly = [], []
    notes: dict[str, int] = {}
    for check in checks:
        cells = [(kind, _cell(found.get(check, "–"), notes)) for _, kind, found in kinds]
        others = ", ".join(f"{kind} {cell}" for kind, cell in cells if cell != "✓")
        if others:
            partly.append(f"- {check.replace('_', ' ')}: all but {others}")
        else:
            passed.append(check.replace("_", " "))
    lines += ["All of them pass: " + ", ".join(passed) + ".", "", *partly]
    lines.append("")
    lines += [f"{number}. {reason}" for reason, number in notes.items()]
    lines += ["", "Versions:", ""]
    for name, run in sorted(runs.items()):
        needs = (ROOT / "tests" / "adapters" / "requirements" / f"{name}.txt").read_text().split()
        found = [each.split(">")[0].split("=")[0].split("[")[0].split("<")[0].lower() for each in needs]
        lines.append(f"- {name}: " + ", ".join(f"{each} {run['versions'].get(each, '?')}" for each in found))
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2])


def _cell(outcome: str, notes: dict[str, int]) -> str:
    if outcome in {"passed", "–"}:
        return {"passed": "✓", "–": "–"}[outcome]
    return "✗" if outcome == "failed" else f"[{notes.setdefault(outcome, len(notes) + 1)}]"


if __name__ == "__main__":
    main()
