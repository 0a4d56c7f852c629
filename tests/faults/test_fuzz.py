"""Each target of `fuzz` has teeth. `make faults` tries thousands of inputs."""

import json
import os
import re
import signal
from random import Random

import pytest

from memci import Context, EphemeralStorage
from memci.errors import InvalidSetting
from memci.storage import codec
from memci.text.sanitize import quote
from memci.text.summarize import Summary, one_line
from memci.tools.attp import ParsedReply
from tests.door import open_context
from tests.faults import (
    fuzz,
    fuzz_calls,
    fuzz_files,
    fuzz_graphs,
    fuzz_imports,
    fuzz_names,
    fuzz_targets,
    fuzz_texts,
)
from tests.faults.fuzz import BATCH, TARGETS, Fuzz, Tried, tried_all
from tests.faults.tally import Order


def broken(target, *, tries: int = 400, **instead) -> str | None:
    """The first thing that is found."""
    return next((found for seed in range(tries) if (found := target(Random(seed), **instead)) is not None), None)


def test_input_hangs_by_its_own_cpu(monkeypatch):
    """An input that computes without end is told; one that waits on a full machine is not, as no clock runs."""
    monkeypatch.setattr(fuzz, "HANGS_SECONDS", 0.05)
    clocks = []

    def endless(_: Random) -> None:
        clocks.append(signal.getitimer(signal.ITIMER_REAL)[0])
        while True:
            pass

    told = tried_all(range(1), float("inf"), {"endless": (endless, 1)})

    assert told.violations == ["endless, seed 0: it took more than 0.05 s of CPU"]
    assert clocks == [0.0]


def dying(seeds: range, until: float) -> Tried:
    if seeds[0] in {BATCH, 5 * BATCH, 9 * BATCH}:  # none of the last, which are tried whatever was in flight
        os._exit(1)
    return tried_all(seeds[:1], until)


def test_worker_that_dies_is_told_and_the_rest_goes_on():
    """A crash of the interpreter is a broken promise, with the seeds to look at; the other inputs are still tried."""

    tally = Fuzz(batch=dying).run(Order(seed=0, aim=14 * BATCH, seconds=600, workers=1), lambda _: None)

    assert len(tally.violations) == tally.counts["workers that died"] == 3
    assert f"{BATCH} to {2 * BATCH - 1}" in tally.violations[0]
    assert tally.runs >= 1


def test_shares_are_of_a_thousand():
    """The weights say how many of a thousand inputs go to a target."""

    assert sum(weight for _, weight in TARGETS.values()) == 1_000


def test_same_seed_is_the_same_input():
    """What a seed tries is tried again by the same seed."""

    texts = [fuzz_texts.text(Random(seed)) for seed in (5, 5, 6)]

    assert texts[0] == texts[1] != texts[2]


def test_codec_that_loses_something_is_noticed():
    """A codec that replaces a character, or sorts keys, is found out."""

    def lossy(message):
        kind, body, copy = codec.encode(message)
        return kind, body, json.loads(json.dumps(copy).replace("\\u200b", "?"))

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
    assert broken(fuzz_targets.frames, quote=lambda text: quote(text).replace("\\u003c", "<"))


def test_recall_that_is_answered_badly_is_noticed():
    """An answer without a frame, and a mistake that counts as a use of a page, are found out."""

    def bare(context, call):
        told = context.answer(call)
        return {**told, "content": told["content"].replace("</memci", "<memci")}

    def counting(context, call):
        context.recall_page(3)
        return context.answer(call)

    assert broken(fuzz_calls.recalls, answer=bare)
    assert broken(fuzz_calls.recalls, answer=counting)


def test_reply_that_is_read_badly_is_noticed():
    """A call without code is no call."""

    assert broken(fuzz_calls.replies, parse=lambda text: ParsedReply(text, "success"))


def test_rendering_that_no_provider_accepts_is_noticed():
    """A rendering that shows a result twice is found out."""

    def doubling(context, **more):
        shown = Context.render(context, **more)
        return [message for message in shown for _ in range(1 + (message["role"] == "tool"))]

    assert broken(fuzz_graphs.graphs, tries=40, render=doubling)


@pytest.mark.parametrize(
    "flaw",
    [str.casefold, str.strip, lambda name: name.replace("/", "_"), lambda name: name[:200], lambda name: name or "x"],
    ids=["casefold", "strip", "slash", "length", "empty"],
)
def test_names_that_fall_together_are_noticed(flaw):
    """A store that makes two names one, or takes what is no name, is found out."""

    def flawed(storage, **given):
        if isinstance(given["id"], str):
            given["id"] = flaw(given["id"])
        return open_context(storage, **given)

    assert broken(fuzz_names.names, tries=300, open_context=flawed)


def test_name_that_is_refused_without_need_is_noticed():
    """What is safe on some disks only is still a name."""

    def careful(storage, **given):
        if not re.fullmatch(r"\w*", str(given["id"])):
            raise InvalidSetting("id", "no")
        return open_context(storage, **given)

    assert broken(fuzz_names.names, tries=60, open_context=careful)


def test_import_that_believes_what_was_changed_is_noticed():
    """One that asks for no digest, and one that keeps half of what it refuses, are found out."""

    def trusting(storage, lines, **given):
        lines = [line.encode("utf-8", "replace").decode() for line in lines]
        if len(lines) > 1 and "memci" in lines[0]:
            fuzz_imports.seal(lines)
        return Context.import_(storage, lines, **given)

    def hasty(storage, lines, **given):
        Context.open(storage, id="half", window=4_000)
        return Context.import_(storage, lines, **given)

    assert broken(fuzz_imports.imports, tries=300, take=trusting)
    assert broken(fuzz_imports.imports, tries=20, take=hasty)


def test_import_that_loses_something_is_noticed():
    """A chat without its last message is found out."""

    def short(storage, lines, **given):
        whole = Context.import_(EphemeralStorage(), lines, **given)
        if not given.get("id") or len(list(whole.messages())) < 2:
            return Context.import_(storage, lines, **given)
        kept = [json.dumps(message) for message in whole.messages()]
        return Context.import_(storage, kept[:-1], **given)

    assert broken(fuzz_imports.imports, tries=150, take=short)


@pytest.mark.parametrize("store", fuzz_files.STORES)
def test_silent_change_is_noticed(store):
    """What is read differently from a store that no check complains of is found out."""

    def forgetful(storage):
        return fuzz_files.seen(storage) | {"alice: messages": []}

    def blind(storage, context):
        return iter(())

    found = [fuzz_files.damaged(Random(seed), store, read=forgetful, check=blind) for seed in range(12)]

    assert any(found)


@pytest.mark.parametrize("store", fuzz_files.STORES)
def test_row_that_is_skipped_is_noticed_though_a_check_finds_it(store):
    """A message that can't be read is an error where it is read; that verify() knows it is not enough."""

    def skipping(storage):
        found = fuzz_files.seen(storage)
        return found | {"alice: messages": found["alice: messages"] and found["alice: messages"][1:]}

    def thorough(storage, context):
        return iter(["a message is missing"])

    assert any(fuzz_files.damaged(Random(seed), store, read=skipping, check=thorough) for seed in range(12))
