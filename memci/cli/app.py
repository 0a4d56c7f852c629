"""The commands: the options of each, how it is run, and how it ends.

    0   all is well
    1   it does not fit the window (demo, replay), a store is damaged (verify) or not well here (doctor), nothing was
        erased, or not from the store's files yet (erase), a memory could not take in a context (consolidate), a message
        from a pipe was not answered (chat)
    2   a file or an argument makes no sense: one line on stderr says which and why

A function here is a command's options and its help; what it does stands in the function that the decorator names, which
is loaded when the command runs. This module knows nothing of what the commands do.
"""

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated

import typer
from rich.console import Console
from typer import Argument, Option

from .. import __version__
from ..errors import BudgetExceeded, MemciError
from .output import PLAIN, Output, visible

TURNS = 200
"""turns of the conversation of the demo"""

app = typer.Typer(
    name="memci",
    help="A context window that never overflows and never loses a message.",
    epilog="Start with: memci demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Text = str | None
Number = int | None
_CONTEXT = ("--context", "-c")
_WINDOW = ("--window", "-w")

Store = Annotated[str, Argument(help="A store: a SQLite file, or a folder of plain files.")]
NewStore = Annotated[str, Argument(help="A store; one is made if there is none (NAME/ makes a folder).")]
Window = Annotated[int, Option(*_WINDOW, metavar="TOKENS", help="The model's context length.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object, and nothing else.")]
NoLive = Annotated[bool, Option("--no-live", help="Draw no live picture; print plain lines.")]
BaseUrl = Annotated[Text, Option(metavar="URL", help="A server that speaks OpenAI's API; default: OPENAI_BASE_URL.")]


def command(place: str, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that has its options: `module:function` at *place* runs it.

    That one is called with an `Output` and all options but --json and --no-live. If it returns False, the command ends
    with 1. It raises a `MemciError` if options do not fit together, or a file or store can't be used: the command ends
    with one line and 2, or with 1 for `BudgetExceeded`.
    """

    def register(options: Callable[..., None]) -> Callable[..., None]:
        @app.command(name)
        @wraps(options)
        def run(*, json: bool = False, no_live: bool = False, **given: object) -> None:
            module, _, function = place.partition(":")
            try:
                well = getattr(import_module(f".{module}", __package__), function)(_output(json, no_live), **given)
            except MemciError as error:
                typer.echo(f"memci: {visible(' '.join(str(error).split()))}", err=True)
                raise typer.Exit(1 if isinstance(error, BudgetExceeded) else 2) from None
            if well is False:
                raise typer.Exit(1)

        return run

    return register


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


@command("demo.command:run_demo")
def demo(
    *,
    window: Window = 8_000,
    no_live: NoLive = False,
    turns: Annotated[int, Option("--turns", min=20, max=TURNS, hidden=True)] = TURNS,
) -> None:
    """Watch a window at work: a conversation of 200 turns in 8,000 tokens, and a page of it recalled word for word."""


@command("chat.command:run_chat")
def chat(
    store: NewStore,
    *,
    id: Annotated[Text, Option("--id", "-c", metavar="ID", help="Which context; one is made if there is none.")] = None,  # noqa: A002
    model: Annotated[Text, Option(metavar="NAME", help="The model; default: MEMCI_MODEL.")] = None,
    base_url: BaseUrl = None,
    window: Annotated[Number, Option(*_WINDOW, metavar="TOKENS", help="The context length; default: 32000.")] = None,
    system: Annotated[Text, Option(metavar="TEXT", help="The system prompt, which is stored with the context.")] = None,
    role: Annotated[str, Option(metavar="TEXT", help="The role of the model in this conversation.")] = "",
    no_analysis: Annotated[bool, Option("--no-analysis", help="Search for messages as they are: a call less.")] = False,
    no_search: Annotated[bool, Option("--no-search", help="Do not search the memory before an answer.")] = False,
    no_memory_model: Annotated[
        bool, Option("--no-memory-model", help="Let the model do nothing for the memory in the background.")
    ] = False,
    json: Annotated[bool, Option("--json", help="Print a line of JSON for each message.")] = False,
) -> None:
    """Talk with a model that has a memory. From a pipe, each line is a message."""


@command("replay.command:run_replay")
def replay(
    file: Annotated[str, Argument(help="A conversation in JSON or JSON lines; - is standard input.")],
    *,
    window: Window = 8_000,
    reply: Annotated[Number, Option(metavar="TOKENS", help="For the answer; default min(4096, window / 8).")] = None,
    preset: Annotated[Text, Option(metavar="NAME", help="balanced, economy, verbatim or original.")] = None,
    model: Annotated[Text, Option(metavar="NAME", help="Counts tokens as this model does.")] = None,
    dialogue: Annotated[Number, Option(metavar="N", help="Only this conversation of the file, from 1.")] = None,
    at: Annotated[Number, Option(metavar="TURN", help="Stop after this turn; print what the model would see.")] = None,
    pages: Annotated[bool, Option("--pages", help="List all pages at the end.")] = False,
    store: Annotated[Text, Option(metavar="PATH", help="Keep the store here; default: a temporary file.")] = None,
    json: Json = False,
    no_live: NoLive = False,
) -> None:
    """Replay a recorded conversation through a context, and see what its window does.

    It reads JSON and JSON lines, and finds out which of these a file holds:

    - chat messages: {"messages": […]} or […], or one of them per line
    - trajectories of agents: [{"traj": […]}, …], joined end to end
    - traces of coding agents (.traj): {"history": […]}
    - dialogues of two speakers, in sessions
    - what a user says, turn by turn: {"question": [[…], …]}
    """


@command("inspect:run_inspect")
def inspect(
    store: Store,
    *,
    context: Annotated[Text, Option(*_CONTEXT, metavar="ID", help="Show this context: report, contents.")] = None,
    pages: Annotated[bool, Option("--pages", help="With --context: list all its pages.")] = False,
    memory: Annotated[bool, Option("--memory", help="Show what the memory holds, tier by tier.")] = False,
    owner: Annotated[Text, Option(metavar="NAME", help="With --memory: whose; default: the only one, or all.")] = None,
    concept: Annotated[Text, Option(metavar="NAME", help="With --memory: the graph around this concept.")] = None,
    json: Json = False,
) -> None:
    """List the contexts in a store, or show one of them, or its memory. Changes nothing."""


@command("memory.search:run_search")
def search(
    store: Store,
    query: Annotated[str, Argument(help="What to look for, in the words that were probably used.")],
    *,
    context: Annotated[Text, Option(*_CONTEXT, metavar="ID", help="As this one: without what its window has.")] = None,
    owner: Annotated[Text, Option(metavar="NAME", help="In all contexts of this owner; default: the only one.")] = None,
    k: Annotated[int, Option("-k", min=1, metavar="N", help="How many pages at most.")] = 5,
    since: Annotated[Text, Option(metavar="DATE", help="Only pages from then on: 2026-03-01, or ISO 8601.")] = None,
    until: Annotated[Text, Option(metavar="DATE", help="Only pages until then; a date is its end.")] = None,
    count: Annotated[bool, Option("--count", help="Count it as use: the heat of what is found rises.")] = False,
    json: Json = False,
) -> None:
    """Search the memory: pages, facts, concepts. Changes nothing, unless --count."""


@command("memory.consolidate:run_consolidate")
def consolidate(
    store: Store,
    *,
    context: Annotated[Text, Option(*_CONTEXT, metavar="ID", help="Only this context; default: all.")] = None,
    owner: Annotated[Text, Option(metavar="NAME", help="Only the contexts of this owner.")] = None,
    rebuild: Annotated[bool, Option("--rebuild", help="Delete what was derived; derive it from the pages.")] = False,
    model: Annotated[Text, Option(metavar="NAME", help="A model that improves what is derived; default: none.")] = None,
    base_url: BaseUrl = None,
    ceiling: Annotated[Number, Option(metavar="TOKENS", help="What the model may cost an owner in a UTC day.")] = None,
    json: Json = False,
) -> None:
    """Feed memories the pages that wait for them, and let them do what is due. For cron; changes no context."""


@command("inspect:run_verify")
def verify(store: Store, *, json: Json = False) -> None:
    """Read everything in a store and say what is wrong with it. Changes nothing."""


@command("doctor:run_doctor")
def doctor(
    store: Annotated[Text, Argument(help="A store to look at, too: a file or a folder.")] = None, *, json: Json = False
) -> None:
    """Look at what memci runs on, and at how a store is kept here. Changes nothing."""


@command("transfer:run_export")
def export(
    store: Store,
    *,
    context: Annotated[Text, Option(*_CONTEXT, metavar="ID", help="This context; default: the only one.")] = None,
    everything: Annotated[bool, Option("--all", help="All contexts, one after another.")] = False,
    chat: Annotated[bool, Option("--chat", help="Only the messages, a line each, for other programs.")] = False,
    target: Annotated[Text, Option("-o", "--output", metavar="FILE", help="A new file; default: the screen.")] = None,
    json: Json = False,
) -> None:
    """Write a context as lines of JSON: all that is stored of it, for memci import. Changes nothing."""


@command("transfer:run_import", "import")
def import_(
    store: NewStore,
    file: Annotated[str, Argument(help="What memci export wrote, or a chat in JSON; - is standard input.")],
    *,
    id: Annotated[Text, Option("--id", metavar="NEW", help="The context's name here.")] = None,  # noqa: A002
    window: Annotated[Number, Option(*_WINDOW, metavar="TOKENS", help="For a chat: the context length.")] = None,
    model: Annotated[Text, Option(metavar="NAME", help="For a chat: counts tokens as this one.")] = None,
    json: Json = False,
) -> None:
    """Read a context back, whole or not at all: what memci export wrote, or a chat of another program."""


@command("erase:run_erase")
def erase(
    store: Store,
    *,
    context: Annotated[Text, Option(*_CONTEXT, metavar="ID", help="This context.")] = None,
    page: Annotated[Number, Option(metavar="N", help="Only this page of it.")] = None,
    entry: Annotated[Number, Option(metavar="M", help="Only this message of the page, from 1.")] = None,
    owner: Annotated[Text, Option(metavar="NAME", help="All contexts of this owner.")] = None,
    scrub: Annotated[bool, Option("--scrub", help="Only finish an erasure that was left pending.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Erase for good: the bytes are removed from the store's files, and from every fork that shares them."""


def _output(json: bool, no_live: bool) -> Output:
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=PLAIN)
    console = Console(highlight=False, markup=False)
    still = json or no_live or console.is_dumb_terminal
    return Output(console, json, live=not still and sys.stdout.isatty())
