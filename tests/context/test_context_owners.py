"""Ids of owners: each owner has ids of its own, and who names none gets the only one."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from memci import Context, EphemeralStorage
from memci.errors import InvalidSetting, SeveralOwners
from memci.history.backup import repeat_erasures
from memci.history.copying import copy_contexts
from memci.history.erase import erase
from memci.history.export import export_lines
from memci.history.import_ import import_lines
from memci.storage import EncryptedStorage, QuotaStorage
from memci.storage.names import find
from memci.storage.quota import Quota

from .kit import again, opened, store, talked, turn

pytestmark = pytest.mark.usefixtures("no_memory")

AROUND = {
    "encrypted": lambda storage: EncryptedStorage(storage, bytes(range(32))),
    "quota": lambda storage: QuotaStorage(storage, Quota(messages=10**6)),
}


@pytest.fixture(params=["ram", "sqlite", "files", *AROUND])
def storage(request, tmp_path):
    """Each kind of store; Postgres runs these tests, too."""
    kind = request.param
    with_all = AROUND[kind](store("ram", tmp_path)) if kind in AROUND else store(kind, tmp_path)
    yield with_all
    with_all.close()


def two(storage):
    """Both have a context "trip"; what is said tells whose."""
    ada = opened(storage, id="trip", owner="ada")
    ada.append_turn("of ada")
    bob = opened(storage, id="trip", owner="bob", new=True)
    bob.append_turn("of bob")
    return ada, bob


def told(context):
    """What was said first."""
    return next(iter(context.messages()))["content"]


def test_each_owner_has_ids_of_its_own(storage):
    """Two contexts of one id do not know of each other; each is found by its owner, and by what it is stored as."""
    for context in two(storage):
        context.close()

    for owner in ("ada", "bob"):
        with again(storage, id="trip", owner=owner) as context:
            assert (context.owner, told(context)) == (owner, f"of {owner}")
            assert Context.view(storage, context.id, owner=owner).owner == owner
        with again(storage, id="trip", owner=owner, new=True) as context:
            assert told(context) == f"of {owner}"
    with again(storage, id="trip∷bob") as context:
        assert told(context) == "of bob"
    assert [(each.id, each.owner) for each in Context.list(storage)] == [("trip", "ada"), ("trip∷bob", "bob")]


def test_without_an_owner_one_is_found_and_several_are_an_error(storage):
    """None is new, one is that one, also if it is not the first of its id, and several are named."""
    ada, bob = two(storage)
    ada.close()
    bob.close()

    with pytest.raises(SeveralOwners, match="'ada', 'bob'") as error:
        again(storage, id="trip")
    assert (error.value.id, error.value.owners) == ("trip", ("ada", "bob"))
    with pytest.raises(SeveralOwners):
        Context.view(storage, "trip")

    with pytest.raises(SeveralOwners):
        erase(storage, context="trip")
    with pytest.raises(SeveralOwners):
        again(storage, id="trip", owner="carol", change_owner=True)
    with pytest.raises(InvalidSetting, match="no context 'trip' of 'carol'"):
        erase(storage, context="trip", owner="carol")
    erase(storage, context="trip", owner="ada")
    with again(storage, id="trip") as context:
        assert (context.id, told(context)) == ("trip∷bob", "of bob")
    with opened(storage, id="tri") as context:
        assert context.owner == "tri"


def test_another_owner_is_refused_unless_it_is_to_be_new(storage):
    """Nothing is made by mistake: the error says what there is to choose from."""
    opened(storage, id="trip", owner="ada").append_turn("of ada")

    with pytest.raises(InvalidSetting, match=r"belongs to 'ada'.*change_owner=True.*new=True"):
        opened(storage, id="trip", owner="bob")
    with pytest.raises(InvalidSetting, match=r"there is no|belongs to"):
        Context.view(storage, "trip", owner="bob")
    for given in ({}, {"owner": "bob", "change_owner": True}):
        with pytest.raises(InvalidSetting, match=r"^new: "):
            opened(storage, id="trip", new=True, **given)
    with pytest.raises(InvalidSetting, match=r"^id: '∷'"):
        opened(storage, id="a∷b")
    assert [record.id for record in storage.contexts()] == ["trip"]

    opened(storage, id="trip", owner="bob", new=True).append_turn("of bob")
    with pytest.raises(InvalidSetting, match="belongs to"):
        opened(storage, id="trip", owner="carol")
    erase(storage, owner="ada")
    with pytest.raises(InvalidSetting, match="belongs to 'bob'"):
        opened(storage, id="trip", owner="ada")


class Unwritable:
    """A value that can't even be shown."""

    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize("given", [{"id": Unwritable()}, {"owner": Unwritable()}])
def test_what_can_not_even_be_shown_is_refused_by_name(storage, given):
    """The error of a name that is none is the library's own, whatever was passed."""
    with pytest.raises(InvalidSetting, match=next(iter(given))):
        opened(storage, **given)


def test_a_context_that_went_to_another_owner_is_not_given_to_the_first(storage):
    """It keeps its name in the store; who had it can't make another one of this name, and is told."""
    for context in two(storage):
        context.close()
    again(storage, id="trip∷bob", owner="carol", change_owner=True).close()

    for given in ({}, {"new": True}):
        with pytest.raises(InvalidSetting, match="belongs to"):
            again(storage, id="trip", owner="bob", **given)
    assert again(storage, id="trip∷bob").owner == "carol"


def test_an_owner_does_not_take_over_an_id_that_is_there_already(storage):
    """Else one owner would have two contexts of one id, and find only the first."""
    for context in two(storage):
        context.close()

    with pytest.raises(InvalidSetting, match=r"owner: 'ada' has a context 'trip' already"):
        again(storage, id="trip∷bob", owner="ada", change_owner=True)

    assert [(each.id, each.owner) for each in Context.list(storage)] == [("trip", "ada"), ("trip∷bob", "bob")]


def test_a_context_of_its_own_lives_like_any_other(storage):
    """It is compacted, recalled, locked, seen as of a turn, forked, exported, refreshed and erased."""
    two(storage)[0].close()
    with again(storage, id="trip", owner="bob", wait=1) as bob:
        for number in range(8):
            bob.append_turn(*turn(number))
        bob.archive(keep=0)
        bob.refresh()
        assert bob.recall_page(2)[0] == turn(0)[0]
        assert told(bob.fork("later")) == "of bob"
        assert told(bob.fork("early", at=1)) == "of bob"
        assert bob.verify() == []
        lines = list(bob.export())
        with Context.view(storage, "trip", owner="bob", at=2) as seen:
            assert told(seen) == "of bob"
            with pytest.raises(InvalidSetting, match="there is a context"):
                seen.fork("trip")

    with pytest.raises(InvalidSetting, match="there is a context"):
        import_lines(storage, lines)
    other = store("ram", None)
    opened(other, id="trip∷bob".partition("∷")[0], owner="ada").append_turn("of ada")
    assert import_lines(other, lines) == "trip∷bob"
    assert told(again(other, id="trip", owner="bob")) == "of bob"


def test_a_fork_to_another_owner_is_a_copy(storage):
    """It may have the id of its parent, and what is erased in one stays in the other; each can be erased whole."""
    context = talked(6, storage=storage, id="trip", owner="ada")
    context.archive(keep=1)
    before = [*context.messages()]
    shown = context.render()

    fork = context.fork("trip", owner="bob")

    assert (fork.id, fork.owner, [*fork.messages()], fork.verify()) == ("trip∷bob", "bob", before, [])
    assert [each["content"] for each in fork.render()[1:]] == [each["content"] for each in shown[1:]]
    assert storage.forks("trip") == []
    past = context.fork("past", owner="bob", at=3)
    assert [*past.messages()] == before[:8]
    context.erase(2)
    assert [*fork.messages()] == before
    fork.erase(3)
    assert context.recall_page(3) == before[4:6]
    for each in (context, fork, past):
        each.close()
    erase(storage, owner="ada")
    with again(storage, id="trip") as left:
        assert [*left.messages()][:4] == before[:4]
        assert left.verify() == []


@pytest.mark.parametrize("round_", range(5))
def test_those_who_want_one_id_at_once_each_get_their_own(storage, round_):
    """Whoever is first, there is one context for each owner, and each has what its owner said."""
    owners = ["ada", "bob", "carol", "bob"]
    together = Barrier(len(owners))

    def begin(owner):
        together.wait()
        with opened(storage, id="trip", owner=owner, new=True, wait=5) as context:
            context.append_turn(f"of {owner}")
            return context.id

    with ThreadPoolExecutor(len(owners)) as threads:
        ids = list(threads.map(begin, owners))

    assert ids[1] == ids[3]
    assert len(set(ids)) == 3
    assert {each.owner: each.messages for each in Context.list(storage)} == {"ada": 1, "bob": 2, "carol": 1}
    for owner in owners:
        assert find(storage, "trip", owner)[0] in ids


def test_erasures_reach_contexts_whose_id_others_have_too(storage):
    """A fork whose id another owner has too loses what is erased, and so does an older copy of the store."""
    two(storage)
    with opened(storage, id="diary", owner="ada") as diary:
        diary.append_turn("kumquat")
        diary.fork("draft").close()
        opened(storage, id="draft", owner="bob", new=True).append_turn("of bob")
        copy = EphemeralStorage()
        assert len([*copy_contexts(storage, copy)]) == 5

        assert diary.erase(1).entries == 1
    with opened(storage, id="trip", owner="ada") as trip:
        trip.erase(1)
    repeat_erasures(copy, storage)

    for place in (storage, copy):
        lines = "".join(line for each in place.contexts() for line in export_lines(place, each.id))
        assert "kumquat" not in lines and "of ada" not in lines and lines.count("of bob") == 2
