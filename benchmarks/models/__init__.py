"""What a memory's model costs: an agent's time (none), calls and tokens."""
