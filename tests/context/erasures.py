"""What the tests of erasing share: a secret in every place of a message, and what must hold afterwards."""

import json

from tests.invariants import check
from tests.machine.chat_grammars import problems

from .kit import call, calling, result


def shown(context):
    return json.dumps(context.render(strict=False))


def secret(number=1):
    """Return a turn with something to be erased in every place of a message."""
    name = f"canary{number}"
    return [
        {"role": "user", "content": f"{name}-question please", "name": f"{name}-name"},
        calling(call(f"{name}-id", f"{name}-tool", {f"{name}-key": f"{name}-argument"}), call("plain")),
        result(f"{name}-id", f"{name}-result"),
        result("plain", "other"),
        {"role": "assistant", "content": f"{name}-answer.", f"{name}-extra": [f"{name}-deep"]},
    ]


def well(*contexts):
    """Check what must hold of every context, whatever was erased."""
    for context in contexts:
        found = context.verify()
        assert found == [], found
        check(context._parts.window)
        assert problems(context.render()) == []
