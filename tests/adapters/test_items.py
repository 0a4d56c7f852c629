"""Items keep what only the framework can read, whatever it is, and cost little for what they have already."""

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from memci.adapters.items import OWN, data_url, exact, media, media_in, own_of
from memci.formats.envelope import function_call
from memci.storage.codec import decode, encode

KEYS = st.sampled_from(["text", "$", "$content", "image", "a/b"])
LONG = "a text that is long enough to stand once"
ITEM = {
    "role": "assistant",
    "content": [{"type": "text", "text": LONG}, media(data_url("image/png", b"\xff\xfe\xfb" * 9), "image/png")],
    "tool_calls": [function_call("c1", "f", {"key": LONG})],
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.sampled_from([LONG, "$=", "$content/0/text", "$64/x", {"key": LONG}, b"\xff\xfe\xfb" * 9]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=9,
)


@given(VALUES.filter(lambda own: own is not None))
def test_what_is_kept_comes_back(own):
    """It is the same after a restart, texts that look like references and bytes too."""
    kept = exact(ITEM, own, None)
    assert own_of(decode(*encode(kept)[:2])) == own
    assert {**kept, OWN: None} == {**ITEM, OWN: None}


def test_what_the_item_has_already_is_not_kept_twice():
    """A text, the arguments of a call, and data in either form of base64."""
    data = b64encode(b"\xff\xfe\xfb" * 9).decode()
    own = [LONG, {"key": LONG}, data, data.replace("+", "-").replace("/", "_"), b"\xff\xfe\xfb" * 9]
    assert not any(str(each) in str(exact(ITEM, own, None)[OWN]) for each in own)
    assert own_of(exact(ITEM, own, None)) == [*own[:3], data, own[4]]
    assert exact(ITEM, own, own) == ITEM


def test_what_was_clipped_is_not_read():
    """An item without its image is no longer the framework's message."""
    kept = exact(ITEM, {"image": b"\xff\xfe\xfb" * 9, "n": 1}, None)
    assert own_of({**kept, "content": "[image elided]"}) is None
    assert own_of(ITEM) is None


def test_media_are_parts_with_their_type():
    """An image, a file with its name, and what is at a URL."""
    for url, kind, name in (
        ("data:image/png;base64,AA", "image/png", None),
        ("data:text/csv;base64,AA", "text/csv", "a.csv"),
        ("https://x.test/a.wav", "audio/*", None),
        ("https://x.test/a.pdf", "document/*", None),
        ("https://x.test/a.png", "image/*", None),
    ):
        assert media_in(media(url, kind, name)) == (kind, url, name)
    assert media_in({"type": "text", "text": "Hi"}) is None
