"""Erased words are nowhere, and no other owner sees one: a short run, and code that is broken on purpose."""

import pytest

from memci.window.state import WindowState

from .canaries import run


@pytest.mark.parametrize("kind", ["sqlite", "files", "ram", "encrypted"])
def test_what_is_erased_is_nowhere(kind):
    """Renderings, exports, searches, messages and files, after random acts of three owners."""
    done, left = run(kind, 11, 8)

    assert left == []
    assert done["erased"] >= 8
    assert {"say", "ask", "fork", "erase"} <= set(done)


def test_states_that_go_along_are_seen(monkeypatch):
    """The machine catches forks, exports and copies that take words of other contexts along, and erasures that leave
    these."""
    monkeypatch.setattr(WindowState, "alone", lambda state: state)

    assert run("sqlite", 1, 60)[1]
