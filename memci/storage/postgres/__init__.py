"""Many contexts in a Postgres database, for many processes on many machines.

This package knows nothing of windows, tokens or models.
"""
