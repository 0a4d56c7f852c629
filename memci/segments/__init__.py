"""Segments: the two named parts of a window, and the plan that keeps them within the budget.

    window  =  SystemSegment      +  CommonSegment
               System chapter        Archive chapter, then Active chapter

`budget` is the one plan by which a window that is too large fits again, `clipping` shortens a message that is too
large by itself. Segments know nothing of storage, or of what the messages say.
"""
