"""Writes what each check of an adapter came to, for the matrix of docs/adapters/index.md."""

import json
import sys
from importlib.metadata import distributions
from pathlib import Path

RESULTS = Path(sys.prefix) / "results.json"


def pytest_runtest_logreport(report):
    if "adapter_" in report.nodeid and (report.when == "call" or (report.when == "setup" and report.skipped)):
        *_, kind, check = report.nodeid.split("::")
        if not kind.startswith("Test"):
            return
        reason = report.longrepr[2].removeprefix("Skipped: ") if report.skipped else ""
        _checks.setdefault(kind.removeprefix("Test"), {})[check.removeprefix("test_")] = reason or report.outcome


def pytest_sessionfinish(session):
    if not _checks:
        return
    versions = {each.name.lower(): each.version for each in distributions()}
    RESULTS.write_text(json.dumps({"versions": versions, "checks": _checks}, indent=1))


_checks: dict[str, dict[str, str]] = {}
