"""What a turn costs in time, a page in bytes, an opening in milliseconds."""
