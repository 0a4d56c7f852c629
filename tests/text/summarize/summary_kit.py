"""Messages for the tests of summaries, and the line of one."""

import json

from memci.text.summarize import extract

Message = dict[str, object]


def said(role: str, content: object) -> Message:
    return {"role": role, "content": content}


def called(name: str, arguments: object, *, call_id: str = "c1", content: str | None = None) -> Message:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": raw}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


def answered(content: object, *, call_id: str = "c1") -> Message:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def line(message: Message) -> str:
    return extract([message]).lines[0]
