"""Segments of one's own: shown in every rendering, counted, fixed between compactions, and nobody else's."""

import json
from contextlib import closing
from dataclasses import dataclass

import pytest

from memci import Context
from memci.chapters import Chapter, MessageNode
from memci.errors import BudgetExceeded, InvalidMessage, InvalidSetting
from memci.history.erase import erase
from memci.testing.formats import problems
from tests.invariants import check

from .kit import ON_DISK, STORES, again, opened, store, turn

pytestmark = pytest.mark.usefixtures("no_memory")

FORMATS = ("openai_chat", "openai_responses", "anthropic", "gemini")


class Facts:
    """Facts of a project, a page each."""

    name = "project facts"

    def __init__(self, *facts):
        self.chapter = Chapter()
        for fact in facts:
            self.add(fact)

    def add(self, fact):
        number = len(self.chapter) + 1
        page = self.chapter.open_page(number, base=number)
        self.chapter.extend(page, MessageNode({"role": "user", "content": fact}, tokens=0, seq=number))

    @property
    def view(self):
        return [node.view for node in self.chapter.messages]


@dataclass
class Plain:
    view: list
    name: str = "plain"


def contents(context):
    return [str(message["content"]) for message in context.render()]


def talked(facts, turns=8, **given):
    context = opened(segments=[facts], system="You help.", **given)
    for number in range(1, turns + 1):
        context.append_turn(*turn(number))
    context.archive(keep=1)
    return context


@pytest.mark.parametrize("form", FORMATS)
def test_segment_is_shown_behind_the_system_prompt_in_every_format(form):
    facts = Facts("The build is called Ostrich.", "Deploy from the branch heron.")
    context = talked(facts)
    context.append_turn("What is the build called?")

    request = context.request(format=form)
    shown = json.dumps(request)

    assert shown.index("Ostrich") < shown.index("heron") < shown.index("memci:contents 0000")
    assert shown.count("Ostrich") == 1
    assert problems(form, request) == []


def test_segment_counts_against_the_budget():
    """Its tokens are in the report, and leave less for pages; what can't fit is refused, by name."""
    facts = Facts("fact " * 300)
    context = talked(facts, window=2_000)
    report = context.report()

    assert report.tokens["segments"] >= 300
    assert sum(report.tokens.values()) == report.total <= report.budget
    with pytest.raises(BudgetExceeded, match="segments"):
        opened(id="bob", segments=[Facts("fact " * 1_500)], window=2_000)

    facts.add("fact " * 1_500)
    with pytest.raises(BudgetExceeded, match="segments"):
        context.archive(keep=0)
    check(context._parts.window)


def test_segment_is_fixed_between_compactions():
    """What is added is shown from the next compaction on; each rendering extends the one before until then."""
    facts = Facts("The build is called Ostrich.")
    context = talked(facts)
    before = contents(context)

    facts.add("Deploy from the branch heron.")
    facts.chapter.page(1).detach()
    context.append_turn(*turn(20))

    assert contents(context)[: len(before)] == before
    context.archive(keep=0)
    now = contents(context)
    assert now[1] == "Deploy from the branch heron."
    assert not any("Ostrich" in each for each in now)


@pytest.mark.parametrize("kind", ON_DISK)
def test_context_that_is_opened_again_shows_the_segment_as_before(kind, tmp_path):
    """Whether the program gives it, changed or not, until a compaction; a viewer sees it, too."""
    context = talked(Facts("The build is called Ostrich."), storage=store(kind, tmp_path))
    before = contents(context)
    context.close()

    for given in ({}, {"segments": [Facts("Another fact.")]}):
        with again(store(kind, tmp_path), **given) as context:
            assert contents(context) == before
    with Context.view(store(kind, tmp_path), "alice", counter=lambda text: len(text.split())) as seen:
        assert contents(seen) == before
    with again(store(kind, tmp_path), segments=[Facts("Another fact.")]) as context:
        context.archive(keep=0)
        assert contents(context)[1] == "Another fact."
    with again(store(kind, tmp_path), segments=[]) as context:
        context.archive()
        assert not any("fact" in each for each in contents(context))


def test_context_that_had_none_shows_a_segment_at_once():
    context = opened(system="You help.")
    context.append_turn(*turn(1))

    with again(context._storage, segments=[Facts("The build is called Ostrich.")]) as later:
        assert contents(later)[1] == "The build is called Ostrich."
        later.append_turn("Next.")
    with again(context._storage) as later:
        assert contents(later)[1] == "The build is called Ostrich."


def stored(storage):
    """Return all that *storage* holds of its contexts, as text."""
    rows = [(record, next(storage.compactions(record.id), None)) for record in storage.contexts()]
    return repr(rows)


@pytest.mark.parametrize("kind", STORES)
def test_segment_goes_to_no_other_owner(kind, tmp_path):
    """A fork of another owner, an export, a change of the owner: none has its words."""
    with closing(store(kind, tmp_path)) as storage:
        context = talked(Facts("The build is called Ostrich."), storage=storage)
        fork = context.fork("bob", owner="bob")

        assert "Ostrich" not in "".join((*contents(fork), *fork.export(), *context.export()))
        assert "Ostrich" in "".join(contents(context.fork("own")))
        context.close()
        with again(storage, owner="cid", change_owner=True) as moved:
            moved.append_turn("Hello.")
            assert "Ostrich" not in "".join((*contents(moved), moved._parts.window.record.state))


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("scope", ["page", "context", "owner"])
def test_erasure_takes_what_a_segment_showed(kind, scope, tmp_path):
    """Its words may be those of a page; the program gives it again, without them."""
    with closing(store(kind, tmp_path)) as storage:
        facts = Facts("My locker code is zebra-77.")
        context = talked(facts, storage=storage, owner="ann")
        facts.chapter.page(1).detach()
        facts.add("The build is called Ostrich.")
        if scope == "page":
            context.erase(2)
            assert contents(context)[1] == "The build is called Ostrich."
            check(context._parts.window)
        context.close()
        if scope != "page":
            erase(storage, **({"context": context.id} if scope == "context" else {"owner": "ann"}))

        assert "zebra-77" not in stored(storage)
    assert all(b"zebra-77" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("segments", "error"),
    [
        ([Plain("text")], InvalidSetting),
        ([object()], InvalidSetting),
        ([Plain([], name=3)], InvalidSetting),
        ([Plain([]), Plain([])], InvalidSetting),
        ([Plain([{"role": "system", "content": "Obey."}])], InvalidMessage),
        ([Plain([{"role": "user"}])], InvalidMessage),
        ([Plain([{"role": "user", "content": "half \ud800"}])], InvalidMessage),
        ([Plain([{"role": "user", "content": "x", "score": float("nan")}])], InvalidMessage),
        (3, InvalidSetting),
    ],
)
def test_wrong_segment_is_refused_and_nothing_is_stored(segments, error):
    with closing(store("ram", None)) as storage, pytest.raises(error):
        try:
            opened(storage, segments=segments)
        finally:
            assert list(storage.contexts()) == []
