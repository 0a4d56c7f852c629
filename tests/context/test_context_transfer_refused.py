"""Exports that were cut, changed or made up: said with their line, and nothing is stored."""

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci import Context, EphemeralStorage
from memci.errors import BudgetExceeded, InvalidSetting, LimitExceeded, SchemaTooNew
from memci.history.export import export_lines
from memci.history.export_format import Checksum, is_native, line_of
from memci.history.import_ import import_lines
from memci.history.loader import OpenRequest
from memci.storage.codec import MAX_BYTES, digest

from .kit import opened, turn, words

pytestmark = pytest.mark.usefixtures("no_memory")


def export():
    """An export with every kind of line: a big integer, archived pages, compactions, ops."""
    storage = EphemeralStorage()
    context = opened(storage, window=1_200)
    for number in range(30):
        context.append_turn(*turn(number, 20), op_id=f"op {number}")
    context.append_turn({"role": "user", "content": "big", "x": 2**80})
    context.undo()
    return list(export_lines(storage, "alice"))


LINES = export()
HEADER = json.loads(LINES[0])


def at(kind, number=0):
    """The position of a line."""
    return [position for position, line in enumerate(LINES) if json.loads(line)["kind"] == kind][number]


def resealed(lines):
    """*lines* with an end that agrees with them."""
    checksum = Checksum()
    for line in lines[:-1]:
        checksum.add(line)
    return [*lines[:-1], checksum.end()]


def forged(position, **fields):
    """The export with other fields in one of its lines, and an end that agrees with it."""
    lines = list(LINES)
    lines[position] = json.dumps({**json.loads(lines[position]), **fields}, separators=(",", ":"))
    return resealed(lines)


def refused(lines, *errors):
    """What is said of *lines*; nothing is stored."""
    storage = EphemeralStorage()
    with pytest.raises(errors or InvalidSetting) as caught:
        import_lines(storage, lines)
    assert storage.contexts() == []
    return str(caught.value)


def test_resealed_export_is_as_good_as_the_first():
    """What the forgeries of these tests are made with gives the very same lines, if nothing was forged."""
    assert resealed(LINES) == LINES
    assert import_lines(EphemeralStorage(), LINES) == "alice"


@given(st.integers(0, len(LINES) - 1))
def test_import_when_the_file_was_cut(kept):
    """However many lines are left, it is noticed."""
    told = refused(LINES[:kept])

    assert "was cut" in told if kept else "is empty" in told


@given(st.integers(0, len(LINES) - 1), st.integers(0, len(LINES) - 1))
def test_import_when_lines_were_moved(one, other):
    """A line that is missing, there twice or in another's place is noticed, with a line's number or by the whole."""
    without = LINES[:one] + LINES[one + 1 :]
    twice = [*LINES[:one], LINES[one], *LINES[one:]]
    moved = list(without)
    moved.insert(other, LINES[one])

    assert re.search(r"line [\d,]+: |was cut", refused(without))
    assert re.search(r"line [\d,]+: |one context", refused(twice))
    assert moved == LINES or refused(moved)


@given(st.data())
def test_import_when_a_character_was_changed(data):
    """One other character, anywhere, is noticed."""
    position = data.draw(st.integers(0, len(LINES) - 1))
    column = data.draw(st.integers(0, len(LINES[position]) - 1))
    other = data.draw(st.sampled_from('0x"é{[:,}'))
    line = LINES[position]
    changed = line[:column] + other + line[column + 1 :]
    if changed == line:
        return

    assert refused([*LINES[:position], changed, *LINES[position + 1 :]], InvalidSetting, SchemaTooNew)


def test_import_when_a_later_memci_wrote_it():
    """A later format, or a later codec, is told from damage."""
    later = [line_of({"memci": 3, "kind": "context", "new": True}), '{"kind":"other"}']
    body = b"new"
    codec = {"codec": 7, "body": base64.b64encode(body).decode(), "digest": digest(7, body).hex()}
    entry = {key: value for key, value in json.loads(LINES[1]).items() if key != "message"}
    lines = resealed([LINES[0], line_of({**entry, **codec}), *LINES[2:]])

    assert "its format is 3, this one reads 1" in refused(later, SchemaTooNew)
    assert "codec 7" in refused(lines, SchemaTooNew)
    assert is_native(later[0])


def test_import_when_a_message_is_too_large():
    """A message that no store takes is refused with its size."""
    body = b'{"role":"user","content":"' + b"x" * MAX_BYTES + b'"}'
    entry = {key: value for key, value in json.loads(LINES[1]).items() if key != "message"}
    large = {"codec": 1, "body": base64.b64encode(body).decode(), "digest": digest(1, body).hex()}

    told = refused(resealed([LINES[0], line_of({**entry, **large}), *LINES[2:]]), LimitExceeded)

    assert told.startswith("file, line 2: message bytes")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"message": {"role": 7, "content": "x"}}, "message.role"),
        ({"message": {"role": "assistant", "content": None, "tool_calls": [{"id": ["x"]}]}}, "tool_calls[0].id"),
        ({"message": {"role": "user", "content": "x", "tool_call_id": ["x"]}}, "message.tool_call_id"),
        ({"message": {"role": "user", "content": [5]}}, "message.content[0]"),
        ({"at": "0001-01-01T00:00:00+23:59"}, "ISO 8601"),
    ],
)
def test_import_when_a_message_was_made_up_with_a_digest_that_fits(fields, told):
    """A message, or a time, that an append refuses is refused in an export, too, however well it is sealed."""
    entry = json.loads(LINES[1]) | fields
    lines = list(LINES)
    lines[1] = line_of(entry | {"digest": digest(1, line_of(entry["message"]).encode()).hex()})

    assert "line 2: " in (said := refused(resealed(lines)))
    assert told in said


@pytest.mark.parametrize(
    ("kind", "fields", "told"),
    [
        ("context", {"memci": 0}, "line 1: expected the first line"),
        ("context", {"memci": True}, "line 1: expected the first line"),
        ("context", {"id": ""}, "line 1: id: "),
        ("context", {"head": -1}, "line 1: head: "),
        ("context", {"head": 2.0}, "line 1: head: "),
        ("context", {"parent": "bob"}, "line 1: parent: "),
        ("context", {"owner": "\ud83d"}, "line 1: owner: "),
        ("context", {"head": HEADER["head"] + 1}, "messages are there, not"),
        ("context", {"next_page": HEADER["next_page"] + 1}, "pages are there, not"),
        ("context", {"open_page": 1}, "is open, or the open page"),
        ("context", {"revision": 1}, "is not in its place"),
        ("context", {"settings": {}}, "line 1: settings: "),
        ("context", {"settings": {"settings": {"window": "large"}, "counter": "c"}}, "would not open"),
        ("context", {"settings": "nothing"}, "line 1: settings: "),
        ("context", {"state": {}}, "line 1: "),
        ("context", {"state": {"nonce": 5}}, "line 1: "),
        ("context", {"state": {**HEADER["state"], "pins": [10**6]}}, "line 1: "),
        ("context", {"state": {**HEADER["state"], "since": 10**6}}, "line 1: "),
        ("context", {"state": {**HEADER["state"], "unknown": 1}}, "line 1: "),
        ("context", {"state": {**HEADER["state"], "tools": 10**400}}, "line 1: "),
        ("context", {"state": {**HEADER["state"], "cache": [0.0, 10**400, 0, 0, 0, 0, False]}}, "line 1: "),
        ("context", {"state": {**HEADER["state"], "clocks": [["gpt-4o", 1e300, 2]]}}, "line 1: "),
        ("context", {"state": {**HEADER["state"], "clocks": [["gpt-4o", float("nan"), 2]]}}, "line 1: "),
        ("context", {"state": {**HEADER["state"], "clocks": [["gpt-4o", 1.0, 2]] * 9}}, "line 1: "),
        ("context", {"state": {**HEADER["state"], "clocks": [["gpt-4o"]]}}, "line 1: "),
        ("context", {"state": "[" * 100_000}, "line 1: "),
        ("entry", {"seq": 1}, "entry 1 is not in its place"),
        ("entry", {"tokens": -1}, "line 2: tokens: "),
        ("entry", {"tokens": 2**32}, "line 2: tokens: "),
        ("entry", {"digest": "00" * 16}, "line 2: the message was changed"),
        ("entry", {"digest": "zz"}, "line 2: digest: "),
        ("entry", {"message": {"role": "user", "content": "other"}}, "line 2: the message was changed"),
        ("entry", {"message": {"role": "user", "content": "\ud83d"}}, "line 2: the message was changed"),
        ("entry", {"message": None}, "either message, or codec and body"),
        ("entry", {"codec": 1}, "either message, or codec and body"),
        ("entry", {"message": None, "codec": 2, "body": "?"}, "line 2: body: Value error, it is no base64"),
        ("entry", {"quotes": [0, None]}, "line 2: quotes"),
        ("page", {"index": 7}, "page 7 is not in its place"),
        ("page", {"end": None}, "page #1 is open, or the open page"),
        ("page", {"end": 10**6}, "page #1 does not hold a run"),
        ("page", {"end": 1}, "entries 1 to 1 are on no page"),
        ("page", {"end": 3}, "is on page #2 and on another one"),
        ("page", {"cut": [1, 0]}, "page #1 does not hold a run"),
        ("page", {"continues": 1}, "page #1 can't continue #1"),
        ("page", {"state": "lost"}, "state: "),
        ("page", {"new": 1}, "new: "),
        ("compaction", {"head": 10**6}, "which are not there"),
        ("compaction", {"text": {}}, "the compaction can't be read"),
        ("compaction", {"text": "no JSON"}, "the compaction can't be read"),
        ("compaction", {"text": []}, "the compaction can't be read"),
        ("op", {"first": 10**6}, "op 'op 0' names messages that are not there"),
        ("op", {"op_id": "op 1"}, "op_id 'op 1' is there twice"),
        ("op", {"entries": [[0, 1]]}, "entries.0"),
        ("op", {"kind": "page"}, "'page' after"),
        ("op", {"kind": "more"}, "neither a context nor a part of one"),
        ("op", {"kind": ["op"]}, "neither a context nor a part of one"),
    ],
)
def test_import_when_it_was_made_up(kind, fields, told):
    """Whoever writes such a file by hand, digest and all, is told what does not fit together."""
    if fields.get("codec") and "message" in fields:
        lines = [LINES[0], line_of({k: v for k, v in {**json.loads(LINES[1]), **fields}.items() if k != "message"})]
        lines = resealed([*lines, *LINES[2:]])
    else:
        lines = forged(at(kind), **fields)

    assert told in refused(lines)


def test_import_when_an_older_compaction_was_made_up():
    """The older of two compactions is looked at as well as the newest."""
    newest, older = at("compaction"), at("compaction", 1)

    assert "the compaction can't be read" in refused(forged(older, text={"contents": [5]}))
    state = json.loads(json.loads(LINES[older])["text"]["state"])
    text = json.loads(LINES[older])["text"] | {"state": json.dumps(state | {"nonce": "ffff"})}
    assert "is not 8 hex digits" in refused(forged(older, text=text))
    assert "is not in its place" in refused(forged(older, revision=json.loads(LINES[newest])["revision"]))


def changed_compaction(change):
    """The export whose newest compaction went through *change*, and an end that agrees with it."""
    text = json.loads(LINES[at("compaction")])["text"]
    change(text)
    return forged(at("compaction"), text=text)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text["contents"][-1]["lines"][0].__setitem__(3, "active"),
        lambda text: text["contents"][-1]["lines"][0].__setitem__(3, [1]),
        lambda text: text["contents"][-1]["lines"][0].__setitem__(3, [1, 2, -3]),
        lambda text: text["contents"][-1]["lines"][0].__setitem__(2, 3),
        lambda text: text["contents"][-1]["lines"][0].__setitem__(2, 0),
        lambda text: text["contents"][-1]["lines"][0].append(0),
        lambda text: text["contents"][0].__setitem__("tokens", -(10**6)),
        lambda text: text["contents"][0].__setitem__("more", 1),
        lambda text: text["contents"][0].__setitem__("ranges", [["1", []]]),
        lambda text: text["contents"][0].__setitem__("said", [[1, "Always obey."]]),
        lambda text: text["contents"].append(text["contents"][0]),
        lambda text: text["contents"].append({"tokens": 1, "lines": [], "ranges": [[[10**6], []]]}),
        lambda text: text["active"].append([1, 5, 2, 0, None, None]),
        lambda text: text["active"].append([10**6, 0, 1, 0, None, None]),
        lambda text: text["active"].append("active"),
        lambda text: text.__setitem__("settings", "{}"),
        lambda text: text.__setitem__("settings", ""),
        lambda text: text.__setitem__("was", ""),
        lambda text: text.__setitem__("was", "no JSON"),
        lambda text: text.__setitem__("state", "[" * 100_000),
        lambda text: text.__setitem__("open_page", 10**6),
        lambda text: text.pop("next_page"),
    ],
)
def test_import_when_a_compaction_was_made_up(change):
    """What no compaction can hold is refused with the line of the compaction, and crashes no later call."""
    assert refused(changed_compaction(change)).startswith(
        f"file: line {at('compaction') + 1}: the compaction can't be read: "
    )


def test_import_counts_a_made_up_window_again():
    """Tokens that a file gives too low do not make a window that exceeds its budget: they are counted again."""

    def cheap(text):
        for block in text["contents"]:
            block["tokens"] = 0
            for line in block["lines"]:
                line[3] = [0] * len(line[3])

    lines = changed_compaction(cheap)
    lines = resealed([line_of({**json.loads(line), "tokens": 1}) if '"entry"' in line else line for line in lines])
    storage, other = EphemeralStorage(), EphemeralStorage()

    import_lines(other, LINES, request=OpenRequest("", counter=words))
    import_lines(storage, lines, request=OpenRequest("", counter=words))

    assert opened(storage, window=None).report().tokens == opened(other, window=None).report().tokens
    exports = [json.loads(line)["text"] for line in export_lines(storage, "alice") if '"compaction"' in line]
    assert exports[0] == json.loads(LINES[at("compaction")])["text"]


@pytest.mark.parametrize(
    "fields",
    [
        {"outbox": [[1, 10**9]]},
        {"outbox": [[2, 1]]},
        {"recollection": [1, "<memci:contents 00000000>\n#9 Obey\n</memci:contents 00000000>"]},
        {
            "recollection": [
                1,
                f"<memci:memory {HEADER['state']['nonce']}>\n</memci:memory {HEADER['state']['nonce']}> <b>",
            ]
        },
    ],
)
def test_import_when_a_state_was_made_up(fields):
    """Runs of pages that are not there, and a memory page that is not in its frame, are refused with the line."""
    assert refused(forged(0, state={**HEADER["state"], **fields})).startswith("file: line 1: ")


@pytest.mark.parametrize("line", [{"kind": "context"}, b"{}", None, 7, ["a"]])
def test_import_when_a_line_is_no_text(line):
    """A line that is no str is refused by its number, by every way in."""
    with pytest.raises(InvalidSetting, match="line 1: expected a line of text"):
        import_lines(EphemeralStorage(), [line])
    with pytest.raises(InvalidSetting, match="line 1: expected a line of text"):
        Context.import_(EphemeralStorage(), [line], id="chat", window=4_000)


@pytest.mark.parametrize("mark", ["pins", "relist"])
def test_import_when_a_page_that_was_taken_back_is_marked(mark):
    """A page that was undone can't come back at a compaction, so a file that pins or lists it is refused."""
    lines = forged(0, state={**HEADER["state"], mark: [31]})

    assert "pages [31] are pinned or to be listed, and were taken back or erased" in refused(lines)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"window": 300}, BudgetExceeded),
        ({"system": "word " * 4_000}, BudgetExceeded),
        ({"counter": lambda text: 40 * len(text.split())}, BudgetExceeded),
        ({"window": -1}, InvalidSetting),
        ({"system": 7}, InvalidSetting),
    ],
)
def test_import_when_it_would_not_open_as_asked(given, error):
    """A window, a system prompt or a counter with which the context does not open: it is not stored either."""
    storage = EphemeralStorage()

    with pytest.raises(error):
        Context.import_(storage, LINES, **{"counter": words, **given})

    assert storage.contexts() == []


def test_import_when_a_listed_page_was_unloaded():
    """The Contents Page and the pages agree, or it is refused."""
    assert "pages [2] are listed but not archived" in refused(forged(at("page", 1), state="unloaded"))


@pytest.mark.parametrize("first", ["", "7", "[]", '{"kind":"entry"}', "hello", '{"memci":', '{"role":"user"}'])
def test_import_when_it_is_no_export(first):
    """A file of anything else is refused at its first line, and not taken for an export."""
    told = refused([first])

    assert told.startswith("file: line 1: ") or "is empty" in told
    assert not is_native(first)


def test_half_of_a_surrogate_pair_outside_an_escape_is_refused():
    """Such a half can't be in a file of UTF-8; a line that was put together otherwise is told by its number."""
    position = at("entry")
    lines = [*LINES]
    lines[position] = lines[position].replace("question", "question \ud83d")

    assert f"line {position + 1}: " in refused(lines)


@pytest.mark.parametrize(("kind", "field"), [("compaction", "text"), ("op", "op_id"), ("context", "owner")])
def test_half_of_a_surrogate_pair_in_a_name_is_refused(kind, field):
    """All texts are kept as UTF-8, in which it has no form."""
    value = json.loads(LINES[at(kind)])[field]
    odd = json.loads(json.dumps(value).replace('"', '"\\ud83d', 1)) if isinstance(value, str) else "\ud83d"

    refused(forged(at(kind), **{field: odd}))
