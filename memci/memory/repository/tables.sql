-- The tables of a memory, in SQLite and in Postgres. What is in comments with a "!" is for Postgres alone.
-- Numbers are never used again, since other rows name them. An owner's "revision" counts changes, and its "removals"
-- those that removed passages or added them out of order; events were detected on all pages up to "detected".
-- "acknowledged" is the last page of a context that was observed, "conversation" the first page of its conversation
-- that is not over. "marks" are those of pages.py, and "title" and "keywords" are kept of pages that are or were in an
-- episode. A vector with passage 0 is that of the whole page.
CREATE TABLE memory_schema(version INTEGER NOT NULL) STRICT;
CREATE TABLE memory_owner(
    nr INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT /*! COLLATE "C" */ NOT NULL UNIQUE,
    revision INTEGER NOT NULL DEFAULT 0, removals INTEGER NOT NULL DEFAULT 0,
    detected INTEGER NOT NULL DEFAULT 0 /*! , passages bigint NOT NULL DEFAULT 0 */
    ) STRICT /*! WITH (fillfactor = 50) */;
CREATE TABLE memory_context(
    owner INTEGER NOT NULL, nr INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT /*! COLLATE "C" */ NOT NULL,
    acknowledged INTEGER NOT NULL DEFAULT 0, conversation INTEGER, UNIQUE(owner, name)
    ) STRICT /*! WITH (fillfactor = 70) */;
CREATE INDEX of_memory_context_name ON memory_context(name);
CREATE TABLE memory_page(
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, context INTEGER NOT NULL, page INTEGER NOT NULL,
    turn INTEGER NOT NULL, at REAL, digest BLOB NOT NULL, tier INTEGER NOT NULL DEFAULT 0, entered INTEGER,
    episode INTEGER, chain INTEGER, marks INTEGER NOT NULL DEFAULT 0, title TEXT NOT NULL DEFAULT '',
    keywords TEXT NOT NULL DEFAULT '', UNIQUE(context, page)) STRICT;
CREATE INDEX of_memory_page_tier ON memory_page(owner, tier, entered);
CREATE INDEX of_memory_page_episode ON memory_page(episode) WHERE episode IS NOT NULL;
CREATE TABLE memory_passage(
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, page INTEGER NOT NULL, entry INTEGER NOT NULL,
    part INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL, role TEXT NOT NULL, speaker TEXT NOT NULL,
    length INTEGER NOT NULL, flags INTEGER NOT NULL, at REAL, zone INTEGER NOT NULL /*! , columns bytea NOT NULL */
    ) STRICT /*! WITH (fillfactor = 90) */;
CREATE INDEX of_memory_passage_page ON memory_passage(page);
CREATE TABLE memory_vector(
    page INTEGER NOT NULL, passage INTEGER NOT NULL, model TEXT NOT NULL, owner INTEGER NOT NULL,
    vector BLOB NOT NULL, PRIMARY KEY(page, passage, model)) STRICT;
CREATE INDEX of_memory_vector_owner ON memory_vector(owner, model, passage);
CREATE TABLE memory_item(
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
    vector BLOB) STRICT;
CREATE INDEX of_memory_item_kind ON memory_item(owner, kind, id);
CREATE TABLE memory_evidence(item INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY(item, page)
    ) STRICT, WITHOUT ROWID;
CREATE INDEX of_memory_evidence_page ON memory_evidence(page);
CREATE TABLE memory_job(
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, kind TEXT NOT NULL, subject INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 1, tries INTEGER NOT NULL DEFAULT 0, due REAL, body TEXT NOT NULL DEFAULT '',
    UNIQUE(owner, kind, subject)) STRICT;
CREATE INDEX of_memory_job_due ON memory_job(owner, due) WHERE due IS NOT NULL;
CREATE TABLE memory_queue(
    owner INTEGER PRIMARY KEY, until REAL NOT NULL DEFAULT 0, away INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE memory_spent(
    owner INTEGER NOT NULL, day TEXT NOT NULL, step TEXT NOT NULL, calls INTEGER NOT NULL DEFAULT 0,
    prompt INTEGER NOT NULL DEFAULT 0, completion INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0, cached INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY(owner, day, step)) STRICT, WITHOUT ROWID;
INSERT INTO memory_schema VALUES (1);
