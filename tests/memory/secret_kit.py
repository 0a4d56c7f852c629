"""What the tests of erasure and of quarantine share: a memory with a secret in it, and what is left of it."""

from machine_kit import rows
from model_kit import DAY, NOON, drained, obliging, page, shown, tell

from memci.memory.tiers.rules import Rules

SECRET = "zanzibarqua"
WIDE = Rules(capacity=4, batch=2, promoted=1.0, accesses=1, threshold=0.2)
"""so that all pages are in few episodes"""


def derived(memory, word):
    """Return where *word* stands in what was derived."""
    found = rows(memory, "SELECT kind, body FROM memory_item UNION ALL SELECT 'job ' || kind, body FROM memory_job")
    found += rows(memory, "SELECT 'page', title || keywords FROM memory_page")
    return sorted({kind for kind, body in found if word in body.casefold()})


def lived(memory, clock, *, secrets=(5,), count=16):
    """Tell pages over two days, some of them of the secret, and let everything be done."""
    for index in range(1, count + 1):
        text = f"violins and quokka{index:02}" + (f" married in {SECRET}" if index in secrets else "")
        tell(memory, page(index, text, at=NOON + DAY * (index > count // 2) + 60 * index))
        while memory.run_job():
            pass
    memory.search(f"violins {SECRET}", k=20)
    drained(memory, clock)


def mixing(asked):
    """Answer with words of all that is shown, whichever page is asked for: as a careless model does."""
    values = shown(asked)
    leaks = f" and {SECRET}" if SECRET in asked.text else ""
    said = obliging(asked)
    if asked.step == "page":
        events = [each | {"what": each["what"] + leaks} for each in said["events"]]
        return said | {"title": said["title"] + leaks, "events": events}
    if asked.step == "topics" and len(values) > 1:
        halves = [[values[0]["page"]], [each["page"] for each in values[1:]]]
        theme = {"keywords": f"half{leaks}".split(), "theme": f"Half{leaks}", "content": f"On a half{leaks}"}
        return {"themes": [theme | {"pages": half} for half in halves]}
    if asked.step == "analysis":
        return said | {"user": [each | {"fact": each["fact"] + leaks} for each in said["user"]]}
    if asked.step == "concepts":
        return {
            "relations": [each | {"object": (SECRET if leaks else "") or each["object"]} for each in said["relations"]]
        }
    return said
