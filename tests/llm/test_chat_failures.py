"""A chat whose server fails: what is tried again, what is not, and the pause after five failures."""

import threading

import pytest

from memci.errors import ModelRefused, ModelUnavailable
from memci.llm import Chat, Spent
from memci.testing.llm.faults import EMPTY_CHOICES, HTML, MALFORMED, Cut, Hang, Raw, Reset, Status
from memci.testing.llm.server import ModelServer

HI = [{"role": "user", "content": "Hi"}]
# -- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_passing_failure_is_tried_again(server, chat, clock, status):
    """What passes is tried again, each time after a longer wait, and the answer counts as one call."""
    server.fails(Status(status), Status(status))
    server.answers(["ok"])

    assert chat(HI).text == "ok"
    assert clock.slept == [0.5, 1.0]
    assert len(server.requests) == 3
    assert chat.ledger.total.calls == 1
    assert chat.ledger.total.failed == 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 451])
def test_lasting_failure_is_not_tried_again(server, chat, clock, status):
    """What the server refuses is refused at once, and says the status, the server and the model; never the text."""
    server.fails(Status(status, error="some_code", message="what I read: SECRET"))

    with pytest.raises(ModelRefused) as raised:
        chat(HI, step="page")

    assert len(server.requests) == 1
    assert clock.slept == []
    assert f"HTTP {status}, some_code" in str(raised.value)
    assert "SECRET" not in str(raised.value)
    assert raised.value.step == "page"
    assert chat.ledger.steps["page"] == Spent(calls=1, failed=1)


def test_spent_account_is_not_asked_again(server, chat):
    """An account without money is told by a status that passes elsewhere; here it does not."""
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
        chat = chat_over(server)

    with pytest.raises(ModelUnavailable, match="no connection"):
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


@pytest.mark.parametrize(("value", "seconds"), [(7, 7.0), ("0", 0.0), ("1.5", 1.5)])
def test_retry_after_is_obeyed(server, chat, clock, value, seconds):
    """Where the server says when to come back, nobody comes earlier, and not all at the same moment."""
    server.fails(Status(429, retry_after=value))
    server.answers(["ok"])

    chat(HI)

    assert clock.slept == [seconds + 0.125]


def test_retry_after_may_be_a_date(server, chat, clock):
    """A date is compared with the server's own clock."""
    now = {"Date": "Sat, 01 Jan 2028 00:00:00 GMT"}
    server.fails(Status(503, retry_after="Sat, 01 Jan 2028 00:00:09 GMT", headers=now))
    server.answers(["ok"])

    chat(HI)

    assert clock.slept == [9.125]


@pytest.mark.parametrize("value", ["soon", "-3", "nan", "inf", "", "Sat, 99 Jan"])
def test_retry_after_that_is_no_time_is_passed_over(server, chat, clock, value):
    """Nonsense in the header changes nothing."""
    server.fails(Status(429, retry_after=value))
    server.answers(["ok"])

    chat(HI)

    assert clock.slept == [0.5]


def test_wait_that_is_too_long_is_not_waited(server, chat, clock):
    """A call ends in bounded time: it gives up at once where the server wants a longer wait than all tries may take."""
    server.fails(Status(429, retry_after=3600))

    with pytest.raises(ModelUnavailable, match="429"):
        chat(HI)

    assert clock.slept == []
    assert len(server.requests) == 1


# -- the pause ----------------------------------------------------------------------------------------------------


def test_pause_after_five_failures(server, chat_over, clock):
    """After five calls in a row that failed nothing is sent for 30 seconds; then one call tries, and 60 follow."""
    server.fails(*[Status(500)] * 6)
    server.answers(["ok", "ok"])
    chat = chat_over(server, tries=1)
    for _ in range(5):
        with pytest.raises(ModelUnavailable, match="HTTP 500"):
            chat(HI)

    assert chat.paused == 30.0
    with pytest.raises(ModelUnavailable, match="left alone for 30 s"):
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
    """A server that refuses is there: refusals lead to no pause."""
    chat = chat_over(server, tries=1)
    server.fails(*[Status(400)] * 9)

    for _ in range(9):
        with pytest.raises(ModelRefused):
            chat(HI)

    assert chat.paused == 0.0


def test_one_call_at_a_time_tries_after_a_pause(server, chat_over, clock):
    """While one call tries whether the server is back, the others are told at once that it is not."""
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

    with pytest.raises(ModelUnavailable, match="left alone"):
        chat(HI)
    hang.release()
    trying.join()

    assert chat(HI).text == "ok"


def test_call_that_is_interrupted_after_a_pause_leaves_room_for_the_next(server, chat_over, clock):
    """A trial that its caller gives up, by Ctrl-C for one, keeps nobody else from trying."""

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    chat = chat_over(server, tries=2, sleep=interrupted)
    server.fails(*[Status(500)] * 6)
    server.answers(["ok"])
    chat._line.tries = 1
    for _ in range(5):
        with pytest.raises(ModelUnavailable):
            chat(HI)
    clock.now += 30
    chat._line.tries = 2

    with pytest.raises(KeyboardInterrupt):
        chat(HI)

    assert chat(HI).text == "ok"
