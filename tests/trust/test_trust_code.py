"""S11, S12, S15: what the code of memci may not do, whatever it is given; read from its source."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import memci
from tests.sources import tree_of

PACKAGE = Path(memci.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
SQL = [path for path in SOURCES if "execute" in path.read_text()]
BANNED_MODULES = frozenset(
    [
        "pickle",
        "_pickle",
        "cPickle",
        "dill",
        "cloudpickle",
        "marshal",
        "shelve",
        "yaml",
        "ruamel",
        "jsonpickle",
        "msgpack",
        "joblib",
        "code",
        "codeop",
        "subprocess",
        "multiprocessing",
        "ctypes",
        "cffi",
        "imp",
        "runpy",
        "xmlrpc",
        "socket",
        "http",
        "urllib.request",
        "requests",
        "httpx",
        "httpx2",
    ]
)
"""what revives objects from data, runs programs or talks to others"""
BANNED_CALLS = frozenset({"eval", "exec", "compile", "__import__", "import_module", "breakpoint"})
BANNED_OF_NUMPY = ("load", "save", "fromfile", "loadtxt")
BANNED_OF_OS = ("system", "popen", "spawn", "exec", "posix_spawn", "fork")
EXECUTES = frozenset({"execute", "executemany", "executescript"})
PASSING = {
    "rows": 1,
    "_changed": 1,
    "fetched": 1,
    "_execute": 1,
    "_rows": 1,
    "read_rows": 0,
    "read_packed": 0,
    "_fetched_rows": 0,
    "change_rows": 0,
    "run_alone": 0,
    "run_rows": 0,
    "read_column": 0,
    "read_value": 0,
    "execute": 0,
    "executemany": 0,
    "insert_row": 0,
}
"""functions of ours that execute a statement which they are given, and where it stands among their arguments"""
DELIMITED = frozenset(
    {
        "memci.serve.door._FORM",
        "memci.text.language.change._NUMBER",
        "memci.text.language.instructions._LIST",
        "memci.text.language.salience._FILE",
    }
)
"""patterns whose inner repeat can't match what each round of the outer one begins with: there is one way to split"""
_UNBOUNDED = 2**16


def name_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def banned(module: str) -> bool:
    """Tell whether *module*, or a package that it is in, is banned."""
    parts = module.split(".")
    return any(".".join(parts[: at + 1]) in BANNED_MODULES for at in range(len(parts)))


# -- S12: nothing is revived or run


SERVER = PACKAGE / "testing" / "llm" / "server.py"
"""a server for tests is one"""
GATEWAY = {PACKAGE / "serve/gateway.py", PACKAGE / "serve/answer.py", PACKAGE / "cli/servers.py"}
"""talk to a client and its provider, or listen to a browser: that is what they are for"""
FRONT_DOORS = {
    PACKAGE / each
    for each in ("__init__.py", "llm/__init__.py", "memory/__init__.py", "storage/__init__.py", "cli/commands.py")
}
"""import modules of the package when a name or a command is first asked for; the names are constants"""


def revives(path):
    """Return what *path* imports or calls of what turns data into objects or programs."""
    found = []
    calls = BANNED_CALLS - {"import_module"} if path in FRONT_DOORS else BANNED_CALLS

    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if banned(alias.name)]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [alias.name for alias in node.names]
            found += [each for each in names if banned(f"{node.module}.{each}") or each in calls]
        elif isinstance(node, ast.Call):
            of = name_of(node.func.value) if isinstance(node.func, ast.Attribute) else None
            called = str(name_of(node.func))
            if (
                (called in calls and of != "re")
                or (of == "os" and called.startswith(BANNED_OF_OS))
                or (of == "np" and called.startswith(BANNED_OF_NUMPY))
            ):
                found.append(called)

    if path in GATEWAY:
        found = [name for name in found if name not in {"httpx2", "socket"}]
    return found


def test_module_revives_and_runs_nothing():
    """No module imports what turns data into objects or programs, and none calls such a builtin."""
    found = {str(path.relative_to(PACKAGE)): revives(path) for path in SOURCES if path != SERVER}

    assert {path: names for path, names in found.items() if names} == {}


def test_codec_knows_two_forms_of_json_and_no_other():
    """What reads a body is orjson, json (of a message, or of its envelope), or makes a tombstone: nothing else does."""
    imports = {
        alias.name for node in ast.walk(tree_of(PACKAGE / "storage/codec.py")) if isinstance(node, ast.Import)
        for alias in node.names
    }  # fmt: skip

    from memci.storage import codec

    assert imports == {"json", "orjson", "re"}
    assert set(codec._READERS) == {codec.ERASED, codec.ORJSON, codec.STDLIB, 3, 4}
    assert [codec._READERS[each] for each in (3, 4)] == [codec._READERS[each] for each in (codec.ORJSON, codec.STDLIB)]


# -- S11: statements are constants


def constants(trees: dict[Path, ast.Module]) -> dict[str, ast.expr]:
    """Return the values of all names that are set at the top of a module, and written as constants are."""
    found: dict[str, ast.expr] = {}
    for module in trees.values():
        for node in module.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(target, ast.Name) and target.id.isupper():
                found[target.id] = node.value
    inside = [
        node.value for module in trees.values() for node in ast.walk(module)
        if isinstance(node, ast.Assign) and name_of(node.targets[0]) == "statement"
    ]  # fmt: skip
    if inside and all(constant(each, found) for each in inside):  # a local name, wherever it is set
        found["statement"] = inside[0]
    return found


def constant(  # noqa: PLR0911 -- one for each kind of expression
    node: ast.AST | None, known: dict[str, ast.expr], local: frozenset[str] = frozenset()
) -> bool:
    """Tell whether *node* is made of nothing but what stands in the source."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):  # what is made when a module is imported has no value of a caller in it
        return node.id in local or node.id in known
    if isinstance(node, ast.JoinedStr):
        return all(constant(each, known, local) for each in node.values)
    if isinstance(node, ast.FormattedValue):
        return constant(node.value, known, local)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.BitOr, ast.LShift, ast.Pow, ast.Sub)):
        return constant(node.left, known, local) and constant(node.right, known, local)
    if isinstance(node, ast.IfExp):
        return constant(node.body, known, local) and constant(node.orelse, known, local)
    if isinstance(node, (ast.Tuple, ast.Dict)):
        return all(constant(each, known, local) for each in (node.values if isinstance(node, ast.Dict) else node.elts))
    if isinstance(node, ast.Subscript):  # one of several constants
        return isinstance(node.value, ast.Name) and constant(node.value, known)
    if isinstance(node, ast.DictComp):
        loop = node.generators[0]
        names = frozenset({loop.target.id}) if isinstance(loop.target, ast.Name) else frozenset()
        return constant(loop.iter, known) and constant(node.value, known, names)
    if isinstance(node, ast.Call) and name_of(node.func) == "sql_file":  # a file of the package
        return name_of(node.args[0]) == "__file__" and isinstance(node.args[1], ast.Constant)
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute) and node.func.attr in ("replace", "from_bytes")
        builtin = name_of(getattr(node.func, "value", None)) == "int"
        return method and (builtin or constant(node.func.value, known)) and all(constant(a, known) for a in node.args)
    return False


def statements(module: ast.Module) -> Iterator[ast.expr]:
    """Yield what each call in *module* executes; of functions that only pass it on, what those are given."""
    passing = {
        id(inner) for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name in PASSING
        for inner in ast.walk(node)
    }  # fmt: skip
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in EXECUTES:
            if id(node) not in passing:
                yield node.args[0]
        elif name_of(node.func) in PASSING and id(node) not in passing:
            yield node.args[PASSING[str(name_of(node.func))]]
        for at, argument in enumerate(node.args):
            if name_of(argument) in PASSING and at + 1 < len(node.args):  # self._run(context, seq, rows, statement, …)
                yield node.args[at + 1]


def test_every_statement_is_a_constant():
    """No statement is put together from values: all that varies is bound."""
    trees = {path: tree_of(path) for path in SQL}
    known = constants(trees)

    odd = [
        f"{path.relative_to(PACKAGE)}:{each.lineno}: {ast.unparse(each)}"
        for path, module in trees.items()
        for each in statements(module)
        if not constant(each, known)
    ]
    some = [each for module in trees.values() for each in statements(module)]

    assert odd == []
    assert len(some) > 40, "the statements are where they were"


@pytest.mark.parametrize(
    "source",
    [
        'c.execute(f"SELECT {name}")',
        'c.execute("SELECT " + name)',
        'c.execute("SELECT %s" % name)',
        'c.execute("SELECT {}".format(name))',
        "c.execute(statement)",
        'run(context, 0, rows, f"SELECT {name}")',
        'rows(c, f"SELECT {_A}{name}")',
        "c.execute(_A.replace(name, name))",
    ],
)
def test_statement_that_is_put_together_is_noticed(source):
    """The rule above has teeth."""
    module = ast.parse(f'_A = "SELECT"\n{source}')

    found = list(statements(module))

    assert found and not all(constant(each, constants({PACKAGE: module})) for each in found)


# -- S15: no regular expression takes more than linear time for each place that it begins at


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(memci.__path__, "memci."):
        if not found.name.endswith("__main__") and ".testing" not in found.name and ".adapters." not in found.name:
            yield importlib.import_module(found.name)


def patterns() -> dict[str, re.Pattern[str]]:
    """Return every compiled pattern of the library, by its name."""
    return {
        f"{module.__name__}.{name}": value
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
    }


def nested(parsed: object, *, inside: bool = False) -> bool:
    """Tell whether an unbounded repeat stands inside another one, so that a text can be split in 2ⁿ ways."""
    for op, argument in parsed:
        kind = str(op)
        if kind == "ATOMIC_GROUP":
            continue
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            _, most, body = argument
            endless = int(most) >= _UNBOUNDED
            if (endless and inside) or nested(body, inside=inside or endless):
                return True
        elif (
            (kind == "SUBPATTERN" and nested(argument[-1], inside=inside))
            or (kind == "BRANCH" and any(nested(branch, inside=inside) for branch in argument[1]))
            or (kind in ("ASSERT", "ASSERT_NOT") and nested(argument[1]))
        ):
            return True
    return False


def parse(pattern: str, flags: int = 0) -> object:
    from re import _parser

    return _parser.parse(pattern, flags)


def test_no_pattern_has_a_repeat_within_a_repeat():
    """No pattern can be made to try exponentially many ways."""

    found = {name: each.pattern for name, each in patterns().items() if nested(parse(each.pattern, each.flags))}

    assert set(found) == DELIMITED
    assert len(patterns()) > 20


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a*)*", "((ab)*c*)*", "(?:a|b+)*x", "(x+x+)+y"])
def test_pattern_with_a_repeat_within_a_repeat_is_noticed(pattern):
    """The rule above has teeth."""

    assert nested(parse(pattern))
