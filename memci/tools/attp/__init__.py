"""ATTP: tools for a model that has no native tool calls.

The model reads Python signatures in its system prompt and answers in TOML; its code is walked, never executed:

    from memci.tools import attp

    system = attp.describe(tools)                              # tools: name -> typed function with a docstring
    reply = attp.parse(text)
    while not reply.final:
        text = ask(text, attp.run(reply, tools))               # the observation goes back as a user message
        reply = attp.parse(text)
    print(reply.answer)

A mistake of the model raises no error: it becomes an observation that explains it and shows a correct call.
"""

from .program import run
from .reply import ParsedReply, parse
from .signatures import Tools, describe

__all__ = ["ParsedReply", "Tools", "describe", "parse", "run"]
