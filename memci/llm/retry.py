"""A retrying call: a request that is sent until it is answered, then booked and reported.

    call = RetryingCall(endpoint, request, step="page")
    reply = call.run(lambda response, opened: …)      reads the body of the answer
    call.book(reply.usage, finish=reply.finish)

    what fails                                  what sends the request again
    connection, timeout, 408, 409, 429, 5xx     the openai client (`max_retries`), with its waits and `Retry-After`
    a body that is cut, too slow or no answer   this module, at once
    a word that the server does not know        this module, in other words (`requests`); it counts as no try

Both kinds of tries together are at most `tries`.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from ..errors import ModelRefused, ModelUnavailable, brief
from ..messages import Message, text_of
from .endpoint import Endpoint
from .model import Call, Reply, Usage
from .replies import IncomingReply, read_whole
from .requests import Request
from .server_errors import LATE, failure_of
from .usage import Spent

T = TypeVar("T")
_READ = 8
"""tokens of a prompt that a server reads while it makes one: a cautious value, since most read far more"""
_LOG = logging.getLogger(__name__)


class RetryingCall:
    """One call of an endpoint, with all its tries."""

    def __init__(
        self, endpoint: Endpoint, request: Request, *, step: str, attempt: int = 0, tokens: float = 0.0
    ) -> None:
        """Prepare a call, for which the model may have to make as many as *tokens*."""
        self.endpoint = endpoint
        self.step = step
        self._request = request
        self._attempt = attempt
        self._tokens = tokens
        self._sent = self._began = 0.0
        self._tries = 0
        self.seconds = 0.0
        """the time-out of the current try"""

    def run(self, read: Callable[[Any, ExitStack], T]) -> T:
        """Send the request until there is an answer, and return what *read* makes of the response.

        *read* also gets the stack that closes the response, to take it over if the body is read later. The caller
        books the answer (`book`). The errors are those of `Chat`.
        """
        endpoint = self.endpoint
        endpoint.ledger.admit(self.step)
        if not endpoint.breaker.enter():
            reason = f"{endpoint.server} failed often: no call is sent for {endpoint.breaker.seconds:.0f} s"
            raise ModelUnavailable(self.step, reason)
        self._request.dialect = endpoint.dialect
        self._began = endpoint.clock()
        try:
            answer = self._try(read)
        except (ModelRefused, ModelUnavailable) as error:
            endpoint.ledger.add(self.step, Spent(calls=1, failed=1))
            (endpoint.breaker.answered if isinstance(error, ModelRefused) else endpoint.breaker.failed)()
            raise
        except BaseException:
            endpoint.breaker.abandoned()
            raise
        endpoint.breaker.answered()
        endpoint.learn(self._request.learned)
        return answer

    def body(self, response: Any) -> bytes:
        """Return the whole body of *response*."""
        return read_whole(response.iter_bytes(), self.seconds, self.endpoint.clock)

    def book(self, usage: Usage, *, finish: str = "", estimate: tuple[int, int] = (0, 0), paced: bool = False) -> None:
        """Book and report an answer, with the cost that the server reports.

        If it reports none, *estimate* is booked, tokens of prompt and answer: a ceiling must hold then, too.
        *paced*: only the server decided how long the answer took, so that its pace is learned.
        """
        prompt, completion = (usage.prompt, usage.completion) if usage.total else estimate
        self.endpoint.ledger.add(self.step, Spent(calls=1, prompt=prompt, completion=completion, cached=usage.cached))
        if paced:
            self.endpoint.timeout.answered(work(prompt, completion), self.endpoint.clock() - self._sent)
        self._report(usage=usage, finish=finish)

    @contextmanager
    def streaming(self, incoming: IncomingReply, messages: Sequence[Message]) -> Iterator[None]:
        """Book how a stream ends whose rest is read inside the `with`; if it is cut, the error has its text."""
        try:
            yield
        except Exception as error:
            failure, partial = failure_of(error), incoming.text
            if failure is None:
                raise
            prompt, completion = estimate(messages, partial)
            self.endpoint.ledger.add(self.step, Spent(calls=1, prompt=prompt, completion=completion, failed=1))
            self._report(error=type(error).__name__)
            self.endpoint.breaker.failed()
            reason = f"{failure.reason}, from {self.endpoint.server}, after {len(partial):,} characters"
            raise ModelUnavailable(self.step, reason, partial=partial) from error
        except BaseException:
            self.book(Usage(), finish="abandoned", estimate=estimate(messages, incoming.text))
            raise

    def _try(self, read: Callable[[Any, ExitStack], T]) -> T:
        endpoint = self.endpoint
        while True:
            response = None
            self.seconds, self._sent = endpoint.timeout.seconds(self._tokens), endpoint.clock()
            try:
                with ExitStack() as opened:
                    client = endpoint.connected(endpoint.tries - self._tries, self.seconds)
                    response = opened.enter_context(self._request.send(client))
                    self._tries += response.retries_taken + 1
                    return read(response, opened)
            except Exception as error:  # noqa: BLE001 -- of any client; what `failure_of` does not know is raised again
                failure, cause = failure_of(error), error
            if failure is None:
                raise cause
            if response is None:
                self._tries += failure.retries + 1
            if failure.reason == LATE:
                endpoint.timeout.expired()
            self._report(error=type(cause).__name__, status=failure.status)
            if self._request.reword(failure):
                self._tries -= failure.retries + 1
                continue
            reason = f"{failure.reason}, from {endpoint.server} for model {brief(endpoint.model)}"
            if not failure.passing:
                raise ModelRefused(self.step, reason) from cause
            if failure.status is not None or self._tries >= endpoint.tries:
                raise ModelUnavailable(self.step, f"{reason}; tried {self._tries} times") from cause

    def _report(self, **outcome: Any) -> None:
        """Give a `Call` to the listener. An error that it raises is logged and breaks nothing."""
        endpoint = self.endpoint
        if endpoint.on_call is None:
            return
        seconds = endpoint.clock() - self._began
        call = Call(self.step, endpoint.model, seconds, attempt=self._attempt, tries=self._tries, **outcome)
        try:
            endpoint.on_call(call)
        except Exception as raised:  # noqa: BLE001 -- a caller's function: a report that fails must not fail the call
            _LOG.debug("on_call raised %s", type(raised).__name__)


def work(prompt: float, completion: float) -> float:
    """Return how many tokens a model makes in the time of a call: to read one costs less than to make one."""
    return completion + prompt / _READ


def estimate(messages: Sequence[Message], reply: Reply | str) -> tuple[int, int]:
    """Return about how many tokens *messages* and the answer have, for a server that does not count them."""
    text = reply if isinstance(reply, str) else text_of(reply.message) + str(reply.message.get("tool_calls", ""))
    return sum(_tokens(text_of(each)) + 4 for each in messages), _tokens(text)


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // 4)
