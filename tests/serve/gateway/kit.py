"""A client of the gateway with the real SDK of each format, which keeps its list as agents do."""

import json
from typing import Any

import httpx2
from anthropic import Anthropic
from openai import OpenAI

FORMATS = ("openai_chat", "openai_responses", "anthropic")
TOOL = {"name": "read", "description": "Read a file.", "parameters": {"type": "object", "properties": {}}}
TOOLS = {
    "openai_chat": [{"type": "function", "function": TOOL}],
    "openai_responses": [{"type": "function", "strict": False, **TOOL}],
    "anthropic": [{"name": "read", "description": "Read a file.", "input_schema": TOOL["parameters"]}],
}
SYSTEM = "You read files."


class Talk:
    """One conversation of a client: `items` is its list, in its format."""

    def __init__(self, form, url, *, key="key-1", stream=False, model="gpt-4o", marks=False, **headers):
        self.format, self.stream, self.model, self.marks = form, stream, model, marks
        kind, base = (Anthropic, url) if form == "anthropic" else (OpenAI, f"{url}/v1")
        http = httpx2.Client(verify=False)  # no certificates are read: it is faster
        self.client = kind(
            api_key=key, base_url=base, max_retries=0, timeout=60, default_headers=headers, http_client=http
        )
        self.tools, self.system = TOOLS[form], SYSTEM
        self.items: list[dict[str, Any]] = []
        self.reply: Any = None
        self.sent: list[bytes] = []
        self.client._client.event_hooks["request"].append(lambda request: self.sent.append(request.read()))

    def moved(self, url):
        """Go on with another server."""
        self.client = self.client.copy(base_url=url if self.format == "anthropic" else f"{url}/v1")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.client.close()

    def say(self, text):
        """Say *text*, and return the text of the answer."""
        self.items.append({"role": "user", "content": text})
        return self.ask()

    def give(self, call, result):
        """Give the *result* of a *call*, an id, and return the text of the answer."""
        match self.format:
            case "openai_chat":
                self.items.append({"role": "tool", "tool_call_id": call, "content": result})
            case "openai_responses":
                self.items.append({"type": "function_call_output", "call_id": call, "output": result})
            case _:
                block = {"type": "tool_result", "tool_use_id": call, "content": result}
                self.items.append({"role": "user", "content": [block]})
        return self.ask()

    def ask(self):
        """Send the list, append the answer, and return its text."""
        return getattr(self, f"_{self.format}")()

    @property
    def calls(self):
        """(id, name) of the calls in the last answer."""
        match self.format:
            case "openai_chat":
                found = self.items[-1].get("tool_calls") or []
                return [(call["id"], call["function"]["name"]) for call in found]
            case "openai_responses":
                return [(each.call_id, each.name) for each in self.reply.output if each.type == "function_call"]
            case _:
                return [(each.id, each.name) for each in self.reply.content if each.type == "tool_use"]

    @property
    def usage(self):
        """(input, output) tokens of the last answer."""
        used = self.reply.usage
        if self.format == "openai_chat":
            return used.prompt_tokens, used.completion_tokens
        return used.input_tokens, used.output_tokens

    def _openai_chat(self):
        asked = {
            "model": self.model,
            "messages": [{"role": "system", "content": self.system}, *self.items],
            "tools": self.tools,
        }
        if self.stream:
            with self.client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                self.reply = stream.get_final_completion()
        else:
            self.reply = self.client.chat.completions.create(**asked)
        message = self.reply.choices[0].message
        self.items.append(json.loads(message.model_dump_json(exclude_none=True, exclude={"parsed"})))
        for call in self.items[-1].get("tool_calls", ()):
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        return message.content or ""

    def _openai_responses(self):
        asked = {
            "model": self.model,
            "instructions": self.system,
            "input": self.items,
            "tools": self.tools,
            "store": False,
        }
        if self.stream:
            with self.client.responses.stream(**asked) as stream:
                self.reply = stream.get_final_response()
        else:
            self.reply = self.client.responses.create(**asked)
        for item in self.reply.output:
            made = json.loads(item.model_dump_json(exclude_none=True))
            made.pop("parsed_arguments", None)
            for part in made.get("content", ()):
                part.pop("parsed", None)
            self.items.append(made)
        return self.reply.output_text

    def _anthropic(self):
        listed = self.items
        if self.marks:  # as coding agents do: the system prompt, and the newest message
            newest = listed[-1]["content"]
            parts = [{"type": "text", "text": newest}] if isinstance(newest, str) else newest
            marked = [*parts[:-1], {**parts[-1], "cache_control": {"type": "ephemeral"}}]
            listed = [*listed[:-1], {**listed[-1], "content": marked}]
        system = [
            {"type": "text", "text": self.system, **({"cache_control": {"type": "ephemeral"}} if self.marks else {})}
        ]
        asked = {
            "model": self.model,
            "system": system,
            "messages": listed,
            "tools": self.tools,
            "max_tokens": 512,
        }
        if self.stream:
            with self.client.messages.stream(**asked) as stream:
                self.reply = stream.get_final_message()
        else:
            self.reply = self.client.messages.create(**asked)
        blocks = [
            json.loads(each.model_dump_json(exclude_none=True, exclude={"parsed_output"}))
            for each in self.reply.content
        ]
        self.items.append({"role": "assistant", "content": blocks})
        return "".join(each.text for each in self.reply.content if each.type == "text")


LONG = "The depot of line {0} opens at {0} and has {0} tracks. " * 12


def filled(talk, turns=30):
    """Give *talk* a past that is larger than a window of 6,000 tokens."""
    for number in range(turns):
        talk.items += [
            {"role": "user", "content": f"Question {number}. " + LONG.format(number)},
            {"role": "assistant", "content": f"Answer {number}."},
        ]
