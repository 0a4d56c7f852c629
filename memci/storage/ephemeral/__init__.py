"""Contexts in RAM, gone with the process."""
