"""The one plan: it meets the budget or says why it can't, step by step in its order."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memci.errors import BudgetExceeded
from memci.segments.budget import CONTENTS_FLOOR, ClosedPage, Limits, Occupancy, Plan, Unit, fit
from memci.segments.clipping import SMALLEST


def pages(*tokens: int, task: bool = True, pinned: tuple[int, ...] = ()) -> tuple[ClosedPage, ...]:
    return tuple(ClosedPage(index, each, index in pinned, task and index == 1) for index, each in enumerate(tokens, 1))


@st.composite
def states(draw) -> Occupancy:
    sizes = st.one_of(st.integers(1, 60), st.integers(1, 1_500))
    closed = tuple(
        ClosedPage(index, draw(sizes), draw(st.integers(0, 5)) == 0, index == 1)
        for index in range(1, draw(st.integers(0, 6)) + 1)
    )
    seq = 0

    def unit() -> Unit:
        nonlocal seq
        results, others = [], []
        for sizes_of in (results, others):
            for _ in range(draw(st.integers(0, 2))):
                seq += 1
                sizes_of.append((seq, draw(sizes)))
        tokens = draw(st.integers(1, 40)) + sum(each for _, each in (*results, *others))
        return Unit(tokens, tuple(results), tuple(others))

    units = tuple(unit() for _ in range(draw(st.integers(0, 6))))
    task = bool(units) and draw(st.booleans())
    return Occupancy(
        system=draw(st.integers(0, 300)),
        tools=draw(st.integers(0, 300)),
        contents=draw(st.integers(0, 600)),
        closed=closed,
        units=units,
        task=task,
        movable=draw(st.integers(0, max(0, len(units) - task))),
        pending=tuple(unit() for _ in range(draw(st.integers(0, 2)))),
        told=draw(st.sampled_from([0, 0, 40, 300])),
    )


limits = st.builds(
    Limits,
    budget=st.integers(100, 5_000),
    contents=st.integers(0, 700),
    keep=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    active_pages=st.none() | st.integers(1, 6),
    fewest=st.sampled_from([1, 4]),
)


def left(state: Occupancy, plan: Plan) -> int:
    """What *state* costs after *plan*, reckoned plainly from the values; the Contents Page fills its ceiling."""
    first = int(state.task)
    units = [*state.units[:first], *state.units[first + plan.leave :], *state.pending]
    clips = dict(plan.clips)
    sizes = [each for unit in units for each in (*unit.results, *unit.others)]
    saved = sum(max(0, tokens - clips.get(seq, tokens)) for seq, tokens in sizes)
    closed = sum(page.tokens for page in state.closed if page.index not in plan.archive)
    listed = plan.contents if state.contents or plan.archive or plan.leave else 0
    listed += plan.told
    return state.system + state.tools + state.framing + listed + closed + sum(unit.tokens for unit in units) - saved


def irreducible(state: Occupancy, limits: Limits) -> int:
    """The least that *state* can cost: no closed page but pinned ones, all that may leave does, all is clipped."""
    first = int(state.task)
    archived = any(not page.pinned for page in state.closed)
    floor = min(CONTENTS_FLOOR, limits.contents) if state.contents or archived or state.movable else 0
    units = [*state.units[:first], *state.units[first + state.movable :], *state.pending]
    left = [*state.units[first + state.movable :], *state.pending]
    sizes = [each for unit in left for each in unit.results]
    sizes += [each for unit in [*state.units[:first], *left] for each in unit.others]
    saved = sum(max(0, tokens - SMALLEST) for _, tokens in sizes)
    pinned = sum(page.tokens for page in state.closed if page.pinned)
    return state.fixed + floor + pinned + sum(unit.tokens for unit in units) - saved


@given(states(), limits)
def test_fit_meets_the_budget_or_nothing_could(state, limits):
    """A plan brings the window within its budget; only what is irreducible can make it raise."""
    try:
        plan = fit(state, limits)
    except BudgetExceeded as error:
        assert irreducible(state, limits) > limits.budget
        assert sum(error.parts.values()) > error.budget == limits.budget  # noqa: PT017 -- it may fit as well
    else:
        assert left(state, plan) <= limits.budget
        assert irreducible(state, limits) <= limits.budget


@given(states(), limits)
def test_fit_archives_oldest_first_and_the_task_last(state, limits):
    """What is archived is a run of the oldest pages that may go; the task goes only after all others."""
    try:
        plan = fit(state, limits)
    except BudgetExceeded:
        assume(False)
    order = [page.index for page in state.closed if not page.pinned and not page.task]
    order += [page.index for page in state.closed if page.task and not page.pinned]

    assert plan.archive == tuple(sorted(order[: len(plan.archive)]))


@given(states(), limits)
def test_fit_takes_no_step_without_need(state, limits):
    """Each later step happens only when the earlier ones were taken as far as they go."""
    try:
        plan = fit(state, limits)
    except BudgetExceeded:
        assume(False)
    pending = sum(unit.tokens for unit in state.pending)
    room = limits.budget - state.fixed - limits.contents - state.told - pending
    standing = sum(page.tokens for page in state.closed if page.index not in plan.archive)
    opened = sum(unit.tokens for unit in state.units)
    first = int(state.task)
    stays = opened - sum(unit.tokens for unit in state.units[first : first + plan.leave])

    if plan.leave:
        low = int(limits.keep * max(0, room))
        assert limits.fewest > 1 or all(page.pinned for page in state.closed if page.index not in plan.archive)
        assert standing + opened > min(room, low)
    if plan.told < state.told:
        assert plan.contents <= CONTENTS_FLOOR
    if plan.contents < limits.contents:
        assert plan.leave == state.movable
        assert standing + stays > room
    rest = [*state.units[first + plan.leave :], *state.pending]
    results = {seq: tokens for unit in rest for seq, tokens in unit.results}
    if plan.clips:  # nothing is clipped that would be whole with a smaller Contents Page
        least = min(CONTENTS_FLOOR, limits.contents) if state.contents or plan.archive or plan.leave else 0
        assert state.fixed + least + state.told + standing + stays + pending > limits.budget
    if any(seq not in results for seq, _ in plan.clips):  # a result is clipped first
        assert all(tokens <= SMALLEST or (seq, SMALLEST) in plan.clips for seq, tokens in results.items())


@pytest.mark.parametrize(("tokens", "contents", "clips"), [(850, 150, ()), (950, 200, ((1, 800),))])
def test_the_contents_page_is_folded_only_if_that_is_enough(tokens, contents, clips):
    """What a smaller Contents Page makes room for stays whole; for what is too large anyway, it keeps its size."""
    state = Occupancy(
        system=0, tools=0, contents=100, units=(Unit(tokens, others=((1, tokens),)),), task=True, framing=0
    )

    plan = fit(state, Limits(budget=1_000, contents=200))

    assert (plan.contents, plan.clips) == (contents, clips)


@given(states(), limits)
def test_fit_is_a_pure_function(state, limits):
    """The same values give the same plan, or the same error."""

    def outcome():
        try:
            return fit(state, limits)
        except BudgetExceeded as error:
            return str(error)

    assert outcome() == outcome()


def test_archiving_goes_down_to_the_low_watermark():
    """A compaction archives in a batch, until half of the share is left, not just until it fits."""
    state = Occupancy(system=0, tools=0, contents=0, closed=pages(*[100] * 12), framing=0)

    plan = fit(state, Limits(budget=1_100, contents=100))

    assert len(plan.archive) == 7, "500 of the 1,000 tokens may stay"


@pytest.mark.parametrize(("keep", "stays"), [(0.75, 7), (0.5, 5), (0.25, 4), (0.0, 4)])
def test_watermark_follows_its_share_and_stops_at_the_fewest_pages(keep, stays):
    """The share says how far down a compaction goes, but the fewest pages stay if they fit."""
    state = Occupancy(system=0, tools=0, contents=0, closed=pages(*[100] * 12), framing=0)

    plan = fit(state, Limits(budget=1_100, contents=100, keep=keep, fewest=4))

    assert 12 - len(plan.archive) == stays


def test_fewest_pages_give_way_to_the_budget():
    """The four pages at which the watermark stops are archived too when they do not fit."""
    state = Occupancy(system=0, tools=0, contents=0, closed=pages(*[100] * 4), units=(Unit(950),), task=True, framing=0)

    plan = fit(state, Limits(budget=1_100, contents=100))

    assert plan.archive == (1, 2, 3, 4)


@pytest.mark.parametrize(("least", "stays"), [(0, 5), (550, 6), (600, 6), (2_000, 10)])
def test_the_watermark_stops_above_the_least_that_is_cached(least, stays):
    """Where the next page would leave less than a provider caches it stays, if the budget allows."""
    state = Occupancy(system=0, tools=0, contents=0, closed=pages(*[100] * 12), framing=0)

    plan = fit(state, Limits(budget=1_100, contents=100, least=least))

    assert 12 - len(plan.archive) == stays


def test_pinned_pages_are_never_archived():
    """Pins stand, and the task goes before they would."""
    state = Occupancy(
        system=0, tools=0, contents=0, closed=pages(100, 100, 100, pinned=(2,)), units=(Unit(850),), framing=0
    )

    assert fit(state, Limits(budget=1_100, contents=100)).archive == (1, 3)


def test_task_is_archived_last():
    """The first page of a context outlives younger ones."""
    state = Occupancy(system=0, tools=0, contents=0, closed=pages(*[100] * 12), framing=0)

    assert 1 not in fit(state, Limits(budget=1_100, contents=100)).archive


@pytest.mark.parametrize(
    ("n", "keep", "stays"), [(5, 1.0, 5), (5, 0.5, 2), (6, 0.5, 3), (12, 0.5, 12), (None, 0.5, 12)]
)
def test_count_rule_archives_once_there_are_more_than_n(n, keep, stays):
    """More closed pages than n: down to the share of n; not more than n: nothing."""
    state = Occupancy(system=0, tools=0, contents=0, closed=pages(*[10] * 12))

    plan = fit(state, Limits(budget=10_000, contents=100, keep=keep, active_pages=n, fewest=1), low=10_000)

    assert 12 - len(plan.archive) == stays


def test_units_leave_before_folding_below_the_ceiling():
    """The open page gives up its middle before the Contents Page is pressed below its ceiling."""
    units = (Unit(20), *[Unit(100)] * 10)
    state = Occupancy(system=0, tools=0, contents=200, units=units, task=True, movable=8, framing=0)

    plan = fit(state, Limits(budget=1_000, contents=200))

    assert plan.leave > 0
    assert plan.contents == 200
    assert plan.clips == ()


def test_units_leave_down_to_the_low_watermark():
    """Units leave a page that outgrows the window in a batch, not one by one."""
    units = (Unit(20), *[Unit(100)] * 10)
    state = Occupancy(system=0, tools=0, contents=0, units=units, task=True, movable=9, framing=0)

    plan = fit(state, Limits(budget=1_000, contents=100))

    assert plan.leave == 6, "420 of the 900 tokens stay, half of them would be 450"


def test_no_unit_leaves_an_open_page_below_the_watermark():
    """An open page that is small enough beside what was archived stays whole, and a pinned one as far as it fits."""
    units = (Unit(100), Unit(300), Unit(100))
    state = Occupancy(
        system=0, tools=0, contents=0, closed=pages(*[200] * 5), units=units, task=True, movable=1, framing=0
    )

    assert fit(state, Limits(budget=1_000, contents=100)).leave == 0
    assert fit(state, Limits(budget=1_000, contents=100), low=300).leave == 1
    assert fit(replace(state, pinned=True), Limits(budget=1_000, contents=100), low=300).leave == 0


def test_the_users_words_go_last():
    """Pages are condensed first; once the room of the words is full, the oldest leave, the task's only if need be."""
    said = tuple(replace(page, words=20) for page in pages(*[100] * 10))
    limits = Limits(budget=1_000, contents=0, words=200, words_left=120)

    some = fit(Occupancy(system=0, tools=0, contents=0, closed=said, framing=0), limits, low=300)
    assert (some.archive, some.condense) == ((), (2, 3, 4, 5, 6, 7, 8))

    full = replace(limits, words=100, words_left=60)
    most = fit(Occupancy(system=0, tools=0, contents=0, closed=said, framing=0), full, low=300)
    assert (most.archive, most.condense) == ((2, 3, 4, 5), (6, 7, 8)), "60 of the 100 tokens stay"

    before = tuple(replace(page, tokens=20, condensed=True) for page in said)
    pressed = Occupancy(system=0, tools=0, contents=0, closed=before, units=(Unit(970),), task=True, framing=0)
    assert fit(pressed, limits).archive == (2, 3, 4, 5, 6, 7, 8, 9, 10)


def test_contents_are_pressed_only_as_far_as_needed():
    """When nothing more can leave the Contents Page gives what is missing, down to its floor."""
    state = Occupancy(system=0, tools=0, contents=200, units=(Unit(850),), framing=0)

    assert fit(state, Limits(budget=1_000, contents=200)).contents == 150
    assert fit(state, Limits(budget=1_200, contents=200)).contents == 200


def test_results_are_clipped_evenly():
    """The large results at the tail all get the same limit; smaller ones stay whole."""
    results = ((1, 900), (2, 600), (3, 300), (4, 100))
    state = Occupancy(system=0, tools=0, contents=0, units=(Unit(50), Unit(1_900, results)), task=True, framing=0)

    plan = fit(state, Limits(budget=1_250, contents=0))

    assert plan.clips == ((1, 400), (2, 400))


def test_results_are_never_clipped_below_the_smallest():
    """Head and tail of a clipped result always stay; what does not fit then is irreducible."""
    state = Occupancy(system=0, tools=0, contents=0, units=(Unit(50), Unit(1_000, ((1, 1_000),))), task=True, framing=0)

    assert fit(state, Limits(budget=50 + SMALLEST, contents=0)).clips == ((1, SMALLEST),)
    with pytest.raises(BudgetExceeded):
        fit(state, Limits(budget=49 + SMALLEST, contents=0))


def test_pending_messages_count_and_are_clipped_too():
    """What is about to be rendered makes room for itself, and its results are clipped like others."""
    state = Occupancy(
        system=0, tools=0, contents=0, closed=pages(*[100] * 8), pending=(Unit(2_000, ((9, 1_950),)),), framing=0
    )

    plan = fit(state, Limits(budget=1_000, contents=0))

    assert len(plan.archive) == 8
    assert plan.clips == ((9, 950),)


def test_error_names_every_part_that_can_not_be_reduced():
    """The parts add up to what does not fit, and each has a name."""
    state = Occupancy(
        system=300, tools=200, contents=50, closed=pages(80, 400, pinned=(2,)), units=(Unit(150), Unit(90)), task=True
    )

    with pytest.raises(BudgetExceeded) as caught:
        fit(state, Limits(budget=1_000, contents=100))

    assert caught.value.parts == {
        "system": 300,
        "tools": 200,
        "framing": 3,
        "contents": CONTENTS_FLOOR,
        "pinned": 400,
        "task": 150,
        "latest messages": 90,
    }
    assert sum(caught.value.parts.values()) > 1_000


def test_error_counts_each_part_as_its_clips_leave_it():
    """The task and the newest result are clipped: each is as small as that, and no part is negative."""
    units = (Unit(900, others=((0, 900),)), Unit(500, results=((1, 500),)))

    with pytest.raises(BudgetExceeded) as caught:
        fit(Occupancy(system=950, tools=0, contents=0, units=units, task=True), Limits(budget=1_000, contents=0))

    assert caught.value.parts == {"system": 950, "framing": 3, "task": SMALLEST, "latest messages": SMALLEST}


def test_low_is_taken_over_from_the_caller():
    """A compaction for another reason than the budget goes as far as it is told."""
    state = Occupancy(system=0, tools=0, contents=0, closed=pages(*[100] * 6), framing=0)

    assert fit(state, Limits(budget=10_000, contents=100, fewest=1), low=250).archive == (2, 3, 4, 5)
    assert fit(state, Limits(budget=10_000, contents=100, fewest=1), low=600).archive == ()
