"""Identity: what of a request is the user, as the operator declared it.

header:x-user-id           the value of a header
field:metadata.user_id     the value of a field of the body
credential                 the credentials that the request carries
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from ..errors import InvalidSetting, brief

if TYPE_CHECKING:
    from starlette.datastructures import Headers

_FORM = re.compile(r"(header):([!#$%&'*+.^`|~\w-]+)|(field):([^.]+(?:\.[^.]+)*)|(credential)", re.ASCII)


@dataclass(frozen=True)
class Identity:
    """Where a request says who its user is."""

    kind: str  # header, field or credential
    name: str  # the header, in small letters; or the field, with dots; "" for the credential

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the identity that *text* declares; InvalidSetting if it declares none."""
        found = _FORM.fullmatch(text) if isinstance(text, str) else None
        if found is None or (found[2] or "").lower() == "x-memci-token":
            raise InvalidSetting("identity", f"expected header:NAME, field:NAME or credential, got {brief(text)}")
        kind = found[1] or found[3] or found[5]
        return cls(kind, found[2].lower() if found[2] else found[4] or "")

    def value(self, headers: "Headers", body: Mapping[str, Any]) -> str | None:
        """Return the user that a request names in a header or a field, None if it names none, or several."""
        if self.kind == "header":
            return sole(headers, self.name)
        found: Any = body
        for key in self.name.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        if type(found) is int:
            return str(found)
        return found.strip() or None if isinstance(found, str) else None


def sole(headers: "Headers", name: str) -> str | None:
    """Return the value of the header *name*; None if it is empty, missing, or given with several values."""
    found = {value.strip() for value in headers.getlist(name)}
    return found.pop() or None if len(found) == 1 else None
