-- From version 3 to 4: a row for each call of the model, and each list of tools once; pages with more than one cut.
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
ALTER TABLE page ADD COLUMN more_cuts TEXT;
