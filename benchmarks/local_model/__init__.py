"""A real model over a real server on this machine, too small to answer well: what memci does with bad answers."""
