"""The strict checkers: each rule is broken once and must be noticed; what a provider accepts has no problem."""

import copy
import json

import pytest

from memci.testing.formats import CHECKERS, problems

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "c1", "name": "find", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "9:15"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
FC = {"functionCall": {"name": "find", "args": {}}, "thoughtSignature": "CpYB"}
FR = {"functionResponse": {"name": "find", "response": {"output": "9:15"}}}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
MARK = {"cache_control": {"type": "ephemeral"}}

ACCEPTED = {
    "openai_chat": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "x"}}],
            },
            {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "c2"}]},
            {"role": "tool", "tool_call_id": "c2", "content": "9:15"},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "9:15"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "find"}}],
    },
    "openai_responses": {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
            {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image", "image_url": "x"}]},
        ],
        "tools": [{"type": "function", "name": "find"}, {"type": "web_search"}],
    },
    "anthropic": {
        "system": [{"type": "text", "text": "Be brief.", **MARK}],
        "messages": [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": [THOUGHT, {"type": "text", "text": "Let me look."}, USE, {**USE, "id": "c2"}],
            },
            {
                "role": "user",
                "content": [RESULT, {**RESULT, "tool_use_id": "c2", "content": []}, {"type": "text", "text": "so?"}],
            },
        ],
        "tools": [{"name": "find", "input_schema": {"type": "object"}}],
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]},
            {"role": "model", "parts": [{"text": "Let me look."}, FC, {"functionCall": {"name": "read", "args": {}}}]},
            {"role": "user", "parts": [FR, {"functionResponse": {"name": "read", "response": {}}}]},
        ],
        "config": {"system_instruction": "Be brief.", "tools": [{"functionDeclarations": [{"name": "find"}]}]},
    },
}
"""a request of each format in which nothing is wrong"""

BROKEN = [
    ("openai_chat", "messages", [], "not empty is required"),
    ("openai_chat", "messages.1.role", "function", "role"),
    ("openai_chat", "messages.1.content", None, "content: is missing"),
    ("openai_chat", "messages.1.content", [], "not empty"),
    ("openai_chat", "messages.1.content.1", {"type": "refusal", "refusal": "no"}, "may not have the part"),
    ("openai_chat", "messages.1.content.1", {"type": "image_url", "image_url": {}}, "url: is missing"),
    ("openai_chat", "messages.1.content.0", {"type": "text"}, "text: is missing"),
    ("openai_chat", "messages.4.content.0", {"type": "image_url", "image_url": {"url": "x"}}, "may not have the part"),
    ("openai_chat", "messages.2.tool_calls", [], "not empty"),
    ("openai_chat", "messages.2.tool_calls.1.id", "c1", "the same id"),
    ("openai_chat", "messages.2.tool_calls.1.type", "tool", "expected an id, a type"),
    ("openai_chat", "messages.2.tool_calls.1.function.arguments", {}, "as texts"),
    ("openai_chat", "messages.1.content.0", {"type": "text", "text": ""}, "is empty"),
    ("openai_chat", "messages.2.tool_calls.1.id", "c" * 65, "1 to 64"),
    ("openai_chat", "messages.2.tool_calls.1.function.name", "fs.read", "no name of a tool"),
    ("openai_chat", "messages.3.tool_call_id", "c3", "waits for 'c3'"),
    ("openai_chat", "messages.3", {"role": "user", "content": "and?"}, "have no result"),
    ("openai_chat", "messages.4", {"role": "user", "content": "and?"}, "have no result"),
    ("openai_chat", "tools.0.function.name", "find it", "no name of a tool"),
    ("openai_chat", "tools.0.type", "web_search", "expected a function"),
    ("openai_responses", "input", [], "not empty is required"),
    ("openai_responses", "instructions", [], "instructions"),
    ("openai_responses", "input.0.type", "tool_use", "is no type"),
    ("openai_responses", "input.0.role", "tool", "is no role"),
    ("openai_responses", "input.0.content", [], "not empty"),
    ("openai_responses", "input.0.content.0.type", "text", "may not have the part"),
    ("openai_responses", "input.0.content.0.type", "input_image", "image_url or a file_id"),
    ("openai_responses", "input.0.content.0.type", "input_file", "file_id"),
    ("openai_responses", "input.2.content.0.type", "input_text", "may not have the part"),
    ("openai_responses", "input.2", {"role": "user", "content": "and?"}, "follows the reasoning"),
    ("openai_responses", "input.3.call_id", None, "is missing"),
    ("openai_responses", "input.3.arguments", {}, "as texts"),
    ("openai_responses", "input.3.call_id", "c" * 65, "at most 64"),
    ("openai_responses", "input.3.name", "fs.read", "no name of a tool"),
    (
        "openai_responses",
        "input.2",
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"},
        "has no request 'mcpr_1'",
    ),
    ("openai_responses", "input.4", {"type": "computer_call_output", "call_id": "c1", "output": "x"}, "screenshot"),
    ("openai_responses", "input.4", {"type": "shell_call_output", "call_id": "c1", "output": "x"}, "list of outcomes"),
    ("openai_responses", "input.3.type", "custom_tool_call", "no function_call before it"),
    ("openai_responses", "input.4.call_id", "c2", "waits for 'c2'"),
    ("openai_responses", "input.4.output", {}, "expected a str"),
    ("openai_responses", "input.4.output.0.type", "text", "may not have the part"),
    ("openai_responses", "tools.0", {"type": "function", "function": {"name": "find"}}, "no tool of Responses"),
    ("anthropic", "messages", [], "not empty is required"),
    ("anthropic", "messages.0.role", "assistant", "speaks first"),
    ("anthropic", "messages.0.role", "tool", "is no role"),
    ("anthropic", "messages.0.content", " ", "is empty"),
    ("anthropic", "messages.0.content", [], "not empty"),
    ("anthropic", "messages.0.content", [THOUGHT], "may not be in a message of the user"),
    ("anthropic", "messages.1.content.1.text", "\n", "is empty"),
    ("anthropic", "messages.0.role", "system", "not behind one of the user"),
    ("anthropic", "messages.2", {"role": "system", "content": "Be brief."}, "not behind one of the user"),
    ("anthropic", "messages.1.content.0", {**THOUGHT, **MARK}, "can't be marked"),
    ("anthropic", "messages.1.content.0", {"type": "thinking", "thinking": "hm"}, "thinking and signature"),
    (
        "anthropic",
        "messages.1.content",
        [{"type": "text", "text": "a"}, THOUGHT, USE, {**USE, "id": "c2"}],
        "come first",
    ),
    ("anthropic", "messages.1.content", [USE, {**USE, "id": "c2"}, {"type": "text", "text": "a"}], "after a tool_use"),
    ("anthropic", "messages.1.content.2.id", "c 1", "other characters"),
    ("anthropic", "messages.1.content.2.name", "fs.read", "no name of a tool"),
    ("anthropic", "messages.1.content", [{**SEARCH, "id": "s2"}], "have no result"),
    (
        "anthropic",
        "messages.1.content.1",
        {"type": "web_search_tool_result", "tool_use_id": "s2"},
        "no tool of the provider",
    ),
    ("anthropic", "messages.1.content.2.input", "{}", "an object"),
    ("anthropic", "messages.1.content.3.id", "c1", "that of another call"),
    ("anthropic", "messages.2.content.1.tool_use_id", "c1", "the calls"),
    ("anthropic", "messages.2.content", "never mind", "the calls"),
    ("anthropic", "messages.2", {"role": "assistant", "content": "never mind"}, "the calls"),
    ("anthropic", "messages.2.content.0", {"type": "text", "text": "so"}, "the calls"),
    (
        "anthropic",
        "messages.2.content",
        [RESULT, {"type": "text", "text": "so"}, {**RESULT, "tool_use_id": "c2"}],
        "before a tool_result",
    ),
    ("anthropic", "messages.2.content.1.content", [{"type": "text", "text": ""}], "is empty"),
    ("anthropic", "messages.2.content.1.content", [USE], "may not be in a result"),
    ("anthropic", "messages.2.content.1.content", {}, "a str or a list"),
    ("anthropic", "messages.2.content.2", {"type": "image", "source": {"type": "url", "url": "None"}}, "no URL"),
    ("anthropic", "messages.2.content.2", {"type": "image", "source": {"type": "text", "data": "a"}}, "is no type"),
    ("anthropic", "messages.2.content.2", {"type": "image", "source": {"type": "file"}}, "is missing"),
    (
        "anthropic",
        "messages.2.content.2",
        {"type": "document", "source": {"type": "base64", "media_type": "text/csv", "data": "AA"}},
        "no media type of documents",
    ),
    ("anthropic", "tools", [{"name": "find", "type": "x"}] * 2, "the same name"),
    ("anthropic", "tools.0.name", "find it", "no name of a tool"),
    ("anthropic", "tools.0.input_schema", {}, "schema of an object"),
    ("anthropic", "tools", [{"name": f"t{each}", "type": "x", **MARK} for each in range(4)], "5 breakpoints"),
    ("gemini", "contents", [], "not empty is required"),
    ("gemini", "contents.0.role", "model", "speaks first"),
    ("gemini", "contents.0.role", "assistant", "expected 'user'"),
    ("gemini", "contents.0.parts", [], "not empty"),
    ("gemini", "contents.0.parts.0", {}, "a part is one of"),
    ("gemini", "contents.0.parts.0", {"text": "a", "inline_data": {}}, "a part is one of"),
    ("gemini", "contents.0.parts.0.text", "", "is empty"),
    ("gemini", "contents.0.parts.0", FC, "may not be in a turn of the user"),
    ("gemini", "contents.0.parts.1.inlineData.data", "", "a mimeType and data"),
    ("gemini", "contents.0.parts.1", {"file_data": {"file_uri": ""}}, "is missing"),
    ("gemini", "contents.0", {"role": "model", "parts": [{"text": "Hi"}]}, "behind a turn of the user"),
    ("gemini", "contents.1.parts.1", {"functionCall": {"name": "find", "args": {}}}, "no thoughtSignature"),
    ("gemini", "contents.1.parts.1.functionCall.args", [], "an object of args"),
    ("gemini", "contents.1.parts.1.functionCall.name", "", "name: is missing"),
    ("gemini", "contents.1.parts.1.functionCall.name", "find it", "no name of a function"),
    ("gemini", "contents.2.parts.1.functionResponse.name", "find", "where the turn before calls"),
    ("gemini", "contents.2.parts.1.functionResponse.id", "c1", "is in the place of"),
    ("gemini", "contents.2.parts.1.functionResponse.response", "9:15", "an object of response"),
    ("gemini", "contents.2", {"role": "user", "parts": [FR]}, "where the turn before calls"),
    ("gemini", "contents.2", {"role": "model", "parts": [{"text": "a"}]}, "where the turn before calls"),
    ("gemini", "config.tools.0.functionDeclarations.0.name", "1", "no name of a function"),
    ("gemini", "config.tools.0.functionDeclarations", [{"name": "find"}] * 2, "the same name"),
]
"""format, the place that is changed, what stands there then, and what is said of it"""


def changed(request, place, value):
    """Return a copy of *request* in which *value* stands at *place*."""
    request = copy.deepcopy(request)
    inside, keys = request, [int(key) if key.isdigit() else key for key in place.split(".")]
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    return request


@pytest.mark.parametrize("form", CHECKERS)
def test_what_a_provider_accepts_has_no_problem(form):
    """A request that a provider accepts is not refused; its end without results is."""
    key = {"openai_responses": "input", "gemini": "contents"}.get(form, "messages")
    least = {"openai_chat": 3, "openai_responses": 4}.get(form, 2)

    assert problems(form, ACCEPTED[form]) == []
    assert "at the end" in str(problems(form, {key: ACCEPTED[form][key][:least]})) or form == "openai_responses"
    assert problems(form, {key: ACCEPTED[form][key][:least]})


@pytest.mark.parametrize(("form", "place", "value", "said"), BROKEN)
def test_each_rule_is_noticed(form, place, value, said):
    """One thing is wrong in a request that was accepted: it is named."""
    found = problems(form, changed(ACCEPTED[form], place, value))

    assert any(said in each for each in found), found


def test_a_current_turn_of_gemini_alone_needs_signatures():
    """Calls before the user's last words need none, as the documentation says."""
    request = changed(ACCEPTED["gemini"], "contents.1.parts.1", {"functionCall": {"name": "find", "args": {}}})
    request["contents"] += [
        {"role": "model", "parts": [{"text": "9:15"}]},
        {"role": "user", "parts": [{"text": "And?"}]},
    ]

    assert problems("gemini", json.loads(json.dumps(request))) == []
