"""memci as a process of its own, for programs that do not import it.

This package knows nothing of the command line.
"""
