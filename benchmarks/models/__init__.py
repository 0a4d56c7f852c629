"""What the model of a memory costs: an agent's time (none), calls and tokens."""
