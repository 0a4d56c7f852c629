"""The memory's rows: the tables of one owner, its job queue, its usage ledger, and the pages that it reads.

All SQL of the memory stands in here.
"""
