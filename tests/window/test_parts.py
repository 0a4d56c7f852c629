"""The lines of what left a page: what was done, errors and identifiers, within their room, and nothing twice."""

import json

from hypothesis import given
from hypothesis import strategies as st

from memci.chapters.contents import ListedPart
from memci.chapters.messagelist import MessageNode
from memci.text.sanitize import is_confined
from memci.window.parts import MOST, add_part


def run(number: int, command: str, told: str) -> list[MessageNode]:
    """A call of a command, and its result."""
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
    messages = (
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": told},
    )
    return [MessageNode(message, 10, seq=number + at) for at, message in enumerate(messages)]


def count(text: str) -> int:
    return len(text)


def test_a_line_says_what_was_done_then_the_error_and_the_identifiers_that_were_used():
    """Commands come first, then the last error, then identifiers: those of calls before those of results."""
    nodes = [
        *run(0, "sed -n 1,40p src/app.py", "import read_part\nfrom lib.more import zz_top"),
        *run(2, "cd /work && pytest tests/test_app.py", "TypeError: unsupported operand"),
    ]

    [part] = add_part([], ListedPart(1, 2, 5, ""), nodes, "", 1_000, count)

    acts, error, *names = part.line.split(" · ")
    assert (acts, error) == ("sed, cd", "TypeError: unsupported operand")
    assert {"src/app.py", "tests/test_app.py"} <= set(names[:3])
    assert names.index("src/app.py") < names.index("read_part")
    assert part.text == f"#1 entries 2–5: {part.line}\n"


def test_an_escaped_end_of_a_line_begins_no_identifier():
    """The arguments of a call are JSON, where a line ends with two characters."""
    [part] = add_part(
        [], ListedPart(1, 2, 3, ""), run(0, "python - <<E\nbase_part = 1\n\ttest_part = 2", ""), "", 900, count
    )

    assert part.line == "python · base_part · test_part"


def test_what_is_shown_or_listed_is_not_said_again():
    """A term that stands on an earlier line, or in the window, takes no room."""
    first = add_part(
        [], ListedPart(1, 2, 3, ""), run(0, "ls src/a.py", "src/b.py src/c.py"), "it has src/b.py", 900, count
    )
    both = add_part(first, ListedPart(1, 4, 5, ""), run(2, "cat src/a.py", "src/d.py"), "", 900, count)

    assert both[0].line == "ls · src/a.py · src/c.py"
    assert both[1].line == "cat · src/d.py"


@given(st.lists(st.text(max_size=200), min_size=1, max_size=3 * MOST), st.integers(50, 800))
def test_lines_keep_to_their_room_and_cover_what_left(texts, room):
    """However much leaves: a bounded number of lines, which together name each entry once, and are plain text."""
    parts: list[ListedPart] = []
    for at, text in enumerate(texts):
        new = ListedPart(1, 2 + 2 * at, 3 + 2 * at, "")
        parts = add_part(parts, new, run(at, f"run{at} src/{at}.py {text}", text), "", room, count)
        assert len(parts) <= MOST
        assert sum(count(part.line) for part in parts) <= room
        named = [ordinal for part in parts for ordinal in range(part.first, part.last + 1)]
        assert named == list(range(2, 4 + 2 * at))
        assert all(is_confined(part.line) for part in parts)
