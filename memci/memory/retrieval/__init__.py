"""Retrieval: from a query to pages. Passages, postings, vectors, embedders, and ranking by BM25 and the rest."""
