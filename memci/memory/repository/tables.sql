-- The tables of a memory, as in version 1; since_2.sql has those that came later.
-- Numbers are never used again, since other rows name them. An owner's "revision" counts changes, and its "removals"
-- those that removed passages or added them out of order; "last" is the page that joined an episode last; "noticed" is
-- the last page whose events were detected. "heard" is the last page of a context that was acknowledged, and "talk" the
-- first page of its conversation that is not over. A term in memory_words begins with its owner's number. A vector with
-- passage 0 is that of the whole page. "analyzed" has the marks of pages.py.
CREATE TABLE memory_schema(version INTEGER NOT NULL) STRICT;
CREATE TABLE memory_owner(
    nr INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL DEFAULT 0,
    removals INTEGER NOT NULL DEFAULT 0, last INTEGER, noticed INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE memory_context(
    owner INTEGER NOT NULL, nr INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL,
    heard INTEGER NOT NULL DEFAULT 0, talk INTEGER,
    UNIQUE(owner, name)) STRICT;
CREATE TABLE memory_page(
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, context INTEGER NOT NULL, page INTEGER NOT NULL,
    turn INTEGER NOT NULL, at REAL, digest BLOB NOT NULL, tier INTEGER NOT NULL DEFAULT 0, entered INTEGER,
    episode INTEGER, chain INTEGER, previous INTEGER, next INTEGER, analyzed INTEGER NOT NULL DEFAULT 0,
    summary TEXT NOT NULL DEFAULT '', keywords TEXT NOT NULL DEFAULT '', UNIQUE(context, page)) STRICT;
CREATE INDEX memory_page_tier ON memory_page(owner, tier, entered);
CREATE INDEX memory_page_episode ON memory_page(episode) WHERE episode IS NOT NULL;
CREATE INDEX memory_page_chain ON memory_page(chain) WHERE chain IS NOT NULL;
CREATE TABLE memory_passage(
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, page INTEGER NOT NULL, entry INTEGER NOT NULL,
    part INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL, role TEXT NOT NULL, speaker TEXT NOT NULL,
    length INTEGER NOT NULL, flags INTEGER NOT NULL) STRICT;
CREATE INDEX memory_passage_owner ON memory_passage(owner, id);
CREATE INDEX memory_passage_page ON memory_passage(page);
CREATE TABLE memory_vector(
    page INTEGER NOT NULL, passage INTEGER NOT NULL, model TEXT NOT NULL, owner INTEGER NOT NULL,
    vector BLOB NOT NULL, PRIMARY KEY(page, passage, model)) STRICT;
CREATE INDEX memory_vector_owner ON memory_vector(owner, model, passage);
CREATE TABLE memory_item(
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
    vector BLOB) STRICT;
CREATE INDEX memory_item_kind ON memory_item(owner, kind, id);
CREATE TABLE memory_evidence(
    item INTEGER NOT NULL, page INTEGER NOT NULL, PRIMARY KEY(item, page)) STRICT, WITHOUT ROWID;
CREATE INDEX memory_evidence_page ON memory_evidence(page);
CREATE VIRTUAL TABLE memory_words USING fts5(
    terms, content='', contentless_delete=1, tokenize="ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'");
CREATE VIRTUAL TABLE memory_postings USING fts5vocab(memory_words, instance);
