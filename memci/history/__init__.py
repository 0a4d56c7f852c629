"""One context as rows in a store: opened, changed, seen as of an earlier turn, forked, erased, exported.

    store  ──▶  loader  ──▶  Window  ──▶  writer  ──▶  store

    loader          opens a context: its rows become a window, and a new context is stored
    reader          rows become messages; what is known of each page
    page_reader     stored pages as nodes for the window, or as entries for an answer
    writer          every change is one transition; detects that another writer was first (`Writer.check_revision`)
    undo            takes back the newest interaction
    events          what `on_event` is called with
    as_of           a context as of the close of an earlier turn, read only
    fork            a new context that shares the messages so far
    erase           removes pages, contexts and owners, byte by byte
    quotations      finds the answers that quote a message, so that they are erased with it
    verify          whether everything stored is there and consistent
    listing         which contexts a store holds
    export          a context as lines of JSON
    import_         lines of JSON as a context
    export_format   what the lines are, and what each must hold
    plain_chat      chats of other programs as contexts

This package knows nothing of models, nor of how a window decides what to show.
"""
