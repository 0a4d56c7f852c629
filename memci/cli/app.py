"""The program: it loads the command that was typed, runs it, prints its result, and ends.

    0   all is well
    1   the command ran, and reports a problem: docs/cli.md lists them
    2   a file or an argument makes no sense: one line on stderr says which and why

A command is a function. Its parameters are the options, its docstring is the help. It returns a `Result`, or an
iterator of them if it runs for long; such a command has the option --json. A parameter `printer` gets the printer. If
options do not fit together, or a file or store can't be used, it raises a `MemciError`: the command ends with one line
and 2, or with 1 for `BudgetExceeded`.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from ..errors import BudgetExceeded, CorruptRecord, InvalidSetting, MemciError
from .commands import COMMANDS, GROUPS, load
from .configuration import Setting, settings


class NamedCommand(TyperCommand):
    """A command known by its name and first sentence. Its module is loaded when it is run, or asked for help."""

    def make_context(self, *words: Any, **more: Any) -> Any:
        """Return the context of the command itself for *words*, with the settings of environment and file."""
        given: dict[str, Setting] = {}
        try:
            given = self.settings()
            values = {name: each.value for name, each in given.items()}
            context = self.loaded().make_context(*words, default_map=values, allow_extra_args=True, **more)
            if not context.args:
                return context
            options = {option for each in context.command.params for option in each.opts}
            named = " or ".join(option for option in ("--context", "--owner") if option in options)
            hint = f": name it behind {named}" if named else ""
            context.fail(f"{context.args[0]!r:.60} is one argument too many{hint}")
        except InvalidSetting as error:
            raise typer.BadParameter(str(error)) from None
        except typer.BadParameter as error:
            name, context = getattr(error.param, "name", None), error.ctx
            source = context.get_parameter_source(name) if context is not None and name in given else None
            if source is None or source.name != "DEFAULT_MAP":
                raise
            raise typer.BadParameter(f"{given[str(name)].place}: {error.message}") from None

    def settings(self) -> dict[str, Setting]:
        """Return those of its options that the environment or the file sets, by their names."""
        options = [each.name for each in self.loaded().params if each.opts[0].startswith("-")]
        return settings(str(self.name), options)

    def loaded(self) -> Any:
        """Return the command itself, with its options."""
        return _load(str(self.name))


@cache
def _load(name: str) -> Any:
    program = typer.Typer(add_completion=False, **_SETTINGS)  # no other command is made ready when one is run
    program.command(name)(_run_and_print(load(name)))
    return typer.main.get_command(program)


def _run_and_print(command: Callable[..., Any]) -> Callable[..., None]:
    """Return a function for typer: it runs *command*, prints the result, and sets the exit code."""
    from .printer import Result, standard_output, visible

    signature = inspect.signature(command)
    parameters, returns = dict(signature.parameters), signature.return_annotation
    has_printer = parameters.pop("printer", None) is not None
    single = returns is Result

    @wraps(command)
    def run(*, json: bool = False, **given: object) -> None:
        printer = standard_output(json=json)
        well = True
        try:
            returned = command(**given, printer=printer) if has_printer else command(**given)
            for result in [returned] if single else returned or ():
                printer.print(result, indent=2 if single else None)
                well = well and result.well
        except MemciError as error:
            text = visible(" ".join(str(error).split()))
            if isinstance(error, CorruptRecord) and not any(word in text for word in _WAYS_OUT):
                text += ": memci salvage STORE NEW saves what can be read"
            typer.echo(f"memci: {text}", err=True)
            raise typer.Exit(1 if isinstance(error, BudgetExceeded) else 2) from None
        if not well:
            raise typer.Exit(1)

    if single or returns == Iterator[Result]:
        printed = "one JSON object" if single else "a line of JSON for each result"
        option = Annotated[bool, Option("--json", help=f"Print {printed}, and nothing else.")]
        parameters["json"] = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]  # typer reads it
    return run


class Program(TyperGroup):
    """All commands by their names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: NamedCommand(name, help=line) for name, (_, line) in COMMANDS.items()}

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return the command *name*. A word of other programs is refused with the command that does the same."""
        if name not in self.commands and (meant := _ELSEWHERE.get(name)) is not None:
            ctx.fail(f"No such command {name!r}. Did you mean {meant!r}? {COMMANDS[meant][1]}")
        return self.commands.get(name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- as it is called
        """Write the commands in their groups, one line each."""
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in group.items()])


_WAYS_OUT = ("--accept", "from a backup", "memci salvage")  # an error that says one is not told another
_ELSEWHERE = {
    word: command
    for command, said in {
        "inspect": "ls list contexts stats status report",
        "show": "cat page print read recall view",
        "erase": "clear del delete forget remove rm",
        "ui": "browse dashboard inspector open web",
        "serve": "gateway proxy server start",
    }.items()
    for word in said.split()
}
"""what other programs call a command"""
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


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memci {version('memci')}")
        raise typer.Exit


@app.callback()
def memci(
    *,
    _version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """A context window that never overflows and never loses a message."""
