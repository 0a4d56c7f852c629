"""The layers: which package may import which, and what is true of every module.

A module imports its own package and the packages of earlier lines. A module without a line fails: add its package to
LINES first.
"""

import ast
import inspect
import pydoc
import subprocess
import sys
from functools import cache
from pathlib import Path

import memci
from memci import errors
from tests.sources import tree_of

LINES = [
    ["errors"],
    ["workers"],
    ["messages", "rows"],
    ["model_catalog"],
    ["settings"],
    ["text"],
    ["tokens"],
    ["storage"],
    ["formats"],
    ["llm", "chapters"],
    ["memory", "segments"],
    ["window", "tools"],
    ["history"],
    ["context"],
    ["companion", "adapters", "serve"],
    ["__init__"],
    ["cli", "testing"],
    ["__main__"],
]
"""lowest first; packages of one line do not import each other"""

PUBLIC = [
    "Agent",
    "AsyncContext",
    "CachePricing",
    "Context",
    "EncryptedStorage",
    "EphemeralStorage",
    "Event",
    "FilesystemStorage",
    "NeverRecalled",
    "Policy",
    "PostgresStorage",
    "QuotaStorage",
    "Receipt",
    "Report",
    "SQLiteStorage",
    "Stale",
]

LONG = {"context.context": "the façade: one class, and the documentation of every call"}
"""modules above 500 lines, and why"""

ROOT = Path(next(iter(memci.__path__)))
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(ROOT.rglob("*.py"))
    if "__pycache__" not in path.parts
}
"""module name within the package (`chapters.active`, `chapters.__init__`) to its file"""


def trees() -> dict[str, ast.Module]:
    """Each module as its syntax tree; not made where these tests are only collected."""
    return {name: tree_of(path) for name, path in FILES.items()}


def line_of(module: str) -> int | None:
    """The line on which *module*, or its package, stands."""
    top = module.partition(".")[0]
    return next((number for number, line in enumerate(LINES) if top in line), None)


def imported(name: str) -> set[str]:
    """The modules of the package that module *name* imports: inside functions and for type checkers, too."""
    package = name.split(".")[:-1]
    found = set()
    for node in ast.walk(tree_of(FILES[name])):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[: len(package) - node.level + 1]
        target = [*base, *(node.module.split(".") if node.module else [])]
        for alias in node.names:
            own = [*target, alias.name]
            for candidate in (own, [*own, "__init__"], target, [*target, "__init__"]):
                if ".".join(candidate) in FILES:
                    found.add(".".join(candidate))
                    break
            else:
                raise AssertionError(f"{name} imports {alias.name!r} from {'.'.join(target)!r}, which is not there")
    return found


@cache
def edges() -> dict[str, set[str]]:
    """The modules that each module imports."""
    return {name: imported(name) for name in FILES}


def test_imports_are_found_at_all():
    """The test sees what it judges: known imports are among those that it found."""
    assert "chapters.chapter" in edges()["chapters.active"]
    assert "rows" in edges()["window.window"]
    assert len(FILES) > 50


def test_every_module_has_a_line():
    """A module that no layer names fails here, until someone says in LINES where it belongs."""
    assert [name for name in FILES if line_of(name) is None] == []


def test_imports_go_down():
    """A module imports its own package and lower lines only."""
    wrong = []
    for name, others in edges().items():
        own = line_of(name)
        for other in others:
            same_package = "." in name and other.split(".")[0] == name.split(".")[0]
            if not (same_package or line_of(other) < own):
                wrong.append(f"{name} imports {other}, which does not stand below it")

    assert wrong == []


def test_imports_form_no_cycle():
    """Whatever a module imports, it never comes back to it."""
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            for other in sorted(edges()[name]):
                walk(other, (*path, name))
            done.add(name)

    for name in FILES:
        walk(name, ())


def test_imports_inside_the_package_are_relative():
    """No module names the package that it is part of, and each names what it imports."""
    wrong = []
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                wrong += [name for alias in node.names if alias.name.split(".")[0] == "memci"]
            if isinstance(node, ast.ImportFrom):
                absolute = not node.level and (node.module or "").split(".")[0] == "memci"
                wrong += [name] if absolute or node.names[0].name == "*" else []

    assert wrong == []


def test_only_cli_and_testing_print():
    """A library is silent: nothing outside the command line writes to the terminal."""
    loud = {"print", "input", "sys.stdout.write", "sys.stderr.write"}
    quiet = [name for name in FILES if name.split(".")[0] not in {"cli", "testing"}]

    assert [
        f"{name}, line {node.lineno}"
        for name in quiet
        for node in ast.walk(tree_of(FILES[name]))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in loud
    ] == []


def test_a_long_module_has_a_reason():
    """A module above 500 lines says here why it is one thing; a class always stands in one file."""
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}

    assert {name for name, length in lengths.items() if length > 500} == set(LONG)


def test_every_module_has_a_docstring():
    """Every module says what it is."""
    assert [name for name, tree in trees().items() if not ast.get_docstring(tree)] == []


def test_public_names_are_exactly_these():
    """What the package offers is a promise: a name comes or goes here on purpose. Each error is a public name, too."""
    classes = {name: each for name, each in vars(errors).items() if isinstance(each, type)}
    raised = {name for name, each in classes.items() if issubclass(each, Exception)}
    listed = {name for name in dir(memci) if not name.startswith("_") and not inspect.ismodule(getattr(memci, name))}

    assert listed - {"TYPE_CHECKING", "Any", "import_module", "find_spec"} == {*PUBLIC, *raised}
    assert all(hasattr(memci, name) for name in PUBLIC)


def test_help_is_short_and_begins_with_what_is_called():
    """`help(memci)` takes two screens of 50 lines; that of `Context` begins with `Context.open`."""
    whole, context = (pydoc.render_doc(each, renderer=pydoc.plaintext) for each in (memci, memci.Context))

    assert whole.count("\n") <= 100
    assert context.splitlines()[3].startswith(" |  `Context.open` opens")


def test_help_needs_nothing_that_is_not_installed():
    """Without Postgres' driver `help(memci)` names its store, and all that can be loaded is listed."""
    lacking = "import sys; sys.modules |= dict.fromkeys(('psycopg', 'psycopg_pool', 'cryptography'))"
    code = f"{lacking}; import memci, pydoc; print(pydoc.render_doc(memci)); from memci import *"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True)

    assert "PostgresStorage" in done.stdout


def test_importing_memci_loads_nothing_heavy():
    """Importing costs no vocabulary, no client, no vectors: they load when they are first used."""
    heavy = ("numpy", "openai", "genai_prices", "rich", "typer", "tiktoken", "hypothesis", "pytest")
    code = f"import memci, sys; print(*[name for name in {heavy!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_layers_are_as_they_are_drawn():
    """Every module has its place in the drawing of docs/design.md, and imports nothing that stands below it."""
    design = (ROOT.parent / "docs/design.md").read_text(encoding="utf-8")
    drawing = design.partition("```text\n")[2].partition("```")[0]
    rank = {
        name.strip(): row
        for row, line in enumerate(drawing.splitlines())
        for name in line.partition("  ")[0].split("·")
    }
    outside = {"__init__", "__main__"}
    upward = [
        f"{module} imports {other}"
        for module, others in edges().items()
        for other in others
        if not {top(module), top(other)} & outside
        and top(other) != top(module)
        and rank[top(other)] >= rank[top(module)]
    ]

    assert set(rank) == {top(module) for module in FILES} - outside
    assert upward == []


def top(module: str) -> str:
    """What stands at the top level of the package, of a module's name."""
    return module.partition(".")[0]
