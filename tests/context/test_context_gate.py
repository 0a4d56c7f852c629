"""The gate: a large result of a tool is shown as a digest from its first rendering on, and recalled whole."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci import EphemeralStorage, Policy
from memci.errors import InvalidSetting
from memci.formats import FORMATS
from memci.history.events import Event
from tests.strategies import PIXEL

from .kit import STORES, again, call, calling, opened, result, store

pytestmark = pytest.mark.usefixtures("no_memory")

GATED = Policy(preset="economy", gate=300)
LISTING = "".join(f"src/parts/part_{at}.py: def read_part_{at}(path)\n" for at in range(300))
ERROR = {"type": "tool_result", "tool_use_id": "a", "content": LISTING, "is_error": True}


def looked_up(storage=None, text=LISTING, **given):
    """Return a context with a task, and the result *text* of a call of it."""
    context = opened(storage, counter=None, window=32_000, **{"policy": GATED, **given})
    context.append_turn("Mend part_117, please.", calling(call("a", arguments={"path": "part_203"})), result("a", text))
    return context


def shown(context):
    return next(each["content"] for each in context.render(strict=False) if each["role"] == "tool")


def recalled(context, page, entry):
    """Return the text of an entry, as the model reads it: by `recall_page`, in as many calls as that takes."""
    text, offset = "", 0
    while offset is not None:
        answer = context.answer(call("r", "recall_page", {"index": page, "entry": entry, "offset": offset}))["content"]
        text += json.loads(re.search(rf"^{entry} tool[^\n:]*: (\".*\")$", answer, re.MULTILINE)[1])
        going_on = re.search(r"^next: recall_page\((.*)\)$", answer, re.MULTILINE)
        asked = json.loads(going_on[1]) if going_on else {}
        offset = asked.get("offset") if asked.get("entry") == entry else None
    return text


def test_large_result_is_shown_as_a_digest():
    """Head, tail, what the task and the call name, and the call that reads the rest; it costs less than the gate."""
    context = looked_up()
    text = shown(context)

    assert text[:40] == LISTING[:40] and text[-40:] == LISTING[-40:]
    assert "def read_part_117(path)" in text and "def read_part_203(path)" in text
    assert "recall_page(index=1, entry=3)" in text
    assert context.count(text) < 300 < context.count(LISTING)


def test_digest_is_recalled_byte_for_byte():
    """By code and by the model, while it is shown and after it has left the window."""
    context = looked_up()
    inside = recalled(context, 1, 3)
    context.append_turn("Thanks.")
    context.archive(keep=0)

    assert inside == LISTING == recalled(context, 1, 3)
    assert context.recall_page(1, 3)[0]["content"] == LISTING


def test_answer_to_a_recall_is_never_a_digest():
    """Else the model would recall in a circle."""
    context = looked_up()
    ask = call("r", "recall_page", {"index": 1, "entry": 3})
    answer = context.answer(ask)
    context.append_turn(calling(ask), answer)

    assert context.count(answer["content"]) > 300
    assert context.render()[-1]["content"] == answer["content"]


@pytest.mark.parametrize("kind", STORES)
def test_rendering_is_the_same_after_a_restart_and_in_a_fork(kind, tmp_path):
    """What was chosen is stored: other settings, another version, a fork and a copy show the same bytes."""
    storage = store(kind, tmp_path)
    context = looked_up(storage)
    before = json.dumps(context.render())
    forked = json.dumps(context.fork("bob").render())
    lines = [*context.export()]
    context.close()

    assert forked == before
    assert json.dumps(again(storage, counter=None).render()) == before
    assert json.dumps(again(storage, counter=None, policy=Policy(gate=0)).render()) == before
    copied = type(context).import_(EphemeralStorage(), lines)
    assert json.dumps(copied.render()) == before


def test_change_of_the_gate_rewrites_nothing():
    """What is cached stays: only later results are shown whole."""
    storage = EphemeralStorage()
    before = looked_up(storage).render()
    context = again(storage, counter=None, policy=Policy(gate=0))
    context.append_turn(calling(call("b")), result("b", LISTING))

    assert context.render()[: len(before)] == before
    assert context.render()[-1]["content"] == LISTING


def test_digest_needs_its_recall():
    """Without the tools nothing is hidden: neither a new result, nor an old one once they are gone."""
    storage = EphemeralStorage()
    assert shown(looked_up(policy=Policy(preset="economy", gate=300, notice=False))) == LISTING
    looked_up(storage).close()
    context = again(storage, counter=None, policy=Policy(notice=False))

    assert shown(context) == LISTING
    assert context.report().total > context.count(LISTING)


def test_caller_may_show_a_result_whole():
    """An append may say that its results are needed as they are."""
    context = opened(counter=None, window=32_000, policy=GATED)
    context.append_turn("Go.", calling(call("a")), result("a", LISTING), gate=False)
    assert shown(context) == LISTING


def test_error_of_a_tool_is_shown_whole():
    """Anthropic's flag of an error: nobody looks for the cause in a digest."""
    context = opened(counter=None, window=32_000, policy=GATED, format="anthropic")
    use = {"type": "tool_use", "id": "a", "name": "search", "input": {}}
    context.append_turn("Go.", {"role": "assistant", "content": [use]}, {"role": "user", "content": [ERROR]})
    assert context.report().gated == 0
    assert context.render()[-1]["content"] == [ERROR]


def test_media_stay():
    """An image beside a large text is shown as it was."""
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    content = [{"type": "text", "text": LISTING}, image]
    context = opened(counter=None, window=32_000, policy=GATED)
    context.append_turn("Go.", calling(call("a")), {"role": "tool", "tool_call_id": "a", "content": content})
    sent = json.dumps(context.render())

    assert PIXEL in sent and "recall_page(index=1, entry=3)" in sent and "read_part_99" not in sent


@pytest.mark.parametrize("form", FORMATS)
def test_digest_is_shown_in_every_format(form):
    """The same digest, where each provider has its results."""
    sent = json.dumps(looked_up().render(format=form), ensure_ascii=False)
    assert "recall_page(index=1, entry=3)" in sent and "read_part_203" in sent and "read_part_99" not in sent


def test_gate_is_told():
    """An event says what the whole result would have cost; the report says what all digests save."""
    events: list[Event] = []
    context = looked_up(on_event=events.append)
    report = context.report()

    assert [(event.kind, event.pages) for event in events] == [("gate", (1,))]
    assert events[0].tokens > context.count(LISTING)
    assert report.gated == 1
    assert report.gated_tokens == context.count(LISTING) - context.count(shown(context))


def test_pending_result_is_shown_as_it_will_be():
    """A rendering with a pending result, and the one after its append, are the same bytes."""
    context = opened(counter=None, window=32_000, policy=GATED)
    context.append_turn("Go.", calling(call("a")))
    before = context.render(result("a", LISTING))
    context.append_turn(result("a", LISTING))

    assert context.render() == before


@pytest.mark.parametrize("gate", [-1, 1, 199, "800", True, 2.5])
def test_gate_is_checked(gate):
    """A digest below 200 tokens would be nothing but marks."""
    with pytest.raises(InvalidSetting, match="gate"):
        opened(policy=Policy(gate=gate))


@given(
    st.lists(st.tuples(st.sampled_from(["word ", "a/b_2.py\n", "\r\n", '{"id": 7},', "错误：文件。", "🙂", "E\u2028"]),
                       st.integers(1, 400)), min_size=1, max_size=12),
    st.integers(200, 2_000),
)  # fmt: skip
def test_every_result_is_recalled_byte_for_byte(pieces, gate):
    """Whatever the text and the gate: shown within the gate, extended by what follows, and recalled exactly."""
    text = "".join(piece * times for piece, times in pieces)
    storage = EphemeralStorage()
    context = looked_up(storage, text, policy=Policy(preset="economy", gate=gate))
    before = context.render()
    context.append_turn(calling(call("b")), result("b", "done"))
    after = context.render()

    assert after[: len(before)] == before
    assert again(storage, counter=None).render() == after
    assert (shown(context) == text) == (context.count(text) <= gate)
    assert context.count(shown(context)) <= gate
    assert (
        recalled(context, 1, 3) == text if shown(context) != text else context.recall_page(1, 3)[0]["content"] == text
    )
