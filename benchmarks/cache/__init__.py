"""How much of each request a prompt cache has seen before, and what the rest costs."""
