"""`memci demo`: a recorded conversation in a real context on the default store.

    command             runs it, lets the model recall a page, opens the context again
    travel_desk.json    the conversation, invented: a chat in the format that `memci replay` reads

This package knows nothing of other commands.
"""
