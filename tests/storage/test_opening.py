"""A store by its place: a file, a folder or a URL."""

import subprocess
import sys
from contextlib import closing

import pytest

from memci import SQLiteStorage
from memci.storage import FilesystemStorage
from memci.storage.opening import is_folder, is_url, name_of, open_store

WITHOUT = """
import sys
sys.modules["psycopg"] = None
import memci
from memci.errors import InvalidSetting
for use in (lambda: memci.Context.open("postgresql://h/d", "a", window=4_000), lambda: memci.storage.PostgresStorage):
    try:
        use()
    except InvalidSetting as error:
        assert "pip install 'memci[postgres]'" in str(error), error
    else:
        raise AssertionError
"""


@pytest.mark.parametrize(
    ("place", "kind"), [("agent.db", SQLiteStorage), ("agent/", FilesystemStorage), ("there", FilesystemStorage)]
)
def test_kind_of_store_follows_from_its_place(tmp_path, place, kind):
    """A name is a file; one that ends in / is a folder, and so is a folder that is there."""
    (tmp_path / "there").mkdir()

    with closing(open_store(f"{tmp_path}/{place}")) as storage:
        assert type(storage) is kind


def test_url_is_named_without_what_is_secret():
    """A line names the database, not the user and the password."""
    url = "postgresql://ada:secret@db.example/agents?sslmode=require&password=secret"

    assert is_url(url)
    assert not is_folder(f"{url}/")
    assert not is_url("agents.db")
    assert (name_of(url), name_of("a/agent.db")) == ("agents", "agent.db")


def test_url_without_the_driver_says_what_to_install():
    """memci imports without psycopg, and names the extra when a URL is opened."""
    subprocess.run([sys.executable, "-c", WITHOUT], check=True)
