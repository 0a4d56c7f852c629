"""Options and arguments that several commands take, the model that options name, and extras that commands need."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..errors import InvalidSetting

if TYPE_CHECKING:
    from ..llm import Chat

TIMEOUT_SECONDS = 120.0
"""how long to wait for the first word of a model: local ones load for up to a minute, and reasoning takes time"""
_NO_SERVER = (
    "say where the model is by OPENAI_API_KEY (OpenAI's own), or by --base-url or OPENAI_BASE_URL "
    "(any server that speaks its API, as http://localhost:11434/v1)"
)
_NO_MODEL = f"no model is configured: name it by --model or MEMCI_MODEL, and {_NO_SERVER}"

_EXTRAS = {
    "serve": ("the gateway", {"httpx2", "starlette", "uvicorn"}),
    "mcp": ("the server of MCP", {"anyio", "mcp", "mcp_types", "pydantic", "starlette", "uvicorn"}),
    "ui": ("the inspector", {"jinja2", "markupsafe", "starlette", "uvicorn"}),
}
"""the purpose and the packages of each extra"""


def size(text: object) -> int:
    """Return the number of tokens that *text* names: 32000, 32_000, 32k or 1m."""
    digits = str(text).lower()
    unit = {"k": 1_000, "m": 1_000_000}.get(digits[-1:], 1)
    try:
        return round(float(digits[:-1]) * unit) if unit > 1 else int(digits)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r:.60} is no number of tokens: 32000, 32k or 1m") from None


def tokens(*names: str, help: str) -> Any:  # noqa: A002 -- typer's name
    """Return an option that takes a number of tokens."""
    return Option(*names, metavar="TOKENS", parser=size, help=help)


Str = str | None
Int = int | None
Names = list[str] | None
CONTEXT = ("--context", "-c")
WINDOW = ("--window", "-w")
Store = Annotated[str, Argument(metavar="STORE", help="A SQLite file, a folder with one, or a postgresql:// URL.")]
NewStore = Annotated[
    str, Argument(metavar="STORE", help="A store; it is made if there is none (NAME/ makes a folder).")
]
Target = Annotated[str, Argument(metavar="NEW", help="Another store; it is made if there is none.")]
Window = Annotated[int, tokens(*WINDOW, help="The model's context length.")]
Preset = Annotated[Str, Option(metavar="NAME", help="balanced, economy, verbatim or original.")]
NoLive = Annotated[bool, Option("--no-live", help="Draw no live picture; print plain lines.")]
BaseUrl = Annotated[Str, Option(metavar="URL", help="A server that speaks OpenAI's API; default: OPENAI_BASE_URL.")]


def named_model(model: str | None, base_url: str | None) -> "Chat":
    """Return the model that options or the environment name; close it, or use it with `with`."""
    from ..llm import Chat

    try:
        return Chat(model, base_url=base_url, timeout=TIMEOUT_SECONDS)
    except InvalidSetting as error:
        if error.name in {"model", "api_key"}:
            raise InvalidSetting("--model", _NO_MODEL if model is None else _NO_SERVER) from None
        raise


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Turn a failed import of a package of *extra* into an error that says what to install."""
    what, packages = _EXTRAS[extra]
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in packages:
            raise
        raise InvalidSetting(extra, f"{what} needs {package}: pip install 'memci[{extra}]'") from None
