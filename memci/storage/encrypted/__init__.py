"""Encryption at rest: a store around any other one, whose texts it encrypts; needs memci[encryption].

This package knows nothing of how the store inside keeps its rows.
"""
