"""What the tests of plain files run on. It tests nothing."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.storage import FilesystemStorage
from memci.storage.filesystem import files as filesystem_files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent"


@pytest.fixture
def storage(path: Path) -> Iterator[FilesystemStorage]:
    storage = FilesystemStorage(path, busy_timeout_seconds=0)
    yield storage
    storage.close()


@pytest.fixture
def spill_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memci.storage.filesystem.context_file.SPILL_BYTES", 0)


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is not about disks, and writes much."""
    monkeypatch.setattr(filesystem_files, "sync", lambda file: None)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder, and a user who owns it and is not root."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        if root:
            os.chown(name, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)
