"""Talks with questions whose evidence is known: which messages answer them.

    Talk("conv-26", (Line({"role": "user", "name": "Mel", "content": "…"}, at=…), …), (Question(…, {2, 8}), …))

The talks are read where the other benchmarks read theirs; nothing of them is kept. This module knows nothing of search.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ..conversation import Message, folder

Form = Literal["names", "roles", "transcript"]
"""how two people are told apart: by `name`, by role and `name`, or by role and what their text begins with"""

_SCENES = ("customer", "finance", "healthcare", "notetaker", "student")
_TURN = re.compile(r"D(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Line:
    """A message and when it was said."""

    message: Message
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the numbers of the messages that answer it: all of them, or any."""

    text: str
    kind: str
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation and what is asked about it."""

    name: str
    lines: tuple[Line, ...]
    questions: tuple[Question, ...] = ()


UNANSWERED = "unanswered"
"""the kind of questions about what nobody said; their evidence is what another person said"""


def dialogues(form: Form = "names", *, unanswered: bool = False) -> list[Talk]:
    """Return the long dialogues of two people with the questions of four kinds; [] if they are not here.

    *unanswered* questions are left out unless they are asked for.
    """
    kinds = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
    if unanswered:
        kinds[5] = UNANSWERED
    path = folder()
    if path is None or not (file := path / "locomo_part.json").is_file():
        return []
    talks = []
    for sample in json.loads(file.read_text(encoding="utf-8")):
        lines, number = dialogue(sample["conversation"], form)
        questions = []
        for asked in sample["qa"]:
            evidence = quoted_turns(asked["evidence"], number)
            if evidence and asked["category"] in kinds:
                questions.append(Question(asked["question"], kinds[asked["category"]], evidence))
        talks.append(Talk(sample["sample_id"], lines, tuple(questions)))
    return talks


def people() -> list[Talk]:
    """Return the chats of real people, who say many messages in a row; [] if they are not here."""
    path, talks = folder(), []
    for file in sorted((path / "realtalk").glob("*.json")) if path else ():
        talk = json.loads(file.read_bytes())
        lines: list[Line] = []
        number: dict[str, int] = {}
        sessions = sorted((key for key in talk if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:]))
        for turn in (turn for key in sessions for turn in talk[key]):
            number[turn["dia_id"]] = len(lines)
            at = datetime.strptime(turn["date_time"], "%d.%m.%Y, %H:%M:%S").replace(tzinfo=UTC).timestamp()
            lines.append(Line({"role": "user", "name": turn["speaker"], "content": turn["clean_text"]}, at))
        asked = ((each["question"], quoted_turns(each["evidence"], number)) for each in talk["qa"])
        questions = tuple(Question(text, "people", evidence) for text, evidence in asked if evidence)
        talks.append(Talk(file.stem, tuple(lines), questions))
    return talks


def meetings() -> list[Talk]:
    """Return meetings, whose questions are answered by a stretch of talk; [] if they are not here."""
    path, talks = folder(), []
    for file in sorted((path / "qmsum").glob("*.json")) if path else ():
        meeting = json.loads(file.read_bytes())
        said = meeting["meeting_transcripts"]
        lines = tuple(Line({"role": "user", "name": each["speaker"], "content": each["content"]}) for each in said)
        questions = [
            Question(each["query"], "meeting", frozenset(n for a, b in spans for n in range(int(a), int(b) + 1)))
            for each in meeting["specific_query_list"]
            if (spans := each["relevant_text_span"])
        ]
        talks.append(Talk(file.stem, lines, tuple(questions)))
    return talks


def dialogue(talk: dict[str, Any], form: Form) -> tuple[tuple[Line, ...], dict[str, int]]:
    """Return the lines of a dialogue as its file has them, and the number of each turn by its name ("D1:3")."""
    lines: list[Line] = []
    number: dict[str, int] = {}
    sessions = (match for key in talk if (match := re.fullmatch(r"session_(\d+)", key)))
    for session in sorted(sessions, key=lambda match: int(match[1])):
        told = talk[f"{session[0]}_date_time"].replace(",", "")
        at = datetime.strptime(told, "%I:%M %p on %d %B %Y").replace(tzinfo=UTC).timestamp()
        for turn in talk[session[0]]:
            who, text = turn["speaker"], turn["text"]
            role = "user" if form == "names" or who == talk["speaker_a"] else "assistant"
            number[turn["dia_id"]] = len(lines)
            said = {"content": f"{who}: {text}"} if form == "transcript" else {"name": who, "content": text}
            lines.append(Line({"role": role, **said}, at))
    return tuple(lines), number


def quoted_turns(evidence: Sequence[str], number: Mapping[str, int]) -> frozenset[int]:
    """Return the numbers of the turns that *evidence* names, however it is written ("D1:3", "D:1:03; D2:5")."""
    turns = (_TURN.findall(text.replace("D:", "D")) for text in evidence)
    names = [f"D{int(session)}:{int(turn)}" for found in turns for session, turn in found]
    return frozenset(number[name] for name in names if name in number)


def chats() -> list[Talk]:
    """Return the long chats of users and assistants with the questions that have evidence; [] if they are not here."""
    path = folder()
    talks = []
    for file in sorted((path / "beam").glob("*/chat.json")) if path else ():
        messages = [each for batch in json.loads(file.read_bytes()) for turn in batch["turns"] for each in turn]
        asked = json.loads(file.with_name("probing_questions.json").read_bytes())
        lines = tuple(Line({"role": each["role"], "content": each["content"]}) for each in messages)
        number = {each["id"]: place for place, each in enumerate(messages)}
        questions = [
            Question(each["question"], kind, frozenset(number[id_] for id_ in evidence))
            for kind, of in asked.items()
            for each in of
            if (evidence := set(_flat(each.get("source_chat_ids", []))))
        ]
        talks.append(Talk(f"chat-{file.parent.name}", lines, tuple(questions)))
    return talks


def statements() -> list[Talk]:
    """Return short statements in Chinese, one after the other, with a question for each; they are made up."""
    pairs = [line.split("|") for line in Path(__file__).with_name("statements.txt").read_text("utf-8").splitlines()]
    lines = tuple(Line({"role": "user", "content": f"{said}。"}) for said, _ in pairs)
    asked = (Question(f"{each}？", "statement", frozenset([number])) for number, (_, each) in enumerate(pairs))
    return [Talk("statements", lines, tuple(asked))]


def lives() -> list[Talk]:
    """Return what a user lived through, a statement a day in Chinese, with dialogues that should recall it.

    Each is asked twice: by the last message of the user, and by all of them. [] if they are not here.
    """
    path = folder()
    if path is None or not (path / "madial").is_dir():
        return []
    told = [next(iter(each.values())) for each in _lines_of(path / "madial" / "zh-memory.json")]
    number = {int(each["id"]): place for place, each in enumerate(told)}
    times = (datetime.strptime(each["time"], "%Y-%m-%d").replace(tzinfo=UTC).timestamp() for each in told)
    lines = [Line({"role": "user", "content": each["event"]}, at) for each, at in zip(told, times, strict=True)]
    questions = []
    for each in _lines_of(path / "madial" / "zh-dialogue.json"):
        before = each["dialogue"][: each["test-turn"][0]]
        said = [line for line in before if not line.startswith(("<BOD", "<Assistant"))]
        texts = [re.split("[:：]", line, maxsplit=1)[-1].strip().strip('"“”') for line in said]
        evidence = frozenset(number[id_] for id_ in each["relevant-id"] if id_ in number)
        if texts and evidence:
            questions += [Question(texts[-1], "last", evidence), Question(" ".join(texts), "all", evidence)]
    return [Talk("lives", tuple(lines), tuple(questions))]


def notes() -> list[Talk]:
    """Return what five people tell of themselves, with questions about it; [] if it is not here."""
    path = folder()
    if path is None or not (path / "bfcl_memory").is_dir():
        return []
    read = path / "bfcl_memory"
    sources = {each["id"]: each["source"] for each in _lines_of(read / "possible_answer_BFCL_v4_memory.json")}
    asked = _lines_of(read / "BFCL_v4_memory.json")
    talks = []
    for scene in _SCENES:
        messages = [
            Line(message, float(number * 86_400))
            for number, each in enumerate(_lines_of(read / f"memory_{scene}.json"))
            for turn in each["question"]
            for message in turn
        ]
        texts = [_plain(line.message["content"]) for line in messages]
        questions = [
            Question(each["question"][0][0]["content"], scene, evidence)
            for each in asked
            if each["scenario"] == scene and (evidence := _quoted(sources[each["id"]], texts))
        ]
        talks.append(Talk(scene, tuple(messages), tuple(questions)))
    return talks


def traces() -> list[Talk]:
    """Return the runs of a tool-using airline agent, one by one; [] if they are not here."""
    path = folder()
    if path is None or not (file := path / "airline_trajectories.json").is_file():
        return []
    runs = json.loads(file.read_text(encoding="utf-8"))
    return [
        Talk(f"{run['task_id']}-{run['trial']}", tuple(Line(each) for each in run["traj"] if each["role"] != "system"))
        for run in runs
    ]


def _quoted(source: str, texts: list[str]) -> frozenset[int]:
    """Return the messages that have one of the pieces of *source*, or else all of what its label and text are."""
    pieces = [plain for piece in re.split(r"\.\.\.|…", source) if len(plain := _plain(piece)) > 3]
    found = frozenset(number for number, text in enumerate(texts) if any(piece in text for piece in pieces))
    if found:
        return found
    pieces = [_plain(piece) for piece in re.split(r"\.\.\.|…|: ", source)]
    return frozenset(number for number, text in enumerate(texts) if all(piece in text for piece in pieces))


def _flat(ids: Any) -> Iterator[int]:
    """Yield the numbers in lists and objects of numbers."""
    if isinstance(ids, int):
        yield ids
    else:
        for each in ids.values() if isinstance(ids, dict) else ids:
            yield from _flat(each)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def _lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
