"""What a server pays that opens a context for each request."""
