"""How a conversation is shown: streamed on a terminal, as text in a pipe, or as a line of JSON for each message.

terminal    answers as they arrive, tool calls in grey, errors in one line
pipe        the answers on standard output, errors on the error output
--json      {"text": "Hi", "answer": "Hello.", "page": 1, "calls": 2, …}
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from ...errors import MemciError
from ...messages import Message, call_name, text_of
from ...storage.opening import name_of
from ..printer import Part, Printer, Result, many, visible
from ..tables import arguments_of
from .input import end_whole
from .slash_commands import Talk, run_command

if TYPE_CHECKING:
    from ...companion import AnswerStream


class Display:
    """Shows one conversation; *at_terminal*: a person types and reads it."""

    def __init__(self, printer: Printer, talk: Talk, *, at_terminal: bool) -> None:
        self._printer, self._talk, self._at_terminal = printer, talk, at_terminal
        self._status = printer.console.status("", spinner="dots", spinner_style="dim")
        self._tools: list[str] = []
        """the tools that were called for the answer"""
        self._begins = True
        """True until the answer has text: leading blank lines are left out"""
        self._in_line = False
        """True while the last line lacks its newline"""

    def welcome(self, model: str) -> Result:
        """Return a line about the open conversation, for a terminal."""
        context, path = self._talk.context, self._talk.path
        report = context.report()
        turns = report.turn + report.pages["open"]
        length = many(turns, "turn") if turns else "a new conversation"
        line = f"{context.id} in {name_of(path)}: {length}, window {report.window:,} · {model}"
        hint = "/help lists the commands; a line that ends in \\ continues on the next; Ctrl-D leaves\n"
        return self._result({}, [(f"{line}\n{hint}", "dim")])

    def farewell(self) -> Result:
        """Return a line on how to continue later. The program ends after it."""
        if self._at_terminal:
            end_whole()
        return self._result({}, [(f"kept. To go on: memci chat {self._talk.path} --id {self._talk.context.id}", "dim")])

    def answer(self, text: str, stream: "AnswerStream") -> Result:
        """Write the answer to *text* as it arrives; Ctrl-C stops it on a terminal."""
        self._tools, self._begins = [], True
        try:
            with stream:
                self._wait()
                for piece in stream:
                    self._status.stop()
                    self._write(piece.lstrip("\n") if self._begins and self._at_terminal else piece)
                self._in_line = self._in_line or not self._at_terminal
        except KeyboardInterrupt:
            if not self._at_terminal:
                raise
            self._end_line()
            return self._result({}, [("stopped: the text so far is kept", "dim"), ""], well=False)
        finally:
            self._end_line()
        answer = stream.answer
        assert answer is not None, "a stream that ends has an answer"
        found, analysis = answer.recollection, answer.analysis
        pages = found.pages if found is not None else ()
        facts = {
            "text": text,
            "answer": answer.text,
            "context": self._talk.context.id,
            "page": answer.receipt.page,
            "calls": answer.calls,
            "usage": asdict(answer.usage),
            "searched": found.query if found is not None else None,
            "found": [{"context": page.context, "page": page.index, "score": page.score} for page in pages],
            "saved": analysis.fact if analysis is not None else None,
            "tools": self._tools,
        }
        return self._result(facts, [""])

    def tool(self, call: Message, result: Message) -> None:
        """Keep the name of the tool, and write a line about the call on a terminal."""
        self._tools.append(call_name(call))
        if self._at_terminal:
            self._end_line()
            self._printer.show((call_line(call, result, self._printer.console.width), "dim"))
            self._begins = True
            self._wait()

    def failed(self, text: str, error: MemciError) -> Result:
        """Return the error in one line, and how to go on."""
        self._end_line()
        line = "; ".join([str(error), *getattr(error, "__notes__", ())])
        line = visible(" ".join(line.split()))
        if not (self._at_terminal or self._printer.json):
            self._printer.console.file.flush()
            typer.echo(f"memci: {line}", err=True)
        view: list[Part] = [(line, "red")]
        if not text.startswith("/"):
            view.append(("the message can be sent again: the arrow key ↑ brings it back", "dim"))
        facts = {"text": text, "error": {"type": type(error).__name__, "message": line}}
        return self._result(facts, [*view, ""], well=False)

    def command(self, text: str) -> Result | None:
        """Run the slash command *text*, and return its output, or None if it ends the conversation."""
        try:
            view = run_command(self._talk, text)
        except KeyboardInterrupt:
            if not self._at_terminal:
                raise
            view = []
        if view is None:
            return None
        if self._printer.json:
            return Result({"command": text, "printed": self._printer.as_text(view)})
        return Result({}, [*view, *([""] if self._at_terminal else [])])

    def _result(self, facts: Mapping[str, object], view: Iterable[Part], *, well: bool = True) -> Result:
        """Return a result whose view only a terminal shows, and which never fails there: the person saw the error."""
        return Result(facts, view if self._at_terminal else (), well or self._at_terminal)

    def _write(self, text: str) -> None:
        """Write *text*; the terminal wraps it."""
        if text and not self._printer.json:
            self._printer.console.file.write(visible(text))
            self._printer.console.file.flush()
            self._begins, self._in_line = False, not (self._at_terminal and text.endswith("\n"))

    def _wait(self) -> None:
        """Show a spinner until the first text of the model."""
        if self._at_terminal and not self._printer.console.is_dumb_terminal:
            self._status.start()

    def _end_line(self) -> None:
        self._status.stop()
        if self._in_line:
            self._write("\n")
            self._in_line = False


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
