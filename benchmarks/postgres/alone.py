"""What the server alone takes: the statement of an append, sent by pgbench, which itself needs next to no CPU.

    memci's own statement and values ──▶ a script of pgbench ──▶ so many sessions, each with a context of its own
    what counts up in a context (seq, revision, page, op) is counted by the script; the rest is as memci sent it

Each append is fenced and synced as any other; how far the contexts came is compared with what pgbench counted.
"""

import re
import resource
import subprocess
from contextlib import closing
from pathlib import Path

from memci import Context
from memci.memory import NullMemory
from memci.storage import PostgresStorage

COUNTED = {  # by the place of a value in the statement of an append with an op_id
    3: ":head::bigint + 2",
    7: ":revision::bigint + 1",
    11: ":base::bigint + :client_id",
    12: ":head",
    13: ":revision",
    14: "ARRAY[:head::bigint, :head + 1]",
    24: "ARRAY[:revision::bigint - 1, :revision]",
    35: "ARRAY[decode(md5(:revision::text), 'hex')]",
}


def alone(server, clients, seconds, said, count, server_cpu):
    """Return appends a second of so many sessions, and what each cost in ms of CPU."""
    schema = f"alone_{clients}"
    turn = said, {"role": "assistant", "content": said}
    with closing(PostgresStorage(server.url, schema=schema)) as storage:
        settings = {"owner": "one", "window": 4_000, "memory": NullMemory(), "counter": count, "clock": None}
        contexts = [Context.open(storage, f"{number:03}", **settings) for number in range(clients + 1)]
        for context in contexts:
            context.append_turn(*turn, op_id="first")
        start = storage.load("000")[0]
        statement, values = sent(storage, lambda: contexts[-1].append_turn(*turn, op_id="second"))
        variables = {"base": storage._place("000").number, "head": start.head, "revision": start.revision}
        texts = {}
        for at, (mark, value) in enumerate(zip(re.findall(r"%[sb](?:::\w+\[\])?", statement), values, strict=True)):
            if value is not None and at not in COUNTED:
                variables[f"v{at}"] = storage.database.read_rows(f"SELECT ({mark})::text", value)[0][0]
            texts[at] = COUNTED.get(at) or ("NULL" if value is None else f":v{at}")
        place = iter(texts.values())
        query = re.sub(r"%[sb]", lambda _: next(place), re.sub(r"\bour\b", schema, statement)).strip()
        script = Path(server.folder, "append.sql")
        script.write_text(f"{query};\n\\set head :head + 2\n\\set revision :revision + 1\n")
        options = ["--no-vacuum", "--protocol=prepared", f"--client={clients}", f"--time={round(seconds)}"]
        options += [f"--define={name}={value}" for name, value in variables.items()]
        served, sending = server_cpu(), resource.getrusage(resource.RUSAGE_CHILDREN)
        program = [server._program("pgbench"), *options, f"--file={script}", server.url]
        ran = subprocess.run(program, check=True, capture_output=True, text=True)
        served, after = server_cpu() - served, resource.getrusage(resource.RUSAGE_CHILDREN)
        done = int(re.search(r"actually processed: (\d+)", ran.stdout)[1])
        came = sum(storage.revision(each.id) - start.revision for each in contexts) - 1
        [[rows]] = storage.database.read_rows("SELECT count(*) FROM our.entry WHERE owner_key IS NOT NULL")
        assert (came, rows) == (done, 2 * (done + clients + 2)), f"of {done} appends {came} and {rows} rows are stored"
    spent = after.ru_utime + after.ru_stime - sending.ru_utime - sending.ru_stime
    rate = float(re.search(r"tps = ([\d.]+)", ran.stdout)[1])
    return {"clients": clients, "appends/s": rate, "server ms": 1e3 * served / done, "sender ms": 1e3 * spent / done}


def sent(storage, call):
    """Return the only statement by which *call* changes *storage*, and its values."""
    found, change_rows = [], storage.database.change_rows

    def noted(statement, *values):
        found.append((statement, values))
        return change_rows(statement, *values)

    storage.database.change_rows = noted
    try:
        call()
    finally:
        storage.database.change_rows = change_rows
    [only] = found
    return only
