"""A row is described once: a field more in `memci/rows.py` is stored, read and exported by every store."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import memci

FIELD = "    tools: str | None = None\n    seconds: float | None = None\n"

USE = """
import sys
from memci import Context, EphemeralStorage, SQLiteStorage
from memci.rows import CallRow
from memci.storage import EncryptedStorage, FilesystemStorage
from memci.storage.protocol import Transition

folder = sys.argv[1]
stores = (
    EphemeralStorage(),
    SQLiteStorage(folder + "/plain.db"),
    FilesystemStorage(folder + "/folder"),
    EncryptedStorage(SQLiteStorage(folder + "/sealed.db"), b"k" * 32),
)
for store in stores:
    with Context.open(store, "x", window=2_000) as context:
        context.append_turn("Hi", {"role": "assistant", "content": "Hello"})
    record, _ = store.load("x")
    call = CallRow(record.revision + 1, record.head, 0, None, None, 1, 2, 0, 0, 3, tools="[]", seconds=1.25)
    store.commit(Transition(record.head, record._replace(revision=record.revision + 1), calls=(call,)))
    with Context.view(store, "x") as view, Context.import_(EphemeralStorage(), list(view.export())) as copy:
        for context in (view, copy):
            print(*((each.tools, each.seconds) for each in context.calls()))
"""


def test_field_more_in_a_row_is_kept_by_every_store(tmp_path):
    """The descriptions of rows are the only code that a new field of a row changes."""
    package = shutil.copytree(Path(memci.__file__).parent, tmp_path / "memci")
    rows = package / "rows.py"
    text = rows.read_text(encoding="utf-8")
    assert text.count("    tools: str | None = None\n") == 1
    rows.write_text(text.replace("    tools: str | None = None\n", FIELD), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.stderr == ""
    assert done.stdout.split("\n") == ["('[]', 1.25)"] * 8 + [""]
