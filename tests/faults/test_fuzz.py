"""A quick look at `fuzz`: it runs, finds nothing wrong, and each target has teeth."""

import json
from random import Random

import pytest

from memci import Context
from memci.attp import Reply
from memci.frames import quoted
from memci.storage import codec
from memci.summarizers import Summary, one_line
from tests.faults import fuzz_files, fuzz_graphs, fuzz_targets
from tests.faults.fuzz import Fuzz
from tests.faults.tally import Order


def broken(target, *, tries: int = 400, **instead) -> list[str]:
    return [found for seed in range(tries) if (found := target(Random(seed), **instead)) is not None]


@pytest.mark.slow
def test_every_promise_holds_for_hostile_input():
    """Two thousand hostile inputs break nothing."""

    tally = Fuzz().run(Order(seed=1, aim=2_000, seconds=60), lambda _: None)

    assert tally.violations == []
    assert tally.runs == 2_000


def test_same_seed_is_the_same_input():
    """What a seed tries is tried again by the same seed."""

    texts = [fuzz_targets.text(Random(seed)) for seed in (5, 5, 6)]

    assert texts[0] == texts[1] != texts[2]


def test_codec_that_loses_something_is_noticed():
    """A codec that replaces half an emoji, or sorts keys, is found out."""

    def lossy(message):
        kind, body, copy = codec.encode(message)
        return kind, body, json.loads(json.dumps(copy).replace("\\ud83d", "?"))

    def sorting(message):
        kind, body, copy = codec.encode(message)
        return kind, body, dict(sorted(copy.items()))

    assert broken(fuzz_targets.codec, encode=lossy)
    assert broken(fuzz_targets.codec, encode=sorting)


def test_codec_that_refuses_everything_is_noticed():
    """Refusing is no way to be exact."""

    def refusing(message):
        raise codec.InvalidMessage("message", "no")

    assert broken(fuzz_targets.codec, encode=refusing)


def test_line_that_is_not_clean_is_noticed():
    """Lines that only lose their line breaks, and summaries that lack a line, are found out."""

    assert broken(fuzz_targets.lines, line=lambda text, columns: " ".join(text.split())[:columns] or "-")
    assert broken(fuzz_targets.lines, summarize=lambda messages: Summary("title", ("line",)))


def test_line_that_changes_when_made_again_is_noticed():
    """A line has to be made of itself."""

    assert broken(fuzz_targets.lines, line=lambda text, columns: one_line(one_line(text, columns) + "x", columns))


def test_frame_that_can_be_forged_is_noticed():
    """Titles that are shown as they were said, and quotations that keep their brackets, are found out."""

    assert broken(fuzz_targets.frames, line=lambda text, columns: text)
    assert broken(fuzz_targets.frames, quote=lambda text: quoted(text).replace("\\u003c", "<"))


def test_recall_that_is_answered_badly_is_noticed():
    """An answer without a frame, and a mistake that counts as a use of a page, are found out."""

    def bare(context, call):
        told = context.answer(call)
        return {**told, "content": told["content"].replace("</memci", "<memci")}

    def counting(context, call):
        context.recall_page(3)
        return context.answer(call)

    assert broken(fuzz_targets.recalls, answer=bare)
    assert broken(fuzz_targets.recalls, answer=counting)


def test_reply_that_is_read_badly_is_noticed():
    """A call without code is no call."""

    assert broken(fuzz_targets.replies, parse=lambda text: Reply(text, "success"))


def test_rendering_that_no_provider_accepts_is_noticed():
    """A rendering that shows a result twice is found out."""

    def doubling(context, **more):
        shown = Context.render(context, **more)
        return [message for message in shown for _ in range(1 + (message["role"] == "tool"))]

    assert broken(fuzz_graphs.graphs, tries=40, render=doubling)


@pytest.mark.parametrize("store", fuzz_files.STORES)
def test_silent_change_is_noticed(store):
    """What is read differently from a store that no check complains of is found out."""

    def forgetful(storage):
        return fuzz_files.seen(storage) | {"alice: messages": []}

    def blind(storage, context):
        return iter(())

    found = [fuzz_files.damaged(Random(seed), store, read=forgetful, check=blind) for seed in range(12)]

    assert any(found)
