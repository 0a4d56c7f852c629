"""Reading recorded conversations: every shape that is known, and a clear word for all else."""

import json

import pytest

from memci.cli.replay.transcripts import read
from memci.errors import InvalidMessage, InvalidSetting

ASKED = {"role": "user", "content": "Which train to Delft?"}
SAID = {"role": "assistant", "content": "The 9:04."}
RULES = {"role": "system", "content": "Be brief."}


@pytest.fixture
def write(tmp_path):
    """Writes a file: text, bytes, or a value as JSON; a list of lines as JSON lines."""

    def written(content, name="file.json", *, lines=False):
        path = tmp_path / name
        if lines:
            content = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in content)
        elif not isinstance(content, (str, bytes)):
            content = json.dumps(content, ensure_ascii=False)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def messages(transcript):
    """The messages of a transcript."""
    return [step.message for step in transcript.steps]


@pytest.mark.parametrize("value", [[RULES, ASKED, SAID], {"messages": [RULES, ASKED, SAID]}])
def test_read_when_the_file_is_chat_json(write, value):
    """A list of messages, bare or under a key, is a conversation with its system prompt taken out."""
    path = write(value)

    transcript = read(path)

    assert messages(transcript) == [ASKED, SAID]
    assert transcript.system == "Be brief."
    assert transcript.turns == 1


@pytest.mark.parametrize("lines", [[RULES, ASKED, SAID], [{"messages": [RULES, ASKED]}, {"messages": [RULES, SAID]}]])
def test_read_when_the_file_is_json_lines(write, lines):
    """A message per line, or a conversation per line, gives the same messages, joined."""
    path = write(lines, lines=True)

    transcript = read(path)

    assert messages(transcript) == [ASKED, SAID]
    assert transcript.system == "Be brief."
    assert transcript.left_out == 0


def test_read_when_trajectories_are_joined(write):
    """Trajectories follow each other; equal system messages are skipped, others are counted."""
    other = {"role": "system", "content": "Be long."}
    path = write([{"traj": [RULES, ASKED, SAID]}, {"traj": [RULES, ASKED]}, {"traj": [other, ASKED]}])

    transcript = read(path)

    assert messages(transcript) == [ASKED, SAID, ASKED, ASKED]
    assert (transcript.system, transcript.left_out, transcript.turns) == ("Be brief.", 1, 3)


def test_read_when_the_tools_are_recorded(write):
    """The schemas of the tools that a file names are kept, for counting."""
    tool = {"type": "function", "function": {"name": "trains", "parameters": {}}}
    path = write({"messages": [ASKED], "tools": [tool]})

    transcript = read(path)

    assert transcript.tools == (tool,)


def test_read_when_a_trace_observes_in_the_users_role(write):
    """Behind the task, what stands in the user's role belongs to the same interaction; private keys are dropped."""
    path = write(
        {
            "history": [
                {"role": "system", "content": "Be brief.", "agent": "main"},
                {"role": "user", "content": "Fix it.", "agent": "main"},
                {"role": "assistant", "content": "", "thought": "Look first.", "action": "ls", "agent": "main"},
                {"role": "user", "content": "setup.py", "agent": "main", "message_type": "observation"},
            ]
        },
        "run.traj",
    )

    transcript = read(path)

    assert messages(transcript) == [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "Look first.\n\nls"},
        {"role": "user", "content": "setup.py"},
    ]
    assert transcript.turns == 1


def test_read_when_a_trace_names_its_calls_in_a_list(write):
    """A result that answers several calls becomes a result for each."""
    calls = [{"id": each, "type": "function", "function": {"name": "ls", "arguments": "{}"}} for each in ("a", "b")]
    path = write(
        {
            "history": [
                {"role": "user", "content": "Fix it."},
                {"role": "assistant", "content": "Look.", "tool_calls": calls, "message_type": "action"},
                {"role": "tool", "content": "setup.py", "tool_call_ids": ["a", "b"]},
            ]
        }
    )

    transcript = read(path)

    assert messages(transcript)[1:] == [
        {"role": "assistant", "content": "Look.", "tool_calls": calls},
        {"role": "tool", "content": "setup.py", "tool_call_id": "a"},
        {"role": "tool", "content": "(answered together with a)", "tool_call_id": "b"},
    ]


def talk(first, second):
    """A dialogue of two people in two sessions, the later one first in the file."""
    return {
        "conversation": {
            "speaker_a": first,
            "speaker_b": second,
            "session_10": [{"speaker": second, "dia_id": "D10:1", "text": "Back again."}],
            "session_10_date_time": "noon on 3 May",
            "session_2": [
                {"speaker": first, "dia_id": "D2:1", "text": "Hi!", "blip_caption": "a photo of a dog"},
                {"speaker": second, "dia_id": "D2:2", "text": "Hello."},
            ],
            "session_2_date_time": "9 am on 1 May",
            "session_3_date_time": "a session that was not recorded",
        }
    }


def test_read_when_two_people_talk(write):
    """The first speaker is the user; sessions come in order, each begins with its date."""
    path = write([talk("Ana", "Bo"), talk("Cy", "Di")])

    transcript = read(path, dialogue=2)

    assert messages(transcript) == [
        {"role": "user", "content": "[9 am on 1 May] Hi! [shares a photo of a dog]"},
        {"role": "assistant", "content": "Hello."},
        {"role": "assistant", "content": "[noon on 3 May] Back again."},
    ]
    assert len(read(path).steps) == 6


def test_read_when_only_questions_are_recorded(write):
    """Questions without answers are the turns of a user."""
    path = write([{"id": 1, "question": [[ASKED], [ASKED]]}, {"id": 2, "question": [[ASKED]]}], lines=True)

    transcript = read(path)

    assert messages(transcript) == [ASKED] * 3
    assert transcript.turns == 3


def test_read_when_sessions_are_nested_or_keys_are_renamed(write):
    """Sessions in a list, and messages that say from and value, are read too."""
    path = write([{"haystack_sessions": [[ASKED, SAID], [{"from": "human", "value": "Thanks!"}]], "question": "When?"}])

    transcript = read(path)

    assert messages(transcript) == [ASKED, SAID, {"role": "user", "content": "Thanks!"}]


def test_first_when_a_transcript_is_cut(write):
    """The first turns of a transcript end where the next one begins."""
    transcript = read(write([ASKED, SAID, ASKED, SAID, ASKED]))

    cut = transcript.first(2)

    assert messages(cut) == [ASKED, SAID, ASKED, SAID]
    with pytest.raises(InvalidSetting, match="has the turns 1 to 3, not 4"):
        transcript.first(4)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "file.json: is empty"),
        (" \n\n", "file.json: is empty"),
        ("[]", "holds no messages"),
        ([RULES], "holds no messages"),
        ("hello", "line 1, column 1: not valid JSON"),
        ('[{"role": "user",\n "content": }]', "line 2, column 13: not valid JSON"),
        ('{"role": "user", "content": "a"}\n{"role"\n', "line 2, column 8: not valid JSON"),
        (b"\xff\xfe\x00\x01", "is not text in UTF-8 (line 1, byte 0 is 0xff)"),
        (b"SQLite format 3\0....", "is a SQLite file"),
        (b"\x1f\x8b\x08", "is compressed"),
        ("7", "the file: expected a message (an object with role and content), got int"),
        ("{}", "no conversation: its keys are none"),
        ({"id": 1, "text": "a"}, "no conversation: its keys are 'id', 'text'"),
        ([ASKED, 5], "[1]: expected a message (an object with role and content), got int"),
        ({"messages": [ASKED, {"role": "pilot", "content": "a"}]}, "messages[1].role: expected 'user', 'assistant'"),
        ([{"role": ["user"], "content": "a"}], "[0].role: expected"),
        ([{"role": "user"}], "[0].content: is missing"),
        ([{"from": ["human"], "value": "a"}], "[0].role: expected"),
        ({"history": [{"content": "a"}]}, "history[0]"),
        ({"history": ["a"]}, "history[0]: expected a message"),
        (
            {"conversation": {"speaker_a": "A", "session_1": [{"speaker": "Z", "text": "a"}]}},
            "conversation.session_1[0]",
        ),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 400 + "1" + "]" * 400, "expected a message"),
        ("1" * 6_000, "can be read"),
    ],
)
def test_read_when_the_file_is_none(write, content, told):
    """A file that is no conversation is refused with its name, the place and the reason."""
    path = write(content)

    with pytest.raises((InvalidSetting, InvalidMessage)) as caught:
        read(path)

    assert told in str(caught.value)
    assert str(caught.value).startswith("file.json: ")


def test_read_when_there_is_no_file(tmp_path):
    """A missing file and a folder are told apart."""
    with pytest.raises(InvalidSetting, match="there is no such file"):
        read(tmp_path / "none.json")
    with pytest.raises(InvalidSetting, match="is a folder"):
        read(tmp_path)


def test_read_when_the_dialogue_is_not_there(write):
    """A dialogue that a file does not have is refused with the ones that it has."""
    with pytest.raises(InvalidSetting, match="has the dialogues 1 to 1, not 3"):
        read(write([ASKED]), dialogue=3)
