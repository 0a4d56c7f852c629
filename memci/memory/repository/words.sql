-- The words of passages in SQLite: a full-text index, whose terms begin with their owner's number.
CREATE INDEX of_memory_passage_owner ON memory_passage(owner, id);
CREATE VIRTUAL TABLE memory_words USING fts5(
    terms, content='', contentless_delete=1, tokenize="ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_`{|}~'");
CREATE VIRTUAL TABLE memory_postings USING fts5vocab(memory_words, instance);
-- Each page is a segment of its own at first, and a term is looked up in all segments: 4 of a size are merged, not 16.
INSERT INTO memory_words(memory_words, rank) VALUES ('crisismerge', 4);
