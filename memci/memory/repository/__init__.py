"""The tables of the memory, with all of its SQL: pages, passages, items, jobs and costs, and the source of pages."""
