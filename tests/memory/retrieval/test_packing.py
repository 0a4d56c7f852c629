"""What a search shows within a budget that does not hold all that matches."""

from tests.talks import told

LONG = f"My violin, the old violin, my good violin: {'harbour ferry lighthouse market sail. ' * 11}"


def test_short_results_are_chosen_where_not_all_fits():
    """What is long has to be worth its length; whatever is chosen, the best comes first."""
    said = [each for number in range(20) for each in (f"Ann: {LONG} {number}", f"Ben: I tuned violin {number}.")]

    with told(*said) as context:
        best = context.search_memory("violin", k=1, budget=300).pages
        packed = context.search_memory("violin", k=60, budget=300).pages
        rest = context.memory.search("violin", k=60, budget=300, skip=len(packed)).pages

    assert len(best[0].text) > 200
    assert len(packed) > 15 and sum(len(page.text) > 200 for page in packed) < 4
    assert rest and not {page.key for page in packed} & {page.key for page in rest}


def test_results_within_a_budget_stand_in_order_of_score():
    """The best comes first, also if shorter ones are worth more for their length."""
    short = [f"Ben: Who plays the violin {number}, with some {'other sounds ' * number}" for number in range(9)]
    said = [each for number, one in enumerate(short) for each in (f"Ann: {LONG} {number}", one)]

    with told(*said) as context:
        for budget in range(60, 600, 60):
            scores = [page.score for page in context.search_memory("violin", k=60, budget=budget).pages]
            assert scores == sorted(scores, reverse=True)


def test_room_in_the_talk_of_a_group_is_filled_with_what_stands_beside():
    """A stretch of talk answers: the nearest first, each "Yes." of it; between two people only what matches."""
    said = ["Ann: The zeppelin needs a new hangar.", *("Ben: Yes.", "Cleo: No.", "Dan: Let me think.") * 12]

    with told(*said) as group, told(*(each.replace("Cleo", "Ann").replace("Dan", "Ann") for each in said)) as pair:
        stretch = group.search_memory("zeppelin", k=30, budget=300).pages
        single = pair.search_memory("zeppelin", k=30, budget=300).pages

    beside = [page for page in stretch if page.source == "beside"]
    assert [page.index for page in beside] == sorted(page.index for page in beside)
    assert [page.text for page in stretch].count("Yes.") > 5
    assert {page.source for page in single} == {"words"}
