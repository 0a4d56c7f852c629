"""A server on this machine that speaks Responses, Anthropic's Messages and Gemini's contents, whole and streamed.

Requests are read into messages, and a script answers them, as `ModelServer` does for Chat Completions. What a
provider's grammar refuses is noted.
"""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from memci import formats
from memci.testing.formats import problems
from memci.testing.llm.server import Request

LISTS = {"openai_responses": "input", "anthropic": "messages", "gemini": "contents"}


def events_of(form, items):
    """Yield the events of a stream that comes to *items*; texts come in two pieces."""
    if form == "openai_responses":
        for item in items:
            for part in item.get("content") or ():
                for piece in halves(part["text"]):
                    place = {"output_index": 0, "content_index": 0, "item_id": "m", "logprobs": []}
                    yield {"type": "response.output_text.delta", "delta": piece, "sequence_number": 0, **place}
        yield {"type": "response.completed", "sequence_number": 1, "response": whole_of(form, items)}
    elif form == "anthropic":
        blocks = items[0]["content"]
        yield {"type": "message_start", "message": {**whole_of(form, items), "content": []}}
        for at, block in enumerate(blocks):
            if block["type"] == "text":
                first, deltas = {"text": ""}, [{"type": "text_delta", "text": each} for each in halves(block["text"])]
            else:
                text = json.dumps(block["input"])
                first, deltas = (
                    {"input": {}},
                    [{"type": "input_json_delta", "partial_json": each} for each in halves(text)],
                )
            yield {"type": "content_block_start", "index": at, "content_block": {**block, **first}}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": at, "delta": delta}
            yield {"type": "content_block_stop", "index": at}
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}
        yield {"type": "message_stop"}
    else:
        for part in items[0]["parts"]:
            for piece in [{"text": each} for each in halves(part["text"])] if "text" in part else [part]:
                yield whole_of(form, [{"role": "model", "parts": [piece]}])


def as_answered(form, item):
    """Return *item* as the provider writes it: its texts are parts."""
    if form == "openai_responses" and item.get("role") == "assistant":
        parts = [{"type": "output_text", "text": item["content"], "annotations": []}]
        return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": parts}
    if form == "anthropic" and isinstance(item["content"], str):
        return {**item, "content": [{"type": "text", "text": item["content"]}]}
    return item


def halves(text):
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def whole_of(form, items):
    """Return the whole answer that holds *items*."""
    if form == "openai_responses":
        usage = {"input_tokens": 50, "output_tokens": 5, "total_tokens": 55}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        more = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "status": "completed", "usage": usage}
        return {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": items, **more}
    if form == "anthropic":
        usage = {"input_tokens": 50, "output_tokens": 5}
        more = {"type": "message", "model": "m", "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        return {"id": "msg", **items[0], **more}
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 5, "totalTokenCount": 55}
    return {"candidates": [{"content": items[0], "finishReason": "STOP", "index": 0}], "usageMetadata": usage}


class Provider:
    """The server; *script* gets a request of Chat Completions and returns the message that answers it."""

    def __init__(self, script):
        self.bodies, self.problems = [], []
        self.script = script

    def __enter__(self):
        handler = type("Handler", (_Handler,), {"provider": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        return self

    def __exit__(self, *error):
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, form, body):
        """Return the items that answer *body*."""
        self.bodies.append(body)
        given = body if form != "gemini" else {"contents": body["contents"], "config": body}
        self.problems += problems(form, {key: value for key, value in given.items() if key not in {"stream", "config"}})
        messages = formats.read(body[LISTS[form]], form)
        reply = self.script(Request("", {"messages": messages}, {}))
        items = formats.write(form, [*messages, reply])[len(body[LISTS[form]]) :]
        return [as_answered(form, item) for item in items]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        form = "openai_responses" if path.endswith("/responses") else "anthropic" if "/messages" in path else "gemini"
        items = self.provider.answer(form, body)
        if body.get("stream") or re.search(":streamGenerateContent", path):
            names = ["" if form == "gemini" else f"event: {each['type']}\n" for each in events_of(form, items)]
            events = [f"data: {json.dumps(each)}\n\n" for each in events_of(form, items)]
            kind, text = "text/event-stream", "".join(name + event for name, event in zip(names, events, strict=True))
        else:
            kind, text = "application/json", json.dumps(whole_of(form, items))
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format, *args):  # noqa: A002
        pass
