"""Seventy mistakes that newcomers make, and what they read: what is wrong, and what was meant."""

import warnings
from types import SimpleNamespace

import pytest

import memci
from memci import Agent, AsyncContext, CachePricing, Context, EphemeralStorage, NeverRecalled, Policy, SQLiteStorage
from memci.adapters.conversations import Conversations
from memci.companion import Companion
from memci.history.backup import backup
from memci.history.copying import copy_contexts
from memci.history.erase import erase, finish_erasures
from memci.history.retention import find_outdated
from memci.llm import Chat, ask
from memci.memory import TieredMemory
from memci.serve.gateway import app

USER = {"role": "user", "content": "Hi"}
REPLY = {"role": "assistant", "content": "Ho"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def opened(**given):
    return Context.open(EphemeralStorage(), "alice", **{"window": 8_000, **given})


def stored():
    store = EphemeralStorage()
    Context.open(store, "alice", window=8_000, owner="ada").append_turn("Hi")
    return store


def stored_memory():
    return TieredMemory(stored(), owner="ada")


def closed():
    context = opened()
    context.close()
    return context


def agent(**given):
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=print)))
    return Agent(given.pop("client", client), opened(), **{"model": "gpt-5", **given})


def adapter(**given):
    return Conversations(EphemeralStorage(), dump=list, load=list, **given)


def gateway(upstream="http://127.0.0.1:1", **given):
    return app("nowhere.db", upstream=upstream, **given)


def of_unknown_type(a: "Unknown") -> str: ...  # noqa: F821


def of_no_schema(a: SimpleNamespace) -> str: ...


MISTAKES = [
    (lambda: Context("agent.db", "alice"), r"Context: open it: Context\.open\(store, id, window=…\)"),
    (lambda: opened(windows=8_000), "Context.open has no such argument: did you mean 'window'"),
    (lambda: opened(sytem="S"), "did you mean 'system'"),
    (lambda: Context.view(stored(), "alice", ownr="ada"), "did you mean 'owner'"),
    (lambda: Policy(presets="economy"), "Policy has no such argument: did you mean 'preset'"),
    (lambda: opened(policy="economy"), r'expected a Policy, as Policy\(preset="economy"\)'),
    (lambda: opened(policy=Policy(preset="economic")), "preset: .*'balanced', 'economy'"),
    (lambda: opened(policy=Policy(language="cn")), "language: .*'en' or 'zh'"),
    (lambda: opened(policy=Policy(rules=NeverRecalled(3))), "rules: expected a list"),
    (lambda: opened(policy=Policy(pricing=0.1)), "pricing: expected a CachePricing"),
    (lambda: opened(model="gpt5", window=None), "that of 'gpt5' is not known: did you mean 'gpt-5'"),
    (lambda: opened(window=None), "pass the model's context length"),
    (lambda: opened(window="8000"), "window: .*got '8000'"),
    (lambda: opened(reply=8_000), "reply: 8,000 tokens for the answer leave nothing"),
    (lambda: opened(format="openai"), "format: expected one of 'openai_chat'"),
    (lambda: opened(zone="CET+1"), 'expected one as "Europe/Berlin"'),
    (lambda: Context.open("sqlite:///agent.db", "a", window=8_000), "a SQLite file is opened by its path"),
    (lambda: Context.open("postgress://u:secret@db/a", "a", window=8_000), r"postgresql://user@host/database"),
    (lambda: Context.open(SQLiteStorage, "a", window=8_000), "a path or a Storage, got the class SQLiteStorage"),
    (lambda: Context.open(stored(), "alice", owner="adda"), "belongs to 'ada'"),
    (lambda: Context.view(stored(), "alcie"), "no context 'alcie' .*did you mean 'alice'"),
    (lambda: erase(stored(), owner="adda"), "did you mean 'ada'"),
    (lambda: erase("a.db", owner="ada"), r"store: expected a store, as SQLiteStorage\(path\)"),
    (lambda: erase(stored(), owner=["ada"]), "owner: expected a str"),
    (lambda: finish_erasures(SQLiteStorage), r"store: expected a store, as SQLiteStorage\(path\)"),
    (lambda: list(find_outdated("a.db", "2026-01-01")), "store: expected a store"),
    (lambda: list(copy_contexts(stored(), "b.db")), "target: expected a store"),
    (lambda: backup(stored(), "b.db"), "store: expected a path"),
    (lambda: stored_memory().learn("Ada rows.", context="alice", index="1"), "index: expected an int"),
    (lambda: stored_memory().learn("Ada rows.", context="alice", index=1, at="now"), "at: expected seconds"),
    (lambda: stored_memory().learn("Ada rows.", context=None, index=1), "context: expected a str"),
    (lambda: stored_memory().quarantine("alice", "1"), "index: expected an int"),
    (lambda: stored_memory().search(["row"]), "query: expected a str"),
    (lambda: stored_memory().search("row", k="5"), "k: expected an int"),
    (lambda: stored_memory().search("row", since="May"), "since: expected seconds since 1970"),
    (lambda: stored_memory().forget(["1"]), "id: expected an int"),
    (lambda: stored_memory().search("row", budget=1e3), "budget: expected an int"),
    (lambda: closed().render(), "'alice' is closed: open it again"),
    (lambda: opened().append_turn({"role": "usr", "content": "Hi"}), "role"),
    (lambda: opened().append_turn(USER, {"role": "tool", "tool_call_id": "x", "content": "y"}), "tool"),
    (lambda: opened().append_turn("Hi", {"role": "assistant", "tool_calls": [{**CALL, "id": None}]}), "tool_calls"),
    (lambda: opened().recall_page(3), "no page"),
    (lambda: Context.view(stored(), "alice").recall_page(1, 9), "page #1 has no entry 9"),
    (lambda: agent(client=object()), "expected one of OpenAI, Anthropic or Google"),
    (lambda: agent(client=None, model=None), "expected one of OpenAI, Anthropic or Google"),
    (lambda: Agent(opened(), SimpleNamespace()), r"context: expected a Context.*Agent\(client, context\)"),
    (lambda: agent(tools=["weather"]), "expected functions that have a name"),
    (lambda: adapter(windows=8_000), "Context.open has no such argument: did you mean 'window'"),
    (lambda: adapter(system="S"), "the system prompt is the framework's"),
    (lambda: adapter(window="32k"), "window: .*got '32k'"),
    (lambda: adapter(policy="economy"), r'expected a Policy, as Policy\(preset="economy"\)'),
    (lambda: adapter(window=8_000, owner=7), "owner: expected a str"),
    (lambda: gateway(policy=Policy(preset="cheap")), "preset: .*'balanced', or 'economy'"),
    (lambda: gateway(window=-5), "window: .*got -5"),
    (lambda: gateway(upstream="api.openai.com"), "expected the base URL of a provider"),
    (lambda: opened(system_prompt="S"), "no such argument: it has .*system, model, window"),
    (lambda: opened(on_event=5), "on_event: expected a callable"),
    (lambda: Context.open("", "a", window=8_000), "store: expected a path or a URL, got an empty one"),
    (
        lambda: Context.import_(EphemeralStorage(), "chat.jsonl"),
        r"lines: expected the lines of a file, as open\(path\)",
    ),
    (lambda: opened().append_turn("Hi", usage={}), r"usage: expected the usage of a reply \(reply.usage\)"),
    (lambda: AsyncContext.open("a.db", "a", window=8_000).render, r"not open yet: await AsyncContext.open\(…\)"),
    (lambda: TieredMemory("a.db", owner="ada"), r"storage: expected a store, as SQLiteStorage\(path\)"),
    (
        lambda: opened(owner="bob", memory=TieredMemory(EphemeralStorage(), owner="ada")),
        "of 'ada', the context of 'bob'",
    ),
    (lambda: TieredMemory(EphemeralStorage(), owner="ada", embedder="minilm"), "embedder: expected an Embedder"),
    (lambda: agent(tools=print), "tools: expected a list of functions"),
    (lambda: agent(tools=[of_unknown_type]), "tools: of_unknown_type: name 'Unknown' is not defined"),
    (lambda: agent(tools=[of_no_schema]), "tools: of_no_schema: .*SimpleNamespace"),
    (lambda: agent(stream=True), "stream: the agent sets it in each call"),
    (lambda: agent().run("Hi", output=dict), r"output: expected a pydantic model \(class Trip"),
    (lambda: ask(print, [USER], dict, step="s"), "output: expected a pydantic model"),
    (lambda: Context.open("alice", "agent.db", window=8_000), r"'agent.db' is named like a file.*\(store, id\)"),
    (lambda: opened().append_turn("Hi", {"index": 0, "message": REPLY}), "role: is missing: pass its message"),
    (lambda: opened().append_turn("Hi", [{"type": "text", "text": "Ho"}]), "got list: pass the reply itself"),
    (lambda: opened().answers("I looked it up."), "expected the client's reply or its message, got its text"),
    (lambda: opened(counter=list), r"custom:list returned \['r', .{,60}: an int >= 0, as len\(encode\(text\)\)"),
    (lambda: opened(policy=Policy("econmy")), "preset: .*'balanced', 'economy'"),
    (lambda: Companion("agent.db", print), r"expected a Context, got 'agent.db': Companion\(context, chat\)"),
    (lambda: Companion(opened(), print, functions=[print]), "expected a dict by name, and the schemas"),
    (lambda: Companion(opened(), print, functions={"f": print}), "expected a dict by name, and the schemas"),
    (lambda: Chat("m", base_url="http://127.0.0.1:1")("Hi"), r"expected a list, as \[{'role': 'user'"),
    (lambda: memci.Contxt, "has no attribute 'Contxt': did you mean 'Context'"),
]


@pytest.mark.parametrize(("mistake", "read"), MISTAKES, ids=[read[:40] for _, read in MISTAKES])
def test_a_mistake_is_answered(mistake, read):
    """The text says what is wrong, and what to write; no password of a URL stands in it."""
    with warnings.catch_warnings(), pytest.raises((memci.MemciError, AttributeError), match=read) as caught:
        warnings.simplefilter("ignore")
        mistake()

    assert len(str(caught.value)) < 400
    assert "secret" not in str(caught.value)


def test_calls_that_answer_a_misspelled_keyword_show_their_defaults():
    """Programs look up what can be given to a call."""
    assert {"window", "memory", "owner"} <= Context.open.__kwdefaults__.keys()


def test_a_model_that_is_not_known_warns_of_its_estimate():
    """The warning says what is estimated and which model was meant; a known one says nothing."""
    with pytest.warns(UserWarning, match=r"'claude-sonet-4-5' is not known.*did you mean 'claude-sonnet-4-5'"):
        opened(model="claude-sonet-4-5")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened(model="claude-sonnet-4-5", policy=Policy(pricing=CachePricing()))


def test_the_text_of_an_answer_that_is_stored_as_the_users_is_warned_of():
    """A str is the user's: two in a row are mostly a question and the text of its answer."""
    with pytest.warns(UserWarning, match=r"both stored as the user's\. For an answer pass the reply's message") as seen:
        opened().append_turn("Hi", "Hello!")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened().append_turn("Hi", {"role": "assistant", "content": "Hello!"}, "And?")

    assert seen[0].filename == __file__


def test_a_report_prints_in_six_lines():
    """`print(context.report())` has a line for each fact, and one for all warnings."""
    with opened() as context:
        context.append_turn(USER)

        lines = str(context.report()).splitlines()

    assert 5 <= len(lines) <= 6
    assert lines[1].startswith("request ")
