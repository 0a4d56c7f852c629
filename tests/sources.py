"""The source of the package, parsed once for all tests that read it."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file of the package."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))
