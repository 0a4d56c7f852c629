"""Runs an example of the project as a new user would, against a model's server on this machine."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memci.testing.llm.server import ModelServer, Request

FOLDER = Path(__file__).parents[2] / "examples"


def answered(request: Request) -> str:
    """Return what the model says: what it was asked."""
    return f"You asked: {request.text.strip()[-60:]}"


def run_example(name: str, folder: Path, *, script: Callable[[Request], Any] = answered, **environment: str) -> str:
    """Return what the example *name* prints, run in *folder*; it fails if the example does."""
    with ModelServer(script) as server:
        given = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "key", **environment}
        command = [sys.executable, str(FOLDER / name)]
        done = subprocess.run(
            command, cwd=folder, env=os.environ | given, capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 0, done.stderr
    return done.stdout
