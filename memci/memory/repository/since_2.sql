-- What version 2 added: jobs, until when those of an owner are held back, and what a model cost by day.
CREATE TABLE memory_job(
    id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, kind TEXT NOT NULL, subject INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 1, tries INTEGER NOT NULL DEFAULT 0, away INTEGER NOT NULL DEFAULT 0, due REAL,
    error TEXT NOT NULL DEFAULT '', body TEXT NOT NULL DEFAULT '', UNIQUE(owner, kind, subject)) STRICT;
CREATE INDEX memory_job_due ON memory_job(owner, due) WHERE due IS NOT NULL;
CREATE TABLE memory_queue(
    owner INTEGER PRIMARY KEY, until REAL NOT NULL DEFAULT 0, away INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE memory_spent(
    owner INTEGER NOT NULL, day TEXT NOT NULL, step TEXT NOT NULL, calls INTEGER NOT NULL DEFAULT 0,
    prompt INTEGER NOT NULL DEFAULT 0, completion INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0, cached INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY(owner, day, step)) STRICT, WITHOUT ROWID;
