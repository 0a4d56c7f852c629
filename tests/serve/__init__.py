"""memci as a process."""
