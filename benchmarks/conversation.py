"""Conversations to measure on, cut into the turns of an agent: what happens between two model calls.

    user | assistant, user | assistant (call), tool | assistant, user | …

The recorded ones are no part of the project: they are read from the folder that MEMCI_DATA names, or from shared/data
beside the checkout. Without them a synthetic one stands in, of the same shape: 2.08 messages and about 200 tokens a
turn. A conversation can be looped without end; varied, no text of it repeats. This module knows nothing of contexts.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count
from pathlib import Path
from random import Random
from typing import Any

Message = dict[str, Any]

_DIGITS = re.compile(r"[0-9]+")
_SESSION = re.compile(r"session_(\d+)")
_SPREAD = 2_654_435_761
_FEW_DIGITS = 6


def folder() -> Path | None:
    """Return where the recorded conversations are, None if they are not here."""
    chosen = os.environ.get("MEMCI_DATA")
    path = Path(chosen) if chosen else Path(__file__).resolve().parents[2] / "shared" / "data"
    return path if path.is_dir() else None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation to be played, as often as a measurement needs it."""

    name: str
    system: str
    messages: tuple[Message, ...]
    starts: frozenset[int] = frozenset()
    """positions of the messages with which a run or a session begins, after a pause"""
    separate: bool = False
    """whether each run is a conversation of its own: one task behind one message, with nothing before it"""

    def turns(self, *, varied: bool = True) -> Iterator[list[Message]]:
        """Yield turns without end; *varied*, no text is ever the same again, so that no cache can help."""
        turn: list[Message] = []
        for loop in count():
            for position, message in enumerate(self.messages):
                if message["role"] == "assistant" and turn:
                    yield turn
                    turn = []
                turn.append(_varied(message, loop, loop * len(self.messages) + position + 1) if varied else message)

    def calls(self) -> Iterator[tuple[bool, list[Message]]]:
        """Yield once what happens before each model call, and whether a pause was before it: no turn spans one."""
        turn: list[Message] = []
        paused = True
        for position, message in enumerate(self.messages):
            if turn and (message["role"] == "assistant" or position in self.starts):
                yield paused, turn
                turn, paused = [], position in self.starts
            turn.append(message)
        if turn:
            yield paused, turn


def airline() -> Conversation | None:
    """Return the traces of a tool-using airline agent, joined end to end; None if they are not here."""
    path = folder()
    if path is None or not (file := path / "airline_trajectories.json").is_file():
        return None
    runs = json.loads(file.read_text(encoding="utf-8"))
    parts = [[message for message in run["traj"] if message["role"] != "system"] for run in runs]
    return _joined("airline", runs[0]["traj"][0]["content"], parts)


def dialogues() -> Conversation | None:
    """Return the long dialogues of two people, joined end to end; None if they are not here."""
    path = folder()
    if path is None or not (file := path / "locomo_part.json").is_file():
        return None
    parts: list[list[Message]] = []
    for sample in json.loads(file.read_text(encoding="utf-8")):
        talk = sample["conversation"]
        found = (_SESSION.fullmatch(key) for key in talk)
        for session in sorted((match for match in found if match), key=lambda match: int(match[1])):
            parts.append([])
            for line in talk[session[0]]:
                role = "user" if line["speaker"] == talk["speaker_a"] else "assistant"
                parts[-1].append({"role": role, "content": f"{line['speaker']}: {line['text']}"})
    return _joined("dialogues", "You are a friend who remembers.", parts)


def chats() -> Conversation | None:
    """Return the long chats of a user with an assistant, joined end to end; None if they are not here."""
    path = folder()
    if path is None or not (files := sorted(path.glob("beam/*/chat.json"))):
        return None
    parts = [
        [{"role": each["role"], "content": each["content"]} for turn in batch["turns"] for each in turn]
        for file in files
        for batch in json.loads(file.read_text(encoding="utf-8"))
    ]
    return _joined("chats", "You are a helpful assistant.", parts)


def coding() -> Conversation | None:
    """Return the traces of a coding agent, joined end to end; None if they are not here."""
    path = folder()
    if path is None or not (files := sorted(path.glob("swe_agent/*.traj"))):
        return None
    parts: list[list[Message]] = []
    system = ""
    for file in files:
        history = json.loads(file.read_text(encoding="utf-8"))["history"]
        system = system or history[0]["content"]
        parts.append([_chat(each) for each in history if each["role"] != "system"])
    return _joined("coding", system, parts)


def terminal() -> Conversation | None:
    """Return the single tasks of an agent in a shell; None if they are not here."""
    return _tasks("terminal")


def repair() -> Conversation | None:
    """Return the single tasks of an agent that repairs programs; None if they are not here."""
    return _tasks("repair")


def _tasks(kind: str) -> Conversation | None:
    """Return the *kind* of single tasks. The file is {kind: {"system": …, "runs": [[message, …], …]}}."""
    path = folder()
    if path is None or not (file := path / "single_tasks.json").is_file():
        return None
    part = json.loads(file.read_text(encoding="utf-8")).get(kind)
    return None if part is None else replace(_joined(kind, part["system"], part["runs"]), separate=True)


def _chat(entry: Message) -> Message:
    """Return the *entry* of a trace as a chat message: what it says of itself besides is left out."""
    message = {"role": entry["role"], "content": entry.get("content") or ""}
    if entry.get("tool_calls"):
        message["tool_calls"] = entry["tool_calls"]
    if entry["role"] == "tool":
        message["tool_call_id"] = (entry.get("tool_call_ids") or [entry.get("tool_call_id")])[0]
    return message


def _joined(name: str, system: str, parts: Sequence[Sequence[Message]]) -> Conversation:
    """Return *parts* end to end, each after a pause."""
    starts = accumulate((len(part) for part in parts), initial=0)
    return Conversation(name, system, tuple(message for part in parts for message in part), frozenset(starts))


def texts(message: Message) -> list[str]:
    """Return the texts of *message* that cost tokens."""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    found = [message.get("content"), *(text for each in functions for text in (each["name"], each["arguments"]))]
    return [text for text in found if text]


def synthetic(runs: int = 100) -> Conversation:
    """Return a conversation of a parcel desk, made up: the same one each time."""
    random = Random(20_08)
    messages: list[Message] = []
    for _ in range(runs):
        parcel = f"PX{random.randrange(10**9):09}"
        messages.append({"role": "user", "content": f"Hello, my parcel {parcel} has not arrived. {_words(random, 18)}"})
        calls = random.choices((True, False), weights=(47, 53), k=random.randint(9, 15))
        for number, call in enumerate(calls):
            if call:
                messages += _lookup(random, parcel, f"{parcel}-{number}")
            else:
                messages.append({"role": "assistant", "content": _words(random, 105)})
                messages.append({"role": "user", "content": _words(random, 30)})
    return Conversation(
        "synthetic", "You work at the desk of a parcel service. " + _words(random, 900), tuple(messages)
    )


def _lookup(random: Random, parcel: str, call: str) -> list[Message]:
    """Make a tool call and its result, about as long as a customer's record."""
    name = random.choice(("find_parcel", "find_customer", "list_stops"))
    arguments = json.dumps({"parcel": parcel, "depot": random.randrange(10**4)})
    stops = [
        {"stop": random.randrange(10**6), "city": random.choice(_WORDS), "at": f"{random.randrange(24):02}:{m:02}"}
        for m in random.sample(range(60), random.randint(3, 12))
    ]
    result = json.dumps(
        {"parcel": parcel, "grams": random.randrange(50, 9000), "note": _words(random, 9), "stops": stops}
    )
    function = {"name": name, "arguments": arguments}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call, "name": name, "content": result},
    ]


def _words(random: Random, mean: int) -> str:
    words = random.choices(_WORDS, k=random.randint(mean // 2, mean * 3 // 2))
    return (" ".join(words) + ".").capitalize()


def _varied(message: Message, loop: int, serial: int) -> Message:
    """Return a copy of *message* with other figures in it: the serial number's own."""
    copy = dict(message)
    if copy.get("content"):
        copy["content"] = _renumbered(copy["content"], serial)
    if copy.get("tool_call_id"):
        copy["tool_call_id"] = f"{copy['tool_call_id']}-{loop}"
    if copy.get("tool_calls"):
        copy["tool_calls"] = [
            call
            | {
                "id": f"{call['id']}-{loop}",
                "function": call["function"] | {"arguments": _renumbered(call["function"]["arguments"], serial)},
            }
            for call in copy["tool_calls"]
        ]
    return copy


def _renumbered(text: str, serial: int) -> str:
    """Shift every digit of *text*; JSON stays JSON, since a number keeps its length and gets no leading zero."""
    shifts = f"{serial * _SPREAD % 10**10:010}"
    seen = 0

    def shifted(match: re.Match[str]) -> str:
        nonlocal seen
        run = []
        for place, digit in enumerate(match[0]):
            shift = int(shifts[seen % 10])
            seen += 1
            if place:
                run.append(str((int(digit) + shift) % 10))
            else:
                run.append(digit if digit == "0" else str((int(digit) - 1 + shift) % 9 + 1))
        return "".join(run)

    changed = _DIGITS.sub(shifted, text)
    if seen >= _FEW_DIGITS:
        return changed
    # too few figures to differ by: the serial number goes in, in JSON as one more value
    if text[:1] != "{":
        return f"{changed} ({serial})"
    return f'{{"n":{serial}}}' if text == "{}" else f'{{"n":{serial},{changed[1:]}'


_WORDS = tuple(
    """address again already answer arrival asked avenue before behind between blue bridge brought building busy called
    carried centre change cheap choose claim clear close collect corner courier customs damaged date deliver depot desk
    different door early east empty evening exact expected express fee final find floor found fragile free garden gate
    glass green ground hand heavy help hour house insured invoice island journey keep key known label large late left
    letter light line list little local locker long lost lower market meet message middle missing morning moved narrow
    near neighbour never night noon north number office open order other outside owed package paid paper parcel park
    pending people pick place please point porch postal present price promise proof quarter quick quiet rain reach ready
    receive refund register remain reply return river road round route safe same scan second seen send sent service
    seven shelf ship short side sign slow small south square stairs start station stay still stop store street summer
    sure table take team telephone thank there through ticket today together tomorrow track train truck turn under
    until upper urgent valley van village visit wait wall warehouse waited weather weekend weight west whole window
    winter within without wrong yard yellow yesterday""".split()  # noqa: SIM905 -- words, not two hundred lines
)
