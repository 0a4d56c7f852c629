"""The short tier of the torture of a Postgres server; the long one is `make postgres-torture`."""

import json
import secrets

import pytest

from tests.postgres.torture import run


@pytest.mark.slow
def test_nothing_is_lost_when_the_server_is_killed():
    """Ten faults under load: every acknowledged append is there once."""
    code, output = run(rounds=10, seed=secrets.randbits(32))

    assert code == 0, output
    assert json.loads(output[output.index("{") :])["appends acknowledged, postgres"] > 20
