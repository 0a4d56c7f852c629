"""The language of the notice and of the tools' descriptions."""

import json

import pytest

from memci import Context, EphemeralStorage, Policy
from memci.errors import InvalidSetting

pytestmark = pytest.mark.usefixtures("no_memory")


def test_notice_and_tools_speak_the_language_of_the_conversation():
    """In Chinese the model reads Chinese: the notice and every description; names and arguments stay. It is stored."""
    store = EphemeralStorage()
    with Context.open(store, "a", window=4_000) as english:
        names = [tool["function"]["name"] for tool in english.tools]
    for chosen in (Policy(language="zh"), None):
        with Context.open(store, "b", window=4_000, policy=chosen) as context:
            (notice,) = context.render()
            assert "本次对话较早的部分" in notice["content"] and "Earlier" not in notice["content"]
            assert [tool["function"]["name"] for tool in context.tools] == names
            for tool in context.tools:
                told = json.dumps(tool["function"], ensure_ascii=False)
                assert "召回" in told or "查找" in told
                assert "page" not in tool["function"]["description"]
            assert context.report().total <= context.budget


def test_a_language_without_a_notice_is_refused():
    """There are two languages."""
    with pytest.raises(InvalidSetting, match="language"):
        Context.open(EphemeralStorage(), "a", window=4_000, policy=Policy(language="xx"))
