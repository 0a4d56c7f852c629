"""A script in a summarizing model's place, whose calls are counted.

    prompt ─▶ Script.write ─▶ sentences of it, from its beginning to its end: 600 tokens at most
                              with `names`, half of that are its newest identifiers, word for word

A model uses words of its own, and keeps few identifiers. So both are a favour to the peer, and the second is about the
most that a summary of this length can keep of what tool calls need. This module knows nothing of frameworks.
"""

import re
from dataclasses import dataclass, field

from memci.tokens import TokenCounter

LENGTH = 600
"""tokens of a summary, about; at most a fifth of its prompt"""
_CACHED = 0.1
_PER_TOKEN = 4
_IDENTIFIER = re.compile(r"[\w./:@#-]*\d[\w./:@#-]*|\w+_\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_LEAST = 20


@dataclass(slots=True)
class Script:
    """Writes summaries, and counts what a model would have been paid for them."""

    count: TokenCounter
    names: bool = False
    """whether half of a summary are identifiers"""
    calls: int = 0
    read: float = 0
    """tokens of all prompts; a cached one counts a tenth"""
    written: int = 0
    """tokens of all summaries"""
    texts: list[str] = field(default_factory=list)
    """the last summaries, by which a peer's own messages are told from the conversation's"""

    def write(self, prompt: str, *, length: int = LENGTH, cached: bool = False) -> str:
        """Return the summary of *prompt*, of *length* tokens; *cached*: the prompt is the request before."""
        read = self.count(prompt)
        text = summary(prompt, _PER_TOKEN * min(length, read // 5), names=self.names)
        self.calls += 1
        self.read += read * (_CACHED if cached else 1.0)
        self.written += self.count(text)
        self.texts = [*self.texts[-1:], text]
        return text

    def wrote(self, text: str) -> bool:
        """Return whether one of the last summaries stands in *text*."""
        return any(each in text for each in self.texts)


def summary(prompt: str, characters: int, *, names: bool = False) -> str:
    """Return about so many *characters* of *prompt*: sentences at equal distances, and with *names* its identifiers."""
    parts = dict.fromkeys(part.strip() for part in _SENTENCE.split(prompt) if len(part) >= _LEAST)
    kept: list[str] = []
    if names:
        found: dict[str, None] = {}
        for name in reversed(_IDENTIFIER.findall(prompt)):
            if name not in found and (characters_left := characters // 2 - sum(map(len, found)) - 2 * len(found)) > 0:
                found.update({name[:characters_left]: None})
        kept = [", ".join(reversed(found))]
    left = characters - sum(map(len, kept))
    every = max(1.0, sum(map(len, parts)) / max(1, left))
    sentences = list(parts)
    chosen = [sentences[int(at * every)] for at in range(int(len(sentences) / every))]
    for sentence in chosen:
        left -= len(sentence)
        if left < 0:
            break
        kept.append(sentence)
    return "\n".join(kept).strip() or "Nothing yet."
