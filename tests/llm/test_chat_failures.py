"""A chat whose server fails: what is tried again, what is not, and the circuit breaker after five failures."""

import threading
import time
from types import SimpleNamespace

import pytest

from memci.errors import ModelRefused, ModelUnavailable
from memci.llm import Chat, Spent
from memci.testing.llm import Cut, Hang, ModelServer, Raw, Reset, Status
from tests.hostile_answers import EMPTY_CHOICES, HTML, MALFORMED

HI = [{"role": "user", "content": "Hi"}]

# -- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_passing_failure_is_tried_again(server, chat, status):
    """What passes is tried again, by the openai client, and the answer counts as one call."""
    server.fails(Status(status), Status(status))
    server.answers(["ok"])

    assert chat(HI).text == "ok"
    assert len(server.requests) == 3
    assert chat.ledger.total.calls == 1
    assert chat.ledger.total.failed == 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 451])
def test_lasting_failure_is_not_tried_again(server, chat, status):
    """What the server refuses is refused at once, and says the status, the server and the model; never the text."""
    server.fails(Status(status, error="some_code", message="what I read: SECRET"))

    with pytest.raises(ModelRefused) as raised:
        chat(HI, step="page")

    assert len(server.requests) == 1
    assert f"HTTP {status}, some_code" in str(raised.value)
    assert "SECRET" not in str(raised.value)
    assert raised.value.step == "page"
    assert chat.ledger.steps["page"] == Spent(calls=1, failed=1)


def test_spent_account_is_not_asked_again(server, chat):
    """A spent account has a status that passes in other cases; here it does not."""
    server.fails(Status(429, error="insufficient_quota"))

    with pytest.raises(ModelRefused, match="insufficient_quota"):
        chat(HI)

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Reset(),
        Cut("Once upon a time"),
        MALFORMED,
        HTML,
        EMPTY_CHOICES,
        Raw("", "application/json"),
        Raw("[]"),
        Raw("null"),
        Raw('{"choices": 3}'),
        Raw('{"choices": [{}]}'),
        Raw('{"choices": ["x"]}'),
        Raw('{"choices": [{"message": {"content": 3}}]}'),
        Raw('{"choices": [{"message": {"content": null, "tool_calls": [{"id": 1}]}}]}'),
        Raw('{"choices": [{"message": {"content": "\\ud800"}}]}'),
        Raw('{"choices": [{"message": {"content": "x", "y": NaN}}]}'),
        Raw(b'{"choices": [{"message": {"content": "\xff"}}]}'),
        Raw("[" * 200_000),
        Raw("x" * 16_000_001),
    ],
    ids=lambda fault: str(fault)[:40],
)
def test_answer_that_is_none_is_tried_again(server, chat, fault):
    """Whatever else comes instead of an answer counts as none: it is tried again, then the model is unavailable."""
    server.fails(fault)
    server.answers(["ok"])

    assert chat(HI).text == "ok"
    assert len(server.requests) == 2

    server.fails(fault, fault, fault)

    with pytest.raises(ModelUnavailable, match="tried 3 times") as raised:
        chat(HI)

    assert raised.value.retryable
    assert chat.ledger.total.failed == 1


def test_nobody_listens(chat_over):
    """A server that is not there is unavailable, after as many tries as for any failure."""
    with ModelServer() as server:
        chat = chat_over(server, tries=2)

    with pytest.raises(ModelUnavailable, match=r"no connection.*tried 2 times"):
        chat(HI)


def test_json_of_another_type_is_read(server, chat):
    """A completion is one, whatever the header says of its type."""
    server.answers([Raw('{"choices": [{"message": {"content": "ok"}}]}', "text/plain")])

    assert chat(HI).text == "ok"


@pytest.mark.parametrize("blanks", [False, True], ids=["silent", "sending blanks"])
def test_hang_ends_by_the_timeout(server, blanks):
    """A server that never answers, or keeps the connection alive by sending blanks, is given up after the timeout."""
    hang = Hang(blanks=blanks)
    server.fails(hang)

    with Chat("m", base_url=server.base_url, timeout=0.2, tries=1) as chat, pytest.raises(ModelUnavailable) as raised:
        chat(HI)

    assert "no answer in time" in str(raised.value)
    assert hang.reached.is_set()
    assert not hang.released.is_set()


def test_request_that_is_no_json_is_refused(server, chat):
    """A message that can't be written as JSON is refused before anything is sent."""
    for content in ("\ud800", float("nan"), object()):
        with pytest.raises(ModelRefused, match="can't be written"):
            chat([{"role": "user", "content": content}])

    assert server.requests == []


@pytest.fixture
def waited(monkeypatch):
    """The seconds that the client waits between its tries, none of which pass."""
    seconds = []
    monkeypatch.setattr("openai._base_client.time", SimpleNamespace(**vars(time) | {"sleep": seconds.append}))
    return seconds


def test_wait_before_the_next_try_grows(server, chat, waited):
    """Without a word of the server the client waits about half a second, then a second."""
    server.fails(Status(503, retry_after="soon"), Status(503, retry_after="soon"))
    server.answers(["ok"])

    assert chat(HI).text == "ok"

    assert waited == [pytest.approx(0.5, rel=0.3), pytest.approx(1, rel=0.3)]


def test_retry_after_is_obeyed(server, chat, waited):
    """Where the server says when to come back, the client waits so long, and not the second that it would."""
    server.fails(Status(429, retry_after=0.05), Status(429, retry_after=0.05))
    server.answers(["ok"])

    chat(HI)

    assert waited == [0.05, 0.05]


def test_wait_that_is_too_long_is_not_waited(server, chat):
    """A call ends in bounded time: it gives up at once where the server wants a wait of more than two minutes."""
    server.fails(Status(429, retry_after=3600))

    with pytest.raises(ModelUnavailable, match="429"):
        chat(HI)

    assert len(server.requests) == 1


# -- the circuit breaker ------------------------------------------------------------------------------------------


def test_circuit_opens_after_five_failures(server, chat_over, clock):
    """After five calls in a row that failed nothing is sent for 30 seconds; then one call tries, and 60 follow."""
    server.fails(*[Status(500)] * 6)
    server.answers(["ok", "ok"])
    chat = chat_over(server, tries=1)
    for _ in range(5):
        with pytest.raises(ModelUnavailable, match="HTTP 500"):
            chat(HI)

    assert chat.paused == 30.0
    with pytest.raises(ModelUnavailable, match="no call is sent for 30 s"):
        chat(HI)
    assert len(server.requests) == 5
    clock.now += 30
    with pytest.raises(ModelUnavailable, match="HTTP 500"):
        chat(HI)
    assert chat.paused == 60.0
    clock.now += 60
    assert chat(HI).text == "ok"
    assert chat.paused == 0.0
    assert chat(HI).text == "ok"


def test_refusal_is_no_failure_of_the_server(server, chat_over):
    """A server that refuses is there: refusals do not open the circuit."""
    chat = chat_over(server, tries=1)
    server.fails(*[Status(400)] * 9)

    for _ in range(9):
        with pytest.raises(ModelRefused):
            chat(HI)

    assert chat.paused == 0.0


def test_one_call_at_a_time_tries_whether_the_server_is_back(server, chat_over, clock):
    """While one call tries whether the server is back, the others fail at once."""
    chat = chat_over(server, tries=1)
    server.fails(*[Status(500)] * 5)
    for _ in range(5):
        with pytest.raises(ModelUnavailable):
            chat(HI)
    clock.now += 30
    hang = server.hangs()
    server.answers(["ok", "ok"])
    trying = threading.Thread(target=chat, args=(HI,))
    trying.start()
    assert hang.reached.wait(10)

    with pytest.raises(ModelUnavailable, match="no call is sent"):
        chat(HI)
    hang.release()
    trying.join()

    assert chat(HI).text == "ok"


def test_trial_that_is_interrupted_leaves_room_for_the_next(server, chat_over, clock):
    """A trial that its caller gives up, by Ctrl-C for one, keeps nobody else from trying."""
    interrupts = []

    def interrupted(call):
        if interrupts:
            raise interrupts.pop()

    chat = chat_over(server, tries=1, on_call=interrupted)
    server.fails(*[Status(500)] * 6)
    server.answers(["ok"])
    for _ in range(5):
        with pytest.raises(ModelUnavailable):
            chat(HI)
    clock.now += 30
    interrupts.append(KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        chat(HI)

    assert chat(HI).text == "ok"
