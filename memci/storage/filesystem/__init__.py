"""Contexts in a folder: a SQLite file, and beside it a plain copy of the messages for people and their tools."""
