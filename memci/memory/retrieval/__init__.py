"""Retrieval: finds messages and knowledge for a query, with passages, postings, vectors and a ranking."""
