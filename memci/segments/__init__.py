"""Segments: the two named parts of a window, and the plan that keeps them within the budget.

    window  =  SystemSegment      +  CommonSegment
               System chapter        Archive chapter, then Active chapter

`budget` plans how a window that is too large fits again, `cache_policy` computes at which sizes to compact, and
`clipping` shortens a message that is too large by itself, and `own` shows segments of the program between the two.
"""

from .common import CommonSegment as CommonSegment
from .system import SystemSegment as SystemSegment
