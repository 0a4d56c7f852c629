"""The documents are true: their code runs, their links lead somewhere, what they name exists.

    ```python                 run, the blocks of one file in order, in one namespace and an empty folder
    ```python (not run: why)  compiled, and its imports run: for what needs a network, or a large download
    ```text                   right behind a block: what the block printed; elsewhere a drawing
    ```pyi                    signatures, compared with those of the package
    ```console                commands and options that exist

Blocks find `client`, a model that needs no network, `my_tools` and `run_tool`; in the README `OpenAI()` is one.
"""

import ast
import contextlib
import dataclasses
import importlib
import importlib.util
import inspect
import io
import json
import re
import shlex
import textwrap
import tomllib
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import openai
import pytest
import typer
from openai.types.chat import ChatCompletion

import memci
from memci import Context, EphemeralStorage
from memci.cli.app import app
from memci.storage import protocol
from memci.tokens import REQUEST_TOKENS, counter_for, message_tokens, tools_tokens

ROOT = Path(__file__).parent.parent
FILES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
PAIR = (ROOT / "README.md", ROOT / "README.zh-CN.md")
PAIRS = [PAIR, *((ROOT / "docs" / path.name, path) for path in sorted(ROOT.glob("docs/zh/*.md")))]
KINDS = {"python", "text", "pyi", "console", "toml"}
NOT_RUN = re.compile(r" \(not run: \S[^()]+\)")
HIDDEN = re.compile(r"^(from|import) \w", re.MULTILINE)
OPTIONAL = {"fastembed", "tokenizers", "starlette", "httpx2", "PIL"}
OPTIONAL |= {
    "agent_framework",
    "agents",
    "google",
    "google.adk",
    "haystack",
    "langchain",
    "langchain_core",
    "litellm",
    "llama_index",
}
OPTIONAL |= {
    "opentelemetry",
    "pydantic_ai",
    "smolagents",
    "strands",
}  # `make adapters`

SPANS = set(re.findall(r"memci(?:\.\w+)+", (ROOT / "memci/adapters/opentelemetry.py").read_text("utf-8")))
"""names of spans and of their attributes"""
FENCE = re.compile(r"^```(\S*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Block:
    """One fenced block: its kind, what its fence adds, its text, its first line in the file, where its fences are."""

    kind: str
    note: str
    text: str
    line: int
    start: int
    end: int


def blocks(path: Path) -> list[Block]:
    text = path.read_text("utf-8")
    return [
        Block(found[1], found[2], found[3], text.count("\n", 0, found.start()) + 2, found.start(), found.end())
        for found in FENCE.finditer(text)
    ]


def prose(path: Path) -> str:
    """The text without its fenced blocks."""
    return FENCE.sub("", path.read_text("utf-8"))


def headings(path: Path) -> list[tuple[int, str]]:
    return [(len(found[1]), found[2]) for found in HEADING.finditer(prose(path))]


def anchors(path: Path) -> set[str]:
    """What a `#` link may name: headings in lower case, dashes for spaces, letters and digits only."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for _, title in headings(path)}


def printed(path: Path, block: Block) -> str | None:
    """The output that stands right behind *block*, None if there is none."""
    text = path.read_text("utf-8")
    after = next((each for each in blocks(path) if each.start > block.start), None)
    if after is None or after.kind != "text" or text[block.end : after.start].strip():
        return None
    return after.text


def named(path: Path) -> Iterator[pytest.param]:
    yield pytest.param(path, id=path.relative_to(ROOT).as_posix())


def each_file(*files: Path) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", [param for path in files for param in named(path)])


class Model:
    """A stand-in for `openai.OpenAI()`: it answers with the client's own objects, and refuses what a provider would.

    Asked by a user it calls every tool once, recalling page 1; after the results it answers.
    """

    def __init__(self) -> None:
        self.chat = SimpleNamespace(completions=self)

    def create(
        self, *, model: str, messages: list[dict], tools: list[dict] = (), stream: bool = False
    ) -> ChatCompletion:
        assert not stream
        count = counter_for(model)
        waiting: list[str] = []
        for message in messages:
            if message["role"] == "tool":
                waiting.remove(message["tool_call_id"])
            else:
                assert not waiting, "every call is answered, right behind it"
                waiting = [call["id"] for call in message.get("tool_calls") or []]
        assert not waiting, "every call is answered"
        cost = sum(message_tokens(message, count, model) for message in messages)
        answer = {"role": "assistant", "content": "It is the one on 7 May.", "refusal": None}
        if messages[-1]["role"] == "user" and tools:
            answer |= {"content": None, "tool_calls": [self._call(tool, len(messages)) for tool in tools]}
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None, "message": answer}],
            "usage": {
                "prompt_tokens": cost + tools_tokens(tools, count, model) + REQUEST_TOKENS,
                "completion_tokens": 9,
                "total_tokens": cost + 9,
            },
        }
        return ChatCompletion.model_validate(body)

    def _call(self, tool: dict, number: int) -> dict:
        name = tool["function"]["name"]
        arguments = {"index": 1, "entry": None, "offset": None} if name == "recall_page" else {"to": "Oslo"}
        called = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": f"{name}-{number}", "type": "function", "function": called}


def namespace() -> dict[str, object]:
    def run_tool(call: dict) -> dict:
        return {"role": "tool", "tool_call_id": call["id"], "content": '{"flight": "HAT007", "price": 149}'}

    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    tool = {"name": "find_flights", "description": "Find flights.", "parameters": schema}
    return {
        "__name__": "__main__",
        "client": Model(),
        "my_tools": [{"type": "function", "function": tool}],
        "run_tool": run_tool,
    }


def run(path: Path) -> Iterator[tuple[Block, str]]:
    """Run the python blocks of *path*, one after the other, in the current folder; yield each and what it printed."""
    names = namespace()
    for block in blocks(path):
        if block.kind != "python" or block.note:
            continue
        code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
        out = io.StringIO()

        with warnings.catch_warnings(), contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patched:
            warnings.simplefilter("error")
            if path in PAIR:
                patched.setattr(openai, "OpenAI", Model)
            exec(code, names)

        yield block, out.getvalue()


@each_file(*(path for path in FILES if any(block.kind == "python" for block in blocks(path))))
def test_code_runs_as_written(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every python block runs, one after the other, without a warning, and prints what the document says."""
    monkeypatch.chdir(tmp_path)

    for block, output in run(path):
        assert output == (printed(path, block) or ""), f"{path.name}, the block in line {block.line}"


def test_the_readme_runs_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples that a reader tries first print the same when they are run again in the same folder."""
    monkeypatch.chdir(tmp_path)

    first, second = [[output for _, output in run(PAIR[0])] for _ in range(2)]

    assert first == second
    assert any(first)


def test_what_the_readme_calls_measured_stands_among_the_figures() -> None:
    """Each number of that section is one of docs/performance.md, rounded at most: both change together."""
    section = re.search(r"^## What was measured$(.*?)^## ", PAIR[0].read_text("utf-8"), re.MULTILINE | re.DOTALL)
    figures = (ROOT / "docs/performance.md").read_text("utf-8")
    assert section is not None
    numbers = re.findall(r"\d[\d,.]*\d", re.sub(r"\]\(.*?\)", "]", section[1]))

    assert len(numbers) > 9
    assert [each for each in numbers if not re.search(rf"(?<![\d,.]){re.escape(each)}", figures)] == []


@each_file(*FILES)
def test_blocks_are_of_a_known_kind(path: Path) -> None:
    """No block escapes the checks: each says what it is, every fence is closed, and no code is hidden in a text."""
    found = blocks(path)
    hidden = [block.line for block in found if block.kind == "text" and HIDDEN.search(block.text)]
    notes = [block.note for block in found if block.note]

    assert {block.kind for block in found} <= KINDS
    for block in found:
        if block.kind == "toml":
            tomllib.loads(block.text)
    assert [note for note in notes if not NOT_RUN.fullmatch(note)] == []
    assert all(block.kind == "python" for block in found if block.note)
    assert hidden == []
    assert not re.search(r"^\s*(```|~~~)", prose(path), re.MULTILINE)


@each_file(*(path for path in FILES if any(block.note for block in blocks(path))))
def test_code_that_is_not_run_names_what_exists(path: Path) -> None:
    """A block that can't run here is valid Python, and what it imports of memci is there."""
    for block in blocks(path):
        if block.note:
            imports = [each for each in ast.parse(block.text).body if isinstance(each, ast.Import | ast.ImportFrom)]

            with optional_missing():
                exec(ast.unparse(ast.Module(imports, [])), {})


@contextlib.contextmanager
def optional_missing() -> Iterator[None]:
    """Let imports fail that need what an extra installs."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise


@each_file(*FILES)
def test_links_lead_to_files_and_headings(path: Path) -> None:
    """A relative link names a file of the project, and a heading in it if it names one."""
    broken = []
    for target in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)

    assert broken == []


@each_file(*FILES)
def test_named_tests_are_where_the_link_leads(path: Path) -> None:
    """A link whose text is the name of a test leads to the file that has it."""
    missing = []
    for name, target in re.findall(r"\[`(test_\w+)`\]\(([^)\s]+\.py)\)", path.read_text("utf-8")):
        if f"def {name}(" not in (path.parent / target).read_text("utf-8"):
            missing.append(f"{target}: {name}")

    assert missing == []


@each_file(*FILES)
def test_names_exist(path: Path) -> None:
    """What follows `memci.`, `context.`, `Context.` or `report.` is a name of the package."""
    text = path.read_text("utf-8")
    found = re.findall(r"\bmemci(?!\.(?:jsonl?|toml)\b)(?:\.\w+)+", text)
    unknown = [name for name in found if name not in SPANS and not exists(name)]
    context = Context.open(EphemeralStorage(), id="names", window=4_000)
    for name, value in (("context", context), ("Context", Context), ("report", context.report())):
        attributes = re.findall(rf"(?<![\w/]){name}\.(?!py\b|md\b|jsonl\b)([A-Za-z_]\w*)", text)
        unknown += [f"{name}.{each}" for each in attributes if not hasattr(value, each)]

    assert unknown == []


def exists(dotted: str) -> bool:
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if error.name in OPTIONAL:
                return True
            continue
        for part in parts[length:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


@each_file(*FILES)
def test_commands_exist(path: Path) -> None:
    """A command in a console block is a target of the Makefile, a command of memci or a module, with its options."""
    text = "".join(block.text for block in blocks(path) if block.kind == "console")

    assert [line for line in re.findall(r"^\$ (.+)$", text, re.MULTILINE) if not known(line)] == []


def known(line: str) -> bool:
    """Tell whether all commands of a shell's *line* exist; only those of this project are looked at."""
    return all(known_command(shlex.split(part)) for part in line.partition("  #")[0].split("|"))


def known_command(words: list[str]) -> bool:
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    options = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    match words:
        case ["make", *targets]:
            return set(targets) <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
        case ["memci", command, *_]:
            return command in options_of() and options <= options_of()[command]
        case ["python", "-m", module, *_]:
            spec = importlib.util.find_spec(f"{module}.__main__" if find_package(module) else module)
            source = spec.loader.get_source(spec.name) if spec else ""
            return spec is not None and all(f'"{option}"' in source for option in options - {"-m"})
        case ["pip", "install", what, *clients]:
            extra = re.fullmatch(r"memci(?:\[(\w+)\])?", what)
            return extra is not None and extra[1] in {None, *EXTRAS} and {*clients} <= {"openai"}
    return words[0] in {"export", "echo"}


def find_package(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None


EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


@cache
def options_of() -> dict[str, set[str]]:
    """Return the options of each command of memci; not made where these tests are only collected."""
    commands = typer.main.get_command(app).commands
    return {
        name: {
            "-h",
            "--help",
            *(option for each in command.loaded().params for option in each.opts + each.secondary_opts),
        }
        for name, command in commands.items()
    }


def test_what_coding_agents_read_is_as_new_as_the_documents() -> None:
    """`llms.txt` and `llms-full.txt` are what `make docs` writes."""
    spec = importlib.util.spec_from_file_location("llms", ROOT / "tools/llms.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    for name, text in module.written().items():
        assert (ROOT / name).read_text("utf-8") == text, f"{name} is older than the documents: python tools/llms.py"


def test_the_lock_file_names_packages_only() -> None:
    """Every line is a version or a hash: no address, and no folder of the machine that made it."""
    lines = (ROOT / "requirements-dev.lock").read_text("utf-8").splitlines()
    found = [line for line in lines if line and not line.lstrip().startswith("#")]

    assert [
        line for line in found if not re.match(r"[\w.-]+(?:\[[\w,-]+\])?==|    --hash=sha256:[0-9a-f]{64}", line)
    ] == []


def test_the_drawings_of_design_show_what_is_there() -> None:
    """Every folder of the package is drawn, and a call goes through modules that exist."""
    text = (ROOT / "docs/design.md").read_text("utf-8")
    tree = text.partition("## The packages")[2].partition("```text")[2].partition("```")[0]
    ways = text.partition("## The way of an append")[2].partition("## The one plan")[0]
    folders = {each.parent.name for each in (ROOT / "memci").rglob("__init__.py")}
    entered = re.findall(r"\b[a-z]+(?:/[a-z_]+)+\b", ways.replace("../tests/test_costs", ""))

    assert set(re.findall(r"(\w+)/", tree)) == folders
    assert [each for each in entered if not exists(f"memci/{each}".replace("/", "."))] == []


def stubs() -> list[tuple[str, ast.stmt]]:
    """Every signature that the documents give, by dotted name."""
    found: list[tuple[str, ast.stmt]] = []
    for path in FILES:
        for block in blocks(path):
            if block.kind == "pyi":
                for statement in ast.parse(block.text).body:
                    assert isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AnnAssign), ast.unparse(statement)
                    found += members(statement)
    return found


def members(statement: ast.stmt, owner: str = "") -> list[tuple[str, ast.stmt]]:
    match statement:
        case ast.ClassDef(name=name, body=body):
            inner = [each for member in body for each in members(member, f"{owner}{name}.")]
            return [(f"{owner}{name}", statement), *inner]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [(f"{owner}{name}", statement)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [(f"{owner}{name}", statement)]
    return []


def documented(name: str) -> object:
    """The object that a name in `docs/api.md` stands for, wherever it is defined."""
    modules = [memci, protocol, *map(importlib.import_module, MODULES)]
    head, *rest = name.split(".")
    value = next(getattr(module, head) for module in modules if hasattr(module, head))
    for part in rest:
        value = inspect.getattr_static(value, part)
    return value


MODULES = (
    "memci.storage",
    "memci.history.erase",
    "memci.errors",
    "memci.memory.backend",
    "memci.history.listing",
    "memci.history.reader",
    "memci.settings",
    "memci.context.report",
    "memci.context.renderer",
    "memci.model_catalog",
    "memci.segments.cache_policy",
    "memci.formats.usage",
    "memci.chapters.chapter",
    "memci.tools.attp",
    "memci.tokens",
    "memci.text.summarize",
    "memci.llm",
    "memci.memory",
    "memci.companion",
)


def signature(statement: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = ast.unparse(statement.returns) if statement.returns else "None"
    return f"({ast.unparse(statement.args)}) -> {returns}".replace("builtins.", "")


@pytest.mark.parametrize(
    ("name", "statement"),
    [pytest.param(name, each, id=name) for name, each in stubs() if "." in name or name.islower()],
)
def test_signatures_are_those_of_the_package(name: str, statement: ast.stmt) -> None:
    """A signature in the documents is that of the source, defaults and annotations included."""
    if isinstance(statement, ast.AnnAssign):
        owner, _, field = name.rpartition(".")
        source = ast.parse(inspect.getsource(documented(owner))).body[0]
        assert ast.unparse(statement.annotation) in {
            ast.unparse(each.annotation)
            for each in source.body
            if each.__class__ is ast.AnnAssign and each.target.id == field
        }
        return
    found = documented(name)
    function = getattr(found, "fget", None) or getattr(found, "__func__", found)
    source = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]

    assert signature(statement) == signature(source)
    assert [ast.unparse(each) for each in statement.decorator_list] == [
        ast.unparse(each) for each in source.decorator_list
    ]


def test_api_leaves_nothing_out() -> None:
    """Every exported name, every public member of Context and every error stands in docs/api.md."""
    text = (ROOT / "docs/api.md").read_text("utf-8")
    errors = [
        name for name, each in vars(memci.errors).items() if isinstance(each, type) and issubclass(each, Exception)
    ]
    public = [*memci._LATER, *errors]
    given = {name for name, _ in stubs()}
    members = {f"Context.{name}" for name in vars(Context) if not name.startswith("_")}

    assert [name for name in public if not re.search(rf"\b{name}\b", text)] == []
    assert members - given == set()


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_translation_has_the_same_code(english: Path, chinese: Path) -> None:
    """The Chinese page has the code and the links of the English one; prose, comments and drawings may differ."""
    assert [essence(block) for block in blocks(chinese)] == [essence(block) for block in blocks(english)]
    assert links(chinese) == links(english)


def essence(block: Block) -> str:
    """What a translation keeps: code without its comments, output, commands; of a drawing only that it is there."""
    if block.kind == "python":
        return ast.dump(ast.parse(block.text))
    if block.kind == "console":
        return re.sub(r"\s*#.*", "", block.text)
    return block.kind


def links(path: Path) -> list[str]:
    names = {file.name for file in PAIR}
    targets = (target.partition("#")[0] for target in LINK.findall(prose(path)) if target not in names)
    return [target and (path.parent / target).resolve().name.replace(".zh-CN", "") for target in targets]


def test_changelog_begins_with_this_version() -> None:
    """The newest section of the changelog is that of the version of the package."""
    versions = [title for level, title in headings(ROOT / "CHANGELOG.md") if level == 2]

    assert memci.__version__ in versions[0]
