"""`memci replay` and `memci demo`: a recorded conversation in a real context, with a live picture of the window."""
