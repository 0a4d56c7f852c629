"""What went wrong elsewhere with whose messages they are, and can't here. The numbers are public issues."""

import pytest

from memci import Context
from memci.errors import Erased, InvalidSetting
from memci.history.erase import erase
from tests.context.kit import again, opened, talked, turn

ALIKE = (
    "a_b",
    "aXb",
    "a%b",
    "acme",
    "acme-corp",
    "ACME",
    "acme ",
    " acme",
    "acme.",
    "é",
    "e\u0301",
    "a",
    "",
    "*",
    "a/b",
)


def test_erasing_one_owner_leaves_all_others(storage):
    """mem0#3928, mem0#3746: delete_all(user_id=…) dropped every user's memory. An owner is erased by the whole name."""
    owners = [owner for owner in ALIKE if owner]
    for owner in owners:
        opened(storage, id=f"of {owner}", owner=owner).append_turn(*turn(1))

    receipt = erase(storage, owner="acme")

    assert receipt.contexts == 1
    assert sorted(record.owner for record in storage.contexts()) == sorted(set(owners) - {"acme"})


@pytest.mark.parametrize("nobody", ["", None])
def test_erasing_nobody_is_not_erasing_everybody(storage, nobody):
    """mem0 PR#3743: a filter that was empty matched all. Nothing that names nobody erases anything."""
    talked(2, storage=storage)

    with pytest.raises(InvalidSetting):
        erase(storage, owner=nobody)

    assert len(list(again(storage).messages())) == 4


def test_failed_append_for_one_shows_nothing_of_another(storage):
    """MemMachine#320: after a failed insert for B, a search for B returned A's memory. Each handle sees its own."""
    talked(2, storage=storage, id="A")
    context = opened(storage, id="B")

    with pytest.raises(ValueError, match="messages"):
        context.append_turn({"role": "nobody", "content": "x"})

    assert list(context.messages()) == []
    assert list(context.pages()) == []


def test_names_that_look_alike_are_apart(storage):
    """langgraph#8300: `_` matched any character. langgraphjs#2721, ai-memory-mcp#217, context-mode#646: `acme` matched
    `acme-corp` (CVE-2026-71433). A name is itself alone.
    """
    names = [name for name in ALIKE if name]
    for name in names:
        opened(storage, id=name).append_turn(f"I am {name!r}")

    for name in names:
        with Context.view(storage, id=name) as context:
            assert [message["content"] for message in context.messages()] == [f"I am {name!r}"]


def test_erased_page_of_one_is_there_in_another(storage):
    """hindsight PR#1228: a delete skipped the check that all its siblings had. Erasing reaches forks, nobody else."""
    talked(2, storage=storage, id="A")
    talked(2, storage=storage, id="B")

    again(storage, id="A").erase(1)

    with pytest.raises(Erased):
        again(storage, id="A").recall_page(1)
    assert again(storage, id="B").recall_page(1) == list(turn(1))
