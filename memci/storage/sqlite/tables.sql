-- The tables of a store: version 4. How keys and sums are made stands in schema.py; a row of each is read in rows.py.
CREATE TABLE context (
    nr INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    head INTEGER NOT NULL,
    next_page INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    open_page INTEGER,
    revision INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    owner TEXT NOT NULL,
    settings TEXT NOT NULL,
    state TEXT NOT NULL,
    parent TEXT,
    base INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX context_parent ON context (parent) WHERE parent IS NOT NULL;
CREATE TABLE edition (
    id INTEGER PRIMARY KEY,
    head INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    text BLOB NOT NULL
) STRICT;
CREATE TABLE view (
    id INTEGER PRIMARY KEY,
    tokens INTEGER NOT NULL,
    clip INTEGER NOT NULL,
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE ticket (
    number INTEGER PRIMARY KEY,
    context TEXT NOT NULL,
    token TEXT NOT NULL,
    holder TEXT NOT NULL,
    process TEXT NOT NULL,
    since REAL NOT NULL,
    expires REAL NOT NULL
) STRICT;
CREATE INDEX ticket_context ON ticket (context);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    codec INTEGER NOT NULL,
    digest BLOB NOT NULL,
    tokens INTEGER NOT NULL,
    clip INTEGER NOT NULL,
    quotes_page INTEGER,
    quotes_entry INTEGER,
    at TEXT,
    crc INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE page (
    id INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    end_seq INTEGER,
    turn INTEGER NOT NULL,
    cut_first INTEGER,
    cut_end INTEGER,
    continues INTEGER,
    archived_turn INTEGER,
    recall_count INTEGER NOT NULL,
    last_recalled_turn INTEGER,
    crc INTEGER NOT NULL,
    more_cuts TEXT
) STRICT;
CREATE INDEX page_active ON page (id) WHERE place = 0;
CREATE TABLE op (
    nr INTEGER NOT NULL,
    op_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    digest BLOB NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (nr, op_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE call (
    id INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    at TEXT,
    model TEXT,
    predicted INTEGER NOT NULL,
    input INTEGER NOT NULL,
    cached_read INTEGER NOT NULL,
    cached_written INTEGER NOT NULL,
    output INTEGER NOT NULL,
    tools BLOB,
    crc INTEGER NOT NULL
) STRICT;
CREATE TABLE tools (
    nr INTEGER NOT NULL,
    digest BLOB NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (nr, digest)
) STRICT, WITHOUT ROWID;
