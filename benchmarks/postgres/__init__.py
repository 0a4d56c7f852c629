"""Contexts in Postgres beside one SQLite file: `.venv-postgres/bin/python -m benchmarks.postgres`."""
