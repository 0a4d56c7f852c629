"""What all requests of a chat have in common: the model, its server, bounds, the ledger; sync or not.

    terms.exchange(messages, step="page")      one call, ready to be driven

This module knows nothing of sockets.
"""

import random as chance
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidSetting, brief
from ..messages import Message
from .client import Address, model_name, server_of
from .requests import Draft
from .retry import Exchange, Line
from .tracing import OnCall
from .usage import Ledger

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Terms:
    """The settings of a chat, checked."""

    line: Line
    address: Address | None
    """None: the client is the caller's own"""
    max_tokens: int | None
    temperature: float | None
    extra: Mapping[str, Any] | None

    @classmethod
    def checked(
        cls,
        model: str | None,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        tries: int,
        max_tokens: int | None,
        temperature: float | None,
        ledger: Ledger | None,
        on_call: OnCall | None,
        client: object | None,
        extra: Mapping[str, Any] | None,
        clock: Callable[[], float],
        random: Callable[[], float] | None,
    ) -> "Terms":
        """Return the terms, or say what makes no sense; see `memci.llm.Chat`."""
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
            raise InvalidSetting("max_tokens", f"1 or more, or None; not {brief(max_tokens)}")
        address = Address.found(base_url, api_key) if client is None else None
        line = Line(
            model_name(model),
            address.server if address else server_of(str(getattr(client, "base_url", ""))),
            timeout,
            tries,
            Ledger() if ledger is None else ledger,
            on_call,
            clock,
            random or chance.random,
        )
        return cls(line, address, max_tokens, temperature, extra)

    def exchange(
        self,
        messages: Sequence[Message],
        *,
        step: str,
        tools: Sequence[Message],
        answer: "type[BaseModel] | None" = None,
        attempt: int = 0,
        stream: bool = False,
    ) -> Exchange:
        """Return a call that was not made yet."""
        draft = Draft(
            messages,
            model=self.line.model,
            tools=tools,
            answer=answer,
            stream=stream,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            extra=self.extra,
        )
        return Exchange(self.line, draft, step=step, attempt=attempt)
