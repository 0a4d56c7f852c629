"""The commands, and how they end.

    0   all is well
    1   it does not fit the window (demo, replay), a store is damaged (verify) or not well here (doctor), nothing was
        erased, or not from the store's files yet (erase), a memory could not take in a context (consolidate), a message
        from a pipe was not answered (chat)
    2   a file or an argument makes no sense: one line on stderr says which and why

This module knows nothing of what the commands do.
"""

import sys
from collections.abc import Callable
from functools import wraps
from io import TextIOWrapper
from typing import Annotated, NoReturn, ParamSpec, cast, get_args

import typer
from rich.console import Console

from .. import __version__
from ..errors import BudgetExceeded, InvalidSetting, MemciError
from ..settings import Preset
from .demo.command import TURNS, run_demo
from .doctor import run_doctor
from .erase import EraseOptions, run_erase
from .inspect import check_memory_options, inspect_store, verify_store
from .output import PLAIN, Output, visible
from .replay.command import ReplayOptions, run_replay
from .transfer import run_export, run_import

_P = ParamSpec("_P")

app = typer.Typer(
    name="memci",
    help="A context window that never overflows and never loses a message.",
    epilog="Start with: memci demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Window = Annotated[int, typer.Option("--window", "-w", metavar="TOKENS", help="The model's context length.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
NoLive = Annotated[bool, typer.Option("--no-live", help="Draw no live picture; print plain lines.")]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="A server that speaks OpenAI's API; default: OPENAI_BASE_URL.")
]
Store = Annotated[str, typer.Argument(help="A store: a SQLite file, or a folder of plain files.")]
NewStore = Annotated[str, typer.Argument(help="A store; one is made if there is none (NAME/ makes a folder).")]


def command(name: str | None = None) -> Callable[[Callable[_P, bool | None]], Callable[_P, bool | None]]:
    """Make a command of a function: one that returns False ends with 1, and an error with one line and its code."""

    def register(function: Callable[_P, bool | None]) -> Callable[_P, bool | None]:
        @app.command(name)
        @wraps(function)
        def run(*arguments: _P.args, **options: _P.kwargs) -> bool | None:
            try:
                well = function(*arguments, **options)
            except BudgetExceeded as error:
                _end(error, 1)
            except MemciError as error:
                _end(error, 2)
            if well is False:
                raise typer.Exit(1)
            return well

        return run

    return register


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memci {__version__}")
        raise typer.Exit


@app.callback()
def memci(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A context window that never overflows and never loses a message."""


@command()
def demo(
    *,
    window: Window = 8_000,
    no_live: NoLive = False,
    turns: Annotated[int, typer.Option("--turns", min=20, max=TURNS, hidden=True)] = TURNS,
) -> bool:
    """Watch a window at work: a conversation of 200 turns in 8,000 tokens, and a page of it recalled word for word."""
    return run_demo(_output(live=not no_live), window=window, turns=turns)


@command()
def chat(
    store: NewStore,
    *,
    id: Annotated[  # noqa: A002
        str | None, typer.Option("--id", "-c", metavar="ID", help="Which context; one is made if there is none.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model; default: MEMCI_MODEL.")] = None,
    base_url: BaseUrl = None,
    window: Annotated[
        int | None, typer.Option("--window", "-w", metavar="TOKENS", help="The model's context length; default: 32000.")
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The system prompt, which is stored with the context.")
    ] = None,
    role: Annotated[str, typer.Option(metavar="TEXT", help="The role of the model in this conversation.")] = "",
    no_analysis: Annotated[
        bool, typer.Option("--no-analysis", help="Search for every message as it is: one call less.")
    ] = False,
    no_search: Annotated[bool, typer.Option("--no-search", help="Do not search the memory before an answer.")] = False,
    no_memory_model: Annotated[
        bool, typer.Option("--no-memory-model", help="Let the model do nothing for the memory in the background.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each message.")] = False,
) -> bool:
    """Talk with a model that has a memory. From a pipe, each line is a message."""
    from .chat.command import ChatOptions, run_chat

    options = ChatOptions(
        id=id,
        model=model,
        base_url=base_url,
        window=window,
        system=system,
        role=role,
        analysis=not no_analysis,
        search=not no_search,
        memory_model=not no_memory_model,
    )
    return run_chat(_output(json=json, live=True), store, options)


@command()
def replay(
    file: Annotated[str, typer.Argument(help="A conversation in JSON or JSON lines; - is standard input.")],
    *,
    window: Window = 8_000,
    reply: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="Kept free for the answer; default min(4096, window / 8).")
    ] = None,
    preset: Annotated[str | None, typer.Option(metavar="NAME", help="balanced, economy, verbatim or original.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Counts tokens as this model does.")] = None,
    dialogue: Annotated[
        int | None, typer.Option(metavar="N", help="Only conversation N of the file, from 1; default: all, joined.")
    ] = None,
    at: Annotated[
        int | None, typer.Option(metavar="TURN", help="Stop after this turn and print what the model would see.")
    ] = None,
    pages: Annotated[bool, typer.Option("--pages", help="List all pages at the end.")] = False,
    store: Annotated[
        str | None, typer.Option(metavar="PATH", help="Keep the store here; default: a temporary file.")
    ] = None,
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
    if preset is not None and preset not in get_args(Preset):
        raise InvalidSetting("--preset", f"{preset!r} is none of {', '.join(get_args(Preset))}")
    chosen = cast("Preset | None", preset)
    options = ReplayOptions(window, reply, chosen, model, dialogue=dialogue, at=at, pages=pages, store=store)
    run_replay(_output(json=json, live=not no_live), file, options)


@command()
def inspect(
    store: Store,
    *,
    context: Annotated[
        str | None, typer.Option("--context", "-c", metavar="ID", help="Show this context: report, contents.")
    ] = None,
    pages: Annotated[bool, typer.Option("--pages", help="With --context: list all its pages.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Show what the memory holds, tier by tier.")] = False,
    owner: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --memory: whose; default: the only one, or a list.")
    ] = None,
    concept: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --memory: the graph around this concept.")
    ] = None,
    json: Json = False,
) -> None:
    """List the contexts in a store, or show one of them, or its memory. Changes nothing."""
    check_memory_options(memory=memory, pages=pages, owner=owner, concept=concept)
    if memory:
        from .memory.inspect import inspect_memory

        inspect_memory(_output(json=json), store, context=context, owner=owner, concept_name=concept)
    else:
        inspect_store(_output(json=json), store, context, pages=pages)


@command()
def search(
    store: Store,
    query: Annotated[str, typer.Argument(help="What to look for, in the words that were probably used.")],
    *,
    context: Annotated[
        str | None,
        typer.Option("--context", "-c", metavar="ID", help="As this context: without what is in its window."),
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="NAME", help="In all contexts of this owner; default: the only one.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, metavar="N", help="How many pages at most.")] = 5,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only pages from then on: 2026-03-01, or ISO 8601.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help="Only pages until then; a date is its end.")] = None,
    count: Annotated[bool, typer.Option("--count", help="Count it as use: the heat of what is found rises.")] = False,
    json: Json = False,
) -> None:
    """Search the memory: pages, facts, concepts. Changes nothing, unless --count."""
    from .memory.search import SearchOptions, run_search

    options = SearchOptions(query, context=context, owner=owner, k=k, since=since, until=until, count=count)
    run_search(_output(json=json), store, options)


@command()
def consolidate(
    store: Store,
    *,
    context: Annotated[
        str | None, typer.Option("--context", "-c", metavar="ID", help="Only this context; default: all.")
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Only the contexts of this owner.")] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Delete what was derived, and derive it again from the pages.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="A model that improves what is derived; default: none.")
    ] = None,
    base_url: BaseUrl = None,
    ceiling: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="What the model may cost for an owner in a UTC day.")
    ] = None,
    json: Json = False,
) -> bool:
    """Feed memories the pages that wait for them, and let them do what is due. For cron; changes no context."""
    from .memory.consolidate import ConsolidateOptions, run_consolidate

    options = ConsolidateOptions(context, owner, rebuild=rebuild, model=model, base_url=base_url, ceiling=ceiling)
    return run_consolidate(_output(json=json, live=True), store, options)


@command()
def verify(store: Store, *, json: Json = False) -> bool:
    """Read everything in a store and say what is wrong with it. Changes nothing."""
    return verify_store(_output(json=json, live=True), store)


@command()
def doctor(
    store: Annotated[str | None, typer.Argument(help="A store to look at, too: a file or a folder.")] = None,
    *,
    json: Json = False,
) -> bool:
    """Look at what memci runs on, and at how a store is kept here. Changes nothing."""
    return run_doctor(_output(json=json), store)


@command()
def export(
    store: Store,
    *,
    context: Annotated[
        str | None, typer.Option("--context", "-c", metavar="ID", help="This context; default: the only one.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All contexts, one after another.")] = False,
    chat: Annotated[bool, typer.Option("--chat", help="Only the messages, a line each, for other programs.")] = False,
    target: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="A new file; default: standard output.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a context as lines of JSON: all that is stored of it, for memci import. Changes nothing."""
    run_export(_output(json=json), store, context, everything=everything, chat=chat, target=target)


@command("import")
def import_(
    store: NewStore,
    file: Annotated[str, typer.Argument(help="What memci export wrote, or a chat in JSON; - is standard input.")],
    *,
    id: Annotated[str | None, typer.Option("--id", metavar="NEW", help="The context's name here.")] = None,  # noqa: A002
    window: Annotated[
        int | None, typer.Option("--window", "-w", metavar="TOKENS", help="For a chat: the model's context length.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="For a chat: counts tokens as this one.")] = None,
    json: Json = False,
) -> None:
    """Read a context back, whole or not at all: what memci export wrote, or a chat of another program."""
    run_import(_output(json=json), store, file, id=id, window=window, model=model)


@command()
def erase(
    store: Store,
    *,
    context: Annotated[str | None, typer.Option("--context", "-c", metavar="ID", help="This context.")] = None,
    page: Annotated[int | None, typer.Option(metavar="N", help="Only this page of it.")] = None,
    entry: Annotated[int | None, typer.Option(metavar="M", help="Only this message of the page, from 1.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="All contexts of this owner.")] = None,
    scrub: Annotated[bool, typer.Option("--scrub", help="Only finish an erasure that was left pending.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> bool:
    """Erase for good: the bytes are removed from the store's files, and from every fork that shares them."""
    options = EraseOptions(context, page, entry, owner, scrub=scrub, yes=yes)
    return run_erase(_output(json=json), store, options)


def _output(*, json: bool = False, live: bool = False) -> Output:
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=PLAIN)
    console = Console(highlight=False, markup=False)
    return Output(console, json, live and not json and sys.stdout.isatty() and not console.is_dumb_terminal)


def _end(error: MemciError, code: int) -> NoReturn:
    typer.echo(f"memci: {visible(' '.join(str(error).split()))}", err=True)
    raise typer.Exit(code) from None
