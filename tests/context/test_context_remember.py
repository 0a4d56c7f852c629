"""The memory page: what the memory found for a turn, in front of it."""

import pytest

from memci.memory import NullMemory

from .kit import again, opened, store, turn

ASKED = "Which seat did I want on the flight to Oslo?"


def memory_pages(messages: list[dict]) -> list[int]:
    return [at for at, each in enumerate(messages) if str(each["content"]).startswith("<memci:memory ")]


def travelled(**given):
    context = opened(**{"window": 3_000, "remember": True, **given})
    context.append_turn(*turn(1))  # the first page is archived last
    context.append_turn("I want seat 12A on the flight to Oslo.", {"role": "assistant", "content": "Noted."})
    for number in range(3, 14):
        context.append_turn(*turn(number, 60))
    context.archive(keep=1)
    return context


def test_memory_page_stands_in_front_of_the_question():
    """What was said long ago is shown for the question that it fits, just in front of it."""
    context = travelled()

    messages = context.render(ASKED)

    [at] = memory_pages(messages)
    assert at == len(messages) - 2
    assert "seat 12A" in messages[at]["content"]
    assert "#2 entry 1" in messages[at]["content"]


def test_memory_page_of_a_small_window_has_room_for_a_message():
    """A frame alone, with the beginning of a line, would cost tokens and say nothing."""
    context = travelled(counter=None)

    messages = context.render(ASKED)

    [at] = memory_pages(messages)
    assert '"I want seat 12A on the flight to Oslo."' in messages[at]["content"]


def test_memory_page_stays_while_its_turn_is_open():
    """Each rendering of the turn extends the one before, with the same memory page."""
    context = travelled()
    first = context.render(ASKED)
    calls = {"role": "assistant", "content": "Let me see."}
    context.append_turn(ASKED, calls)

    second = context.render({"role": "assistant", "content": "12A."})

    assert second[: len(first)] == first
    context.append_turn({"role": "assistant", "content": "12A."})
    assert context.render()[: len(first)] == first


def test_memory_page_goes_with_its_turn():
    """The next turn has what was found for it, or nothing; what stood before is a prefix still."""
    context = travelled()
    context.append_turn(ASKED, {"role": "assistant", "content": "12A."})
    before = context.render()
    [at] = memory_pages(before)

    after = context.render("zzz")

    assert memory_pages(after) == []
    assert after[:at] == before[:at]


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_memory_page_is_the_same_for_who_opens_the_context(kind, tmp_path):
    """It is stored with its turn: a context that is opened again renders the same bytes, whatever was learned since."""
    storage = store(kind, tmp_path)
    context = travelled(storage=storage)
    context.render(ASKED)
    context.append_turn(ASKED, {"role": "assistant", "content": "12A."})
    shown = context.render()
    context.close()

    opened_again = again(storage)

    assert opened_again.render() == shown
    assert len(memory_pages(shown)) == 1
    opened_again.close()
    storage.close()


def test_memory_page_takes_room_that_is_left_only():
    """It makes nothing else leave, and the budget holds; where there is no room, there is no memory page."""
    context = travelled()
    report = context.report()
    filler = "word " * (report.budget - report.total - 40)

    messages = context.render(f"{ASKED} {filler}")

    assert memory_pages(messages) == []
    assert context.report().compactions == report.compactions


def test_what_stands_in_the_window_is_not_shown_twice():
    """A page that is shown verbatim is never found for the memory page."""
    context = opened(window=3_000, remember=True)
    context.append_turn("I want seat 12A on the flight to Oslo.", {"role": "assistant", "content": "Noted."})
    context.append_turn(*turn(2))

    assert memory_pages(context.render(ASKED)) == []


def test_without_a_memory_there_is_no_memory_page():
    """`NullMemory` finds nothing."""
    assert memory_pages(travelled(memory=NullMemory()).render(ASKED)) == []


def test_memory_page_is_off_unless_asked_for():
    """By default nothing stands between the contents and the pages."""
    assert memory_pages(travelled(remember=None).render(ASKED)) == []


def test_cached_share_counts_what_the_memory_page_moves():
    """What stands behind a memory page that changed is not counted as cached."""
    with_page, without = travelled(), travelled(remember=False)
    for context in (with_page, without):
        context.render()
        context.append_turn(ASKED, {"role": "assistant", "content": "12A. " * 50})
        context.render()
        context.append_turn("zzz", {"role": "assistant", "content": "What? " * 50})
        context.render()

    assert with_page.report().cached < without.report().cached


def test_a_later_statement_about_the_same_stands_beside_a_sure_one():
    """The earlier one answers in the words of the question, but the later one may be what counts."""
    context = opened(window=8_000, remember=True)
    for number, said in enumerate(["Rosie eats kibble twice a day.", "The vet allows Rosie wet food, and only that."]):
        context.append_turn(said, {"role": "assistant", "content": "Noted."})
        for other in range(4):
            context.append_turn(*turn(5 * number + other, 20))
    context.archive(keep=0)

    messages = context.render("What does Rosie eat?")

    [at] = memory_pages(messages)
    assert "kibble" in messages[at]["content"]
    assert "wet food" in messages[at]["content"]
