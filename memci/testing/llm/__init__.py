"""Models for tests: a model with scripted answers, and a real server on this machine that speaks OpenAI's API.

    from memci.testing.llm import ModelServer, ScriptedChat, Status

    chat = ScriptedChat(["Hello!"])                     a model without a server: fast
    with ModelServer(["Hello!"]) as server:             over HTTP, for any client
        server.fails(Status(503))

Neither opens a connection to another machine.
"""

from .scripted import Asked, ScriptedAnswer, ScriptedChat
from .server import Cut, Hang, ModelServer, Raw, Request, Reset, Status

__all__ = ["Asked", "Cut", "Hang", "ModelServer", "Raw", "Request", "Reset", "ScriptedAnswer", "ScriptedChat", "Status"]
