"""Of whom a message tells, whoever says it; and how sure a search is of it."""

from datetime import UTC, datetime, timedelta

import pytest

from memci import Context, EphemeralStorage
from memci.memory.retrieval.subject import tells_of

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
SAID = [
    ("Mara", "Otis broke his left ankle."),
    ("Otis", "I restore church organs."),
    ("Otis", "Mara bought a cello."),
    ("Mara", "I volunteer at the bird station."),
    *[
        (name, text)
        for text in ("A grey day.", "Rain again.", "What a week.", "So it goes.")
        for name in ("Mara", "Otis")
    ],
]


@pytest.mark.parametrize(
    ("text", "speaks", "tells"),
    [
        ("Zoe moved to Girona.", False, True),
        ("Zoe's new number is 555-0172.", False, True),
        ("I moved to Girona.", False, False),
        ("I moved to Girona.", True, True),
        ("Finn moved to Girona.", True, False),
        ("Moved to Girona.", True, True),
        ("Thanks, Zoe! I sold the boat.", False, False),
        ("Hey Zoe, I sold the boat.", False, False),
        ("Thanks, Finn! I sold the boat.", True, True),
    ],
)
def test_a_message_tells_of_who_it_names_or_of_who_says_it(text, speaks, tells):
    assert tells_of(text, ["Zoe"], ["Finn"], speaks=speaks) is tells


def test_a_name_ends_behind_the_marks_of_its_letters():
    """The name "राम" is no beginning of "रामायण"."""
    assert tells_of("कल राम पुणे गया।", ["राम"], [], speaks=False)
    assert not tells_of("मैंने रामायण पढ़ी।", ["राम"], [], speaks=False)


@pytest.mark.parametrize(
    ("question", "sure"),
    [
        ("What did Otis break?", True),
        ("What did Mara buy?", True),
        ("What does Otis restore?", True),
        ("What did Mara break?", False),
        ("Where does Otis volunteer?", False),
        ("What did Otis buy?", False),
    ],
)
def test_a_search_is_sure_of_whom_it_is_told(question, sure):
    with Context.open(EphemeralStorage(), "talk", window=8_000, clock=None) as context:
        for day, (name, text) in enumerate([*SAID, ("Otis", "Tea?")]):
            message = {"role": "user", "name": name, "content": text}
            context.append_turn(message, {"role": "assistant", "content": "OK."}, at=START + timedelta(days=day))
        context.archive(keep=0)
        context.flush()
        assert (context.search_memory(question, seen=False).certainty >= 0.5) is sure


@pytest.mark.parametrize(
    ("question", "known"), [("the lake?", True), ("去湖边？", True), ("どこですか？", False), ("Где озеро?", False)]
)
def test_a_script_without_figures_has_no_certainty(question, known):
    """What was not calibrated says nothing, also to the model."""
    with Context.open(EphemeralStorage(), "talk", window=8_000, clock=None) as context:
        context.append_turn("どこ Где озеро the lake 去湖边", {"role": "assistant", "content": "OK."})
        context.append_turn("Tea?", {"role": "assistant", "content": "OK."})
        context.archive(keep=0)
        context.flush()
        assert (context.search_memory(question, seen=False).certainty is not None) is known
        function = {"name": "search_memory", "arguments": f'{{"query": "{question}"}}'}
        assert ("% sure" in context.answer({"id": "c", "type": "function", "function": function})["content"]) is known
