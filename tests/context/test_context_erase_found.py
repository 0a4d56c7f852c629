"""What a search found for a memory page goes from the other contexts of the owner when its source is erased."""

from memci import Context, EphemeralStorage, Policy
from memci.history.erase import erase

WORD = "Zanzibarkiste"


def test_text_that_was_found_goes_with_the_whole_context_that_said_it():
    """Erasing a context removes its words from the memory page that another context of the owner stored."""
    store = EphemeralStorage()
    with Context.open(store, "first", owner="ada", window=8_000) as context:
        said = f"The spare key of the boat is in the {WORD} below the stairs."
        context.append_turn(said, {"role": "assistant", "content": "Noted."})
        context.end_session()
        context.flush()
    with Context.open(store, "second", owner="ada", window=8_000, policy=Policy(remember=True)) as context:
        context.append_turn("Where is the spare key of the boat?")
        assert WORD in str(context.render())
        context.append_turn({"role": "assistant", "content": "Below the stairs."})
    record, _ = store.load("second")
    assert WORD in record.state

    erase(store, context="first", owner="ada")

    record, _ = store.load("second")
    assert WORD not in record.state
