"""What was told for good: `memci facts`, what a memory knows, and `memci instructions`, what a context obeys."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

from ..errors import InvalidSetting
from ..storage import Storage
from .memory.overview import read_memory
from .options import CONTEXT, Int, Store, Str
from .printer import Result, many, visible
from .stores import choose_context, choose_owner, open_store
from .tables import day, page_name

if TYPE_CHECKING:
    from ..memory import TieredMemory
    from ..memory.inspect import HeldFact


def run_facts(
    store: Store,
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Of the owner of this context.")] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="Of this owner; default: the only one.")] = None,
    learn: Annotated[Str, Option(metavar="TEXT", help="Store this fact; --page of --context says it.")] = None,
    page: Annotated[Int, Option(metavar="N", help="The page that says it.")] = None,
    about: Annotated[Literal["user", "assistant"], Option(help="Whom it is about.")] = "user",
    correct: Annotated[Int, Option(metavar="ID", help="Replace this fact by what --to says.")] = None,
    to: Annotated[Str, Option(metavar="TEXT", help="The new words.")] = None,
    forget: Annotated[Int, Option(metavar="ID", help="Remove this fact; its page stays.")] = None,
) -> Result:
    """List what a memory knows, or learn, correct or forget a fact."""
    if (learn is None) != (page is None):
        raise InvalidSetting("--learn", "takes a fact, and --page the page that says it: give both")
    if (correct is None) != (to is None):
        raise InvalidSetting("--correct", "takes the id of a fact, and --to its new words: give both")
    with open_store(store, write=any(each is not None for each in (learn, correct, forget))) as storage:
        name = choose_owner(storage, store, context=context, owner=owner)
        if learn is not None and page is not None:
            said = choose_context(storage, store, context, owner=name).id
            with _memory(storage, said, name) as memory:
                memory.learn(learn, context=said, index=page, about=about)
        for id_, text in ((correct, to), (forget, None)):
            if id_ is not None:
                known = next((each for _, each in _facts(storage, name) if each.id == id_), None)
                if known is None:
                    raise InvalidSetting("ID", f"there is no fact {id_}: memci facts lists them")
                with _memory(storage, known.context, name) as memory:
                    memory.forget(id_) if text is None else memory.correct(id_, text)
        left = _facts(storage, name)
    facts = [{"about": whom, **asdict(each)} for whom, each in left]
    return Result({"owner": name, "facts": facts}, [*map(_line, left)] or [f"nothing is known of {name}"])


@contextmanager
def _memory(storage: Storage, context: str, owner: str) -> Iterator["TieredMemory"]:
    """Open *context*, so that what its memory is told is stored with it; the memory is fed before and after."""
    from ..context.context import Context
    from ..memory import TieredMemory

    with Context.open(storage, context, owner=owner) as opened:
        opened.flush()
        assert isinstance(opened.memory, TieredMemory)
        yield opened.memory


def _facts(storage: Storage, owner: str) -> list[tuple[str, "HeldFact"]]:
    """Return what is known of the user and the assistant, the latest first."""
    seen, _ = read_memory(storage, owner)
    return [("user", each) for each in seen.user_facts] + [("assistant", each) for each in seen.assistant_facts]


def _line(known: tuple[str, "HeldFact"]) -> str:
    whom, fact = known
    when = "" if fact.at is None else f", {day(fact.at)}"
    whom = whom if fact.kind == "fact" else f"{whom} ({fact.kind})"
    return f"{fact.id}  {whom}, {page_name(fact.context, fact.index)}{when}: {visible(fact.text)}"


def run_instructions(
    store: Store,
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Of this context; default: the only one.")] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="Of this owner's context.")] = None,
    drop: Annotated[list[str] | None, Option(metavar="ID", help="Drop this one; may be given again.")] = None,
) -> Result:
    """List the lasting instructions of the user, or drop some. A dropped one stands no more; its page stays."""
    from ..context.context import Context

    with open_store(store, write=bool(drop)) as storage:
        record = choose_context(storage, store, context, owner=owner)
        opening = Context.open if drop else Context.view
        with opening(storage, record.id, owner=record.owner) as opened:
            for each in drop or ():
                opened.drop_instruction(each)
            left = opened.instructions()
    facts = {"context": record.id, "dropped": drop or [], "instructions": [each._asdict() for each in left]}
    lines = [f"{each.id}  page #{each.page}{'' if each.shown else ', not archived'}: {each.text}" for each in left]
    dropped = [f"{many(len(drop), 'instruction')} dropped"] if drop else []
    return Result(facts, [*dropped, *lines] or [f"{record.id}: the user gave no lasting instructions"])
