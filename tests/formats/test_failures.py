"""Results that say of a failure, and answers that come in steps: what is shown of them stays true."""

import json

import pytest

from memci import Context, EphemeralStorage
from memci.formats import read, write
from memci.testing.formats import problems

LONG = "a line of the output\n" * 4_000
PATCH = {"type": "apply_patch_call", "call_id": "c1", "id": "i1", "operation": {"type": "delete_file", "path": "a"}}
SHELL = {"type": "shell_call", "call_id": "c1", "id": "i1", "status": "completed", "action": {"commands": ["make"]}}
ENDED = {"stdout": LONG, "stderr": "", "outcome": {"type": "exit", "exit_code": 2}}
USE = {"type": "tool_use", "id": "c1", "name": "make", "input": {}}
FAILED = {
    "anthropic": (
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": LONG, "is_error": True}]},
        '"is_error": true',
    ),
    "a patch": (
        PATCH,
        {"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": LONG},
        '"failed"',
    ),
    "a shell": (SHELL, {"type": "shell_call_output", "call_id": "c1", "output": [ENDED]}, '"exit_code": 1'),
    "a shell in time": (
        SHELL,
        {"type": "shell_call_output", "call_id": "c1", "output": [{**ENDED, "outcome": {"type": "timeout"}}]},
        '"exit_code": 1',
    ),
    "gemini": (
        {"role": "model", "parts": [{"functionCall": {"name": "make", "args": {}}, "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "make", "response": {"error": LONG}}}]},
        '"error": "a line',
    ),
}


def talk(form, **settings):
    return Context.open(EphemeralStorage(), "ann", system="S", **{"window": 8_000, "format": form, **settings})


@pytest.mark.parametrize(("call", "result", "said"), FAILED.values(), ids=FAILED)
def test_a_failure_that_is_clipped_is_still_one(call, result, said):
    """The model would take what failed for done."""
    form = "anthropic" if "content" in call else "gemini" if "parts" in call else "openai_responses"
    with talk(form) as context:
        context.append_turn("Make it.", call, result)
        request = context.request()
        assert "elided" in json.dumps(request)
        assert said in json.dumps(request)
        assert problems(form, request) == []
        answer = context.render(format="openai_chat")[-1]
        assert answer.keys() == {"role", "tool_call_id", "content"}


@pytest.mark.parametrize(
    ("response", "key"), [({"error": None, "rows": LONG}, "output"), ({"error": "No.", "trace": LONG}, "error")]
)
def test_a_result_of_gemini_failed_if_its_error_says_something(response, key):
    call, _, _ = FAILED["gemini"]
    with talk("gemini") as context:
        context.append_turn("Make it.", call)
        answer = {"functionResponse": {"name": "make", "response": response}}
        context.append_turn({"role": "user", "parts": [answer]}, opens_page=False)
        shown = context.request()["contents"][-1]["parts"][0]["functionResponse"]["response"]
        assert [*shown] == [key]
        assert "a line" in shown[key]


@pytest.mark.parametrize(("call", "done"), [(PATCH, '"completed"'), (SHELL, '"exit_code": 0')])
def test_a_call_without_a_result_is_not_said_to_be_done(call, done):
    with talk("openai_responses") as context:
        context.append_turn("Make it.", call, {"role": "user", "content": "Never mind."})
        assert done not in json.dumps(context.request()["input"][-2])


def code_that_calls(form):
    """The items of a conversation in which code of the provider's calls the client's tool twice."""
    asked, thanks = {"role": "user", "content": "Count."}, {"role": "user", "content": "Thanks."}
    if form == "anthropic":
        caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
        runs = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "f()"}}
        ran = {"type": "code_execution_result", "stdout": "3", "stderr": "", "return_code": 0, "content": []}
        ended = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": ran}
        calls = [{"type": "tool_use", "id": f"c{at}", "name": "find", "input": {}, "caller": caller} for at in range(2)]
        results = [{"type": "tool_result", "tool_use_id": f"c{at}", "content": "1"} for at in range(2)]
        roles = ("assistant", [runs, calls[0]]), ("user", results[:1]), ("assistant", calls[1:]), ("user", results[1:])
        steps = [*roles, ("assistant", [ended, {"type": "text", "text": "Three."}])]
        return [asked, *({"role": role, "content": blocks} for role, blocks in steps), thanks]
    caller = {"caller": {"type": "program", "caller_id": "p1"}}
    runs = {"type": "program", "id": "prg_1", "call_id": "p1", "code": "f()", "fingerprint": "f"}
    ended = {"type": "program_output", "id": "po_1", "call_id": "p1", "result": "3", "status": "completed"}
    steps = []
    for at in range(2):
        call = {"type": "function_call", "id": f"fc_{at}", "call_id": f"c{at}", "name": "find", "arguments": "{}"}
        steps += [{**call, **caller}, {"type": "function_call_output", "call_id": f"c{at}", "output": "1", **caller}]
    return [asked, runs, *steps, ended, thanks]


@pytest.mark.parametrize("form", ["anthropic", "openai_responses"])
def test_code_that_calls_a_clients_tools_gets_its_result_in_a_later_answer(form):
    """It waits for the client's results, round after round; once its beginning has left, the calls are the model's."""
    items, key = code_that_calls(form), "messages" if form == "anthropic" else "input"
    with talk(form) as context:
        for count, item in enumerate(items[:-1], 1):
            context.append_turn(item, opens_page=False)
            assert context.request(strict=False)[key] == items[:count]
        assert context.request(items[-1])[key] == items

    behind = [message for message in read(items, form) if message["role"] != "assistant" or "c0" not in str(message)]
    left = write(form, [message for message in behind if message.get("tool_call_id") != "c0"])
    assert problems(form, {key: left}) == []
    assert ("c1" in str(left), "caller" in str(left), "srvtoolu_1" in str(left)) == (True, False, False)


def test_something_spoken_is_sent_by_its_id():
    """The provider takes nothing else of it; without an id the words are sent."""
    said = {"role": "assistant", "content": None}
    audio = {"id": "a1", "data": "UklGRg==", "expires_at": 9, "transcript": "At nine."}
    asked = {"role": "user", "content": "When?"}
    assert write("openai_chat", [asked, {**said, "audio": audio}])[1] == {**said, "audio": {"id": "a1"}}
    assert write("openai_chat", [asked, {**said, "audio": {**audio, "id": ""}}])[1]["content"] == "At nine."


def test_a_tool_that_was_added_on_an_archived_page_stays_added():
    """Anthropic reads it in the list alone: as text the tool would be gone. Erasing its page takes it back."""
    definition = {"name": "pay", "description": "Pays.", "input_schema": {"type": "object"}}
    added = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}
    said = {"role": "system", "content": [{"type": "text", "text": "In French now."}, added]}
    store, settings = EphemeralStorage(), {"system": "S", "window": 6_000, "format": "anthropic"}
    with Context.open(store, "ann", **settings) as context:
        context.append_turn("Hello.", {"role": "assistant", "content": "Hi."})
        context.append_turn("Go on.", *read([said], "anthropic", opaque=True), {"role": "assistant", "content": "Yes."})
        for number in range(14):
            context.append_turn(f"{number} " + "word " * 400, {"role": "assistant", "content": "Ok."})
        request = context.request("Pay.")
        assert context.report().compactions
        assert [each for each in request["messages"] if each["role"] == "system"] == [said]
        assert problems("anthropic", request) == []
    with Context.open(store, "ann", **settings) as context:
        assert context.request("Pay.") == request
        context.erase(page=2)
        assert "Pays." not in json.dumps(context.request("Pay."))
