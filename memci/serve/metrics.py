"""Metrics of the gateway for Prometheus: counters of one process since it started.

    memci_gateway_requests_total{format="anthropic",view="rewritten"} 41

They contain no text of a conversation, no name and no key.
"""

from collections import Counter
from typing import Final

_HELP: Final = {
    "requests": "Requests by format; view: untouched, rewritten, or passed (memci did not read it).",
    "upstream": "Answers of the provider, by status.",
    "refused": "Requests that were not sent on, by status.",
    "tool_calls": "Calls of memci's tools that were answered inside.",
    "forks": "Lists that differed from a stored one, and got a context of their own.",
    "tokens": "Tokens that the provider reported, by kind.",
    "gate_tokens": "Tokens that digests of large results saved in requests.",
}
BUCKETS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""seconds; the ends of the buckets, from a small window to a large one on a slow disk"""


class Metrics:
    """Counts events of one process."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._added = dict.fromkeys(BUCKETS, 0)
        self._seconds = 0.0
        self._requests = 0

    def count(self, name: str, by: int = 1, **labels: object) -> None:
        """Add *by* to the counter *name* with these *labels*."""
        self._counts[name, ",".join(f'{key}="{value}"' for key, value in labels.items())] += by

    def add_wait(self, seconds: float) -> None:
        """Count a request that waited *seconds* for memci before it was sent."""
        self._seconds += seconds
        self._requests += 1
        for bound in BUCKETS:
            self._added[bound] += seconds <= bound

    def text(self) -> str:
        """Return all counters as text."""
        lines = []
        for name, about in _HELP.items():
            lines += [f"# HELP memci_gateway_{name}_total {about}", f"# TYPE memci_gateway_{name}_total counter"]
            found = sorted(each for each in self._counts if each[0] == name)
            lines += [f"memci_gateway_{name}_total{{{labels}}} {self._counts[name, labels]}" for _, labels in found]
        name, buckets = "memci_gateway_added_seconds", [*self._added.items(), ("+Inf", self._requests)]
        lines += [f"# HELP {name} What memci added before a request was sent.", f"# TYPE {name} histogram"]
        lines += [f'{name}_bucket{{le="{bound}"}} {requests}' for bound, requests in buckets]
        return "\n".join([*lines, f"{name}_sum {self._seconds:.6f}", f"{name}_count {self._requests}", ""])
