"""Conformance tests of adapters, to inherit: a real framework talks to a scripted model's server."""

from .conformance import AdapterConformance
from .driver import Driver, lookup, played

__all__ = ["AdapterConformance", "Driver", "lookup", "played"]
