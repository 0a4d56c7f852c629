"""How a conversation is shown: streamed on a terminal, as text in a pipe, or as a line of JSON for each turn.

    TerminalDisplay       streamed, calls of tools in grey, errors in one line
    PlainDisplay          the answers on standard output, errors on the error output
    JsonDisplay           {"text": "Hi", "answer": "Hello.", "page": 1, "calls": 2, …}

This module knows nothing of what a message or a command is.
"""

import json
from contextlib import suppress
from dataclasses import asdict, replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from ...errors import MemciError
from ...messages import Message, call_name, text_of
from ...storage.opening import name_of
from ..output import Output, many, visible
from ..tables import arguments_of
from .input import end_whole
from .slash_commands import Talk, run_command

if TYPE_CHECKING:
    from ...companion import AnswerStream, CompanionAnswer
    from ...context.context import Context


class TerminalDisplay:
    """On a terminal."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._console = output.console
        self._status = output.console.status("", spinner="dots", spinner_style="dim")
        self._begins = True
        """whether the answer has no text yet: blank lines are left out there"""
        self._in_line = False
        """whether the line of the answer is to be ended"""

    def welcome(self, path: str, context: "Context", model: str) -> None:
        """Print which conversation is open."""
        report = context.report()
        turns = report.turn + report.pages["open"]
        length = many(turns, "turn") if turns else "a new conversation"
        line = f"{context.id} in {name_of(path)}: {length}, window {report.window:,} · {model}"
        self._dim(f"{line}\n/help lists the commands; a line that ends in \\ continues on the next; Ctrl-D leaves\n")

    def farewell(self, path: str, context: "Context") -> None:
        """Print how to come back. The program ends then."""
        end_whole()
        self._dim(f"kept. To go on: memci chat {path} --id {context.id}")

    def answer(self, text: str, stream: "AnswerStream") -> bool:  # noqa: ARG002
        """Write the answer as it arrives; Ctrl-C stops it."""
        self._begins = True
        try:
            with stream:
                self._wait()
                for piece in stream:
                    self._status.stop()
                    self._write(piece.lstrip("\n") if self._begins else piece)
        except KeyboardInterrupt:
            self._end()
            self._dim("stopped: the text so far is kept")
            self._console.print()
            return False
        finally:
            self._end()
        self._console.print()
        return True

    def tool(self, call: Message, result: Message) -> None:
        """Write a line about a call."""
        self._end()
        self._dim(call_line(call, result, self._console.width))
        self._begins = True
        self._wait()

    def failed(self, text: str, error: MemciError) -> None:
        """Write the error in one line, and how to go on."""
        self._end()
        self._output.line(one_line(error), "red")
        if not text.startswith("/"):
            self._dim("the message can be sent again: the arrow key ↑ brings it back")
        self._console.print()

    def command(self, talk: Talk, text: str) -> bool:
        """Let the command print."""
        try:
            goes_on = run_command(talk, text)
        except KeyboardInterrupt:
            goes_on = True
        self._console.print()
        return goes_on

    def _write(self, text: str) -> None:
        """Write *text*; the terminal wraps it."""
        if text:
            self._console.file.write(visible(text))
            self._console.file.flush()
            self._begins, self._in_line = False, not text.endswith("\n")

    def _dim(self, text: str) -> None:
        self._output.line(text, "dim")

    def _wait(self) -> None:
        """Show that the model is at work, until its first text."""
        if not self._console.is_dumb_terminal:
            self._status.start()

    def _end(self) -> None:
        self._status.stop()
        if self._in_line:
            self._write("\n")


class PlainDisplay:
    """In a pipe: the answers on standard output, one after another."""

    def __init__(self, output: Output) -> None:
        self._console = output.console

    def answer(self, text: str, stream: "AnswerStream") -> bool:  # noqa: ARG002
        """Write the answer as it arrives, and end its line."""
        with stream:
            for piece in stream:
                self._console.file.write(visible(piece))
                self._console.file.flush()
        self._console.file.write("\n")
        self._console.file.flush()
        return True

    def tool(self, call: Message, result: Message) -> None:
        """Write nothing."""

    def failed(self, text: str, error: MemciError) -> None:  # noqa: ARG002
        """Write the error to the error output."""
        self._console.file.flush()
        typer.echo(f"memci: {one_line(error)}", err=True)

    def command(self, talk: Talk, text: str) -> bool:
        """Let the command print."""
        return run_command(talk, text)


class JsonDisplay:
    """As lines of JSON, in ASCII."""

    def __init__(self, output: Output, context: str) -> None:
        self._file = output.console.file
        self._context = context
        self._tools: list[str] = []

    def answer(self, text: str, stream: "AnswerStream") -> bool:
        """Write a line about the turn when it is complete."""
        self._tools = []
        with stream:
            for _ in stream:
                pass
        assert stream.answer is not None, "a stream that ends has an answer"
        self._line({"text": text, **self._figures(stream.answer)})
        return True

    def tool(self, call: Message, result: Message) -> None:  # noqa: ARG002
        """Keep the name of the tool for the line."""
        self._tools.append(call_name(call))

    def failed(self, text: str, error: MemciError) -> None:
        """Write a line about the error."""
        self._line({"text": text, "error": {"type": type(error).__name__, "message": one_line(error)}})

    def command(self, talk: Talk, text: str) -> bool:
        """Write a line with what the command prints."""
        printed = StringIO()
        console = Console(file=printed, width=100, color_system=None, highlight=False, markup=False)
        goes_on = run_command(replace(talk, output=Output(console)), text)
        self._line({"command": text, "printed": printed.getvalue()})
        return goes_on

    def _figures(self, answer: "CompanionAnswer") -> dict[str, Any]:
        found, analysis = answer.recollection, answer.analysis
        pages = found.pages if found is not None else ()
        return {
            "answer": answer.text,
            "context": self._context,
            "page": answer.receipt.page,
            "calls": answer.calls,
            "usage": asdict(answer.usage),
            "searched": found.query if found is not None else None,
            "found": [{"context": page.context, "page": page.index, "score": page.score} for page in pages],
            "saved": analysis.fact if analysis is not None else None,
            "tools": self._tools,
        }

    def _line(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value) + "\n")
        self._file.flush()


Display = TerminalDisplay | PlainDisplay | JsonDisplay
"""A way to show a conversation: `answer` and `command` show one message, `tool` and `failed` what happens meanwhile."""


def one_line(error: MemciError) -> str:
    """Return what *error* says, with its notes, in one line."""
    text = "; ".join([str(error), *getattr(error, "__notes__", ())])
    return visible(" ".join(text.split()))


def call_line(call: Message, result: Message, width: int) -> str:
    """Return a line about a *call* and the size of its *result*."""
    arguments = arguments_of(call)
    with suppress(ValueError, RecursionError):
        given = json.loads(arguments)
        if isinstance(given, dict):
            passed = {name: value for name, value in given.items() if value is not None}
            arguments = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in passed.items())
    size = f" → {len(text_of(result)):,} characters"
    line = Text(visible(f"· {call_name(call)}({' '.join(arguments.split())})"), no_wrap=True)
    line.truncate(max(10, width - len(size)), overflow="ellipsis")
    return f"{line.plain}{size}"
