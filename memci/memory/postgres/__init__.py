"""The memory tables in Postgres: packed postings and columns, which a search reads in blocks."""
