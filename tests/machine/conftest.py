"""Lets the machine import what stands beside it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
