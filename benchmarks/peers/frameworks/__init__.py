"""The peers: a module for each framework, which imports it, and `plain`, which needs none."""
