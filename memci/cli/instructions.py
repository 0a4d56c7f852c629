"""`memci instructions`: list the user's lasting instructions in a context, or drop some."""

from typing import Annotated

from typer import Option

from .options import CONTEXT, Store, Str
from .printer import Result, many
from .stores import choose_context, open_store


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
