"""Adapters against the real frameworks, each in an environment of its own: `make adapters`."""
