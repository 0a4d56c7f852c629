"""S17: errors, logs and reprs name ids and sizes, never what was said."""

import copy
import json
import logging
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator

import pytest

import memci
from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import MemciError, StorageBusy, StorageUnavailable
from memci.storage import FilesystemStorage
from memci.text.sanitize import quote
from tests.faults.fuzz_files import STORES

from .kit import agent

CANARY = "kanarienvogel"


def secret(what: str) -> str:
    return f"{CANARY} {what} " + "x" * 40


def call(call_id: str, **odd: object) -> dict:
    body = {"name": "find", "arguments": json.dumps({secret("key"): secret("argument")})}
    return {"id": call_id, "type": "function", "function": body | odd, "signature": secret("signature")}


def turn(call_id: str) -> list[dict]:
    """Return an interaction with a canary in every field that holds what was said."""
    return [
        {"role": "user", "content": [{"type": "text", "text": secret("part")}], "metadata": {"note": secret("note")}},
        {
            "role": "assistant",
            "content": secret("reply"),
            "reasoning_content": secret("thought"),
            "tool_calls": [call(call_id)],
        },
        {"role": "tool", "tool_call_id": call_id, "content": secret("result")},
        {"role": "assistant", "content": secret("answer"), "refusal": secret("refusal")},
    ]


def talked(storage: object, **given: object) -> Context:
    context = agent(storage, system=secret("system"), **given)
    for at in range(6):
        context.append_turn(*turn(f"c{at}"))
    context.archive(keep=2)
    return context


def said(error: BaseException) -> Iterator[str]:
    """Yield all that is printed of *error*: itself, its facts, its traceback with what it came from."""
    yield str(error)
    yield repr(error)
    yield repr(vars(error))
    # a traceback prints lines of source, of which those of the tests hold canaries; what counts are the messages
    chain: BaseException | None = error
    while chain is not None:
        yield from traceback.format_exception_only(chain)
        chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)


BAD: dict[str, Callable[[], object]] = {
    "a value that is no JSON": lambda: {"role": "user", "content": "Hi.", "x": {"y": [secret("z"), object()]}},
    "bytes": lambda: {"role": "user", "content": secret("z").encode()},
    "a tuple": lambda: {"role": "user", "content": "Hi.", "x": (secret("z"),)},
    "a set": lambda: {"role": "user", "content": "Hi.", "x": {secret("z")}},
    "a float": lambda: {"role": "user", "content": secret("z"), "x": float("nan")},
    "digits": lambda: {"role": "user", "content": secret("z"), "x": 10**5_000},
    "too much": lambda: {"role": "user", "content": secret("z") * 2**18},
    "too much of surrogates": lambda: {"role": "user", "content": (secret("z") + "\ud83d") * 2**18},
    "too deep": lambda: {"role": "user", "content": secret("z"), "x": deep(secret("z"))},
    "a function's message": lambda: {"role": "function", "content": secret("z")},
    "a block of another type": lambda: {"role": "user", "content": [{"type": "tool_result", "content": [secret("z")]}]},
    "a content without parts": lambda: {"role": "model", "parts": secret("z")},
    "an item without its place": lambda: {"type": "reasoning", "summary": secret("z")},
    "no role": lambda: {"content": secret("z")},
    "a content that is an object": lambda: {"role": "user", "content": {"text": secret("z")}},
    "a part that is text": lambda: {"role": "user", "content": [secret("z")]},
    "a part without a type": lambda: {"role": "user", "content": [{"text": secret("z")}]},
    "a text part without text": lambda: {"role": "user", "content": [{"type": "text", "value": secret("z")}]},
    "calls by the user": lambda: {"role": "user", "content": secret("z"), "tool_calls": [call("c")]},
    "calls that are no list": lambda: {"role": "assistant", "tool_calls": secret("z")},
    "a call that is text": lambda: {"role": "assistant", "tool_calls": [secret("z")]},
    "an object of arguments": lambda: {"role": "assistant", "tool_calls": [call("c", arguments={"a": secret("z")})]},
    "a name that is a list": lambda: {"role": "assistant", "tool_calls": [call("c", name=[secret("z")])]},
    "a call without an id": lambda: {"role": "assistant", "tool_calls": [call(7)]},
    "a result without a call": lambda: {"role": "tool", "tool_call_id": "nobody", "content": secret("z")},
    "a result without an id": lambda: {"role": "tool", "content": secret("z")},
    "a long key": lambda: {"role": "user", "content": "Hi.", "x": {secret("z"): {1, 2}}},
    "a key that is a tuple": lambda: {"role": "user", "content": "Hi.", "x": {(secret("z"),): 1}},
    "a key that is bytes": lambda: {"role": "user", "content": "Hi.", "x": {secret("z").encode(): 1}},
    "a role that is text": lambda: {"role": secret("z"), "content": "Hi."},
    "a role that is a list": lambda: {"role": [secret("z")], "content": "Hi."},
    "a type that is a list": lambda: {"role": "user", "content": [{"type": [secret("z")]}]},
    "a key of many digits": lambda: {"role": "user", "content": secret("z"), "x": {10**5_000: 1}},
    "an object": lambda: [secret("z")],
    "itself": lambda: endless(),  # noqa: PLW0108 -- it is defined below
}  # fmt: skip


def deep(inner: object) -> object:
    for _ in range(400):
        inner = [inner]
    return inner


def endless() -> dict:
    made: dict = {"role": "user", "content": secret("z")}
    made["x"] = made
    return made


@pytest.mark.parametrize("name", BAD)
def test_refused_message_is_not_repeated(name, caplog):
    """What is wrong with a message is said with its path and type, not with what it says."""
    caplog.set_level(logging.DEBUG)
    context = agent()

    for act in (context.append_turn, context.render):
        with pytest.raises(MemciError) as error:
            act("Hi.", BAD[name]())
        assert not [each for each in said(error.value) if CANARY in each]

    assert CANARY not in caplog.text


def provoked(context: Context, storage: object) -> Iterator[Callable[[], object]]:
    """Yield acts that are errors, one for each reason that there is."""
    yield lambda: context.recall_page(999)
    yield lambda: context.recall_page(1, 999)
    yield lambda: context.append_turn(secret("other"), op_id="twice")
    yield lambda: context.append_turn(secret("at"), at="no date")
    yield lambda: context.append_turn(secret("op"), op_id="")
    yield lambda: context.archive(keep=-1)
    yield lambda: context.fork("alice")
    yield lambda: agent(storage, window=10)
    yield lambda: agent(storage, model=7)
    yield lambda: agent(storage, system=7)
    yield lambda: agent(storage, id="tiny", window=256, system=secret("system") * 50)
    yield lambda: context.render(*[secret("pending")] * 400)
    yield lambda: context.render({"role": "assistant", "content": secret("pending"), "tool_calls": [call("open")]})
    yield lambda: context.render(tools=[secret("tool")])
    yield lambda: agent(storage, read_only=True).append_turn(secret("late"))
    yield lambda: agent(storage, id="nobody", read_only=True)
    yield lambda: memci.Context.import_(
        storage, [json.dumps({"role": "user", "content": secret("chat")}) + "}"], id="x", window=4_000
    )
    yield lambda: memci.Context.import_(storage, [json.dumps(secret("chat"))], id="x", window=4_000)
    yield lambda: stale(context, storage)
    yield lambda: undone(context)
    yield lambda: erased(context)
    yield lambda: closed(context)


def stale(context: Context, storage: object) -> None:
    other = agent(storage, window=None, system=None, nonce=None)
    context.append_turn(secret("mine"))
    other.append_turn(secret("yours"))


def undone(context: Context) -> None:
    receipt = context.append_turn(secret("undone"), op_id="undone")
    context.undo()
    with pytest.raises(MemciError) as error:
        context.recall_page(receipt.page)
    assert not [each for each in said(error.value) if CANARY in each]
    context.append_turn(secret("undone"), op_id="undone")


def erased(context: Context) -> None:
    context.erase(2)
    context.recall_page(2)


def closed(context: Context) -> None:
    context.close()
    context.append_turn(secret("closed"))


@pytest.mark.parametrize("kind", ["ram", *STORES])
def test_error_of_any_kind_repeats_nothing(kind, folder, caplog):
    """No error that can be provoked, on any store, has a word of the conversation in it; nor has a log or a warning."""
    caplog.set_level(logging.DEBUG)
    storage = EphemeralStorage() if kind == "ram" else STORES[kind](folder)
    context = talked(storage)
    context.append_turn(secret("once"), op_id="twice")

    kinds = set()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for act in provoked(context, storage):
            with pytest.raises(MemciError) as error:
                act()
            kinds.add(type(error.value).__name__)
            for made in (error.value, copy.copy(error.value), pickle.loads(pickle.dumps(error.value))):
                assert not [each for each in said(made) if CANARY in each], type(made)

    storage.close()
    assert kinds >= {
        "PageNotFound",
        "OpConflict",
        "InvalidSetting",
        "BudgetExceeded",
        "OpenToolGroup",
        "InvalidMessage",
        "StorageReadOnly",
        "WriteConflict",
        "Undone",
        "Erased",
        "Closed",
    }
    assert CANARY not in caplog.text
    assert not [each for each in warned if CANARY in str(each.message)]


@pytest.mark.parametrize("store", STORES)
def test_damaged_store_repeats_nothing(store, folder):
    """What is wrong with a store is said without what is in it: by errors, and by a check."""
    storage = STORES[store](folder)
    talked(storage)
    storage.close()
    files = (each for each in folder.rglob("*") if each.is_file() and "witness" not in each.name)
    path = max(files, key=lambda each: each.stat().st_size)
    whole = path.read_bytes()
    told: list[str] = []

    for at in range(0, len(whole), max(1, len(whole) // 80)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        for log in folder.glob("agent.db-*"):
            log.unlink()
        try:
            storage = STORES[store](folder)
        except MemciError as error:
            told += said(error)
            continue
        try:
            with Context.view(storage, id="alice", counter=len) as context:
                told += context.verify()
                context.render(strict=False)
                list(context.messages())
        except MemciError as error:
            told += said(error)
        finally:
            storage.close()

    assert told, "some of it was noticed"
    assert not [each for each in told if CANARY in each]


def test_refused_import_repeats_nothing():
    """What is wrong with an export is said with the number of its line, not with what the line says."""
    exported = list(talked(EphemeralStorage()).export())
    told: list[str] = []
    tried = set()

    for at, line in enumerate(exported):
        fields = json.loads(line)
        for key, value in fields.items():
            if (tuple(fields), key, type(value)) in tried:  # in a line of the same kind
                continue
            tried.add((tuple(fields), key, type(value)))
            for other in (secret("value"), [secret("value")], {secret("key"): secret("value")}, None, -1, f"{value}"):
                wrong = json.dumps({**fields, key: other})
                told += refusal([*exported[:at], wrong, *exported[at + 1 :]])
        told += refusal([*exported[:at], line[: len(line) // 2], *exported[at + 1 :]])
        told += refusal([*exported[:at], *exported[at + 1 :]])
        told += refusal([*exported[: at + 1], line, *exported[at + 1 :]])

    assert len(told) > 500
    assert not [each for each in told if CANARY in each]


def refusal(lines: list[str]) -> list[str]:
    try:
        Context.import_(EphemeralStorage(), lines)
    except MemciError as error:
        return list(said(error))
    return []


def test_repr_of_what_an_agent_holds_repeats_nothing(folder):
    """Contexts, stores, receipts, reports and events are printed by ids and sizes."""
    events: list[object] = []
    for storage in (EphemeralStorage(), SQLiteStorage(folder / "agent.db"), FilesystemStorage(folder / "agent")):
        context = talked(storage, on_event=events.append)
        receipt = context.append_turn(*turn("last"))
        nodes = list(context._parts.window.active.messages)

        printed = [repr(each) for each in (context, storage, receipt, context.report(), events, nodes, nodes[0].owner)]

        storage.close()
        assert not [each for each in printed if CANARY in each]


def test_log_of_what_fails_in_the_background_has_no_text(caplog):
    """What a log tells of a page that could not be counted or read is which, and the kind of the error."""
    caplog.set_level(logging.DEBUG)

    class Failing(EphemeralStorage):
        fails = unreadable = False

        def commit(self, transition):
            if self.fails and not transition.entries:
                raise StorageBusy(secret("disk"))
            return super().commit(transition)

        def entries(self, context, first=0, end=None, *, containing=None, **more):
            if self.unreadable:
                raise StorageBusy(secret("disk"))
            return super().entries(context, first, end, containing=containing, **more)

    storage = Failing()
    context = talked(storage, window=1_200)
    storage.fails = True

    context.recall_page(2)
    for at in range(30):
        context.append_turn(*turn(f"d{at}"))
    storage.unreadable = True
    context.functions["recall_page"](2)

    told = [record.message for record in caplog.records if not record.message.startswith("compacted: ")]
    told = [each for each in told if each != "a step in the background failed"]  # if the machine paused meanwhile
    assert [each.rpartition(": ")[2] for each in told] == ["StorageBusy"] * 2, told
    assert CANARY not in caplog.text


def test_canary_would_be_found():
    """The search above has teeth: a cause, and a fact, are searched as well."""
    try:
        try:
            raise ValueError(secret("cause"))  # noqa: TRY301 -- a cause is what it is about
        except ValueError as error:
            raise StorageUnavailable("no disk") from error
    except StorageUnavailable as error:
        found = [each for each in said(error) if CANARY in each]

    assert found
    assert CANARY in quote(secret("quoted"))
