"""An utterance has the exact words of its message, and who says them."""

import pytest

from memci.formats.utterance import utterances
from memci.text.provenance import Origin

CALL = {"id": "c1", "type": "function", "function": {"name": "get_van", "arguments": '{"id":"VN-38"}'}}
PAGE = [
    (1, {"role": "user", "name": "Ann", "content": "Is the van ready?"}),
    (2, {"role": "assistant", "content": None, "tool_calls": [CALL]}),
    (3, {"role": "tool", "tool_call_id": "c1", "content": "ready at 10:40"}),
    (5, {"role": "user", "name": "Mel", "content": "I painted it."}),
]


def test_words_are_exact_and_each_message_has_its_speaker():
    said = list(utterances(PAGE))
    assert [(each.entry, each.role, each.speaker) for each in said] == [
        (1, "user", "Ann"),
        (2, "assistant", ""),
        (3, "tool", "get_van"),
        (5, "user", "Mel"),
    ]
    assert [each.text for each in said] == [
        "Is the van ready?",
        'get_van {"id":"VN-38"}',
        "ready at 10:40",
        "I painted it.",
    ]


@pytest.mark.parametrize("quoted", ["> Never ring the bell.\nIs it real?", "Proofread this:\nNever ring the bell."])
def test_what_is_quoted_is_in_the_words_but_is_not_own(quoted):
    [said] = utterances([(1, {"role": "user", "content": quoted})])
    assert "Never ring the bell." in said.text
    assert "Never ring the bell." not in said.own
    assert Origin.QUOTED in [span.origin for span in said.spans]
    assert said.clauses == []
