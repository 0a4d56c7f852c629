"""A retrying call: a request that is sent until it is answered, then booked and reported.

    call = RetryingCall(endpoint, request, step="page")
    reply = call.result(partial(IncomingAnswer, reply_of))
    pieces = call.run(IncomingStream)                         a generator that returns the reply

    what fails                                  what sends the request again
    connection, timeout, 408, 409, 429, 5xx     the openai client (`max_retries`), with its waits and `Retry-After`
    a body that is cut, too slow or no answer   this module, at once
    a word that the server does not know        this module, in other words (`requests`); it counts as no try

Both kinds of tries together are at most `tries`. Once a piece of a stream was given out, nothing is sent again.
"""

import logging
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from ..errors import ModelRefused, ModelUnavailable, brief
from ..messages import Message, text_of
from .endpoint import Endpoint
from .model import Call, Reply, Usage
from .replies import IncomingAnswer
from .requests import Request
from .server_errors import LATE, failure_of
from .usage import Spent

_READ = 8  # tokens of a prompt that a server reads while it makes one: a cautious value, since most read far more
_LOG = logging.getLogger(__name__)


T = TypeVar("T", bound=Reply)
Reader = Callable[[Iterable[bytes], float, Callable[[], float]], IncomingAnswer[T]]
"""makes an answer of the bytes of a response, the seconds that they may take, and a clock"""


class RetryingCall:
    """One call of an endpoint, with all its tries."""

    def __init__(
        self, endpoint: Endpoint, request: Request, *, step: str, attempt: int = 0, prompt: int = 0, most: int = 0
    ) -> None:
        """Prepare a call with about *prompt* tokens, which the model may answer with up to *most* tokens."""
        self._endpoint = endpoint
        self._request = request
        self._step, self._attempt = step, attempt
        self._prompt, self._most = prompt, most
        self._sent = self._began = 0.0
        self._tries = 0

    def result(self, read: Reader[T]) -> T:
        """Return the answer that *read* makes, once it is whole. The errors are those of `Chat`."""
        pieces = self.run(read)
        try:
            while True:
                next(pieces)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def run(self, read: Reader[T]) -> Generator[str, None, T]:
        """Send the request until there is an answer; yield its pieces, and return the whole that *read* makes of it."""
        endpoint = self._endpoint
        endpoint.ledger.admit(self._step)
        if not endpoint.breaker.enter():
            reason = f"{endpoint.server} failed often: no call is sent for {endpoint.breaker.seconds:.0f} s"
            raise ModelUnavailable(self._step, reason)
        self._request.dialect = endpoint.dialect
        self._began = endpoint.clock()
        said: list[str] = []
        try:
            while True:
                seconds, self._sent = endpoint.timeout.seconds(_work(self._prompt, self._most)), endpoint.clock()
                response = None
                try:
                    client = endpoint.connect(endpoint.tries - self._tries, seconds)
                    with self._request.send(client) as response:
                        self._tries += response.retries_taken + 1
                        incoming = read(response.iter_bytes(), seconds, endpoint.clock)
                        for piece in incoming.pieces():
                            if not said:
                                self._accept()
                            said.append(piece)
                            yield piece
                    break
                except Exception as error:  # noqa: BLE001 -- of any client; what `failure_of` does not know is raised again
                    self._judge(error, "".join(said), answered=response is not None)
        except (ModelRefused, ModelUnavailable) as error:
            cost = (self._prompt, _tokens("".join(said))) if said else (0, 0)
            endpoint.ledger.add(self._step, Spent(1, *cost, failed=1))
            (endpoint.breaker.answered if isinstance(error, ModelRefused) else endpoint.breaker.failed)()
            raise
        except BaseException:
            if said:
                self._book(Usage(), "abandoned", _tokens("".join(said)))
            else:
                endpoint.breaker.abandoned()
            raise
        if not said:
            self._accept()
        answer = incoming.result
        calls = str(answer.message.get("tool_calls", ""))
        self._book(answer.usage, answer.finish, _tokens(text_of(answer.message) + calls), paced=not said)
        return answer

    def _accept(self) -> None:
        """Note that the server answers, and that it accepted the words of the request."""
        self._endpoint.breaker.answered()
        self._endpoint.learn(self._request.learned)

    def _judge(self, error: Exception, said: str, *, answered: bool) -> None:
        """Report a try that failed with *error*; raise the error of the call unless another try may follow.

        *answered*: the server began its answer, and this try is counted already.
        """
        endpoint, failure = self._endpoint, failure_of(error)
        if failure is None:
            raise error
        if not answered:
            self._tries += failure.retries + 1
        if failure.reason == LATE and not said:
            endpoint.timeout.expired()
        self._report(error=type(error).__name__, status=failure.status)
        if said:
            reason = f"{failure.reason}, from {endpoint.server}, after {len(said):,} characters"
            raise ModelUnavailable(self._step, reason, partial=said) from error
        if self._request.reword(failure):
            self._tries -= failure.retries + 1
            return
        reason = f"{failure.reason}, from {endpoint.server} for model {brief(endpoint.model)}"
        if not failure.passing:
            raise ModelRefused(self._step, reason) from error
        if failure.status is not None or self._tries >= endpoint.tries:
            raise ModelUnavailable(self._step, f"{reason}; tried {self._tries} times") from error

    def _book(self, usage: Usage, finish: str, completion: int, *, paced: bool = False) -> None:
        """Book and report an answer, with the cost that the server reports.

        If it reports none, the estimate is booked: a ceiling must hold then, too. *paced*: only the server decided how
        long the answer took, so its pace is learned.
        """
        endpoint, prompt = self._endpoint, self._prompt
        if usage.total:
            prompt, completion = usage.prompt, usage.completion
        endpoint.ledger.add(self._step, Spent(1, prompt, completion, cached=usage.cached))
        if paced:
            endpoint.timeout.answered(_work(prompt, completion), endpoint.clock() - self._sent)
        self._report(usage=usage, finish=finish)

    def _report(self, **outcome: Any) -> None:
        """Give a `Call` to the listener. An error that it raises is logged and breaks nothing."""
        endpoint = self._endpoint
        if endpoint.on_call is None:
            return
        seconds = endpoint.clock() - self._began
        call = Call(self._step, endpoint.model, seconds, attempt=self._attempt, tries=self._tries, **outcome)
        try:
            endpoint.on_call(call)
        except Exception as raised:  # noqa: BLE001 -- a caller's function: a report that fails must not fail the call
            _LOG.debug("on_call raised %s", type(raised).__name__)


def estimate(messages: Iterable[Message]) -> int:
    """Return about how many tokens *messages* have."""
    return sum(_tokens(text_of(each)) + 4 for each in messages)  # 4: for the frame of a message


def _tokens(text: str) -> int:
    """Return about how many tokens *text* has: one for four bytes, as in English."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def _work(prompt: float, completion: float) -> float:
    """Return how many tokens a model makes in the time of a call: to read one costs less than to make one."""
    return completion + prompt / _READ
