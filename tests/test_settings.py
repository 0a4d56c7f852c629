"""Settings: sane where nothing is said, checked where something is, stored as they were given."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.errors import InvalidSetting
from memci.settings import Settings, settings
from tests.door import open_context


def opened(given: dict[str, object], before: str | None = None) -> Settings:
    """The settings of a context that is opened with *given*, *before* being what the last open stored."""
    return settings(given, before)[0]


def stored(**given: object) -> str:
    return json.dumps(settings(given, None)[1])


def test_defaults_follow_the_window():
    """With the window alone everything else has a value that makes sense, none of them 0."""
    chosen = opened({"window": 32_000})

    assert (chosen.reply, chosen.contents_tokens, chosen.archive_share) == (4_000, 1_200, None)
    assert (chosen.active_pages, chosen.never_recalled, chosen.stale) == (None, None, None)
    assert (chosen.every_turn, chosen.notice, chosen.preset) == (False, True, "balanced")


@pytest.mark.parametrize(("window", "reply"), [(800, 100), (8_000, 1_000), (32_768, 4_096), (1_000_000, 4_096)])
def test_reply_is_an_eighth_of_the_window_and_not_more_than_4096(window, reply):
    """What is kept free for the answer grows with the window up to a limit."""
    assert opened({"window": window}).reply == reply


@pytest.mark.parametrize(
    ("preset", "values"),
    [
        ("balanced", {"archive_share": None, "active_pages": None}),
        ("economy", {"archive_share": None, "active_pages": None}),
        ("verbatim", {"archive_share": 0.25, "active_pages": None}),
        (
            "original",
            {
                "archive_share": 0.0,
                "active_pages": 5,
                "never_recalled": 10,
                "stale": 20,
                "contents_tokens": 2_000,
                "every_turn": True,
            },
        ),
    ],
)
def test_preset_stands_for_its_values(preset, values):
    """A preset is a name for several settings."""
    chosen = opened({"window": 32_000, "preset": preset})

    assert {name: getattr(chosen, name) for name in values} == values


def test_what_is_given_wins_over_the_preset():
    """A preset fills in only what is not said."""
    chosen = opened({"window": 32_000, "preset": "original", "active_pages": 9})

    assert (chosen.active_pages, chosen.stale) == (9, 20)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "window"),
        ({"window": 0}, "window"),
        ({"window": 255}, "window"),
        ({"window": -1}, "window"),
        ({"window": 8_000.0}, "window"),
        ({"window": "8000"}, "window"),
        ({"window": True}, "window"),
        ({"window": 10**9}, "window"),
        ({"window": 8_000, "reply": -1}, "reply"),
        ({"window": 8_000, "reply": "1"}, "reply"),
        ({"window": 8_000, "reply": 10**5_000}, "reply"),
        ({"window": 8_000, "archive_share": 1.5}, "archive_share"),
        ({"window": 8_000, "archive_share": -0.1}, "archive_share"),
        ({"window": 8_000, "pricing": {("in", "out"): 1.0}}, "pricing"),
        ({"window": 8_000, "archive_share": float("nan")}, "archive_share"),
        ({"window": 8_000, "active_pages": 0}, "active_pages"),
        ({"window": 8_000, "never_recalled": 0}, "never_recalled"),
        ({"window": 8_000, "stale": 0}, "stale"),
        ({"window": 8_000, "contents_tokens": -1}, "contents_tokens"),
        ({"window": 8_000, "contents_tokens": 8_000}, "contents_tokens"),
        ({"window": 8_000, "preset": "fast"}, "preset"),
        ({"window": 8_000, "preset": ["economy"]}, "preset"),
        ({"window": 8_000, "notice": "yes"}, "notice"),
        ({"window": 8_000, "model": 5}, "model"),
        ({"window": 8_000, "active_page": 5}, "active_page"),
    ],
)
def test_setting_that_makes_no_sense_is_refused_by_name(given, name):
    """An argument of the wrong type or range is refused, and the error names it."""
    with pytest.raises(InvalidSetting) as caught:
        opened(given)

    assert caught.value.name == name
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("reply", [8_000, 9_000])
def test_reply_that_leaves_nothing_of_the_window_is_refused(reply):
    """The answer can't take the whole window."""
    with pytest.raises(InvalidSetting) as caught:
        opened({"window": 8_000, "reply": reply})

    assert caught.value.name == "reply"


def test_stored_settings_stand_for_what_is_not_given():
    """At a later open None means the stored value, for each setting."""
    given = {"window": 8_000, "archive_share": 0.9, "stale": 7, "notice": False, "model": "gpt-5"}

    assert opened({}, stored(**given)) == opened(given)
    assert opened({"window": None, "stale": None}, stored(**given)) == opened(given)


@given(
    st.fixed_dictionaries(
        {"window": st.integers(256, 200_000)},
        optional={
            "preset": st.sampled_from(["balanced", "economy", "verbatim", "original"]),
            "archive_share": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
            "active_pages": st.integers(1, 9),
            "contents_tokens": st.integers(0, 128),
            "reply": st.integers(0, 255),
            "never_recalled": st.integers(1, 9),
            "stale": st.integers(1, 9),
            "notice": st.booleans(),
        },
    )
)
def test_settings_come_back_as_they_were(given):
    """Whatever was given, a context that is opened again with nothing said has the same settings."""
    from memci import Context, EphemeralStorage
    from memci.errors import BudgetExceeded

    storage = EphemeralStorage()
    try:
        first = open_context(storage, id="a", counter=len_in_words, **given)
    except BudgetExceeded:
        assert given["window"] < 4_000
        return

    again = Context.open(storage, id="a", counter=len_in_words)

    assert again._parts.window.settings == first._parts.window.settings


def len_in_words(text: str) -> int:
    return len(text.split())


def test_new_window_takes_along_what_follows_from_it():
    """Reply and contents that nobody chose follow the new window; chosen ones stay."""
    plain, chosen = stored(window=8_000), stored(window=8_000, reply=700)

    assert (opened({"window": 32_000}, plain).reply, opened({"window": 32_000}, plain).contents_tokens) == (
        4_000,
        1_200,
    )
    assert opened({"window": 32_000}, chosen).reply == 700


def test_new_preset_starts_afresh():
    """Another preset does not inherit what the one before stood for, only window, model and notice."""
    before = stored(window=8_000, preset="original", model="gpt-5", notice=False)

    after = opened({"preset": "economy"}, before)

    assert after == opened({"window": 8_000, "preset": "economy", "model": "gpt-5", "notice": False})


def test_settings_are_frozen():
    """A setting changes at an open, not behind the window's back."""
    with pytest.raises(ValueError, match="frozen"):
        Settings(window=8_000).window = 9_000
