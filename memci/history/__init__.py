"""One context as rows in a store: opening, changing, viewing an earlier turn, forking, erasing, exporting.

    store  ──▶  loader  ──▶  Window  ──▶  writer  ──▶  store

    loader          opens a context: makes a window of its rows; stores a new context
    reader          makes messages of rows; says what is known of each page
    page_reader     reads stored pages as nodes for the window, or as entries for an answer
    writer          commits every change as one transition; detects other writers (`Writer.check_revision`)
    undo            takes back the newest interaction
    events          what `on_event` is called with
    as_of           a context as of the close of an earlier turn, read only
    fork            makes a new context that shares the messages so far
    erase           removes pages, contexts and owners, byte by byte
    quotations      finds the answers that quote a message: they are erased with it
    listing         lists the contexts of a store
    row_stream      the rows of a context in a fixed order
    export          writes them as lines of JSON           export_format   the fields of each line
    import_         makes a context of such lines          plain_chat      makes one of another program's chat
    copying         copies contexts to another store       salvage         saves what can be read of a damaged store
    verify          checks rows, and a whole context       page_runs       whether pages hold each entry once
    rotation        wraps the keys of an encrypted store again

How a window decides what to show is in `memci.window`.
"""
