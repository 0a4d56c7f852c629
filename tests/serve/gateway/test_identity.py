"""Whose words a search of the model finds: by declared identity, credentials and the client's list."""

import http.client
import json
from contextlib import closing

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from memci import Context
from memci.errors import InvalidSetting
from memci.serve.door import Door, Identity
from memci.serve.gateway import app

from .kit import LONG
from .upstream import Said, Served

PIN = "My bank PIN is 4711-ALICE."
FIRST = "Hello, I need help."


class Chat:
    """A client that writes its requests itself, so that every header, query and field is its own."""

    def __init__(self, url, headers=(), query="", **fields):
        self.address = url.removeprefix("http://")
        self.headers, self.query, self.fields = [*headers], query, fields
        self.items = []

    def ask(self):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.putrequest("POST", "/v1/chat/completions" + self.query)
        body = json.dumps({"model": "gpt-4o", "messages": self.items, **self.fields}).encode()
        for name, value in [*self.headers, ("content-type", "application/json"), ("content-length", str(len(body)))]:
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        self.items.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
        return self.items[-1]["content"]

    def say(self, text):
        self.items.append({"role": "user", "content": text})
        return self.ask()

    def fill(self, *first, turns=6):
        """Say the texts *first*, and so much behind them that they are archived."""
        for text in first:
            self.say(text)
        for number in range(turns):
            self.say(f"Question {number}. " + 4 * LONG.format(number))
        return self

    def finds(self, pin="4711-ALICE"):
        """Whether a search of the model finds the PIN."""
        before = [*self.items]
        found = pin in self.say("Search!")
        self.items = before
        return found


def key(value):
    return [("authorization", f"Bearer {value}")]


@pytest.fixture
def serve(provider, store):
    """Start a gateway with settings, whose provider searches for the PIN if it is told to."""
    started = []

    def script(seen):
        if seen.results:
            return Said("The tool said: " + seen.results[-1])
        if seen.text == "Search!":
            return Said("", (("m1", "search_memory", {"query": "bank PIN"}),))
        return Said(f"Answer {len(provider.seen)}.")

    def start(**settings):
        provider.script = script
        started.append(Served(app(store, upstream=provider.url, window=4_000, **settings)))
        return started[-1].__enter__()

    yield start
    for each in started:
        each.__exit__(None, None, None)


@pytest.mark.parametrize("identity", [None, "header:x-user-id", "field:user"])
@pytest.mark.parametrize("first", [FIRST, "Hi, I am Bob."])
def test_without_a_declared_value_each_conversation_has_its_own_memory(serve, identity, first):
    """Two users of one key, or of none, find nothing of each other; also if they begin with the same words."""
    url = serve(identity=identity)
    for headers in (key("sk-app"), []):
        alice, bob = Chat(url, headers).fill(FIRST, PIN), Chat(url, headers).fill(first, "Nothing.")
        assert (alice.finds(), bob.finds()) == (True, False)
    assert not Chat(url, [*key("sk-app"), ("x-memci-conversation", "bobs")]).fill(FIRST, "Nothing.").finds()


def test_a_name_that_looks_like_another_conversation_reaches_nothing(serve, store):
    """Ids of conversations without a name follow from their first message: who computes one names nothing by it."""
    url = serve()
    Chat(url, key("sk-app")).fill(FIRST, PIN)
    names = [info.id.rpartition(":")[2] for info in Context.list(store)]
    assert [Chat(url, [*key("sk-app"), ("x-memci-conversation", n)]).fill("x").finds() for n in names] == [False]


@pytest.mark.parametrize(
    ("identity", "named"),
    [
        ("header:X-User-Id", lambda user: {"headers": [*key("sk-app"), ("x-user-id", user)]}),
        ("field:user", lambda user: {"headers": key("sk-app"), "user": user}),
        ("field:metadata.user_id", lambda user: {"headers": key("sk-app"), "metadata": {"user_id": user}}),
        ("credential", lambda user: {"headers": key(user)}),
    ],
)
def test_conversations_of_one_identity_share_a_memory(serve, identity, named):
    """Another conversation of the user finds what was said, though it begins alike; another user's does not."""
    url = serve(identity=identity)
    Chat(url, **named("alice")).fill(FIRST, PIN)
    again, bob = Chat(url, **named("alice")).fill(FIRST, "Nothing."), Chat(url, **named("bob")).fill(FIRST, "Nothing.")
    assert (again.finds(), bob.finds()) == (True, False)


@pytest.mark.parametrize("token", [None, "secret"])
def test_a_declared_value_counts_alone_only_behind_the_token(serve, token):
    """Without the token, a client with another credential, or with none, reaches nothing by naming a user."""
    url = serve(identity="header:x-user-id", token=token)
    user = [("x-user-id", "alice"), *([("x-memci-token", token)] if token else [])]
    Chat(url, [*key("sk-corp"), *user]).fill(FIRST, PIN)
    others = [Chat(url, [*credential, *user]).fill("Hi.", "Nothing.") for credential in (key("sk-eve"), [])]
    assert [other.finds() for other in others] == [token is not None] * 2
    if token is None:  # nor does one without a credential reach another one without
        Chat(url, user).fill("Hello.", PIN)
        assert not Chat(url, user).fill("Hey.", "Nothing.").finds()


@pytest.mark.parametrize("identity", [None, "credential"])
@pytest.mark.parametrize(
    "name", ["ocp-apim-subscription-key", "helicone-auth", "X-Session-Token", "cookie", "api-key", "x-tenant"]
)
def test_two_credentials_of_any_name_are_two_users(serve, identity, name):
    """Headers by their names, and one that the operator names; equal first messages change nothing."""
    url = serve(identity=identity, credentials=["X-Tenant"])
    Chat(url, [(name, "ALICE")]).fill(FIRST, PIN)
    assert not Chat(url, [(name, "BOB")]).fill(FIRST, "Nothing.").finds()
    assert Chat(url, [(name, "ALICE")]).fill("Hi.", "Nothing.").finds() == (identity is not None)


def test_a_key_in_the_query_is_a_credential(serve):
    """So are two of one name: the second one is not passed over."""
    url = serve(identity="credential")
    Chat(url, query="?api_key=ALICE").fill(FIRST, PIN)
    Chat(url, [("api-key", "shared"), ("api-key", "ALICE")]).fill(FIRST, PIN)
    others = {"query": "?api_key=BOB"}, {"headers": [("api-key", "shared"), ("api-key", "BOB")]}
    assert [Chat(url, **other).fill("Hi.", "Nothing.").finds() for other in others] == [False, False]
    assert Chat(url, query="?api_key=ALICE").fill("Hi.", "Nothing.").finds()


@pytest.mark.parametrize("identity", [None, "field:user"])
@pytest.mark.parametrize("gone", [1, 5])
def test_what_a_client_deletes_is_not_found_any_more(serve, identity, gone):
    """Earlier messages stay, a message and its answer are deleted: neither this nor another conversation finds it."""
    url = serve(identity=identity)
    chat = Chat(url, key("sk-app"), user="alice")
    chat.fill(*[FIRST, "Second.", "Third.", "Fourth.", "Fifth."][:gone], PIN)
    assert chat.finds()
    before = [*chat.items]
    chat.items = [item for at, item in enumerate(chat.items) if at not in {2 * gone, 2 * gone + 1}]
    assert gone > 1 or not chat.finds()
    chat.say("Go on.")
    assert not Chat(url, key("sk-app"), user="alice").fill("Hi.", "Nothing.").finds()
    assert not chat.finds()
    chat.items = before
    chat.say("Go on as it was.")
    assert chat.finds()


def test_what_a_client_says_in_a_branch_that_it_leaves_is_not_found_any_more(serve):
    """It goes back to the list as it was before the edit, without a fork that would be new."""
    chat = Chat(serve(identity="field:user"), key("sk-app"), user="alice").fill(FIRST, PIN)
    before = [*chat.items]
    chat.items = chat.items[:2]
    chat.fill("My bank PIN is 5522-EVE.")
    assert (chat.finds(), chat.finds("5522-EVE")) == (False, True)
    chat.items = before
    assert (chat.finds(), chat.finds("5522-EVE")) == (True, False)


@pytest.mark.parametrize("identity", ["field:user", None])
def test_an_edit_of_the_first_answers_is_seen_by_what_stays(serve, identity):
    """No whole turn is shared: a later answer tells that it is no new conversation with the same greeting.

    Without an identity it may be one of another user, and the old list loses nothing.
    """
    chat = Chat(serve(identity=identity), key("sk-app"), user="alice").fill(FIRST, PIN)
    before = [*chat.items]
    chat.items[1:4] = [{"role": "assistant", "content": "Answer."}]
    assert not chat.finds()
    chat.items = before
    assert identity or chat.finds()


@pytest.mark.parametrize(
    ("identity", "more"), [("field:user", []), (None, [("x-memci-conversation", "trip")])], ids=["identity", "name"]
)
@pytest.mark.parametrize("front", [[], [{"role": "user", "content": "Summary: we talked."}]], ids=["trim", "compact"])
def test_a_list_that_is_trimmed_or_compacted_keeps_its_memory(serve, identity, more, front):
    """The client drops the front of its list, more with each request, and goes on: what was said is found."""
    chat = Chat(serve(identity=identity), [*key("sk-app"), *more], user="alice").fill(FIRST, PIN)
    for _ in range(3):
        chat.items = front + chat.items[len(front) + 4 :]
        chat.fill(turns=3)
        assert chat.finds()


@pytest.mark.parametrize("front", [[], [{"role": "user", "content": "Summary: we talked."}]], ids=["trim", "compact"])
@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize(
    ("identity", "named"), [("field:user", []), (None, [("x-memci-conversation", "trip")])], ids=["identity", "name"]
)
def test_what_is_deleted_from_a_list_that_was_trimmed_is_not_found_any_more(
    serve, provider, identity, named, more, front
):
    """The contexts of the longer lists have it, too. It may be deleted at once, as more is trimmed, or later."""
    url = serve(identity=identity)
    chat = Chat(url, [*key("sk-app"), *named], user="alice")
    chat.fill("My bank is the Oslo one.", "Second.", "Third.", PIN, "Fifth.")
    chat.items = front + chat.items[2:]
    if not more:
        chat.say("Go on.")
        assert chat.finds()
    at = next(at for at, item in enumerate(chat.items) if item["content"] == PIN)
    chat.items[at : at + 2] = []
    chat.fill(turns=1)
    assert not chat.finds() and "Oslo" in json.dumps(provider.seen[-1].items)
    other = Chat(url, key("sk-app"), user="alice").fill("Hi.", "Nothing.")
    assert (other.finds(), other.finds("Oslo")) == (False, bool(identity))


def test_a_trimmed_list_that_begins_with_the_same_words_is_no_edit(serve):
    """People say some words again and again; what was trimmed is found."""
    chat = Chat(serve(identity="field:user"), key("sk-app"), user="alice")
    chat.fill("Go on.", PIN, "Third.", "Go on.", turns=6)
    chat.items = chat.items[6:]
    chat.fill(turns=1)
    assert chat.finds()


def test_a_damaged_conversation_stops_no_trimmed_one(serve, store):
    """It is read to see whether the list goes on there."""
    chat = Chat(serve(identity="field:user"), key("sk-app"), user="alice").fill(FIRST, "Second.", turns=2)
    with closing(apsw.Connection(str(store))) as damaging:
        damaging.set_busy_timeout(10_000)
        damaging.execute("UPDATE entry SET body = CAST('x' || substr(body, 2) AS BLOB)")
    chat.items = chat.items[2:]
    assert chat.say("Go on.").startswith("Answer")


def test_another_answer_in_a_conversation_with_a_name_is_an_edit(serve):
    """Its name says that it is no new conversation with the same greeting, though no answer is the same."""
    named = [("x-memci-conversation", "trip")]
    chat = Chat(serve(), key("sk-app") + named).fill(FIRST, PIN)
    assert chat.finds()
    chat.items = chat.items[:1]
    chat.ask()
    chat.fill()
    assert not chat.finds()


TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=6)
PAIRS = st.lists(st.tuples(st.sampled_from(["api-key", "x-api-key", "authorization", "x-auth"]), TEXT), max_size=4)


def caller(pairs):
    raw = [(name.encode(), value.encode()) for name, value in pairs]
    return Door(b"k" * 32, None, (), Identity.parse("credential")).caller(Headers(raw=raw), "", {})


@given(PAIRS, PAIRS)
@example([("api-key", "a"), ("api-key", "b")], [("api-key", "a")])
@example([("api-key", "a"), ("api-key", "b")], [("api-key", "b")])
@example([("api-key", "a")], [("x-api-key", "a")])
def test_credentials_are_equal_if_and_only_if_their_values_are(one, other):
    """With their names, in any order, however often each is sent."""
    assert (caller(one).key == caller(other).key) == ({*one} == {*other})
    assert caller(one) == caller([*one[::-1], *one])


def test_a_credential_in_the_query_counts_byte_by_byte():
    """Its name in any case, its value as it is; the digest needs the key of the store."""
    door = Door(b"k" * 32, None, (), Identity.parse("credential"), {"x-tenant"})
    queries = ["key=%ff", "key=%fe", "KEY=%FE%FE", "X-Tenant=a", "x-tenant=b"]
    found = [door.caller(Headers(raw=[]), query, {}).owner for query in queries]
    found.append(Door(b"x" * 32, None, (), door.identity).caller(Headers(raw=[]), queries[0], {}).owner)
    assert None not in found and len({*found}) == len(found)


def test_two_credentials_that_end_in_white_space_are_two():
    """Bytes of letters look like blanks: a letter of UTF-8 may end in one of Latin-1."""
    named = [caller([("api-key", key)]).key for key in ("Р", "Ѕ", "Р ")]
    door = Door(b"k" * 32, None, (), Identity.parse("credential"))
    named += [door.caller(Headers(raw=[]), query, {}).key for query in ("key=a", "key=a%20", "key=%20a")]
    assert len({*named}) == len(named)


@pytest.mark.parametrize("wrong", [["x-a,x-b"], ["x-a: 1"], [" x-a"], [""], ["x-memci-token"], "x-a", [1]])
def test_a_name_of_a_credential_that_no_request_has_is_refused(store, wrong):
    """Else two users would be one, and nobody would see why."""
    with pytest.raises(InvalidSetting, match="credentials"):
        app(store, upstream="http://localhost", credentials=wrong)


def test_no_credential_is_no_identity():
    """A scheme without a secret, the token of the gateway and the key of a retry are none."""
    for name, value in (
        ("authorization", "Bearer "),
        ("x-memci-token", "t"),
        ("idempotency-key", "1"),
        ("cookie", ";"),
    ):
        assert caller([(name, value)]) == caller([]) and caller([]).owner is None
    assert caller([("x-memci-conversation", "trip")]).owner is None


@pytest.mark.parametrize("token", [None, "secret"])
@given(one=st.text(max_size=4), other=st.text(max_size=4))
@example(one="a", other="a:key-1")
@example(one="a", other="a ")
@example(one="\ud800", other="\ud801")
def test_two_users_are_two_owners(token, one, other):
    """Whatever their names are, white space included; an owner's name can be stored."""
    door = Door(b"k" * 32, token, (), Identity.parse("field:user"))
    headers = Headers(raw=[(b"authorization", b"Bearer k")])
    found = [door.caller(headers, "", {"user": user}) for user in (one, other)]
    same = one == other or not (one.strip() or other.strip())
    assert (found[0].owner == found[1].owner) == (found[0].key == found[1].key) == same
    assert all(each.owner is None or each.owner.isprintable() for each in found)
    assert door.caller(headers, "", {"user": True}).owner is None


def test_two_values_of_the_header_are_none():
    """A client can't put a name of its own beside that of the server in front."""
    door = Door(b"k" * 32, "secret", (), Identity.parse("header:x-user-id"))
    raw = [(b"x-user-id", b"alice"), (b"x-user-id", b"bob")]
    assert door.caller(Headers(raw=raw), "", {}).owner is None
    assert door.caller(Headers(raw=raw[:1]), "", {}).owner == "user:alice"


def test_a_secret_that_is_the_identity_is_not_stored():
    """A value of a header that is named like a credential names its owner by a digest."""
    door = Door(b"k" * 32, "secret", (), Identity.parse("header:x-auth-user"))
    owner = door.caller(Headers(raw=[(b"x-auth-user", b"tim")]), "", {}).owner
    assert owner is not None and "tim" not in owner


@pytest.mark.parametrize("name", [None, "trip"])
def test_no_conversation_gets_another_owner_when_another_identity_is_declared(name):
    """A context belongs to one owner: under another identity the same request finds another one."""
    raw = [(b"authorization", b"Bearer k"), (b"x-user-id", b"tim"), (b"x-auth-user", b"tim")]
    headers = Headers(raw=[*raw, *([(b"x-memci-conversation", name.encode())] if name else [])])
    owners = {}
    for declared in (None, "credential", "header:x-user-id", "header:x-auth-user", "field:user", "header:x-none"):
        for token in (None, "secret"):
            identity = Identity.parse(declared) if declared else None
            found = Door(b"k" * 32, token, (), identity).caller(headers, "", {"user": "tim"})
            assert owners.setdefault(found.key, found.owner) == found.owner


@pytest.mark.parametrize("wrong", ["", "user", "header:", "header:a b", "field:", "field:a..b", "header:X-Memci-Token"])
def test_an_identity_that_is_none_is_refused(store, wrong):
    """Before anything is served."""
    with pytest.raises(InvalidSetting, match="identity"):
        app(store, upstream="http://localhost", identity=wrong)


@pytest.mark.parametrize(
    ("identity", "token", "told"),
    [
        (None, None, "none is declared"),
        ("header:X-User-Id", None, "header x-user-id, together with the credential"),
        ("field:user", "secret", "field user, alone, behind the token"),
    ],
)
def test_the_identity_that_is_in_force_is_said(store, identity, token, told):
    made = app(store, upstream="http://localhost", identity=identity, token=token)
    assert told in made.state.identity
