"""The profile: versions that nothing empties, counters, and when a strategy is due."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.tiers.events import ConversationSummary
from memci.memory.tiers.profile import (
    KEPT_VERSIONS,
    LONGEST,
    Profile,
    Trait,
    describe_traits,
    is_usable,
    unite_traits,
)

bodies = st.text(max_size=60) | st.sampled_from(["none", "Error: no", "likes tea", "likes coffee"])


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  \n",
        "None",
        "- none.",
        "N/A",
        "null",
        "{}",
        "...",
        "无",
        "暂无",
        "なし",
        "없음",
        "Error: Could not get response from LLM.",
        '{"raw_text_profile": "Error: Could not get response from LLM."}',
        '{"error": "rate limit"}',
        "Traceback (most recent call last): …",
        "I'm sorry, but I can't help with that.",
        "APIError: 500",
        "Internal Server Error",
        "抱歉，我无法完成",
        "エラーが発生しました",
    ],
)
def test_replacing_by_nothing_keeps_the_profile(answer):
    """P04, P25: empty answers, "none" and the texts of errors change nothing, whatever their length."""
    profile = Profile().replaced("likes tea", now=1.0)

    assert not is_usable(answer)
    assert profile.replaced(answer, now=2.0) is profile


@pytest.mark.parametrize(
    "text", ["likes tea", "喜欢茶", "None of their plans are fixed", "Nothing scares them", "Errors annoy her"]
)
def test_usable_text_is_taken(text):
    """Words that an error or nothing would begin with are fine in a sentence."""
    assert is_usable(text)
    assert Profile().replaced(text, now=1.0).text == text


def test_replacing_keeps_the_versions_before():
    """R20: replace is a new version; what stood before is kept, the latest first."""
    profile = Profile().replaced("likes tea", now=1.0).replaced("likes coffee", now=2.0)

    assert (profile.text, profile.version, profile.at) == ("likes coffee", 2, 2.0)
    assert [(old.version, old.text, old.at) for old in profile.previous] == [(1, "likes tea", 1.0)]


def test_replacing_by_the_same_is_no_new_version():
    """What stands already needs no version of its own."""
    profile = Profile().replaced("likes tea", now=1.0)

    assert profile.replaced("likes tea\n", now=2.0) is profile


@given(st.lists(bodies, max_size=20))
def test_profile_of_any_history_is_bounded_and_never_emptied(history):
    """Whatever is answered, a profile that stood stands, versions count up, and all of it is bounded."""
    profile = Profile()
    for text in history:
        before = profile
        profile = before.replaced(text, now=1.0)

        assert bool(profile.text) >= bool(before.text)
        assert profile.version in {before.version, before.version + 1}
        assert len(profile.text) <= LONGEST
        assert len(profile.previous) <= KEPT_VERSIONS


def test_versions_of_a_profile_are_the_last_ten():
    """Of many versions, the latest ten before the one that stands are kept."""
    profile = Profile()
    for number in range(30):
        profile = profile.replaced(f"likes {number}", now=1.0)

    assert [old.text for old in profile.previous] == [f"likes {number}" for number in range(28, 18, -1)]
    assert len(profile.previous) == KEPT_VERSIONS


def test_profile_that_grows_too_long_loses_its_oldest_lines():
    """Of a text without end, the beginning goes."""
    profile = Profile().replaced("\n".join(f"fact number {number}" for number in range(2_000)), now=1.0)

    assert len(profile.text) <= LONGEST
    assert profile.text.endswith("fact number 1999")


def test_conversations_of_a_profile_are_the_last_five():
    """E08: the last five conversations stay with the profile."""
    profile = Profile()
    for number in range(8):
        profile = profile.remembered(ConversationSummary("2024-05-04", f"talk {number}"), 5)

    assert [told.summary[-1] for told in profile.conversations] == ["3", "4", "5", "6", "7"]


def test_profile_of_new_pages_keeps_what_was_known():
    """R27: a new profile keeps the traits that new pages say nothing of; of one dimension, it has the newer level."""
    known = (Trait("travel", "high", "flies every week", "c", 3), Trait("humour", "low", "never jokes"))

    found = unite_traits(known, [Trait("humour", "high", "jokes")])

    assert found == (known[0], Trait("humour", "high", "jokes"))
    assert describe_traits(found).splitlines() == ["travel: high — flies every week (#3)", "humour: high — jokes"]
