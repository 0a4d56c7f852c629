"""One SQLite file for many contexts, on disk when a call returns."""
