"""What the tests of a folder run on. It tests nothing."""

import pytest

from memci.storage import FilesystemStorage


@pytest.fixture
def store_class() -> type[FilesystemStorage]:
    return FilesystemStorage
