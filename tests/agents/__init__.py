"""Real coding agents in front of the gateway: `make agents`."""
