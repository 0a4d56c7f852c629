"""Items that belong together, and what a provider refuses: left out, repaired or kept, in every format."""

import base64
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci import Context, EphemeralStorage
from memci.formats import FORMATS, read, write
from memci.testing.formats import problems

PAUSED = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Looking."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    ],
}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "of gpt-5.4"}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "So it is.", "annotations": []}],
}
ASKED = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "pay", "arguments": "{}"}
APPROVED = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
NAMES = ("fs.read", "invalid tool", "functions.lookup:0", "天气", "", "x" * 90, "1st", "find")
IDS = ("c1", "c" * 69, "toolu:1", "", "call_é")


def talk(form="openai_chat", **options):
    return Context.open(EphemeralStorage(), "alice", **{"system": "S", "window": 32_000, "format": form, **options})


def call_of(call_id, name, arguments="{}"):
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "9:15"},
    ]


def test_a_paused_answer_is_sent_while_it_may_go_on_and_is_whole_afterwards():
    """Its tool waits for a result in the last message; one in the next answer joins it; the user's word ends it."""
    context = talk("anthropic")
    context.append_turn("Who won?", PAUSED)
    assert context.request()["messages"][-1] == PAUSED

    ended = context.request("Never mind.")["messages"]
    assert [block["type"] for block in ended[1]["content"]] == ["text"]

    context.append_turn({"role": "assistant", "content": [FOUND, {"type": "text", "text": "Ann."}]})
    joined = context.request("And then?")["messages"]
    assert [each["role"] for each in joined] == ["user", "assistant", "user"]
    assert [block["type"] for block in joined[1]["content"]] == [
        "text",
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    assert problems("anthropic", context.request("And then?")) == problems("anthropic", {"messages": ended}) == []
    assert [*context.messages()][1].native.items == [PAUSED]


def test_reasoning_without_what_it_led_to_is_left_out():
    """An answer that ended within its reasoning is stored, and not sent."""
    context = talk("openai_responses")
    context.append_turn("Hard?", THOUGHT)
    context.append_turn("Go on.", {**THOUGHT, "id": "rs_2"}, SAID)

    kinds = [item.get("type", item.get("role")) for item in context.request("And?")["input"]]
    assert kinds == ["user", "user", "reasoning", "message", "user"]
    assert [*context.messages()][1].native.items == [THOUGHT]


def test_an_approval_stands_with_its_request_or_not_at_all():
    """The answer to a request opens no page; where the request is not shown, it is not either."""
    context = talk("openai_responses", window=4_000)
    context.append_turn("Hi.", {"role": "assistant", "content": "Hi."})
    context.append_turn("Pay.", ASKED)
    context.append_turn(APPROVED)
    context.append_turn(SAID)
    assert [page.index for page in context.pages()] == [1, 2]
    assert APPROVED in context.request("And?")["input"]

    for number in range(12):
        context.append_turn(f"Question {number}. " + "Words and more words. " * 60, SAID)
        context.append_turn({**APPROVED})
        assert problems("openai_responses", context.request("And?")) == []
    assert APPROVED not in context.request("And?")["input"]


@pytest.mark.parametrize(
    ("model", "kept"), [("openai/gpt-5.4-2026-03-05", True), ("gpt-5.4-mini", False), (None, True)]
)
def test_another_model_does_not_get_encrypted_items(model, kept):
    """Only the model that made them can read them; without a name, nobody knows."""
    store = EphemeralStorage()
    context = Context.open(store, "alice", window=32_000, format="openai_responses", model="gpt-5.4")
    context.append_turn("Hard?", THOUGHT, {"type": "compaction", "id": "cmp_1", "encrypted_content": "E"}, SAID)
    context.close()

    context = Context.open(store, "alice", **({"model": model} if model else {}))
    items = context.request("And?")["input"]
    assert [item["type"] for item in items[1:-1]] == (["reasoning", "compaction", "message"] if kept else ["message"])
    assert ("id" in items[-2]) is kept
    assert [item["type"] for item in [*context.messages()][1].native.items] == ["reasoning", "compaction", "message"]


def test_a_screenshot_is_an_image_and_stays_one():
    """It counts as an image, not as its base64, and in a small window the result keeps its form."""
    image = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 500).decode()
    call = {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "screenshot"}}
    shot = {
        "type": "computer_call_output",
        "call_id": "c1",
        "output": {"type": "computer_screenshot", "image_url": image},
    }
    for window in (32_000, 6_000):
        context = talk("openai_responses", window=window)
        context.append_turn("Click.", call, shot)
        assert context.report().total < 4_000
        request = context.request()
        assert problems("openai_responses", request) == []
        assert request["input"][-1]["output"]["type"] == "computer_screenshot"
    assert [*context.messages()][-1].native.items == [shot]


def test_a_shell_answers_in_words_that_are_found_and_keeps_its_form_when_clipped():
    """What stood in its output is text; a shortened output has the form that the provider wants."""
    outcome = {"stdout": "port 4711 is open. " * 3_000, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
    context = talk("openai_responses", window=6_000)
    context.append_turn(
        "Scan.",
        {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["nmap"]}},
        {"type": "shell_call_output", "call_id": "c1", "output": [outcome]},
    )
    assert [*context.messages()][-1]["content"].startswith("port 4711 is open.")
    assert problems("openai_responses", context.request()) == []


def test_the_newest_marks_are_sent():
    """A request has at most four marks of the cache; a client that marks each turn anew keeps its last ones."""
    context = talk("anthropic")
    for number in range(6):
        text = {"type": "text", "text": f"Q{number}", "cache_control": {"type": "ephemeral"}}
        context.append_turn({"role": "user", "content": [text]}, "A")
    messages = context.request("next")["messages"]
    assert problems("anthropic", context.request("next")) == []
    marked = [
        at
        for at, each in enumerate(messages)
        if isinstance(each["content"], list) and "cache_control" in each["content"][0]
    ]
    assert marked[-1] == 10
    assert all(b - a == 2 for a, b in pairwise(marked))


def test_a_server_that_numbers_its_calls_from_one_each_time_is_repeated_without_a_clash():
    """Ids that come again, or that Anthropic would not make, are replaced in calls and results alike."""
    context = talk("anthropic")
    for _ in range(3):
        use = {"role": "assistant", "content": [{"type": "tool_use", "id": "call:1", "name": "find", "input": {}}]}
        result = {"type": "tool_result", "tool_use_id": "call:1", "content": "9:15"}
        context.append_turn("Find.", use, {"role": "user", "content": [result]}, "Done.")
    assert problems("anthropic", context.request("And?")) == []


@given(st.data())
def test_no_order_of_items_makes_a_request_that_is_refused(data):
    """Whatever models and clients leave behind, every format's request follows its grammar."""
    own = data.draw(st.sampled_from(("openai_chat", "openai_responses", "anthropic")))
    context = talk(own, window=4_000)
    parts = {
        "openai_chat": st.just([{"role": "assistant", "content": "", "tool_calls": []}]),
        "openai_responses": st.lists(st.sampled_from([THOUGHT, SAID, ASKED, APPROVED]), min_size=1, max_size=4),
        "anthropic": st.lists(
            st.sampled_from([PAUSED, {"role": "assistant", "content": [FOUND]}, {"role": "assistant", "content": []}]),
            min_size=1,
            max_size=3,
        ),
    }
    calls = st.builds(call_of, st.sampled_from(IDS), st.sampled_from(NAMES), st.sampled_from(["{}", '{"a": NaN}', ""]))
    text = st.sampled_from(
        ["Go.", "Words and more words. " * 80, {"role": "user", "content": [] if own != "anthropic" else ""}]
    )
    for _ in range(data.draw(st.integers(1, 8))):
        context.append_turn(data.draw(text), *data.draw(st.one_of(calls, parts[own])))
        for form in FORMATS:
            assert problems(form, context.request("And?", format=form)) == []


def test_names_that_a_model_made_up_are_sent_in_a_form_that_is_taken():
    """A call and its result keep the same name; one that every provider takes stays."""
    for name in NAMES:
        context = talk()
        context.append_turn("Go.", *call_of("c1", name))
        for form in FORMATS:
            assert problems(form, context.request(format=form)) == []
        assert [*context.messages()][1]["tool_calls"][0]["function"]["name"] == name
    assert write("openai_chat", [{"role": "user", "content": "Hi"}, *call_of("c1", "find")])[1:] == call_of(
        "c1", "find"
    )


def test_instructions_in_a_clients_list_keep_their_role_where_it_is_allowed():
    """A system message of Anthropic's stands behind the user's and before an answer; elsewhere it moves there."""
    told = {"role": "system", "content": "Never push to main."}
    question, answer = {"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}
    allowed = [question, told, answer, question, told]
    assert write("anthropic", read(allowed, "anthropic", opaque=True)) == allowed
    for refused in ([told, question], [question, answer, told, question], [question, told, question]):
        made = write("anthropic", read(refused, "anthropic", opaque=True))
        assert problems("anthropic", {"messages": made}) == []
        assert [each["content"] for each in made if each["role"] == "system"] == ["Never push to main."]
    assert write("anthropic", read([question, told], "anthropic"))[1]["role"] == "user"


def test_items_whose_ids_come_again():
    """A provider takes each id once: a message and a call go without it, a thought is left out with its place."""
    step = [THOUGHT, {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find", "arguments": "{}"}]
    result = {"type": "function_call_output", "call_id": "c1", "output": "9:15"}
    items = [{"role": "user", "content": "When?"}, *step, result, *step, result, SAID, SAID]
    written = write("openai_responses", read(items, "openai_responses"))
    assert problems("openai_responses", {"input": written}) == []
    assert [each.get("type") for each in written].count("reasoning") == 1
    calls = [each for each in written if each.get("type") == "function_call"]
    assert [each.get("id") for each in calls] == ["fc_1", None]
    assert [each["call_id"] for each in calls] == [
        each["call_id"] for each in written if each.get("type") == "function_call_output"
    ]
    held = [{**SAID, "id": "__fake_id__"}, {"role": "user", "content": "Thanks."}] * 2
    assert (
        write("openai_responses", read(held, "openai_responses")) == held
    )  # what the Agents SDK puts there is its own
    local = {"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "action": {"type": "exec", "command": ["ls"]}}
    said = {"type": "local_shell_call_output", "id": "c1", "output": "a"}
    items = write("openai_responses", read(["Go.", local, said, {**local, "id": "ls_2"}, said]))
    _, first, _, second, answer = items
    assert first["call_id"] == "c1" != second["call_id"] == answer["id"]
    assert problems("openai_responses", {"input": items}) == []
