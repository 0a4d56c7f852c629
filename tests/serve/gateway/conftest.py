"""A provider and a gateway in front of it, both over HTTP on this machine."""

import pytest

from memci.serve.gateway import app

from .upstream import Said, Served, Upstream


@pytest.fixture
def provider():
    with Upstream(lambda seen: Said("Hello!")) as started:
        yield started
    assert started.problems == []


@pytest.fixture
def store(tmp_path):
    return tmp_path / "agents.db"


@pytest.fixture
def gateway(provider, store):
    """The address of a gateway whose windows have 6,000 tokens."""
    with Served(app(store, upstream=provider.url, window=6_000)) as url:
        yield url
