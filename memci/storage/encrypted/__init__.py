"""Encryption at rest: a store around any other one, whose texts it encrypts; needs memci[encryption]."""
