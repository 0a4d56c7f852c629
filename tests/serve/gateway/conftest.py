"""A provider and a gateway in front of it, both over HTTP on this machine."""

from functools import cache

import httpcore2
import pytest

from memci.serve.gateway import app

from .upstream import Said, Served, Upstream


@pytest.fixture(autouse=True, scope="session")
def certificates():
    """Hundreds of gateways in one process read the machine's certificates once, which takes longer than a request."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


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
