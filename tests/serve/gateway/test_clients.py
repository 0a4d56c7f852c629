"""What coding agents send: files that move to the end, reminders, instructions in the list, requests for a summary."""

import json

import pytest

from memci import Context
from memci.serve.gateway import app
from memci.serve.summary_request import asks_for_summary, is_for_summaries

from .kit import FORMATS, LONG, Talk, filled
from .upstream import Served

ROLES = {"openai_chat": "system", "openai_responses": "developer", "anthropic": "system"}


def said(role, text):
    return {"role": role, "content": text}


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_files_that_stay_at_the_end_are_no_fork_and_are_never_archived(provider, store, form, changes):
    """The client shows its files behind the history and before the question: the window shows them whole each time."""
    past, shown = [said("user", "An example."), said("assistant", "Ok.")], []
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk(form, url) as talk:
        for turn in range(14):
            files = f"FILES {turn if changes else 0} " + "def open_depot(line): return line " * 40
            asked = said("user", f"Question {turn}. " + 3 * LONG.format(turn))
            tail = [said("user", files), said("assistant", "Ok."), asked, said(ROLES[form], "Answer briefly.")]
            talk.items = [*past, *tail]
            talk.ask()
            past += [asked, talk.items[-1]]
            shown.append(files)

    assert len(Context.list(store)) == 1
    rewritten = [seen for seen, body in zip(provider.seen, talk.sent, strict=True) if seen.body != body]
    assert 3 < len(rewritten) < 13
    for seen, files in zip(provider.seen, shown, strict=True):
        assert [item["content"] for item in seen.items].count(files) == 1
        assert seen.items[-1] == said(ROLES[form], "Answer briefly.")
        assert len(seen.body) < 6_000 * 4.5


def test_a_reminder_that_is_dropped_behind_the_answer_is_no_fork(provider, store):
    """A client adds a line to its newest message that differs each time, and is gone in its next request."""
    past = [said("user", "Hi."), said("assistant", "Hello.")]
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk("anthropic", url) as talk:
        for turn in range(12):
            asked = {"type": "text", "text": f"Question {turn}. " + LONG.format(turn)}
            talk.items = [
                *past,
                {"role": "user", "content": [asked, {"type": "text", "text": f"{9 - turn} files left"}]},
            ]
            talk.ask()
            past += [{"role": "user", "content": [asked]}, talk.items[-1]]

    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert "1 files left" not in json.dumps([*context.messages()])


@pytest.mark.parametrize("form", FORMATS)
def test_instructions_in_the_list_outlive_their_page_in_their_role(provider, store, form):
    """When the pages around them are archived, they stand in front, once, in the order of the list."""
    told = [said(ROLES[form], f"Rule {number}: never push to main.") for number in range(3)]
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk(form, url) as talk:
        filled(talk, 3)
        talk.items[1:1] = told[:1]
        talk.items[4:4] = told[1:2]
        filled(talk)
        talk.items += [said("user", "Now."), told[2]]
        talk.ask()
        talk.say("And now?")

    for seen in provider.seen:
        assert "recall_page" in seen.tools
        found = [text for item in seen.items if item["role"] == ROLES[form] for text in [json.dumps(item["content"])]]
        assert [f"Rule {number}" in " ".join(found) for number in range(3)] == [True] * 3
        assert " ".join(found).count("Rule") == 3
        assert b"<system>" not in seen.body
    assert provider.seen[1].items[: len(provider.seen[0].items)] == provider.seen[0].items


@pytest.mark.parametrize(("model", "window"), [("gpt-4o", 6_000), ("unknown", 6_000)])
@pytest.mark.parametrize("form", FORMATS)
def test_a_request_for_a_summary_gets_the_whole_list(provider, store, form, model, window):
    """The client's own compaction is forwarded as it came, and leaves the conversation as it was."""
    with Served(app(store, upstream=provider.url, window=window)) as url, Talk(form, url, model=model) as talk:
        filled(talk)
        talk.say("And now?")
        before = [*talk.items]
        talk.say("Your task is to create a detailed summary of the conversation so far.")
        assert provider.seen[-1].body == talk.sent[-1] and len(talk.sent[-1]) > 3 * window
        talk.items = before
        talk.say("Go on.")

    assert "recall_page" in provider.seen[-1].tools
    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert "detailed summary" not in json.dumps([*context.messages()])


ASKED = [
    "Your task is to create a detailed summary of the RECENT portion of the conversation.",
    "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM.",
    "The messages above are a conversation to summarize. Create a structured context checkpoint summary.",
    "Provide a detailed prompt for continuing our conversation above.",
    "An llm context limit was reached. Generate a version of the below messages without the verbose parts.",
    "Extract relevant context from the conversation above for continuing this work.",
    "You are maintaining a context-aware state summary for an interactive agent.",
    "Your sole objective is to extract the most relevant context from the conversation history below.",
    "Fais un résumé de notre conversation jusqu'ici.",
    "Create a new anchored summary from the conversation history in the <conversation> tags above.",
    "First, reason in your scratchpad. Then, generate the <state_snapshot>.",
    "Please condense what we did in this session into ten lines.",
    "Fasse unser bisheriges Gespräch zusammen.",
    "请总结以上对话",
]
OTHERS = [
    "This session is being continued from a previous conversation. The summary below covers the earlier portion.",
    "Write a function that summarizes a table.",
    "Fix the bug in session.py, then run the tests.",
    "Summarize src/report.py.",
    "Create a session cookie, and document the summary of it.",
]


def test_a_request_for_a_summary_is_known_by_its_words():
    """It says what to make, and of what; a text that was summarized before is none."""
    assert [asks_for_summary(said("user", text)) for text in (*ASKED, *OTHERS)] == [True] * len(ASKED) + [False] * len(
        OTHERS
    )
    behind = {"role": "user", "content": [{"type": "text", "text": "talk " * 9_000 + ASKED[0]}]}
    assert asks_for_summary(behind) and not asks_for_summary(said("assistant", ASKED[0]))
    assert is_for_summaries("You are the component that summarizes internal chat history into a given structure.")
    assert not is_for_summaries("You are a coding agent.")


def test_a_prompt_for_summaries_of_its_own_gets_the_whole_list(provider, store):
    """A client that asks with another system prompt; an application that always has that prompt is served as any."""
    summaries = "You are a helpful assistant who summarizes conversations."
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk("anthropic", url) as talk:
        filled(talk)
        talk.say("And now?")
        talk.system = summaries
        talk.say("Five lines.")
        assert provider.seen[-1].body == talk.sent[-1]
        with Talk("anthropic", url, key="key-2") as always:
            always.system = summaries
            filled(always)
            always.say("Another one.")
            always.say("And another one.")
    assert ["recall_page" in seen.tools for seen in provider.seen] == [True, False, True, True]
