"""A context that something wrong is done to, and the check that it left no trace."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import MemciError
from memci.storage import Storage

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}


@pytest.fixture(params=["ephemeral", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Each store in turn."""
    made = EphemeralStorage() if request.param == "ephemeral" else SQLiteStorage(tmp_path / "agent.db")
    yield made
    made.close()


@pytest.fixture
def context(storage: Storage) -> Context:
    """A context with three interactions, two archived, the second with an answered call."""
    context = Context.open(storage, id="x", window=2_000, nonce="00000000", system="Be brief.")
    context.append_turn("Book me a flight.", {"role": "assistant", "content": "Where to?"}, op_id="first")
    context.append_turn("To Oslo.", {"role": "assistant", "content": None, "tool_calls": [CALL]})
    context.append_turn({"role": "tool", "tool_call_id": "c1", "content": "[]"}, "And back.")
    context.archive(keep=0)
    context.render()
    return context


def everything(context: Context, storage: Storage) -> object:
    """Return all that is stored and all that a program sees."""
    rows = [*storage.contexts(), *storage.pages("x"), *storage.entries("x"), storage.load("x")]
    of_renderings = {"cached": 0.0, "cached_last": 0.0, "spent": 0.0}  # which this makes
    report = replace(context.report(), **of_renderings)
    return rows, list(context.messages()), list(context.pages()), context.render(strict=False), report


@pytest.fixture
def unchanged(context: Context, storage: Storage) -> Any:
    """A block that must leave no trace."""

    @contextmanager
    def block() -> Iterator[None]:
        before = everything(context, storage)
        yield
        assert everything(context, storage) == before

    return block


@pytest.fixture
def refused(unchanged: Any) -> Any:
    """Checks that an act raises an error of a kind and leaves no trace; returns the error."""

    def check(act: Callable[[], object], error: type[Exception]) -> MemciError:
        with unchanged(), pytest.raises(error) as caught:
            act()
        assert isinstance(caught.value, MemciError)
        return caught.value

    return check
