"""The memory's rows in Postgres, beside the pages: packed postings and columns, which a search reads in blocks."""
