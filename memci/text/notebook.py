"""Values as a notebook shows them: a small HTML table.

Every text in it is escaped.
"""

from collections.abc import Mapping
from html import escape

from .sanitize import one_line

_COLUMNS = 160


def table(title: str, facts: Mapping[str, object]) -> str:
    """Return *facts* as an HTML table under *title*; each is cut to one line. O(characters)."""
    rows = [
        f"<tr><th style='text-align:left'>{_text(name)}</th><td style='text-align:left'>{_text(fact)}</td></tr>"
        for name, fact in facts.items()
    ]
    return f"<table><caption style='text-align:left'><b>{_text(title)}</b></caption>{''.join(rows)}</table>"


def _text(value: object) -> str:
    shown = f"{value:,}" if isinstance(value, int) else str(value)
    return escape(one_line(shown, _COLUMNS).encode("utf-8", "replace").decode())
