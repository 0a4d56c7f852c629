-- From version 1 to 2: compactions are kept beside one another, views apart from entries, contexts may be forks.
ALTER TABLE edition RENAME TO edition_1;
ALTER TABLE context ADD COLUMN parent TEXT;
ALTER TABLE context ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
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
