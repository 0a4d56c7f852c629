"""What the gateway costs, and what it adds to a call: a coding agent's sessions through the real clients."""
