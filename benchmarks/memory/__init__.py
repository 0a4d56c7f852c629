"""What a memory costs: to be told, to be searched, to be kept, and beside a context that does not wait for it."""
