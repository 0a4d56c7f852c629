"""What every adapter must do, as tests to inherit, against a real framework and a scripted model's server."""

from .conformance import AdapterConformance
from .driver import Driver, lookup, played

__all__ = ["AdapterConformance", "Driver", "lookup", "played"]
