-- The words of passages in SQLite: a full-text index, whose terms begin with their owner's number.
CREATE INDEX of_memory_passage_owner ON memory_passage(owner, id);
CREATE VIRTUAL TABLE memory_words USING fts5(
    terms, content='', contentless_delete=1, tokenize="ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'");
CREATE VIRTUAL TABLE memory_postings USING fts5vocab(memory_words, instance);
