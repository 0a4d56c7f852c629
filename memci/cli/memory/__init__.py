"""`memci search`, `memci consolidate` and `memci inspect --memory`."""
