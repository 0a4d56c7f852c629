"""The clock: when a message was appended, as it is stored.

    timestamp(system_clock())                    "2026-11-22T12:35:41+00:00"
    timestamp("2026-05-20")                      "2026-05-20T00:00:00"

Times are for information: they order nothing. This module knows nothing of what they are used for.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from ..errors import InvalidSetting, brief

Clock = Callable[[], datetime]
"""returns the time, in UTC"""


def system_clock() -> datetime:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def timestamp(at: datetime | str | None) -> str | None:
    """Return *at* as ISO 8601; None stays None.

    Raises:
        InvalidSetting: If it is no point in time.
    """
    if at is None:
        return None
    try:
        return (at if isinstance(at, datetime) else datetime.fromisoformat(at)).isoformat()
    except (TypeError, ValueError):
        raise InvalidSetting("at", f"expected a datetime or ISO 8601, got {brief(at)}") from None
