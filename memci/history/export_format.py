"""What each kind of line must be: its fields, and their types and ranges.

    EntryLine   seq, digest, tokens, and either `message`, or `codec` and `body`

Unknown fields are refused: a later format has a later number. This module knows nothing of how lines belong together.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from ..errors import InvalidSetting
from ..storage.validation import MAX_HEAD, MAX_PAGE
from ..window.state import WindowState

Count = Annotated[int, Field(ge=0, le=MAX_HEAD)]
Small = Annotated[int, Field(ge=0, lt=MAX_PAGE)]
Index = Annotated[int, Field(ge=1, lt=MAX_PAGE)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Run = Annotated[tuple[Count, Count], Field(strict=False)]


class ExportLine(BaseModel):
    """One line."""

    model_config = ConfigDict(strict=True, extra="forbid")


class HeaderLine(ExportLine):
    """The facts of a context."""

    memci: int
    kind: Literal["context"]
    id: Annotated[str, Field(min_length=1)]
    owner: Annotated[str, Field(min_length=1)]
    settings: dict[str, Any] | str
    state: dict[str, Any] | str
    head: Count
    next_page: Index
    turn: Small
    open_page: Index | None
    revision: Annotated[int, Field(ge=1, le=MAX_HEAD)]


class EntryLine(ExportLine):
    """One message."""

    kind: Literal["entry"]
    seq: Count
    digest: Digest
    tokens: Small
    clip: Small = 0
    quotes: Annotated[tuple[Index, Index | None] | None, Field(strict=False)] = None
    at: str | None = None
    message: dict[str, Any] | None = None
    codec: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    body: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "EntryLine":
        if (self.message is None) == (self.codec is None) or (self.codec is None) != (self.body is None):
            raise ValueError("expected either message, or codec and body")
        return self


class PageLine(ExportLine):
    """One page."""

    kind: Literal["page"]
    index: Index
    first: Count
    end: Count | None
    turn: Small
    place: Literal["active", "archived", "unloaded", "undone", "erased"]
    cut: Run | None
    continues: Index | None
    archived_turn: Small | None
    recall_count: Small
    last_recalled_turn: Small | None


class CompactionLine(ExportLine):
    """How the window stood."""

    kind: Literal["edition"]
    revision: Annotated[int, Field(ge=1, le=MAX_HEAD)]
    head: Count
    turn: Small
    text: dict[str, Any] | list[Any] | str


class OpLine(ExportLine):
    """An append that was named."""

    kind: Literal["op"]
    op_id: Annotated[str, Field(min_length=1)]
    digest: Digest
    first: Count
    entries: list[Annotated[tuple[Index, Index], Field(strict=False)]]


class EndLine(ExportLine):
    """What must have come before."""

    kind: Literal["end"]
    entries: Count
    pages: Count
    editions: Count
    ops: Count
    digest: Digest


MODELS: Final[Mapping[str, type[ExportLine]]] = {
    "context": HeaderLine,
    "entry": EntryLine,
    "page": PageLine,
    "edition": CompactionLine,
    "op": OpLine,
    "end": EndLine,
}


STATE: Final = TypeAdapter(WindowState)


def checked(kind: str, fields: Mapping[str, Any], wrong: Callable[[str], InvalidSetting]) -> ExportLine:
    """Return *fields* as a line of *kind*, or raise what *wrong* makes of the reason."""
    try:
        return MODELS[kind].model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(each) for each in first["loc"]) or kind
        raise wrong(f"{where}: {first['msg']}") from None
