"""`memci chat`: a companion in a terminal.

This package knows nothing of how a companion answers.
"""
