"""Stores for the inspector: a conversation at work, three facts that were not visible, hostile texts, a long one."""

from memci import Context, Policy, SQLiteStorage
from memci.cli.replay.demo import conversation
from memci.memory.backend import NullMemory
from memci.rows import EntryRow, PageRow, PageState
from memci.storage.codec import digest, encode
from memci.storage.protocol import Transition

NAME = "<img src=x onerror=alert(1)>\u202e"
HOSTILE = (
    "<script>document.title='owned'</script>",
    "'\"><img src=x onerror=\"document.title='owned'\">",
    "\u202etxt.exe\u2066 \x00\x1b[31m \ufffd",
    "{{ 7 * 7 }} </pre></script><style>*{display:none}</style>",
)
LONG = ("/", "/window?id=long", "/pages?id=long", "/page?id=long&n=2000", "/request?id=long")
"""the first page of each tab of a long conversation"""


def ask(context, question, answer):
    """One turn, as an agent makes it, with what the provider would report."""
    context.render(question)
    report = context.report()
    details = {"cached_tokens": int(report.total * report.cached_last)}
    usage = {"prompt_tokens": report.total, "completion_tokens": 20, "prompt_tokens_details": details}
    context.append_turn(question, {"role": "assistant", "content": answer}, usage=usage)


def prepared(path, turns=120, long=1_100_000):
    """Make the store at *path*; the desk has *turns* turns, and one hostile message *long* characters."""
    storage = SQLiteStorage(path)
    chat = conversation()
    pages = list(chat.pages())
    options = {"owner": "ada", "nonce": "1f9a03c2", "clock": None}
    with Context.open(storage, "travel-desk", system=chat.system, window=8_000, **options) as desk:
        for page in pages[:turns]:
            desk.render(page[0])
            report = desk.report()
            details = {"cached_tokens": int(report.total * report.cached_last)}
            usage = {"prompt_tokens": report.total, "completion_tokens": 20, "prompt_tokens_details": details}
            desk.append_turn(*page, usage=usage)
        desk.recall_page(7)
        desk.flush()
        desk.fork("travel-desk-2", at=turns // 2).close()
    code = "The alarm of the harbour office is off at night. Its door opens with 4471-KX, and the lift needs no key."
    with Context.open(storage, "door-code", window=4_000, **options) as line:
        ask(line, "You help me to move into the harbour office.", "With pleasure. What comes first?")
        ask(line, "Before we begin, note this for later. " + code, "Noted, I will keep that in mind.")
        for page in pages[:14]:
            line.append_turn(*page)
        line.flush()
    with Context.open(storage, "allergy", window=4_000, policy=Policy(never_recalled=10), **options) as gone:
        ask(gone, "You help me to plan my trip to Singapore.", "With pleasure. When do you leave?")
        ask(gone, "I am allergic to cashew nuts, so no satay for me, please.", "Understood.")
        for page in pages[:40]:
            gone.append_turn(*page)
        gone.flush()
    with Context.open(storage, "contract", window=4_000, **options) as clipped:
        clauses = [f"Clause {n}: the parties agree on point {n}, as written in annex {n}." for n in range(1, 400)]
        clauses[250] = "Clause 251: either side may end this contract with ninety days of notice."
        clipped.append_turn("Read this contract.\n" + "\n".join(clauses))
        clipped.append_turn({"role": "assistant", "content": "It has 399 clauses."})
        clipped.flush()
    with Context.open(storage, NAME, owner="<b>mallory", window=8_000, nonce="1f9a03c2", clock=None) as hostile:
        for text in HOSTILE:
            ask(hostile, text, text)
        ask(hostile, "A long one, please.", "x" * long)
    return storage


def long_store(path, count):
    """A store with a conversation of *count* pages: the old ones as rows, the last 200 as an agent appends them."""
    storage = SQLiteStorage(path)
    options = {"clock": None, "memory": NullMemory()}
    Context.open(storage, "long", window=8_000, nonce="1f9a03c2", **options).close()
    record, _ = storage.load("long")
    for start in range(0, count, 5_000):
        entries, pages = [], []
        for n in range(start, start + 5_000):
            for role in ("user", "assistant"):
                codec, body, _ = encode({"role": role, "content": f"{role} says that parcel {n} is on shelf {n % 97}."})
                entries.append(EntryRow(len(entries) + 2 * start, codec, body, digest(codec, body), 18))
            pages.append(PageRow(n + 1, 2 * n, 2 * n + 2, n, PageState.UNLOADED, archived_turn=n))
        changed = {"head": 2 * (start + 5_000), "next_page": start + 5_001, "turn": start + 5_000}
        after = record._replace(revision=record.revision + 1, **changed)
        storage.commit(Transition(record.head, after, tuple(entries), tuple(pages)))
        record = after
    with Context.open(storage, "long", **options) as context:
        for question in ("Go on.", "And now?", "And then?"):
            context.append_turn(question, {"role": "assistant", "content": "Parcels, and parcels."})
        assert context.archive(keep=0)
        for n in range(200):
            answer = f"Parcel {n} is on shelf {n % 97}, and the clerk signed for it. " * 8
            context.append_turn(f"Where is parcel {n} of today?", {"role": "assistant", "content": answer})
    return storage
