"""What the tests of the servers share."""

import pytest
from typer.testing import CliRunner

from memci.cli.app import app


@pytest.fixture
def command():
    """Runs a command and returns its result: exit_code, stdout, stderr."""

    def ran(*arguments):
        return CliRunner().invoke(app, [str(each) for each in arguments], prog_name="memci")

    return ran
