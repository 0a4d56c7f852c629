"""The source of the package, parsed once for all tests that read it; they run in one process (`GROUP`)."""

import ast
from functools import cache
from pathlib import Path

import pytest

GROUP = pytest.mark.xdist_group("sources")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file of the package."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))
