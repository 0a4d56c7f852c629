"""The answers of the SDKs' clients, as objects: each is appended as it is, answered, and sent back as it came."""

from functools import cache

import pytest
from pydantic import TypeAdapter

from memci import Context, EphemeralStorage
from memci.formats import FORMATS
from memci.testing.formats import problems

pytestmark = pytest.mark.usefixtures("no_memory")

RECALL = {"index": 1, "entry": None, "offset": None}
ARGUMENTS = '{"index": 1, "entry": null, "offset": null}'
FUNCTION = {"name": "recall_page", "arguments": ARGUMENTS}
CALLS = {
    "openai_chat": {
        "role": "assistant",
        "content": "Let me look.",
        "refusal": None,
        "annotations": [],
        "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}],
    },
    "openai_responses": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "status": "completed", **FUNCTION},
        {"type": "function_call", "id": "fc_2", "call_id": "c2", "status": "completed", **FUNCTION},
    ],
    "anthropic": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
            {"type": "text", "text": "", "citations": None},
            {"type": "tool_use", "id": "toolu_1", "name": "recall_page", "input": RECALL},
            {"type": "tool_use", "id": "toolu_2", "name": "recall_page", "input": RECALL},
        ],
    },
    "gemini": {
        "role": "model",
        "parts": [
            {"text": "Let me look.", "thought": True},
            {"functionCall": {"name": "recall_page", "args": {"index": 1}}, "thoughtSignature": "_-4xMjM="},
            {"functionCall": {"name": "recall_page", "args": {"index": 1}}},
        ],
    },
}
"""the items of an answer, as they are to be sent again"""


@cache
def sdks():
    """Return an answer of each client, and the argument that has the conversation with its type in the SDK."""
    import anthropic.types
    import openai.types.chat
    import openai.types.responses
    from google.genai import types as genai

    answers = {
        "openai_chat": openai.types.chat.ChatCompletion.model_validate(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": "gpt",
                "choices": [{"index": 0, "finish_reason": "tool_calls", "message": CALLS["openai_chat"]}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
            }
        ),
        "openai_responses": openai.types.responses.Response.model_validate(
            {
                "id": "resp_1",
                "object": "response",
                "created_at": 1,
                "model": "gpt",
                "output": CALLS["openai_responses"],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
            }
        ),
        "anthropic": anthropic.types.Message.model_validate(
            {
                **CALLS["anthropic"],
                "id": "msg_1",
                "type": "message",
                "model": "claude",
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {"input_tokens": 9, "output_tokens": 3},
            }
        ),
        "gemini": genai.GenerateContentResponse.model_validate(
            {
                "candidates": [{"content": CALLS["gemini"], "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
            }
        ),
    }
    types = {
        "openai_chat": ("messages", list[openai.types.chat.ChatCompletionMessageParam]),
        "openai_responses": ("input", list[openai.types.responses.ResponseInputItemParam]),
        "anthropic": ("messages", list[anthropic.types.MessageParam]),
        "gemini": ("contents", list[genai.Content]),
    }
    return answers, types


@pytest.mark.parametrize("form", FORMATS)
def test_an_answer_is_appended_as_it_is(form):
    """Its items are stored without what is not sent again, its calls are answered, and every provider takes it."""
    answers, types = sdks()
    store = EphemeralStorage()
    with Context.open(store, "alice", system="Be brief.", window=32_000, format=form) as context:
        context.append_turn("What is on page 1?", answers[form])
        context.append_turn(*context.answers(answers[form]))
        stored = list(context.messages())[1]

        given = CALLS[form] if isinstance(CALLS[form], list) else [CALLS[form]]
        assert (stored.native.items if form != "openai_chat" else [stored]) == given
        assert len(list(context.messages())) == (3 if form == "openai_chat" else 4)
        for target in FORMATS:
            request = context.request("And now?", format=target, tools=context.tools)
            assert problems(target, request) == []
            key, type_ = types[target]
            TypeAdapter(type_).validate_python(request[key])
