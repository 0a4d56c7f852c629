"""Observations of an agent without tools: output of its shell, and the command that it runs next.

    user        Hello World!                      printed by a machine, in the user's role
                bash-$
    assistant   It only says hello. Next, …       a thought,
                ```
                curl -s localhost/forms.pl        and a command in its text
                ```

Known are a prompt in the last line, and the words by which common agents begin an observation; commands in fences, in
tags, and behind "Action:".
"""

import re

from ..sanitize import harmless, one_line, width

_BEGINS = ("observation:", "[observation]", "observation\n", "[tool_result]", "<returncode>", "<output>", "<stdout>")
_PROMPT = re.compile(r"(?:\(\S{1,20}\) )?(?:\S{0,40}[-@:~/\])]\S{0,40}[$#]|\$|>>>)")
_LONGEST = 120  # characters of a line that may be a prompt; prompts are short
_LETTER = re.compile(r"[^\W\d_]")
_COMMAND = re.compile(
    r"```(?:[\w+-]*\n)?(?P<fenced>.*?)(?:```|\Z)"
    r"|<(?:execute_\w{1,20}|parameter=(?:command|code))>(?P<tagged>.{0,500}?)</"
    r"|^Action: ?(?P<action>[^\n]+(?:\nAction Input: ?[^\n]+)?)",
    re.DOTALL | re.MULTILINE,
)


def observes(text: str) -> bool:
    """Return whether *text*, which has the user's role, was printed by a machine. O(1)."""
    if text[:40].lstrip()[:16].lower().startswith(_BEGINS):
        return True
    before, _, last = text[-_LONGEST:].rstrip().rpartition("\n")
    return bool(before) and last.endswith(("$", "#", ">")) and _PROMPT.fullmatch(last.strip()) is not None


def drop_wordless(text: str) -> str:
    """Return *text* without prompts and lines without words, as progress bars have. O(length)."""
    rows = text.split("\n")
    return "\n".join(row for row in rows if _LETTER.search(row) and not _PROMPT.fullmatch(row.strip()[:_LONGEST]))


def command(text: str, columns: int) -> str:
    """Return the first line of the last command in *text*, "" if it has none. O(length).

    A long one keeps its beginning and its end, where similar commands differ.
    """
    found = list(_COMMAND.finditer(text))
    if not found:
        return ""
    act = found[-1]["action"]
    body = (act.replace("\nAction Input:", "") if act else found[-1]["fenced"] or found[-1]["tagged"] or "").strip()
    line = harmless(body.partition("\n")[0])
    if not line or width(line) <= columns:
        return line and one_line(line, columns)
    name = one_line(line.partition(" ")[0], columns // 3)
    end = line[width(name) + 3 - columns :]
    return one_line(f"{name} … {end.partition(' ')[2] or end}", columns)


def without_commands(text: str) -> str:
    """Return *text* without its commands: the thought. O(length)."""
    return _COMMAND.sub("\n", text)
