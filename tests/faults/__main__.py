"""`python -m tests.faults`: make things go wrong on purpose, and count what breaks (see `runner`)."""

import sys

from .runner import main

sys.exit(main())
