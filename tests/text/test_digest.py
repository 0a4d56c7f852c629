"""Digests of tools' results: pieces of the text itself, by its kind."""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.digest import choose, kind_of, show
from memci.text.language.identifiers import identifiers
from memci.tokens import counter_for

count = counter_for()
_CALL = "recall_page(index=7, entry=3)"
LOG = "".join(f"2026-11-25 10:00:{at % 60:02} INFO worker {at} took job {at * 7}\n" for at in range(400))
SOURCE = "import os\n" + "".join(
    f"\n\ndef read_part_{at}(path: str) -> bytes:\n    data = open(path, 'rb').read()\n    return data[{at}:]\n"
    for at in range(80)
)
DIFF = "".join(
    f"diff --git a/part_{at}.py b/part_{at}.py\n--- a/part_{at}.py\n+++ b/part_{at}.py\n@@ -1,9 +1,9 @@\n"
    + " unchanged line\n" * 20
    + f"-old_value_{at} = 1\n+new_value_{at} = 2\n"
    for at in range(20)
)
RECORDS = [{"id": f"HAT{at:03}", "status": "available", "origin": "JFK", "seats": {"economy": at}} for at in range(150)]
RECORDS[77]["status"] = "cancelled"
JSON = json.dumps(RECORDS)
NUMBERED = "".join(f"{at}: value_{at % 7} += {at % 5}\n" for at in range(1_400, 1_700))
LISTING = "".join(f"src/main/java/com/acme/parts/Part{at}.java\n" for at in range(300))
TABLE = "name\tsize\towner\n" + "".join(f"file{at}\t{at * 13}\troot\n" for at in range(400))
PROSE = "".join(f"Nobody in the {at}th village had ever seen the sea, and few of them wished to. " for at in range(150))
KINDS = {"log": LOG, "source": SOURCE, "diff": DIFF, "json": JSON, "listing": LISTING, "table": TABLE, "text": PROSE}


@pytest.mark.parametrize("kind", KINDS)
def test_kind_is_seen(kind):
    """Each kind of result that is shown in its own way is seen; lines of a listing or a table are shown as text is."""
    assert kind_of(KINDS[kind]) == ("text" if kind in {"listing", "table"} else kind)


@pytest.mark.parametrize("kind", KINDS)
def test_digest_fits_and_has_both_ends(kind):
    """A digest keeps within its room, and shows how the text begins and ends, word for word."""
    text = KINDS[kind]
    shown = show(text, choose(text, 480, count), _CALL)

    assert 240 <= count(shown) <= 480 + count(_CALL)
    assert shown[:60] == text[:60] and shown[-20:] == text[-20:]
    assert shown.count(_CALL) == 1


def test_what_the_call_names_is_shown():
    """A line in the middle stays if the call or the task names what it says."""
    log = LOG.replace("worker 200 ", "worker_rex ")
    asked = [
        (log, "worker_rex"),
        (SOURCE, "read_part_41"),
        (LISTING, "Part150"),
        (JSON, "HAT099"),
        (TABLE, "file217"),
        (NUMBERED, "1523"),
    ]
    for text, word in asked:
        assert re.search(rf"{word}\b", show(text, choose(text, 480, count, {word}), _CALL))


FAILURE = "2026-11-25 10:03:31 ERROR disk /dev/sd{} is full"
SERVED = "".join(json.dumps({"at": at, "level": "info", "told": f"served job_{at * 7}"}) + "\n" for at in range(400))
REFUSED = '{{"at": 1, "level": "error", "told": "refused job_{}"}}'
PASSED = "".join(f"tests/part/test_{at}.py::test_read_part_{at} PASSED [{at // 4:3}%]\n" for at in range(400))
FAILED = "tests/part/test_disk.py::test_disk_{} FAILED [ 50%]"


@pytest.mark.parametrize(("text", "error"), [(LOG, FAILURE), (SERVED, REFUSED), (PASSED, FAILED)])
def test_errors_are_shown(text, error):
    """All of a few errors are shown, wherever they stand: by themselves, where there is no room for what is around."""
    lines = text.splitlines()
    for number, at in enumerate((60, 130, 211, 330)):
        lines.insert(at, error.format(number))
    shown = show("\n".join(lines), choose("\n".join(lines), 480, count), _CALL)

    assert [number for number in range(4) if error.format(number) in shown] == [0, 1, 2, 3]


def test_odd_values_of_records_are_shown():
    """Among equal records the odd one is shown, with its key."""
    assert '"status": "cancelled"' in show(JSON, choose(JSON, 480, count), _CALL)


def test_headers_and_changes_come_before_the_rest_of_a_diff():
    """A diff shows its files and changed lines."""
    shown = show(DIFF, choose(DIFF, 480, count), _CALL)
    assert sum(f"new_value_{at} = 2" in shown for at in range(20)) >= 5


def test_repeated_lines_are_counted():
    """What is left out of equal lines is counted."""
    text = "Reading package lists...\n" + "Progress: 10 % done\n" * 900 + "Done.\n"
    assert re.search(r"lines \d+–\d+, 8\d\d like the one above elided", show(text, choose(text, 200, count), _CALL))


_PIECES = st.sampled_from(
    ["word ", "a1/b_2.py:17 ", "\n", "\r\n", '{"id": 7},', "错误：文件不存在。", "🙂", "ERROR x\n", "\t", "-" * 90]
)


@given(st.lists(st.tuples(_PIECES, st.integers(1, 90)), min_size=1, max_size=40), st.integers(60, 600), st.data())
def test_digest_is_made_of_the_text(pieces, room, data):
    """Whatever the text: what is shown between marks is the text's own, in order, and it fits."""
    text = "".join(piece * times for piece, times in pieces)
    words = [*identifiers(text)]
    needed = {data.draw(st.sampled_from(words))} if words else set()
    spans = choose(text, room, count, needed)
    shown = show(text, spans, _CALL)

    assert choose(text, room, count, needed) == spans
    assert count(show(text, spans, "")) <= room or spans == (0, 0)
    at = 0
    for piece in re.split(r"\n?\[… [^\n]* …\]\n?", shown):
        found = text.find(piece, at)
        assert found >= at
        at = found + len(piece)


def test_any_numbers_are_shown():
    """Numbers of a damaged or made-up file cut the text somewhere, and never fail."""
    dice = random.Random(7)
    for _ in range(200):
        show(LOG, tuple(dice.randrange(-(2**31), 2**31) for _ in range(dice.randrange(9))), _CALL)
