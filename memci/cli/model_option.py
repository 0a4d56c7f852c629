"""The model of a command: named by options, or by the environment.

This module knows nothing of what the model is asked.
"""

from ..errors import InvalidSetting
from ..llm import Chat

TIMEOUT_SECONDS = 120.0
"""how long a model may take until its first word, before it is known to be slower"""
_UNKNOWN = (
    "no model is configured: name it by --model or MEMCI_MODEL, and say where it is by OPENAI_API_KEY (OpenAI's own), "
    "or by --base-url or OPENAI_BASE_URL (any server that speaks its API, as http://localhost:11434/v1)"
)


def named_model(model: str | None, base_url: str | None) -> Chat:
    """Return the model that is named; close it, or use it with `with`.

    Raises:
        InvalidSetting: If there is none, or an option makes no sense.
    """
    try:
        return Chat(model, base_url=base_url, timeout=TIMEOUT_SECONDS)
    except InvalidSetting as error:
        if error.name in {"model", "api_key"}:
            raise InvalidSetting("--model", _UNKNOWN) from None
        raise
