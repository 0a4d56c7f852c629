"""What must be true of a store after a fault: that of the same scenario without one, at one of its moments.

    acked      open ✓  append ✓  archive ✓  append …            the process died in this append
    legal                        ▲ ─────────▲                   the state after the archive, or one after a commit of
                                                                the append: no earlier one, no later one, no other

After that the store must go on: what was under way is repeated by its op_id and there once, no page number comes
again, a rendering keeps to its budget. This module knows nothing of how faults are made.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from memci.errors import MemciError
from memci.history.verify import problems
from memci.storage.protocol import Storage

from .model import Found, Model, State, digest, fingerprint, heard, told
from .scenario import Make, Step, assistant, opened, user


def seen(store: Storage, model: Model) -> Found:
    """Return what is in *store*, and what is wrong with it by itself. Some milliseconds.

    A context with the same rows as in a state of the model has no problems: those of the model have none.
    """
    found = fingerprint(store)
    wrong = []
    for name, revision in found.key:
        if found.rows[name] not in model.rows.get((name, revision), ()):
            wrong += [f"{name}: {sentence}" for sentence in problems(store, name)]
            wrong.append(f"{name}, revision {revision}, is not what it was, row by row")
    return found._replace(wrong=tuple(wrong))


def illegal(found: Found, model: Model, low: int, high: int) -> list[str]:
    """Return what is wrong with what was *found*, if the states *low* to *high* of the model are legal."""
    if found.wrong:
        return list(found.wrong)
    at = model.place(found.key)
    if at is None:
        return [f"no state of the scenario is {found.key}"]
    if model.states[at].rows != found.rows:
        return [f"state {at} is not what it was, row by row"]
    if at < low:
        return [f"acknowledged changes are lost: state {at}, acknowledged up to {low}"]
    return [f"state {at} is there, the last change that was begun leaves {high}"] if at > high else []


def examine(make: Make, folder: Path, model: Model, low: int, high: int, step: Step | None) -> Iterator[str]:
    """Open the store in *folder* and yield a sentence for each promise that it breaks.

    The store changes: the *step* that was under way is repeated, and the contexts go on.
    """
    try:
        with closing(make(folder)) as store:
            found = seen(store, model)
            wrong = illegal(found, model, low, high)
            yield from wrong
            if wrong:
                return
            at = model.place(found.key)
            if at is not None:
                yield from listened(store, model.states[at])
                if step is not None and step.op_id is not None:
                    yield from repeated(store, step, model.states[at], model.states[high])
            for record in store.contexts():
                shown = [index for name, index in model.states[low].recalled if name == record.id]
                yield from goes_on(store, record.id, max(shown, default=0))
        with closing(make(folder)) as store:
            yield from (f"{each.id}, later: {text}" for each in store.contexts() for text in problems(store, each.id))
    except MemciError as error:
        yield f"the store can't be used: {type(error).__name__}: {error}"


def listened(store: Storage, expected: State) -> Iterator[str]:
    """Yield what is wrong with the messages and the pages of *store*, as a program is given them."""
    for name, _ in expected.key:
        said, recalled = heard(store, name)
        if said != expected.said[name]:
            yield f"{name}: messages() is not what was said"
        for index, text in recalled.items():
            if text != expected.recalled[name, index]:
                yield f"{name}: recall_page({index}) is not what was said"


def listen(make: Make, folder: Path, legal: Sequence[dict[str, str]]) -> Iterator[str]:
    """Open the store in *folder* and yield what is wrong, if the messages of one of the states *legal* are right."""
    try:
        with closing(make(folder)) as store:
            if told(store) not in legal:
                yield "messages() is not what was said"
            yield from (f"{each.id}: {sentence}" for each in store.contexts() for sentence in problems(store, each.id))
    except MemciError as error:
        yield f"the store can't be used: {type(error).__name__}: {error}"


def examine_said(make: Make, folder: Path, said: dict[str, str]) -> Iterator[str]:
    """Open the store in *folder*, after a fault that the program survived, and yield what is wrong with it.

    Such a program goes another way than the model: only its messages are compared, with those that are *said*.
    """
    try:
        with closing(make(folder)) as store:
            if told(store) != said:
                yield "messages() is not what was said"
            for name in said:
                yield from goes_on(store, name, 0)
        with closing(make(folder)) as store:
            yield from (f"{each.id}, later: {text}" for each in store.contexts() for text in problems(store, each.id))
    except MemciError as error:
        yield f"the store can't be used: {type(error).__name__}: {error}"


def repeated(store: Storage, step: Step, before: State, after: State) -> Iterator[str]:
    """Append twice what *step* appends by its op_id, and yield what is wrong afterwards: it is there once."""
    if not step.messages or step.context not in before.said:
        return
    with opened(store, step.context) as context:
        first = context.append_turn(*step.messages, op_id=step.op_id, at="2026-01-02T03:04:05+00:00")
        again = context.append_turn(*step.messages, op_id=step.op_id, at="2026-01-02T03:04:05+00:00")
        if not again.duplicate or again.entries != first.entries:
            yield f"{step.name!r} was repeated by its op_id and stored twice"
        if digest(list(context.messages())) != after.said[step.context]:
            yield f"{step.name!r} was repeated by its op_id: messages() is not what was said"


def goes_on(store: Storage, name: str, shown: int) -> Iterator[str]:
    """Go on in a context of which pages up to *shown* were acknowledged, and yield what is wrong with that."""
    with opened(store, name) as context:
        before = context.report().messages
        said = (user("Are you there?"), assistant("As ever."))
        receipt = context.append_turn(*said)
        if receipt.page <= shown:
            yield f"{name}: page {receipt.page} was given out again, {shown} were known"
        if context.recall_page(receipt.page) != list(said):
            yield f"{name}: what was appended afterwards is not recalled"
        context.render()
        report = context.report()
        if report.messages != before + len(said):
            yield f"{name}: what was appended afterwards is not there once"
        if report.total > report.budget:
            yield f"{name}: {report.total} tokens are rendered, the budget is {report.budget}"
