"""Segments: the named parts of a window, and the plan that keeps them within the budget.

SystemSegment    the System chapter
CommonSegment    the Archive chapter, then the Active chapter

They know nothing of storage, or of what the messages say.
"""
