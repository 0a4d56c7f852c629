"""The inspector: a store as pages for a browser: what a model saw at a turn, and why something was not in it.

    $ memci ui agents.db                       memci: http://127.0.0.1:8766
    $ memci show agents.db -o alice.html       one conversation as one file

It reads only, and what it reads counts as no use.
"""
