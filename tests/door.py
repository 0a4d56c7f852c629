"""The door to a context, as the tests' kits use it: every setting by its name, whichever argument takes it.

    open_context(store, id="alice", window=4_000, archive_share=0.75)      Context.open(…, policy=Policy(…))
    open_context(store, id="alice", read_only=True, at=5)                  Context.view(…, at=5)

Contexts of tests have no clock, so that equal calls store equal bytes. It tests nothing.
"""

from dataclasses import fields

from memci import AsyncContext, Context, Policy

SETTINGS = {field.name for field in fields(Policy)}


def _arguments(id, given):  # noqa: A002
    policy = {name: given.pop(name) for name in list(given) if name in SETTINGS}
    if policy:
        given["policy"] = Policy(**policy)
    viewed = given.pop("read_only", False) or given.get("at") is not None
    if viewed:
        for name in ("nonce", "owner", "wait", "on_event", "clock"):
            given.pop(name, None)
    else:
        given.pop("at", None)
        given.setdefault("clock", None)
    return viewed, {"id": id, **given}


def open_context(store, *, id, **given):  # noqa: A002
    viewed, arguments = _arguments(id, given)
    return (Context.view if viewed else Context.open)(store, **arguments)


def open_async(store, *, id, **given):  # noqa: A002
    viewed, arguments = _arguments(id, given)
    return (AsyncContext.view if viewed else AsyncContext.open)(store, **arguments)
