"""An utterance: what one message says, in its exact words, with who says it, and whose words they are.

    {"role": "user", "name": "Ann", "content": "The desk is 140 cm wide."}
    ──▶  Utterance(text="The desk is 140 cm wide.", role="user", speaker="Ann")
             spans   [0, 24, own]

Lines, standing instructions, facts and results of a search are views of it, so that none of them can lose the speaker
or the time by itself. It is derived from the message at each use, and never stored.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..messages import Message, call_body, call_name, text_of, tool_calls
from ..text.labels import speakers
from ..text.language.instructions import Clause
from ..text.provenance import Span, mask
from ..workers import cached_property
from .provenance import clauses_of, spans_of


@dataclass(frozen=True)
class Utterance:
    """What one message says."""

    message: Message
    entry: int = 0  # its ordinal in its page
    speaker: str = ""
    """the `name` of the message, its label in a transcript ("Mel: …"), or the tool that answers; "" if unknown"""

    @property
    def role(self) -> str:
        """The role of the message."""
        return str(self.message.get("role", ""))

    @cached_property
    def text(self) -> str:
        """The exact words: the text of the message, and its tool calls with their arguments."""
        return entry_text(self.message)

    @cached_property
    def spans(self) -> list[Span]:
        """Whose words the parts of the message's own text are. O(characters), once."""
        return spans_of(self.message)

    @cached_property
    def own(self) -> str:
        """The message's own text with what is not the user's own masked, in its place. O(characters), once."""
        return mask(text_of(self.message), self.spans)

    @cached_property
    def clauses(self) -> list[Clause]:
        """What gives and takes back instructions among the user's own words. O(characters), once."""
        return clauses_of(self.message)


def utterances(entries: Iterable[tuple[int, Message]]) -> Iterator[Utterance]:
    """Yield what the messages of a page say: (ordinal, message), in order."""
    tools: dict[str, str] = {}
    entries = list(entries)
    labels = iter(_labels([message for _, message in entries]))
    for ordinal, message in entries:
        for call in tool_calls(message):
            tools[str(call.get("id", ""))] = call_name(call)
        tool = message.get("name") or tools.get(str(message.get("tool_call_id", "")), "")
        speaker = next(labels)
        yield Utterance(message, ordinal, str(tool) if message.get("role") == "tool" else speaker)


def entry_text(message: Message) -> str:
    """Return the searchable text of *message*: its text, and its tool calls with their arguments."""
    lines = [text_of(message)]
    for call in tool_calls(message):
        body = call_body(call)
        lines.append(f"{call_name(call)} {body.get('arguments', body.get('input', ''))}")
    return "\n".join(line for line in lines if line)


def _labels(messages: Sequence[Message]) -> list[str]:
    """Return the speaker of each of *messages*: its `name`, or its label, if they are a transcript."""
    said = [n for n, each in enumerate(messages) if each.get("role") != "tool" and not each.get("name")]
    found = [str(each.get("name") or "") for each in messages]
    for n, label in zip(said, speakers([entry_text(messages[n]) for n in said]), strict=True):
        found[n] = label
    return found
