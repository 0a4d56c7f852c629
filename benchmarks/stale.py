"""Which tables of docs/performance.md are older than the code that they measure: `make stale`.

    <!-- cache: python -m benchmarks.cache …; 0dd2fa4; code 5e1f09c2a7b4 -->   command, commit, digest of the code
    | table |
    *The code that this table measures has changed since 0dd2fa4.*           written by `make stale`

The digest is of the modules that a table measures, and of the benchmark itself, without their comments and docstrings.
Nothing fails because a table is old; it says so. This module knows nothing of how anything is measured.
"""

import argparse
import ast
import hashlib
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "docs" / "performance.md"
_WINDOW = ("memci/chapters", "memci/history", "memci/segments", "memci/tokens", "memci/window")
_TURN = (*_WINDOW, "memci/context", "memci/messages.py", "memci/storage", "memci/text")
_CACHE = (*_WINDOW, "memci/context/compactor.py", "memci/context/renderer.py", "benchmarks/cache")
MEASURED = {
    "speed": (*_TURN, "benchmarks/speed"),
    "size": (*_TURN, "benchmarks/speed"),
    "recall": ("memci/memory/retrieval", "memci/text", "benchmarks/recall"),
    "memory": ("memci/memory", "memci/text", "benchmarks/memory"),
    "vectors": ("memci/memory/retrieval/vectors.py", "benchmarks/vectors"),
    "models": ("memci/memory/consolidation", "memci/llm", "benchmarks/models"),
    "encryption": ("memci/storage/encrypted", "memci/memory/repository", "benchmarks/encryption.py"),
    "cache": _CACHE,
    "peers": (*_CACHE, "benchmarks/peers"),
}
"""the modules and folders that each table measures"""
_NOTE = re.compile(
    r"<!-- (?P<name>\w+): (?P<command>.*?); (?P<commit>[0-9a-f]{7,})(?P<more>[^;]*)(?:; code (?P<code>\w+))? -->"
)
_NAMES = re.compile(r"<!-- (\w+): ")
_LINE = re.compile(r"\n\n\*The code that this table measures [^\n]*")


def digest(sources: Iterable[str]) -> str:
    """Return a short digest of Python *sources*: no comment, docstring or blank line changes it."""
    return hashlib.sha256(b"".join(map(_code, sources))).hexdigest()[:12]


@cache
def _code(source: str) -> bytes:
    """Return the lines of *source* that are code; most modules are measured by several tables."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", ())
        for part in body if isinstance(body, list) else ():
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and type(part.value.value) is str:
                skipped.update(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    lines = ((number, line.strip()) for number, line in enumerate(source.splitlines(), 1))
    return b"".join(
        code.partition("  # ")[0].encode()
        for number, code in lines
        if code and number not in skipped and not code.startswith("#")
    )


def code_of(name: str) -> str:
    """Return the digest of what the table of *name* measures, as it stands now."""
    paths = (ROOT / each for each in MEASURED[name])
    files = chain.from_iterable(sorted(path.rglob("*.py")) if path.is_dir() else (path,) for path in paths)
    return digest(path.read_text(encoding="utf-8") for path in files)


def noted(text: str, code: Callable[[str], str] = code_of, *, measured: Iterable[str] = ()) -> tuple[str, list[str]]:
    """Return *text* with a line under each table that says whether it is old, and which tables are.

    Args:
        text: Of the document.
        code: Returns the digest of what a table measures now.
        measured: Tables that were just measured: their digest is written down.
    """
    old: list[str] = []
    lines: list[str] = []
    pending = ""
    for line in _LINE.sub("", text).split("\n"):
        if pending and lines[-1].startswith("|") and not line.startswith("|"):
            lines += ["", pending]
            pending = ""
        found = _NOTE.fullmatch(line)
        if found:
            now = code(found["name"])
            known = now if found["name"] in measured else found["code"]
            commit, more = found["commit"], found["more"]
            code_then = f"; code {known}" if known else ""
            lines.append(f"<!-- {found['name']}: {found['command']}; {commit}{more}{code_then} -->")
            is_old = known != now
            said = "has changed since" if is_old else "is still that of"
            pending = f"*The code that this table measures {said} {commit}.*"
            old += [found["name"]] * is_old
            continue
        lines.append(line)
    return "\n".join(lines), old


def main(arguments: list[str] | None = None) -> None:
    """Write the lines under the tables, and print which tables are old."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stale", description="Say which tables are old.")
    parser.add_argument("--measured", nargs="*", default=(), choices=sorted(MEASURED), help="tables measured just now")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    text, old = noted(TABLES.read_text(encoding="utf-8"), measured=options.measured)
    if not options.check:
        TABLES.write_text(text, encoding="utf-8")
    for name in old:
        print(f"{TABLES.relative_to(ROOT)}: the code that the table of {name} measures has changed since")


if __name__ == "__main__":
    main()
