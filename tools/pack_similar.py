"""Make the table of words of similar meaning that memci carries, from a sentence model and WordNet.

    python tools/pack_similar.py models/all-MiniLM-L6-v2 /usr/share/wordnet memci/_data/similar.words

The words are those English ones that are tokens of the model. Each gets the vector that the model gives to it alone; a
term of a search, the mean of the vectors of its words. Similar to a term are `MOST` terms with the nearest vectors, and
the words for what is of its kind: "cheese" for "food". The table has

    the terms, one a line | an empty line | how many are similar to each (2 bytes each) | the number of each of these
    (2 bytes) | how similar it is (1 byte)

The numbers count the terms from 0, little-endian, the most similar first. How similar a term is goes from 0, for a
cosine of `LEAST` or less, to 255, for 1; what is of its kind has `OF_KIND`.
"""

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memci.text.language.terms import terms

MOST = 64
"""near terms of each: with half as many, real chats gain half as much; with more, nothing"""
LEAST = 0.3
"""cosine up to which words have nothing in common: most pairs of words have less"""
OF_KIND = 254
LARGEST = 300
"""terms of a kind, at most: "person" and "activity" have more, and tell little apart"""
_BATCH = 256
_MEANT = 0.3
"""share of the uses of a word that mean something of a kind, at least"""
_NAMED = 0.2
"""share of the uses of the nouns of a term that name the kind, at least"""

Near = list[tuple[int, int]]
"""numbers of terms, and how similar each is"""


def main(source: Path, wordnet: Path, target: Path) -> None:
    """Write the table *target* from the folder *source* of a sentence model with BERT's tokens, and that of WordNet."""
    tokens: dict[str, int] = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    words = [word for word in sorted(tokens, key=tokens.__getitem__) if re.fullmatch("[a-z]{3,}", word)]
    vectors = embed(
        source / "onnx" / "model.onnx", [[tokens["[CLS]"], tokens[word], tokens["[SEP]"]] for word in words]
    )
    own: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        if len(found := terms(word)) == 1:
            own.setdefault(found[0], []).append(number)
    means = np.stack([vectors[numbers].mean(axis=0) for numbers in own.values()])
    table = near_terms(means / np.linalg.norm(means, axis=1, keepdims=True))
    target.write_bytes(pack([*own], with_kinds([*own], table, Nouns(wordnet))))
    sys.stdout.write(f"{target}: {len(own):,} terms, {target.stat().st_size:,} bytes\n")


def embed(model: Path, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Return the vector of each of *texts*, which are tokens, as many in each: the mean of those of its tokens."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model)
    found = []
    for start in range(0, len(texts), _BATCH):
        batch = np.array(texts[start : start + _BATCH], np.int64)
        given = {"input_ids": batch, "attention_mask": np.ones_like(batch), "token_type_ids": np.zeros_like(batch)}
        mean = session.run(None, given)[0].mean(axis=1)
        found.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
    return np.concatenate(found)


def near_terms(vectors: NDArray[np.float32]) -> list[Near]:
    """Return the nearest terms of each, by their *vectors* of unit length."""
    found: list[Near] = []
    for number, vector in enumerate(vectors):
        cosines = vectors @ vector
        cosines[number] = -1
        best = np.argsort(-cosines, kind="stable")[:MOST]
        close = np.round(255 * np.clip((cosines[best] - LEAST) / (1 - LEAST), 0, 1)).astype(int)
        found.append([each for each in zip(best.tolist(), close.tolist(), strict=True) if each[1]])
    return found


class Nouns:
    """The nouns of WordNet, as its folder has them."""

    def __init__(self, folder: Path) -> None:
        self._below: dict[str, list[str]] = {}
        """by meaning: the meanings that are kinds or instances of it"""
        for line in _lines(folder / "data.noun"):
            number, *fields = line.split("|")[0].split()
            pointers = fields[4 + 2 * int(fields[2], 16) :]
            each = zip(*[iter(pointers)] * 4, strict=False)
            self._below[number] = [to for sign, to, part, _ in each if sign in ("~", "~i") and part == "n"]
        uses: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
        for line in _lines(folder / "cntlist.rev"):
            key, sense, count = line.split()
            word, part = key.split("%")
            uses[word][part[0], int(sense)] += int(count)
        self._meaning: dict[str, set[str]] = defaultdict(set)
        """by meaning: the terms of the words that mostly have it"""
        self._named: dict[str, Counter[str]] = defaultdict(Counter)
        """by term: how often its nouns are used in each meaning, the first one once more"""
        for line in _lines(folder / "index.noun"):
            word, *fields = line.split()
            meanings = fields[-int(fields[1]) :]
            if not re.fullmatch("[a-z]{3,}", word) or len(found := terms(word)) != 1:
                continue
            own = {each: uses[word]["1", sense] + (sense == 1) for sense, each in enumerate(meanings, 1)}
            self._named[found[0]].update(own)
            # an adverb or a verb is another word; an adjective may be used as the noun: "red"
            every = 1 + sum(count for (part, _), count in uses[word].items() if part in "124")
            for meaning, times in own.items():
                if times >= _MEANT * every:
                    self._meaning[meaning].add(found[0])

    def kinds(self, term: str) -> Iterator[set[str]]:
        """Yield, for each kind that a noun of *term* names, the terms of the words for what is of it."""
        own = self._named[term]
        for named in [each for each in own if own[each] >= _NAMED * own.total()]:
            seen, waiting = {named}, [named]
            while waiting:
                fresh = {each for each in self._below[waiting.pop()] if each not in seen}
                seen |= fresh
                waiting += fresh
            yield set().union(*(self._meaning[each] for each in seen - {named})) - {term}


def _lines(file: Path) -> Iterator[str]:
    return (line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("  "))


def with_kinds(found: Sequence[str], table: Sequence[Near], nouns: Nouns) -> list[Near]:
    """Return the *table* of the terms *found* with what is of the kind of each; the most similar come first."""
    number = {term: place for place, term in enumerate(found)}
    both = []
    for term, near in zip(found, table, strict=True):
        kinds = [number.keys() & kind for kind in nouns.kinds(term)]
        few = sorted(set().union(*(kind for kind in kinds if len(kind) <= LARGEST)))
        rows = dict(near) | dict.fromkeys([number[each] for each in few], OF_KIND)
        both.append(sorted(rows.items(), key=lambda row: -row[1]))
    return both


def pack(found: Sequence[str], table: Sequence[Near]) -> bytes:
    """Return the *table* of the terms *found* as bytes."""
    every = [each for near in table for each in near]
    counts, numbers = np.array([*map(len, table)], "<u2"), np.array([number for number, _ in every], "<u2")
    close = np.array([how for _, how in every], np.uint8)
    return "\n".join(found).encode("ascii") + b"\n\n" + counts.tobytes() + numbers.tobytes() + close.tobytes()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
