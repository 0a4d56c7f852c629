"""memci.llm.Embeddings over a real socket: rows for texts, as the memory takes them, or EmbeddingFailed."""

import json

import numpy as np
import pytest

from memci.errors import EmbeddingFailed, InvalidSetting
from memci.llm import Embeddings, Ledger
from memci.memory.retrieval import embedders
from memci.memory.retrieval.embedders import Embedder
from memci.testing.llm import ModelServer, Raw, Status
from tests.hostile_answers import HTML

TEXTS = ["Mel plays the violin", "你好 🌍", "the violin of Mel", "something else"]


@pytest.fixture
def embeddings(server):
    """Give what makes embeddings over the server."""
    made = []

    def make(**settings):
        given = {"base_url": server.base_url, **settings}
        made.append(Embeddings("embed-model", **given))
        return made[-1]

    yield make
    for each in made:
        each.close()


def rows(*rows, indexes=None):
    data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
    for each, index in zip(data, indexes or (), strict=False):
        each["index"] = index
    return Raw(json.dumps({"data": data}))


def test_rows_are_those_of_the_server(server, embeddings):
    """Each text has its row, in the order of the texts, over any number of requests."""
    embed = embeddings(batch=3)

    given = embedders.embed(embed, TEXTS)

    assert isinstance(embed, Embedder)
    assert embed.semantic
    expected = server.embedder(TEXTS)
    np.testing.assert_allclose(given, expected, atol=1e-6)
    asked = [request.body["input"] for request in server.requests]
    assert asked == [["dimension"], TEXTS[:3], TEXTS[3:]]
    assert {request.body["encoding_format"] for request in server.requests} == {"base64"}


def test_words_in_common_are_near(embeddings):
    """The server's vectors are near where texts share words, so that searches can be tested."""
    violin, _, mel, other = embedders.embed(embeddings(), TEXTS)

    assert violin @ mel > violin @ other + 0.3


def test_dimension_is_asked_for_once_or_given(server, embeddings):
    """The length of a row is asked of the server when it is first needed; not if it was given."""
    embed = embeddings()

    assert (embed.dimension, embed.dimension) == (64, 64)
    assert len(server.requests) == 1
    assert embeddings(dimension=99).dimension == 99
    assert len(server.requests) == 1


def test_dimension_that_could_not_be_asked_is_asked_again(server, embeddings):
    """A server that is down says nothing of the dimension; it is asked the next time."""
    embed = embeddings(tries=1)
    server.fails(Status(500))

    with pytest.raises(EmbeddingFailed) as raised:
        _ = embed.dimension
    assert raised.value.retryable
    assert embed.dimension == 64


def test_name_tells_servers_and_lengths_apart(server, embeddings):
    """Vectors of two servers, or of two lengths, are never compared: their names differ. A key is in no name."""
    with ModelServer() as other:
        names = {
            embeddings().name,
            embeddings(base_url=other.base_url).name,
            embeddings(extra={"dimensions": 8}).name,
            embeddings(base_url="http://anna:secret@example.org/v1/").name,
        }

    assert len(names) == 4
    assert f"embed-model@{server.base_url.removeprefix('http://')}" in names
    assert "embed-model@example.org/v1" in names


@pytest.mark.parametrize("status", [400, 422, 501])
def test_server_that_knows_no_base64_is_asked_for_numbers(server, embeddings, status):
    """Where base64 is refused, numbers are asked for, and from then on at once."""
    server.fails(*[Status(status, message="encoding_format base64 is not supported")] * (3 if status >= 500 else 1))
    embed = embeddings(dimension=64)

    embed(TEXTS)
    embed(TEXTS)

    asked = [request.body["encoding_format"] for request in server.requests]
    assert [*dict.fromkeys(asked)] == ["base64", "float"]
    assert asked[-2:] == ["float", "float"]


def test_rows_are_put_in_order(server, embeddings):
    """A server may answer in any order: the index says whose a row is."""
    server.fails(rows([1.0, 0.0], [0.0, 1.0], indexes=[1, 0]))

    assert embeddings(dimension=2)(["a", "b"]) == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    "fault",
    [
        rows([1.0, 0.0]),
        rows([1.0, 0.0], [1.0, 0.0], [1.0, 0.0]),
        rows([1.0, 0.0], [0.0, 1.0], indexes=[0, 0]),
        rows([1.0, 0.0], [0.0, 1.0], indexes=[1, 2]),
        rows([1.0, 0.0], [0.0, 1.0], indexes=["0", None]),
        rows("AAAA!", "AAAA"),
        rows("AAA=", "AAAAgD8="),
        rows({"a": 1}, [0.0]),
        rows(["1.0", 2], [0.0, 1.0]),
        rows(None, None),
        Raw('{"data": [1, 2]}'),
        Raw('{"data": null}'),
        Raw("[]"),
        HTML,
        Status(500),
    ],
    ids=lambda fault: str(fault)[:60],
)
def test_answer_that_is_none_fails(server, embeddings, fault):
    """What are no rows for the texts is tried again, then fails so that it may be tried later."""
    server.fails(fault)
    embed = embeddings(dimension=64)

    assert len(embed(["a", "b"])) == 2

    server.fails(fault, fault, fault)
    with pytest.raises(EmbeddingFailed) as raised:
        embed(["a", "b"])

    assert raised.value.retryable
    assert raised.value.embedder == embed.name


@pytest.mark.parametrize("row", [[1.0, float("nan")], [1.0], [1.0, 2.0, 3.0], [1e300, float("inf")], []])
def test_numbers_that_are_no_vector_are_refused_where_they_are_used(server, embeddings, row):
    """Rows of another length and numbers that are not finite never reach what is stored."""
    server.fails(*[rows(row)] * 3)

    with pytest.raises(EmbeddingFailed):
        embedders.embed(embeddings(dimension=2), ["a"])


def test_refusal_is_not_tried_again(server, embeddings):
    """What the server refuses fails at once, and for good."""
    server.fails(Status(401))

    with pytest.raises(EmbeddingFailed) as raised:
        embeddings(dimension=64)(["a"])

    assert not raised.value.retryable
    assert len(server.requests) == 1


def test_costs_are_booked(server, embeddings):
    """What embedding costs is in the ledger that was given, under its step; a ceiling stops it."""
    ledger = Ledger(4)
    embed = embeddings(dimension=64, ledger=ledger, step="recall")

    embed(TEXTS)

    assert ledger.steps["recall"].calls == 1
    assert ledger.steps["recall"].prompt > 4
    with pytest.raises(EmbeddingFailed, match="are spent"):
        embed(TEXTS)
    assert len(server.requests) == 1


@pytest.mark.parametrize("settings", [{"dimension": 0}, {"batch": 0}, {"batch": None}, {"dimension": "9"}])
def test_settings_that_make_no_sense_are_named(settings):
    """A length or a batch that can't be is said at once."""
    with pytest.raises(InvalidSetting) as raised:
        Embeddings("m", base_url="http://127.0.0.1:1/v1", **settings)

    assert raised.value.name in settings
