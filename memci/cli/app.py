"""The program: what all commands share, how one is run, and how it ends.

    0   all is well
    1   a command did what it could, and it is not well: docs/cli.md says when
    2   a file or an argument makes no sense: one line on stderr says which and why

A command is a function: its parameters are the options, its docstring is the help. If it returns False, the command
ends with 1. It raises a `MemciError` if options do not fit together, or a file or store can't be used: the command ends
with one line and 2, or with 1 for `BudgetExceeded`. This module knows nothing of what the commands do.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..errors import BudgetExceeded, CorruptRecord, InvalidSetting, MemciError
from .commands import COMMANDS, GROUPS, load
from .configuration import Setting, settings

if TYPE_CHECKING:
    from ..llm import Chat


class NamedCommand(TyperCommand):
    """A command of which name and first sentence are known; its module is loaded when it is run, or asked for help."""

    def make_context(self, *words: Any, **more: Any) -> Any:
        """Return what the command itself makes of *words*, and of what is set elsewhere.

        Raises:
            typer.BadParameter: If an option makes no sense; one that was not typed is named with its place.
        """
        given: dict[str, Setting] = {}
        try:
            given = self.settings()
            values = {name: each.value for name, each in given.items()}
            return self.loaded().make_context(*words, default_map=values, **more)
        except InvalidSetting as error:
            raise typer.BadParameter(str(error)) from None
        except typer.BadParameter as error:
            name, context = getattr(error.param, "name", None), error.ctx
            source = context.get_parameter_source(name) if context is not None and name in given else None
            if source is None or source.name != "DEFAULT_MAP":
                raise
            raise typer.BadParameter(f"{given[str(name)].place}: {error.message}") from None

    def settings(self) -> dict[str, Setting]:
        """Return what is set of its options without being typed, by their names."""
        options = [each.name for each in self.loaded().params if each.opts[0].startswith("-")]
        return settings(str(self.name), options)

    def loaded(self) -> Any:
        """Return the command itself, with its options."""
        return _loaded(str(self.name))


@cache
def _loaded(name: str) -> Any:
    program = typer.Typer(add_completion=False, **_SETTINGS)  # no other command is made ready when one is run
    program.command(name)(_ending(load(name)))
    return typer.main.get_command(program)


def _ending(command: Callable[..., bool | None]) -> Callable[..., None]:
    """Return *command*, which ends as the module says."""

    @wraps(command)
    def run(**given: object) -> None:
        try:
            well = command(**given)
        except MemciError as error:
            from .output import visible

            text = visible(" ".join(str(error).split()))
            if isinstance(error, CorruptRecord) and "--accept" not in text:
                text += ": memci salvage STORE NEW saves what can be read"
            typer.echo(f"memci: {text}", err=True)
            raise typer.Exit(1 if isinstance(error, BudgetExceeded) else 2) from None
        if well is False:
            raise typer.Exit(1)

    return run


class Program(TyperGroup):
    """All commands by their names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: NamedCommand(name, help=line) for name, (_, line) in COMMANDS.items()}

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- as it is called
        """Write the commands in their groups, one line each."""
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in group.items()])


_SETTINGS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # plain text: boxes cost a fifth of the start
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

app = typer.Typer(
    name="memci",
    cls=Program,
    help="A context window that never overflows and never loses a message.",
    epilog="Start with: memci demo",
    no_args_is_help=True,
    **_SETTINGS,
)

Str = str | None
Int = int | None
CONTEXT = ("--context", "-c")


def size(text: object) -> int:
    """Return the number of tokens that *text* is: 32000, 32_000, 32k or 1m."""
    digits = str(text).lower()
    unit = {"k": 1_000, "m": 1_000_000}.get(digits[-1:], 1)
    try:
        return round(float(digits[:-1]) * unit) if unit > 1 else int(digits)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r:.60} is no number of tokens: 32000, 32k or 1m") from None


def tokens(*names: str, help: str) -> Any:  # noqa: A002 -- typer's name
    """Return an option that takes a number of tokens."""
    return Option(*names, metavar="TOKENS", parser=size, help=help)


WINDOW = ("--window", "-w")
Store = Annotated[str, Argument(metavar="STORE", help="A SQLite file, a folder with one, or a postgresql:// URL.")]
NewStore = Annotated[str, Argument(metavar="STORE", help="One is made if there is none (NAME/ makes a folder).")]
Window = Annotated[int, tokens(*WINDOW, help="The model's context length.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object, and nothing else.")]
NoLive = Annotated[bool, Option("--no-live", help="Draw no live picture; print plain lines.")]
BaseUrl = Annotated[Str, Option(metavar="URL", help="A server that speaks OpenAI's API; default: OPENAI_BASE_URL.")]

TIMEOUT_SECONDS = 120.0
"""how long a model may take until its first word, before it is known to be slower"""
_NO_MODEL = (
    "no model is configured: name it by --model or MEMCI_MODEL, and say where it is by OPENAI_API_KEY (OpenAI's own), "
    "or by --base-url or OPENAI_BASE_URL (any server that speaks its API, as http://localhost:11434/v1)"
)


def named_model(model: str | None, base_url: str | None) -> "Chat":
    """Return the model that options or the environment name; close it, or use it with `with`."""
    from ..llm import Chat

    try:
        return Chat(model, base_url=base_url, timeout=TIMEOUT_SECONDS)
    except InvalidSetting as error:
        if error.name in {"model", "api_key"}:
            raise InvalidSetting("--model", _NO_MODEL) from None
        raise


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memci {__version__}")
        raise typer.Exit


@app.callback()
def memci(
    *,
    _version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """A context window that never overflows and never loses a message."""
