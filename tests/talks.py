"""A context that was told a talk, all of it archived. It tests nothing."""

from memci import Context, EphemeralStorage


def told(*said: str) -> Context:
    """Return a context that was told *said*, each "name: text"."""
    context = Context.open(EphemeralStorage(), "talk", window=2_000, clock=None)
    for each in said:
        name, _, text = each.partition(": ")
        context.append_turn({"role": "user", "name": name, "content": text})
    context.append_turn("Well?")
    context.archive(keep=0)
    context.flush()
    return context
