"""The outbox loses no page, and stays small."""

from itertools import pairwise, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from memci.window.outbox import MOST_RUNS, add_pages, indexes, remove_page

numbers = st.integers(1, 60)
few = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def well(runs):
    """Tell whether *runs* are in order, with gaps between them, and not too many."""
    flat = [end for run in runs for end in run]
    return (
        flat == sorted(flat)
        and all(first <= last for first, last in runs)
        and all(after[0] > before[1] + 1 for before, after in pairwise(runs))
        and len(runs) <= MOST_RUNS
    )


@few
@given(st.lists(st.lists(numbers, max_size=9), max_size=9))
def test_posted_pages_are_there_and_no_others(batches):
    """As long as there are few runs, the outbox holds exactly what was posted, each page once, by index."""
    runs = ()
    for batch in batches:
        runs = add_pages(runs, batch)

    assert list(indexes(runs)) == sorted({each for batch in batches for each in batch})
    assert well(runs)


@few
@given(st.sets(st.integers(1, 10_000), min_size=1, max_size=400), st.sets(st.integers(1, 10_000), max_size=99))
def test_many_pages_are_there_in_few_runs(first, more):
    """However many pages are posted, none is lost, and there are 64 runs at most; the smallest gaps are closed."""
    runs = add_pages(add_pages((), first), more)

    assert first | more <= set(indexes(runs))
    assert min(first | more) == runs[0][0]
    assert max(first | more) == runs[-1][1]
    assert well(runs)


def test_runs_that_are_joined_are_those_nearest_to_each_other():
    """Of too many runs those with the smallest gap between them become one, so that few pages are told for nothing."""
    wide = tuple((at * 1_000, at * 1_000) for at in range(1, MOST_RUNS + 1))

    runs = add_pages(wide, [5_003])

    assert (5_000, 5_003) in runs
    assert len(runs) == MOST_RUNS
    assert set(wide) - {(5_000, 5_000)} <= set(runs)


@few
@given(st.sets(numbers, max_size=30), st.lists(numbers, max_size=30))
def test_delivered_page_is_gone_and_no_other(pages, told):
    """What was told is not in the outbox any more, all else is; telling what was not in it changes nothing."""
    runs = add_pages((), pages)
    for index in told:
        runs = remove_page(runs, index)

    assert set(indexes(runs)) == pages - set(told)
    assert well(runs)


def test_everything_delivered_is_nothing():
    """An outbox of which all was delivered is empty, and takes no room in what is stored."""
    runs = add_pages((), range(1, 6))
    for index in (3, 1, 5, 2, 4):
        runs = remove_page(runs, index)

    assert runs == ()


def test_every_page_of_a_run_can_be_delivered_alone():
    """Whatever pages of a run are told, in whatever order, those beside them stay."""
    for told in permutations(range(1, 6)):
        runs = add_pages((), range(1, 6))
        for number, index in enumerate(told, 1):
            runs = remove_page(runs, index)
            assert list(indexes(runs)) == sorted(told[number:])
