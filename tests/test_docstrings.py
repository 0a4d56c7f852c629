"""The examples in the docstrings of the package run, and what its docstrings and comments name is there."""

import ast
import doctest
import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path

import memci
from memci import chapters, segments
from tests.sources import tree_of

OPTIONAL = {"tokenizers", "snowballstemmer"}
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(memci.__path__, "memci.")
    if not module.name.endswith(("__main__", ".scripts"))
)
NAME = re.compile(r"(?<![\w.@/])memci(?:\.[A-Za-z_]\w*)+")
FILES_AND_COMMANDS = {"memci.json", "memci.db", "memci.toml"} | {
    "memci.session",
    "memci.attach",
}  # of a variable in examples


def loaded(name: str):
    """Return the module *name*, None if it needs what is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name in OPTIONAL or name.startswith("memci.adapters."):  # its framework: `make adapters`
            return None
        raise


def source_of(name: str) -> str:
    return importlib.util.find_spec(name).loader.get_source(name)


def test_examples_in_docstrings_run(tmp_path, monkeypatch):
    """An example that begins with >>> prints what stands below it."""
    monkeypatch.chdir(tmp_path)
    named = [name for name in ["memci", *MODULES] if ">>> " in source_of(name)]
    modules = [module for module in map(loaded, named) if module is not None]

    failed = [each.__name__ for each in modules if doctest.testmod(each, optionflags=doctest.ELLIPSIS).failed]

    assert failed == []
    assert len(modules) > 10


def test_examples_are_found_at_all():
    """Every class that the packages export for the card's words shows an example."""
    words = ["MessageList", "MessageNode", "Page", "Entry", "Chapter", "ActiveChapter", "ArchiveChapter"]
    words += ["SystemSegment", "CommonSegment", "ContentsPage"]

    exported = vars(chapters) | vars(segments)
    assert [word for word in words if ">>>" not in exported[word].__doc__] == []


def imports(text: str) -> list[str]:
    """The lines of *text* that import something of memci."""
    return [line.strip() for line in text.splitlines() if re.match(r"\s+(>>> )?(from|import) memci\b", line)]


def test_names_in_docstrings_are_there():
    """What a docstring or a comment names by its full path can be imported, and so can what an example imports."""
    missing = {name: missing_names(name) for name in ["memci", *MODULES]}

    assert {name: names for name, names in missing.items() if names} == {}


def missing_names(name: str) -> list[str]:
    """Return what the docstrings and comments of the module *name* name or import, and is not there."""
    source = source_of(name)
    names = NAME.findall(source) if name != "memci.adapters.opentelemetry" else []  # names of spans
    missing = [each for each in names if each not in FILES_AND_COMMANDS and not there(each)]
    for node in ast.walk(tree_of(Path(importlib.util.find_spec(name).origin))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            for line in imports(ast.get_docstring(node, clean=False) or ""):
                of_framework = name.startswith("memci.adapters.")
                missing += [line] if not of_framework and not imported(line.removeprefix(">>> ")) else []
    return missing


@cache
def there(dotted: str) -> bool:
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ImportError as error:
            if error.name in OPTIONAL or dotted.startswith("memci.adapters."):
                return True
            continue
        return all((value := getattr(value, part, None)) is not None for part in parts[end:])
    return False


@cache
def imported(line: str) -> bool:
    try:
        exec(line, {})
    except (ImportError, SyntaxError):
        return False
    return True
