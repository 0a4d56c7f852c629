"""What the tests of old defects share: contexts that count words, and messages to put in. It tests nothing."""

from memci import Context, EphemeralStorage, StorageError
from memci.messagelist import MessageNode


def words(text: str) -> int:
    return len(text.split())


def opened(storage: object = None, **given: object) -> Context:
    given = {"id": "a", "window": 4_000, "counter": words, "nonce": "00000000", **given}
    return Context.open(EphemeralStorage() if storage is None else storage, **given)


def turn(number: int, size: int = 3) -> tuple[dict, dict]:
    return (
        {"role": "user", "content": f"question {number} " + "word " * size},
        {"role": "assistant", "content": f"answer {number} " + "word " * size},
    )


def talked(turns: int, size: int = 3, **given: object) -> Context:
    context = opened(**given)
    for number in range(1, turns + 1):
        context.append_turn(*turn(number, size))
    return context


def calling(*ids: str) -> dict:
    calls = [{"id": each, "type": "function", "function": {"name": "f", "arguments": '{"n":  1}'}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": f"result of {call_id}"}


def node(text: str, seq: int = 0) -> MessageNode:
    return MessageNode({"role": "user", "content": text}, 1, seq=seq)


class FailingStorage(EphemeralStorage):
    """A store that refuses to write while `broken`."""

    broken = False

    def commit(self, transition):
        if self.broken:
            raise StorageError("no space left")
        return super().commit(transition)


# -- the linked-list design
