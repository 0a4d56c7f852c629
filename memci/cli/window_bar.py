"""A window as a bar: what its parts take, what is free, and what is kept for the reply.

    ████▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░····╱╱╱╱╱
    ██ system & tools  600  ▒▒ contents  900  ▓▓ active 4,000  ░░ open  200  ·· free 1,297  ╱╱ reply 1,000

Each part has a shade of its own besides its colour. This module knows nothing of how the figures are computed.
"""

from rich.text import Text

from ..context.report import Report

_Part = tuple[str, str, str, int]
"""shade, colour, name, tokens"""


def window_bar(report: Report, width: int) -> Text:
    """Return the window as a bar of *width* columns."""
    bar = Text(no_wrap=True)
    reached = drawn = 0
    for shade, colour, _, tokens in _parts(report):
        reached += tokens
        end = min(width, round(width * reached / report.window))
        bar.append(shade * (end - drawn), style=colour)
        drawn = end
    return bar


def legend(report: Report, width: int) -> Text:
    """Return what the shades of the bar mean, with the tokens of each, in one line or two."""
    parts = _parts(report)
    labels = [f"{name} {tokens:>6,}" for _, _, name, tokens in parts]
    columns = len(parts) if sum(map(len, labels)) + 5 * len(parts) <= width else 3
    text = Text(no_wrap=True)
    for position, (shade, colour, name, tokens) in enumerate(parts):
        column = position % columns
        room = max(len(each) for each in labels[column::columns])
        text.append(shade * 2, style=colour)
        text.append(f" {name}{f'{tokens:,}':>{room - len(name)}}")
        last = position == len(parts) - 1
        text.append("" if last else "\n" if column == columns - 1 else "  ")
    return text


def _parts(report: Report) -> list[_Part]:
    tokens = report.tokens
    return [
        ("█", "blue", "system & tools", tokens["system"] + tokens["tools"] + tokens["framing"]),
        ("▒", "magenta", "contents", tokens["contents"]),
        ("▓", "green", "active", tokens["active"]),
        ("░", "yellow", "open", tokens["open"]),
        ("·", "bright_black", "free", max(0, report.budget - report.total)),
        ("╱", "bright_black", "reply", report.window - report.budget),
    ]
