"""What went wrong elsewhere with formats, odd text and size, and can't here. The numbers are public issues."""

import apsw
import pytest

from memci import EphemeralStorage
from memci.errors import InvalidMessage, LimitExceeded, SchemaTooNew, StorageUnavailable
from memci.storage.sqlite.schema import SCHEMA_VERSION
from tests.context.kit import again, opened, talked, turn

pytestmark = pytest.mark.usefixtures("no_memory")


def test_upgrade_deletes_no_history(tmp_path):
    """openai-agents#4729: an upgrade deleted all old history. A file of another schema is refused, and untouched."""
    path = tmp_path / "agent.db"
    talked(2, storage=path).close()
    connection = apsw.Connection(str(path))
    connection.execute("ALTER TABLE entry ADD COLUMN other TEXT")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StorageUnavailable, match="export"):
        again(path)

    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 99])
def test_other_version_is_not_deleted(tmp_path, version):
    """maka#2357: a version that did not match made the file be unlinked: 40 sessions gone. Here no byte changes."""
    path = tmp_path / "agent.db"
    talked(2, storage=path).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", version)
    connection.close()
    before = path.read_bytes()

    with pytest.raises(SchemaTooNew):
        again(path)

    assert path.read_bytes() == before


def test_half_a_surrogate_pair_is_refused(storage):
    """llm#546, cognee#275: half an emoji made every later request fail. It is refused, and nothing is stored."""
    message = {"role": "user", "content": "half \ud83d of it \udc4d"}
    context = opened(storage)
    with pytest.raises(InvalidMessage, match=r"messages\[1\]\.content"):
        context.append_turn("Hi", message)

    assert list(again(storage).messages()) == []


def test_image_that_is_too_large_wedges_nothing(storage):
    """claude-code#43056, senpi#302: an image of 101 MiB made every later request fail. It is refused at the door."""
    context = talked(1, storage=storage)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_000_000}}

    with pytest.raises(LimitExceeded):
        context.append_turn({"role": "user", "content": [image]})

    context.append_turn(*turn(2))
    assert len(list(again(storage).messages())) == 4


class Counting(EphemeralStorage):
    """Counts the messages that are read."""

    reads = 0

    def entries(self, context, first=0, end=None):
        for entry in super().entries(context, first, end):
            self.reads += 1
            yield entry


def test_long_history_does_not_make_opening_slow():
    """DeepSeek-Reasonix#10226: a log of 146 MB wedged the session. Opening reads the window, not the history."""
    storage = Counting()
    context = opened(storage, window=600)
    for number in range(400):
        context.append_turn(*turn(number))
        context.render()
    storage.reads = 0

    assert again(storage).render() == context.render()

    assert 0 < storage.reads < 100
