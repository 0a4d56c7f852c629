"""What an operator scrapes: the locks, the queues and the disk of a store, as the store has them."""

import re
import time
from contextlib import closing
from pathlib import Path

from starlette.testclient import TestClient

from memci import Context, SQLiteStorage
from memci.serve.inspector.application import app
from memci.serve.metrics import Metrics, store_text
from memci.storage.locks import EXPIRY_SECONDS
from memci.storage.protocol import Ticket


def values(text):
    """The value of each metric, by its name with its labels."""
    return {name: float(value) for name, value in re.findall(r"(?m)^([^# ].*) (\S+)$", text)}


def test_locks_queues_and_disk_are_those_of_the_store(tmp_path):
    """A held lock, two that wait, one that has ended, and the bytes of the files; the same from the inspector."""
    path = tmp_path / "agents.db"
    with closing(SQLiteStorage(path)) as storage:
        with Context.open(storage, "alice", window=2_000, wait=1) as context:
            context.append_turn("Hello.")
            now = time.time()
            for number, expires in enumerate([now + EXPIRY_SECONDS, now + EXPIRY_SECONDS, now - 1]):
                storage.replace_ticket(None, Ticket("alice", f"t{number}", "another", "", now, expires))
            found = values(store_text(storage, str(path)))
        with TestClient(app(path), base_url="http://localhost") as client:
            served = values(client.get("/metrics").text)

    assert found['memci_store_locks{state="held"}'] == 1
    assert found['memci_store_locks{state="waiting"}'] == 2
    assert 0 <= found["memci_store_lock_age_seconds"] < EXPIRY_SECONDS
    assert found['memci_store_jobs{state="waiting"}'] == 0
    assert found["memci_store_bytes"] >= path.stat().st_size > 0
    assert found["memci_store_free_bytes"] > 0
    assert served.keys() == found.keys()


def test_dashboard_and_alerts_name_metrics_that_are_emitted(tmp_path):
    """Each name in deploy/ comes from the gateway, the store, OpenTelemetry's reader or the cron file."""
    root = Path(__file__).parents[2]
    with closing(SQLiteStorage(tmp_path / "agents.db")) as storage:
        emitted = {
            *re.findall(r"(?m)^# TYPE (\w+)", Metrics().text() + store_text(storage, str(tmp_path / "agents.db")))
        }
    spans = (root / "memci" / "adapters" / "opentelemetry.py").read_text("utf-8")
    emitted |= {each.replace(".", "_") for each in re.findall(r'"(memci\.[a-z.]+)"', spans)}
    emitted |= {*re.findall(r"memci_\w+", (root / "deploy" / "cron" / "memci").read_text("utf-8"))}

    files = [root / "deploy" / "grafana" / "memci.json", root / "deploy" / "prometheus" / "alerts.yaml"]
    named = {name for file in files for name in re.findall(r"\bmemci_\w+", file.read_text("utf-8"))}

    endings = ("", "_total", "_bucket", "_seconds_bucket")
    assert len(named) > 10
    assert [each for each in named if not any(each.removesuffix(end) in emitted for end in endings)] == []
