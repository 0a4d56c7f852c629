"""Items with anything in any place: each is taken and can be rendered for every provider, or refused with a path."""

import copy
import json
import os
from contextlib import suppress
from itertools import islice

import pytest

from memci import Context, EphemeralStorage
from memci.errors import InvalidMessage
from memci.formats import FORMATS, calls, read, write
from memci.messages import check
from memci.storage.codec import encode
from tests.formats.test_round_trips import ITEMS

pytestmark = pytest.mark.usefixtures("no_memory")

ODD = (None, "", 7, [], {}, ["x"], {"a": 1}, "\ud83d", [None], [{}], True, 1.5, {"type": 7}, [{"type": "text"}])
STEP = 1 if os.environ.get("MEMCI_EXAMPLES") else 23


def places(value, path=()):
    """The path of every key and element in *value*."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in entries:
        yield (*path, key)
        yield from places(each, (*path, key))


def hostile(form):
    """Every item of *form* with every odd value in every place."""
    for item in ITEMS[form]():
        for place in places(item):
            for odd in ODD:
                changed = copy.deepcopy(item)
                inside = changed
                for key in place[:-1]:
                    inside = inside[key]
                inside[place[-1]] = odd
                yield changed


@pytest.mark.parametrize("form", FORMATS)
def test_an_odd_value_is_written_or_refused(form):
    """Reading and checking raise an InvalidMessage with a path and nothing else; what they take can be written."""
    taken, refused = 0, []
    for item in islice(hostile(form), 0, None, STEP):
        try:
            messages = read([item], form)
            for message in messages:
                check(message, "messages[0]")
            stored = [encode(message)[2] for message in messages]
            calls(item, form)
        except InvalidMessage as error:
            refused.append(error)
            continue
        taken += 1
        assert all(json.dumps(write(target, stored)) for target in FORMATS)
    assert taken > 20 and refused
    assert all(error.path for error in refused)


@pytest.mark.parametrize("form", FORMATS)
def test_a_context_of_odd_values_can_be_used(form):
    """What is appended is counted, rendered for every provider, archived and read again; the store stays sound."""
    with Context.open(EphemeralStorage(), "alice", window=8_000, format=form) as context:
        for number, item in enumerate(islice(hostile(form), 5, None, STEP * 17)):
            with suppress(InvalidMessage):
                context.append_turn(f"question {number}", item)
        for target in FORMATS:
            assert json.dumps(context.request("And?", format=target, strict=False))
        context.archive(keep=0)
        assert context.recall_page(1)
        assert context.verify() == []
