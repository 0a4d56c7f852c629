"""Searches of one large owner on Postgres: the first one of a process, one with other words, and the same ones again.

    $ MEMCI_DATA=… .venv-postgres/bin/python -m benchmarks.postgres.searching --pages 100000

The pages are long dialogues, two messages a page, fed again and again; the questions are those about them. CPU of the
worker and of its one session of the server, in ms. Feeding takes 10 ms a page.
"""

import argparse
import json
import multiprocessing
import os
import random
import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from statistics import median

from memci import Context, EphemeralStorage
from memci.memory import TieredMemory
from memci.memory.backend import PageRecord
from memci.rows import ContextRecord, EntryRow, PageRow, PageState
from memci.storage import PostgresStorage
from memci.storage.codec import digest, encode
from memci.storage.protocol import Transition
from tests.postgres.server import Server

CONTEXT = 5_000
"""pages of a context"""
TOGETHER = 250
"""pages that are fed in one change"""


def dialogues():
    """Return the messages of each dialogue, and all questions."""
    talks = json.loads(Path(os.environ["MEMCI_DATA"], "locomo_part.json").read_text(encoding="utf-8"))
    messages = [
        [
            f"{each['speaker']}: {each['text']}"
            for n in range(1, 99)
            for each in talk["conversation"].get(f"session_{n}", ())
        ]
        for talk in talks
    ]
    return messages, [each["question"] for talk in talks for each in talk["qa"]]


def pages(messages):
    """Yield pages without end: context, index, two messages."""
    number = 0
    while True:
        for talk in messages:
            for first in range(0, len(talk) - 1, 2):
                said = tuple((at, {"role": "user", "content": talk[first + at - 1]}) for at in (1, 2))
                yield PageRecord(
                    f"chat {number // CONTEXT}", number % CONTEXT + 1, number % CONTEXT, said, 1.6e9 + number
                )
                number += 1


def fed(url, count):
    """Store so many pages, and let the memory observe them."""
    source, done = pages(dialogues()[0]), 0
    with closing(PostgresStorage(url)) as storage, closing(TieredMemory(storage, owner="ada")) as memory:
        while done < count:
            with memory.session.owner.change():
                for page in islice(source, TOGETHER):
                    keep(storage, page)
                    memory.observe(page)
            done += TOGETHER


def keep(storage, page):
    found = storage.load(page.context)
    record = found[0] if found else ContextRecord(page.context, "ada", "{}", "{}", revision=0)
    encoded = [encode(message)[:2] for _, message in page.entries]
    rows = tuple(
        EntryRow(record.head + at, codec, body, digest(codec, body), 9) for at, (codec, body) in enumerate(encoded)
    )
    after = record._replace(head=record.head + 2, next_page=page.index + 1, revision=record.revision + 1)
    row = PageRow(page.index, record.head, after.head, page.turn, PageState.UNLOADED)
    storage.commit(Transition(record.head, after, rows, (row,)))


def searched(url, questions):
    """Print what searches cost in a new process."""
    with Context.open(EphemeralStorage(), "warm", window=4_000) as context:  # imports and vocabularies
        context.append_turn("The ferry leaves at nine.", {"role": "assistant", "content": "Noted."})
        context.search_memory("When does the ferry leave?")
    with closing(PostgresStorage(url, pool_size=1)) as storage:
        session = Path(f"/proc/{storage.database.read_rows('SELECT pg_backend_pid()')[0][0]}/schedstat")
        memory = TieredMemory(storage, owner="ada", read_only=True)

        def search(question):
            worker, server = time.process_time(), int(session.read_text().split()[0])
            memory.search(question, k=10)
            worker = time.process_time() - worker
            return 1e3 * worker, 1e-6 * (int(session.read_text().split()[0]) - server)

        for name, asked in (("the first", questions[:1]), ("other words", questions[1:]), ("again", questions[1:])):
            spent = [search(question) for question in asked]
            both = sorted(map(sum, spent))
            middle = [*map(median, zip(*spent, strict=True)), median(both), both[len(both) * 9 // 10]]
            print(f"| {name} | {' | '.join(f'{value:.1f}' for value in middle)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=100)
    order = parser.parse_args()
    questions = random.Random(1).sample(dialogues()[1], order.questions)
    with Server(settings={"shared_buffers": "256MB", "max_wal_size": "4GB"}) as server:
        fed(server.url, order.pages)
        print("| search | worker | server | both | 90th percentile |\n| --- | ---: | ---: | ---: | ---: |")
        for _ in range(3):
            run = multiprocessing.get_context("spawn").Process(target=searched, args=(server.url, questions))
            run.start()
            run.join()


if __name__ == "__main__":
    main()
