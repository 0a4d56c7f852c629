"""The commands, and how they end.

    0   all is well
    1   it does not fit the window (demo, replay), a store is damaged (verify) or not well here (doctor), nothing was
        erased, or not from the store's files yet (erase), a memory could not be told of a context (consolidate), a
        message from a pipe was not answered (chat)
    2   a file or an argument makes no sense: one line on stderr says which and why

This module knows nothing of what the commands do.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn, cast, get_args

import typer
from rich.console import Console

from .. import __version__
from ..errors import BudgetExceeded, InvalidSetting, MemciError
from ..settings import Preset
from .demo.command import demonstrated
from .doctor import examined
from .erase import erased_from
from .inspect import check_memory_options, inspected, verified
from .output import PLAIN, Output, visible
from .replay.command import replayed
from .transfer import exported_file, imported_file

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


@app.command()
def demo(
    *,
    window: Window = 8_000,
    no_live: NoLive = False,
    turns: Annotated[int, typer.Option("--turns", min=20, max=2_000, hidden=True)] = 200,
) -> None:
    """Watch a window at work: a conversation of 200 turns in 8,000 tokens, and a page of it recalled word for word."""
    with _ending():
        well = demonstrated(_output(json=False, live=not no_live), window=window, turns=turns)
    if not well:
        raise typer.Exit(1)


@app.command()
def chat(
    store: Annotated[str, typer.Argument(help="A store; one is made if there is none (NAME/ makes a folder).")],
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
    role: Annotated[str, typer.Option(metavar="TEXT", help="Who the model is to be, in this conversation.")] = "",
    no_analysis: Annotated[
        bool, typer.Option("--no-analysis", help="Search for every message as it is: one call less.")
    ] = False,
    no_search: Annotated[bool, typer.Option("--no-search", help="Do not search the memory before an answer.")] = False,
    no_memory_model: Annotated[
        bool, typer.Option("--no-memory-model", help="Let the model do nothing for the memory in the background.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each message.")] = False,
) -> None:
    """Talk with a model that remembers. From a pipe, each line is a message."""
    from .chat.command import Wishes, chatted

    with _ending():
        wishes = Wishes(
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
        well = chatted(_output(json=json, live=not json), store, wishes)
    if not well:
        raise typer.Exit(1)


@app.command()
def replay(
    file: Annotated[
        Path,
        typer.Argument(help="A conversation in JSON or JSON lines; - is standard input."),
    ],
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
        Path | None, typer.Option(metavar="PATH", help="Keep the store here; default: a temporary file.")
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
    with _ending():
        if preset is not None and preset not in get_args(Preset):
            raise InvalidSetting("--preset", f"{preset!r} is none of {', '.join(get_args(Preset))}")
        replayed(
            _output(json=json, live=not no_live),
            file,
            window=window,
            reply=reply,
            preset=cast("Preset | None", preset),
            model=model,
            dialogue=dialogue,
            at=at,
            pages=pages,
            store=store,
        )


@app.command()
def inspect(
    store: Store,
    *,
    context: Annotated[
        str | None, typer.Option("--context", "-c", metavar="ID", help="Show this context: report, contents.")
    ] = None,
    pages: Annotated[bool, typer.Option("--pages", help="With --context: list all its pages.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Show what is remembered, tier by tier.")] = False,
    owner: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --memory: whose; default: the only one, or a list.")
    ] = None,
    concept: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --memory: the graph around this concept.")
    ] = None,
    json: Json = False,
) -> None:
    """List the contexts in a store, or show one of them, or what is remembered. Changes nothing."""
    with _ending():
        output = _output(json=json, live=False)
        check_memory_options(memory=memory, pages=pages, owner=owner, concept=concept)
        if memory:
            from .memory.inspect import memory_inspected

            memory_inspected(output, store, context=context, owner=owner, concept_name=concept)
        else:
            inspected(output, store, context, pages=pages)


@app.command()
def search(
    store: Store,
    query: Annotated[str, typer.Argument(help="What to look for, in the words that were probably used.")],
    *,
    context: Annotated[
        str | None, typer.Option("--context", "-c", metavar="ID", help="As this context: without what its window has.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="NAME", help="In all contexts of this owner; default: the only one.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, metavar="N", help="How many pages at most.")] = 5,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only pages from then on: 2026-03-01, or ISO 8601.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help="Only pages until then; a date is its end.")] = None,
    count: Annotated[bool, typer.Option("--count", help="Let it count as use: what is found grows warmer.")] = False,
    json: Json = False,
) -> None:
    """Search what is remembered: pages, facts, concepts. Changes nothing, unless --count."""
    from .memory.search import searched

    with _ending():
        searched(
            _output(json=json, live=False),
            store,
            query,
            context=context,
            owner=owner,
            k=k,
            since=since,
            until=until,
            count=count,
        )


@app.command()
def consolidate(
    store: Store,
    *,
    context: Annotated[
        str | None, typer.Option("--context", "-c", metavar="ID", help="Only this context; default: all.")
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Only the contexts of this owner.")] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Forget what was derived, and make it anew from the pages.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="A model that makes better what is derived; default: none.")
    ] = None,
    base_url: BaseUrl = None,
    ceiling: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="What the model may cost for an owner in a UTC day.")
    ] = None,
    json: Json = False,
) -> None:
    """Tell memories what waits for them, and let them do what is due. For cron; changes no context."""
    from .memory.consolidate import Improvement, consolidated

    with _ending():
        for option, value in (("--base-url", base_url), ("--ceiling", ceiling)):
            if model is None and value is not None:
                raise InvalidSetting(option, "is for a model: name it by --model")
        by = None if model is None else Improvement(model, base_url, ceiling)
        well = consolidated(_output(json=json, live=True), store, context=context, owner=owner, rebuild=rebuild, by=by)
    if not well:
        raise typer.Exit(1)


@app.command()
def verify(store: Store, *, json: Json = False) -> None:
    """Read everything in a store and say what is wrong with it. Changes nothing."""
    with _ending():
        well = verified(_output(json=json, live=True), store)
    if not well:
        raise typer.Exit(1)


@app.command()
def doctor(
    store: Annotated[str | None, typer.Argument(help="A store to look at, too: a file or a folder.")] = None,
    *,
    json: Json = False,
) -> None:
    """Look at what memci runs on, and at how a store is kept here. Changes nothing."""
    with _ending():
        well = examined(_output(json=json, live=False), store)
    if not well:
        raise typer.Exit(1)


@app.command()
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
    with _ending():
        exported_file(_output(json=json, live=False), store, context, everything=everything, chat=chat, target=target)


@app.command("import")
def import_(
    store: Annotated[str, typer.Argument(help="A store; one is made if there is none (NAME/ makes a folder).")],
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
    with _ending():
        imported_file(_output(json=json, live=False), store, file, id=id, window=window, model=model)


@app.command()
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
) -> None:
    """Erase for good: the bytes go from the store's files, and from every fork that shares them."""
    with _ending():
        done = erased_from(
            _output(json=json, live=False),
            store,
            context=context,
            page=page,
            entry=entry,
            owner=owner,
            scrub=scrub,
            yes=yes,
        )
    if not done:
        raise typer.Exit(1)


def _output(*, json: bool, live: bool) -> Output:
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=PLAIN)
    console = Console(highlight=False, markup=False)
    return Output(console, json, live and not json and sys.stdout.isatty() and not console.is_dumb_terminal)


@contextmanager
def _ending() -> Iterator[None]:
    try:
        yield
    except BudgetExceeded as error:
        _end(error, 1)
    except MemciError as error:
        _end(error, 2)


def _end(error: MemciError, code: int) -> NoReturn:
    typer.echo(f"memci: {visible(' '.join(str(error).split()))}", err=True)
    raise typer.Exit(code) from None
