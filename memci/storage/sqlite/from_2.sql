-- From version 2 to 3: a queue of tickets for the lock of each context.
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
