"""A context takes, keeps and gives the messages of every provider: through append, store, reopen, export, recall."""

import json
from contextlib import closing

import pytest

from memci import Context, EphemeralStorage, InvalidMessage, SQLiteStorage
from memci.errors import InvalidSetting
from memci.formats import FORMATS
from memci.messages import Enveloped
from memci.testing.formats import problems

pytestmark = pytest.mark.usefixtures("no_memory")

USER = {"role": "user", "content": "Which trains go to Oslo?"}
ARGUMENTS = {"to": "Oslo", "day": "today"}
STEPS = {
    "openai_chat": [
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": name, "type": "function", "function": {"name": "trains", "arguments": json.dumps(ARGUMENTS)}}
                for name in ("c1", "c2")
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "the 9:15"},
        {"role": "tool", "tool_call_id": "c2", "content": "the 14:40"},
        {"role": "assistant", "content": "The 9:15 and the 14:40."},
    ],
    "openai_responses": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA" * 9},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
        {"type": "function_call", "call_id": "c1", "name": "trains", "arguments": json.dumps(ARGUMENTS)},
        {"type": "function_call", "call_id": "c2", "name": "trains", "arguments": json.dumps(ARGUMENTS)},
        {"type": "function_call_output", "call_id": "c1", "output": "the 9:15"},
        {"type": "function_call_output", "call_id": "c2", "output": "the 14:40"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "The 9:15, the 14:40."}]},
    ],
    "anthropic": [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Two days?", "signature": "EqQB" * 9},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "c1", "name": "trains", "input": ARGUMENTS},
                {"type": "tool_use", "id": "c2", "name": "trains", "input": ARGUMENTS},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "the 9:15"},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "the 14:40"}]},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "The 9:15 and the 14:40."}]},
    ],
    "gemini": [
        {
            "role": "model",
            "parts": [
                {"text": "Let me look."},
                {"functionCall": {"name": "trains", "args": ARGUMENTS}, "thoughtSignature": "CpYB" * 9},
                {"functionCall": {"name": "trains", "args": ARGUMENTS}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "trains", "response": {"output": "the 9:15"}}},
                {"functionResponse": {"name": "trains", "response": {"output": "the 14:40"}}},
            ],
        },
        {"role": "model", "parts": [{"text": "The 9:15 and the 14:40."}]},
    ],
}
"""the same step in the form of each provider"""


def opened(store=None, **settings) -> Context:
    return Context.open(store or EphemeralStorage(), "alice", **{"system": "Be brief.", "window": 32_000, **settings})


@pytest.mark.parametrize("form", FORMATS)
def test_what_came_is_what_is_sent(form, tmp_path):
    """Native items come back exactly: rendered, reopened, exported and imported."""
    question = {"role": "user", "parts": [{"text": USER["content"]}]} if form == "gemini" else USER
    with closing(SQLiteStorage(tmp_path / "agent.db")) as store:
        with opened(store, format=form) as context:
            context.append_turn(question, *STEPS[form])
            front = 1 if form == "openai_chat" else 0
            shown = context.render()
            assert shown[front:] == [question, *STEPS[form]]
            lines = list(context.export())
        with opened(store) as again:
            assert again.format == form
            assert again.render() == shown
            assert again.verify() == []
    with Context.import_(EphemeralStorage(), lines) as copy:
        assert copy.render() == shown
        assert list(copy.export()) == lines


@pytest.mark.parametrize("form", FORMATS)
def test_a_step_of_any_form_is_understood_alike(form):
    """Text, calls and results are the same messages in every form: they are what is counted, searched and recalled."""
    with opened() as context:
        context.append_turn(USER, *STEPS[form])
        messages = list(context.messages())

        assert [each["role"] for each in messages] == ["user", "assistant", "tool", "tool", "assistant"]
        assert [call["function"]["name"] for call in messages[1]["tool_calls"]] == ["trains", "trains"]
        assert [json.loads(call["function"]["arguments"]) for call in messages[1]["tool_calls"]] == [ARGUMENTS] * 2
        ids = [call["id"] for call in messages[1]["tool_calls"]]
        assert [each["tool_call_id"] for each in messages[2:4]] == ids
        assert [each["content"] for each in messages[2:4]] == ["the 9:15", "the 14:40"]
        assert context.recall_page(1) == messages


@pytest.mark.parametrize("target", FORMATS)
def test_a_conversation_changes_its_provider(target):
    """Steps of all four providers in one conversation are written for each: calls beside their results, in order."""
    with opened() as context:
        for form in FORMATS:
            context.append_turn(USER, *STEPS[form])
        sent = json.dumps(context.request(format=target))

        assert sent.count("the 9:15") >= 4 and sent.count("Let me look.") == 4
        assert ("EqQB" in sent) is (target == "anthropic")
        assert ("gAAAA" in sent) is (target == "openai_responses")
        assert ("CpYB" in sent) is (target == "gemini")


@pytest.mark.parametrize("form", FORMATS)
def test_recall_is_answered_in_the_form_of_the_call(form):
    """A reply of any form is answered in it, and the answer is appended as any message."""
    arguments = {"index": 1, "entry": None, "offset": None}
    text = json.dumps(arguments)
    replies = {
        "openai_chat": {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "r1", "type": "function", "function": {"name": "recall_page", "arguments": text}}],
        },
        "openai_responses": {"type": "function_call", "call_id": "r1", "name": "recall_page", "arguments": text},
        "anthropic": {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "r1", "name": "recall_page", "input": arguments}],
        },
        "gemini": {"role": "model", "parts": [{"functionCall": {"name": "recall_page", "args": arguments}}]},
    }
    reply = replies[form]
    call = {
        "openai_chat": lambda: reply["tool_calls"][0],
        "openai_responses": lambda: reply,
        "anthropic": lambda: reply["content"][0],
        "gemini": lambda: reply["parts"][0],
    }[form]()
    with opened(format=form) as context:
        context.append_turn(USER, {"role": "assistant", "content": "The 9:15."})
        context.append_turn("And back?")
        assert context.handles(call)
        answers = context.answers(reply)
        assert len(answers) == 1 and "page #1" in json.dumps(answers) and "r" in json.dumps(context.answer(call))
        context.append_turn(reply, *answers, {"role": "assistant", "content": "At nine."})
        assert context.render(strict=True)
        assert [each["role"] for each in context.messages()][-3:] == ["assistant", "tool", "assistant"]


def test_parallel_calls_in_separate_items_are_one_message():
    """Items of one step that arrive one by one are grouped: no call is shown as interrupted."""
    with opened() as context:
        context.append_turn(USER, *STEPS["openai_responses"])
        assert "interrupted" not in json.dumps(context.render())


def test_a_clipped_message_is_sent_without_its_reasoning():
    """A changed view is made from what is understood; signed reasoning is sent whole, or not at all."""
    long = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "EqQB" * 9},
            {"type": "text", "text": "a long story " * 4_000},
        ],
    }
    with opened(window=8_000, format="anthropic") as context:
        context.append_turn(USER, long)
        sent = json.dumps(context.render())
        assert "EqQB" not in sent and "hm" not in sent and "elided" in sent
        assert "reasoning" not in context.render(format="openai_chat")[-1]
        assert context.recall_page(1)[1].native.items == [long]


def test_instructions_within_a_conversation_keep_their_place():
    """System and developer messages stand where they were said; in a frame where a provider has no such role there."""
    rule = {"role": "developer", "content": "Answer in French."}
    with opened() as context:
        context.append_turn(USER, {"role": "assistant", "content": "The 9:15."}, rule)
        assert context.render()[-1] == rule
        assert context.render(format="openai_responses")[-1] == rule
        assert "<system>\nAnswer in French." in json.dumps(context.render(format="anthropic")[-1]).replace("\\n", "\n")
        assert context.render(format="gemini")[-1]["role"] == "user"


def test_breakpoints_are_four_at_most_with_the_callers_own():
    """The ends of stable parts are marked for Anthropic; marks of the caller's count, and one is always left."""
    tool = {"name": "trains", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    with opened(window=3_000, format="anthropic") as context:
        for number in range(40):
            context.append_turn(f"question {number} " * 20, {"role": "assistant", "content": "an answer " * 20})
        plain = json.dumps(context.request("And?")).count("cache_control")
        with_own = json.dumps(context.request("And?", tools=[tool])).count("cache_control")
        marked = [each for each in context.request("And?")["messages"] if "cache_control" in json.dumps(each)]

        assert (plain, with_own) == (3, 3)
        assert "memci:contents" in json.dumps(marked[0]) and "answer" in json.dumps(marked[-1])
        assert "cache_control" not in json.dumps(context.render())


@pytest.mark.parametrize(("form", "kind", "most"), [("openai_chat", "text", 3), ("openai_responses", "input_text", 2)])
def test_breakpoints_of_openai_are_marked_for_models_that_read_them(form, kind, most):
    """The same ends are marked at parts that can have a mark (not the instructions), and the caller's marks count."""
    with opened(window=3_000, format=form, model="gpt-5.6") as context:
        own = {"type": kind, "text": "And?", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}
        for number in range(40):
            context.append_turn(f"question {number} " * 20, {"role": "assistant", "content": "an answer " * 20})
        key = "messages" if form == "openai_chat" else "input"
        request = context.request("And?")
        marked = [item for item in request[key] if "prompt_cache_breakpoint" in json.dumps(item)]

        assert len(marked) == most
        assert all(item["content"][-1]["prompt_cache_breakpoint"] == {"mode": "explicit"} for item in marked)
        assert "memci:contents" in json.dumps(marked[-2])
        assert problems(form, request) == []
        texts = [
            item["content"] if isinstance(item["content"], str) else item["content"][0]["text"] for item in request[key]
        ]
        assert texts[-9:] == [item["content"] for item in context.render("And?")][-9:]
        whole = json.dumps(context.request({"role": "user", "content": [own]}))
        assert (whole.count('"explicit"'), whole.count('"12h"')) == (3, 1)
    with opened(window=3_000, format=form, model="gpt-5.4") as context:
        assert "prompt_cache_breakpoint" not in json.dumps(context.request("And?"))


def test_usage_of_every_provider_is_known():
    """What a request cost is read from each usage; Anthropic's leaves out what was cached, the others' holds it."""
    usages = [
        {"prompt_tokens": 1_300, "prompt_tokens_details": {"cached_tokens": 800}},
        {"input_tokens": 1_300, "input_tokens_details": {"cached_tokens": 800}},
        {"input_tokens": 100, "cache_read_input_tokens": 1_100, "cache_creation_input_tokens": 100},
        {"promptTokenCount": 1_300, "cachedContentTokenCount": 800},
    ]
    ratios = set()
    for usage in usages:
        with opened() as context:
            context.render("Hi " * 700)
            context.append_turn("Hi " * 700, {"role": "assistant", "content": "Hi."}, usage=usage)
            ratios.add(context.report().ratio)
    assert len(ratios) == 1 and ratios != {1.0}
    with opened() as context, pytest.raises(InvalidSetting, match="usage"):
        context.render("Hi")
        context.append_turn("Hi", usage={"tokens": 5})


@pytest.mark.parametrize("cached", [False, True])
def test_the_budget_holds_where_a_provider_counts_a_quarter_more(cached):
    """Of 80 requests whose true size is 1.25 times the count, 4 at most are over: also where most was cached."""
    over = 0
    with opened(window=8_000) as context:
        for number in range(80):
            question = f"question {number} " + "word " * (number * 37 % 400)
            context.render(question)
            true = int(context._parts.renderer.predicted * 1.25)
            over += true > 8_000 - 1_000
            hit = {"cache_read_input_tokens": true // 2, "cache_creation_input_tokens": true // 4} if cached else {}
            usage = {"input_tokens": true - sum(hit.values()), **hit}
            context.append_turn(question, {"role": "assistant", "content": "an answer " * 40}, usage=usage)
    assert over <= 4


def test_the_format_of_a_context_is_kept_and_checked():
    """An unknown format is refused before anything changes."""
    with pytest.raises(InvalidSetting, match="format"):
        opened(format="claude")
    with opened() as context:
        for call in (context.render, context.request):
            with pytest.raises(InvalidSetting, match="format"):
                call(format="claude")
        with pytest.raises(InvalidMessage, match="messages"):
            context.append_turn({"role": "user", "content": [{"type": "tool_result", "content": 5}]})
        assert list(context.messages()) == []


def test_an_envelope_is_a_message_with_its_items():
    """What is read back carries its native items; a message of Chat Completions needs none."""
    with opened() as context:
        context.append_turn(USER, *STEPS["anthropic"])
        assert all("reasoning" not in each for each in context.render())
        first, second, *_ = context.messages()
        assert not isinstance(first, Enveloped) and isinstance(second, Enveloped)
        assert second.native.items == STEPS["anthropic"][:1]


def test_what_one_provider_takes_is_written_as_another_reads_it():
    """Images, files, audio and refusals are written in what the target has for them, else named."""
    parts = [
        {"inlineData": {"mimeType": "image/png", "data": "-_8="}},
        {"inlineData": {"mimeType": "text/csv", "data": "YSxi"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
    ]
    refusal = {"role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]}
    with opened() as context:
        context.append_turn({"role": "user", "parts": parts}, refusal)
        asked, answered = context.render(format="anthropic")
        image, table, pdf, audio = asked["content"]

        assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "+/8="}
        assert table["source"] == {"type": "text", "media_type": "text/plain", "data": "a,b"}
        assert pdf["source"] == {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
        assert audio == {"type": "text", "text": "[input_audio]"}
        for target in FORMATS:
            assert "I can't." in json.dumps(context.render(format=target)[-1])
        assert answered["role"] == "assistant"


def test_an_interrupted_call_is_answered_for_every_provider():
    """A stand-in for a result has the type and the id that its call wants."""
    custom = {"type": "custom_tool_call", "call_id": "c" * 70, "name": "sh", "input": "ls"}
    native = {"role": "model", "parts": [{"functionCall": {"name": "trains", "args": {}}, "thoughtSignature": "CpYB"}]}
    with opened() as context:
        context.append_turn(USER, custom, "Stop.", native, "Stop.")
        for target in FORMATS:
            assert problems(target, context.request(format=target)) == []
        answer = context.render(format="gemini")[5]["parts"][0]["functionResponse"]
        assert answer["name"] == "trains" and "id" not in answer


def test_thoughts_behind_a_rewritten_beginning_are_left_out_but_within_the_open_step():
    """A compaction takes thoughts of closed pages out of requests to Anthropic; the open page keeps its own, signed."""

    def step(number):
        thought = {"type": "thinking", "thinking": f"thought {number}", "signature": f"Eq{number:03}" * 9}
        used = {"type": "tool_use", "id": f"t{number}", "name": "trains", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} " + "word " * 60}
        return [{"role": "assistant", "content": [thought, used]}, {"role": "user", "content": [answer]}]

    store = EphemeralStorage()
    with opened(store, window=3_000, format="anthropic") as context:

        def sent(form="anthropic"):
            assert problems(form, context.request(format=form)) == []
            return json.dumps(context.request(format=form))

        for number in range(20):
            context.append_turn(USER, *step(number))
            before, compactions = sent(), context.report().compactions
            assert f"Eq{number:03}" in before, "the model is within a step: its thoughts are to come back"
            context.append_turn({"role": "assistant", "content": [{"type": "text", "text": "The 9:15."}]})
            assert before[: before.rindex("thought")] in sent() or context.report().compactions > compactions
        context.append_turn(USER, *step(20))
        context.archive(keep=2)
        after = sent()
        assert ["thought 18" in after, "thought 19" in after, "thought 20" in after] == [False, False, True]
        assert '"t19"' in after, "the call itself stays"
        assert context.recall_page(context.report().turn)[1].native.items[0] == step(19)[0]
        context.append_turn({"role": "assistant", "content": [{"type": "text", "text": "At nine."}]}, USER)
        assert "thought 20" in sent(), "what was sent once stays until the next compaction"
        with context.fork("other") as fork, Context.open(store, "alice") as again:
            assert fork.render() == again.render() == context.render()
        assert "thought 20" not in sent("openai_responses")
        context.pop()
        context.pop()
        assert "thought 20" in sent(), "the step is open again"
        context.append_turn({"role": "assistant", "content": [{"type": "text", "text": "At nine."}]}, USER)
        context.archive(keep=2)
        assert "thought 20" not in sent() and '"t20"' in sent()
        context.pop()
        context.pop()
        assert "thought 20" in sent(), "the step is open again, whatever was archived since"


def test_reasoning_of_responses_stays_behind_a_rewritten_beginning():
    """Encrypted reasoning is bound to no beginning, and a call that was made with it may need it."""
    with opened(format="openai_responses") as context:
        context.append_turn(USER, {"role": "assistant", "content": "At nine."})
        context.append_turn("And back?", {"role": "assistant", "content": "At ten."})
        context.append_turn(USER, *STEPS["openai_responses"])
        context.append_turn("Thanks.")
        assert context.archive(keep=2) == (2,)
        assert "gAAAA" in json.dumps(context.request())


@pytest.mark.parametrize("form", ["anthropic", "gemini"])
def test_what_a_client_says_behind_results_continues_their_page(form):
    """Reminders of coding agents come so: the model gets the results in any case, it has not answered them yet."""
    words = "The depot of the line opens at nine. " * 40
    with opened(format=form, window=6_000) as context:
        context.append_turn("Read all files.")
        for number in range(20):
            text = f"file {number}: {words}"
            if form == "anthropic":
                called = {"role": "assistant", "content": [tool_use(f"c{number}")]}
                result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": text}
                answer = {"role": "user", "content": [result, {"type": "text", "text": "Mind the list."}]}
            else:
                called = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}
                result = {"functionResponse": {"name": "read", "response": {"output": text}}}
                answer = {"role": "user", "parts": [result, {"text": "Mind the list."}]}
            context.append_turn(called, answer)

            assert f"file {number}: " in json.dumps(context.request())
        assert [page.index for page in context.pages()] == [1]
        context.append_turn("And now?")
        assert [page.index for page in context.pages()] == [1, 2]


def test_what_a_list_has_directly_behind_results_continues_their_page():
    """In Chat Completions a reminder is a message of its own; a program says with each append what opens a page."""
    items = [{"role": "user", "content": "Read all files."}]
    with opened(format="openai_chat", window=6_000) as context:
        for number in range(20):
            call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            text = f"file {number}: " + "The depot of the line opens at nine. " * 40
            items += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": text},
                {"role": "user", "content": "Mind the list."},
            ]
            context.sync(items)
            assert f"file {number}: " in json.dumps(context.request())
        assert [page.index for page in context.pages()] == [1]
        call = {**call, "id": "last"}
        context.append_turn({"role": "assistant", "content": None, "tool_calls": [call]})
        context.append_turn({"role": "tool", "tool_call_id": "last", "content": "None."}, "And now?")
        assert [page.index for page in context.pages()] == [1, 2]


def tool_use(call_id):
    return {"type": "tool_use", "id": call_id, "name": "read", "input": {}}
