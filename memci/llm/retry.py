"""A line to a server, and one call over it: when it is tried again, when it is given up, what is told of it.

    exchange = Exchange(line, draft, step="page", attempt=0)
    run = exchange.sending(read)        a generator that asks for what it can't do:
        Send(parameters, 30.0)              put this over the socket, and send me the answer, or throw what was raised
        Wait(0.41)                          sleep so long
        return reply

One core for the sync and the async client: neither sockets nor sleep stand here. A call ends within about
`timeout * (tries + 2)` seconds: no try begins later than `timeout * tries` after the first. This module knows nothing
of completions or embeddings.
"""

import random
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol, TypeVar

from ..errors import InvalidSetting, ModelRefused, ModelUnavailable, brief
from ..messages import Message, text_of
from .circuit_breaker import Pause
from .errors_of_servers import Failure, sort, wait
from .model import Reply, Usage
from .requests import Dialect
from .streaming import Incoming
from .tracing import Call, OnCall, tell
from .usage import Ledger, Spent

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request with these parameters; the answer may take so many seconds."""

    parameters: dict[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Sleep so many seconds."""

    seconds: float


class Sayable(Protocol):
    """A request that can be said in other words."""

    dialect: Dialect
    """the words that it is said in"""

    def parameters(self) -> dict[str, Any]:
        """Return it as the client takes it."""
        ...

    def reworded(self, failure: Failure) -> bool:
        """Return whether there are other words for what was refused, and take them."""
        ...


@dataclass(slots=True)
class Line:
    """What the calls of one model share."""

    model: str
    server: str
    timeout: float
    """seconds"""
    tries: int
    ledger: Ledger
    on_call: OnCall | None = None
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    dialect: Dialect = field(default_factory=Dialect)
    pause: Pause = field(init=False)
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float) or not 0 < self.timeout < 1e6:
            raise InvalidSetting("timeout", f"seconds, more than 0; not {brief(self.timeout)}")
        if type(self.tries) is not int or self.tries < 1:
            raise InvalidSetting("tries", f"1 or more; not {brief(self.tries)}")
        self.pause = Pause(self.clock)


class Exchange:
    """One call over a line, with all its tries."""

    def __init__(self, line: Line, draft: Sayable, *, step: str, attempt: int) -> None:
        self.line = line
        self.step = step
        self._draft = draft
        self._attempt = attempt
        self._tries = 0
        self._sent = 0.0

    def sending(self, read: Callable[[Any], T]) -> Generator[Send | Wait, Any, T]:
        """Send until there is an answer, and return what *read* makes of it. The caller books it.

        Raises:
            CeilingReached: Before anything is sent.
            ModelUnavailable: If there is none, or while the line pauses.
            ModelRefused: If the server says that asking again is of no use.
        """
        self.line.ledger.admit(self.step)
        if not self.line.pause.enter():
            seconds = self.line.pause.seconds
            raise ModelUnavailable(self.step, f"{self.line.server} failed often: it is left alone for {seconds:.0f} s")
        known = self._draft.dialect = self.line.dialect
        try:
            answer = yield from self._trying(read)
        except ModelRefused:
            self._book(Spent(calls=1, failed=1))
            self.line.pause.answered()
            raise
        except ModelUnavailable:
            self._book(Spent(calls=1, failed=1))
            self.line.pause.failed()
            raise
        except BaseException:
            self.line.pause.left()
            raise
        self.line.pause.answered()
        with self.line.lock:
            self.line.dialect = self.line.dialect.learned(known, self._draft.dialect)
        return answer

    def answered(self, usage: Usage, *, finish: str = "", estimate: tuple[int, int] = (0, 0)) -> None:
        """Book an answer.

        Args:
            usage: What the server says that it cost.
            finish: Why it ended.
            estimate: Tokens of prompt and answer, for a server that does not say: a ceiling is to hold there, too.
        """
        prompt, completion = (usage.prompt, usage.completion) if usage.total else estimate
        self._book(Spent(calls=1, prompt=prompt, completion=completion, cached=usage.cached))
        self._tell(usage=usage, finish=finish)

    @contextmanager
    def streaming(self, incoming: Incoming, messages: Sequence[Message]) -> Iterator[None]:
        """Book how the rest of a stream, read inside of the `with`, ends.

        Raises:
            ModelUnavailable: If it is cut; with what came of it.
        """
        try:
            yield
        except Exception as error:
            failure = sort(error)
            if failure is None:
                raise
            prompt, completion = estimated(messages, incoming.partial)
            self._book(Spent(calls=1, prompt=prompt, completion=completion, failed=1))
            self._tell(error=type(error).__name__)
            self.line.pause.failed()
            reason = f"{failure.reason}, from {self.line.server}, after {len(incoming.partial):,} characters"
            raise ModelUnavailable(self.step, reason, partial=incoming.partial) from error
        except BaseException:
            self.answered(Usage(), finish="abandoned", estimate=estimated(messages, incoming.partial))
            raise
        reply = incoming.reply
        assert reply is not None, "a stream that did not break was read to its end"
        self.answered(reply.usage, finish=reply.finish, estimate=estimated(messages, reply))

    def _trying(self, read: Callable[[Any], T]) -> Generator[Send | Wait, Any, T]:
        line = self.line
        began = line.clock()
        while True:
            self._tries += 1
            self._sent = line.clock()
            try:
                return read((yield Send(self._draft.parameters(), line.timeout)))
            except Exception as error:  # noqa: BLE001 -- of any client; what `sort` does not know is raised again
                failure, cause = sort(error), error
            if failure is None:
                raise cause
            self._tell(error=type(cause).__name__, status=failure.status)
            if self._draft.reworded(failure):
                self._tries -= 1
                continue
            reason = f"{failure.reason}, from {line.server} for model {brief(line.model)}"
            if not failure.passing:
                raise ModelRefused(self.step, reason) from cause
            seconds = wait(self._tries, failure, line.random())
            late = line.clock() + seconds - began > line.timeout * line.tries
            if self._tries >= line.tries or late:
                raise ModelUnavailable(self.step, f"{reason}; tried {self._tries} times") from cause
            yield Wait(seconds)

    def _book(self, spent: Spent) -> None:
        self.line.ledger.add(self.step, spent)

    def _tell(
        self, *, usage: Usage | None = None, error: str | None = None, status: int | None = None, finish: str = ""
    ) -> None:
        seconds = self.line.clock() - self._sent
        call = Call(
            self.step,
            self.line.model,
            seconds,
            usage or Usage(),
            self._attempt,
            self._tries,
            error,
            status,
            finish,
        )
        tell(self.line.on_call, call)


def estimated(messages: Sequence[Message], reply: Reply | str) -> tuple[int, int]:
    """Return about how many tokens *messages* and the answer have, for a server that does not count them."""
    said = reply if isinstance(reply, str) else text_of(reply.message) + str(reply.message.get("tool_calls", ""))
    return sum(_tokens(text_of(each)) + 4 for each in messages), _tokens(said)


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // 4)
