"""Identity: the same message, however a framework writes it; and no two messages that differ in what they say."""

from itertools import combinations

from memci.formats import read
from memci.formats.identity import identity

MARK = {"cache_control": {"type": "ephemeral"}}


def call(call_id, arguments, name="find"):
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}],
    }


def image(url, **more):
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url, **more}}]}


SAME = [
    [
        {"role": "user", "content": "Hi"},
        {"content": "Hi", "role": "user"},
        {"role": "user", "content": [{"type": "text", "text": "Hi", **MARK}]},
        read([{"role": "user", "parts": [{"text": "Hi"}]}], "gemini")[0],
        read(
            [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}], "openai_responses"
        )[0],
    ],
    [
        call("c1", '{"a": 1, "b": [2]}'),
        call("toolu_9", '{"b":[2],"a":1}'),
        read(
            [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "x", "name": "find", "input": {"b": [2], "a": 1}}],
                }
            ]
        )[0],
        read(
            [
                {
                    "role": "model",
                    "parts": [{"functionCall": {"name": "find", "args": {"a": 1, "b": [2]}}, "thoughtSignature": "S"}],
                }
            ]
        )[0],
    ],
    [
        call("c1", '{"a": {"of": 5.0, "id": 1234567890123456789}, "b": null}', "book"),
        call("c1", '{"a": {"of": 5, "id": 1234567890123456800, "c": null}}', "book"),
    ],
    [
        {"role": "tool", "tool_call_id": "c1", "content": '{"found": 2}'},
        {"role": "tool", "tool_call_id": "c7", "content": '{ "found":2.0 }'},
    ],
    [
        {"role": "assistant", "content": "Yes.", "reasoning": "hm"},
        read(
            [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "S"},
                        {"type": "text", "text": "Yes."},
                    ],
                }
            ]
        )[0],
    ],
    [{"role": "assistant", "content": "It is nine."}, {"role": "assistant", "content": "\nIt is nine. \n"}],
    [
        image("data:image/png;base64," + "ab+/" * 30 + "=="),
        image("data:image/png;base64," + "ab-_" * 30, detail="auto"),
    ],
]
OTHERS = [
    {"role": "assistant", "content": "Hi"},
    {"role": "user", "content": "Hi", "name": "Ann"},
    {"role": "user", "content": "Hi "},
    call("c1", '{"a": 2, "b": [2]}'),
    call("c1", '{"a": 1, "b": [2]}', name="book"),
    call("c1", '{"a": 1, "b": [2'),
    call("c1", '{"a": {"of": 5.5, "id": 1234567890123456789}}', "book"),
    {"role": "tool", "tool_call_id": "c1", "content": '{"found": "2"}'},
    image("data:image/png;base64," + "ab+/" * 29 + "ab+b"),
    image("https://example.org/a.png"),
]


def test_what_a_framework_writes_anew_is_the_same_message():
    """Marks, order, ids, forms of JSON, fields without a value, thoughts and the format are no difference."""
    for group in SAME:
        assert len({identity(message) for message in group}) == 1


def test_what_says_something_else_is_another_message():
    """Role, name, text, media, and the name and arguments of a call tell messages apart."""
    for one, other in combinations([*(group[0] for group in SAME), *OTHERS], 2):
        assert identity(one) != identity(other)
