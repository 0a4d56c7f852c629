"""`memci chat`: a companion in a terminal."""
