"""The tools of a store: exact pages in parts, scopes, appends that are stored once, stores that are opened again."""

from contextlib import closing

import pytest

from memci import Context, PageNotFound, SQLiteStorage
from memci.errors import CommitUnknown, Erased, HandlePoisoned, InvalidSetting, OpConflict, StorageReadOnly
from memci.serve.store_tools import StoreTools, page_uri

AT = "2026-03-02T10:00:00Z"


@pytest.fixture
def path(tmp_path):
    """A store with contexts of two owners; most pages of alice have left her window."""
    with closing(SQLiteStorage(tmp_path / "agent.db")) as storage:
        with Context.open(storage, "alice", owner="ada", window=2_000) as context:
            for number in range(30):
                answer = {"role": "assistant", "content": f"Take IC {number}. " * 8}
                context.append_turn(f"Which train goes to stop {number}?", answer, at=AT)
        with Context.open(storage, "bob", owner="bea", window=2_000) as context:
            context.append_turn("My bicycle is green.", {"role": "assistant", "content": "Noted."}, at=AT)
    return tmp_path / "agent.db"


@pytest.fixture
def tools_of(path):
    """Makes the tools of the store, with a scope."""
    made = []

    def tools(**scope):
        made.append(StoreTools(lambda: SQLiteStorage(path, read_only=scope.get("read_only", False)), **scope))
        return made[-1]

    yield tools
    for each in made:
        each.close()


@pytest.mark.parametrize("characters", [1, 7, 40, 100_000])
def test_a_page_comes_back_exactly_whatever_its_parts(tools_of, characters):
    """Following `next` to the end gives each message byte for byte, and no part is longer than was asked for."""
    tools = tools_of()
    texts, call = {}, {"entry": None, "offset": 0}
    while call is not None:
        part = tools.recall_page(5, "alice", characters=characters, **call)
        assert 0 < sum(len(each.text) for each in part.messages) <= characters
        for each in part.messages:
            texts[each.entry] = texts.get(each.entry, "") + each.text
        call = part.next and {"entry": part.next.entry, "offset": part.next.offset}

    assert texts == {1: "Which train goes to stop 4?", 2: "Take IC 4. " * 8}


def test_reading_disturbs_no_program_that_has_the_context_open(path, tools_of):
    """Recalls, searches and contents leave the revision as it is: a handle that is open goes on writing."""
    tools = tools_of()
    with Context.open(path, "alice") as live:
        tools.recall_page(2, "alice")
        tools.search_memory("train to stop 3", "alice")
        tools.contents("alice")

        live.append_turn("And back?")


def test_a_search_leaves_the_window_out_only_if_it_is_shown(tools_of):
    """A caller without memci's window finds its newest pages; one that sees it is not given them again."""
    tools = tools_of()

    def found(**shown):
        return {each.page for each in tools.search_memory("Which train goes to stop 28?", "alice", **shown).messages}

    assert 29 in found()
    assert 29 not in found(window_is_shown=True)


def test_contents_lists_the_newest_pages_and_leads_to_all(tools_of):
    """The newest come first; `earlier` and `later` lead through all of them, each with its date and title."""
    tools = tools_of()

    newest = tools.contents("alice", limit=7)
    pages, first = [each.page for each in newest.pages], newest.earlier
    while first is not None:
        before = tools.contents("alice", first=first, limit=7)
        pages = [each.page for each in before.pages if each.page < pages[0]] + pages
        first = before.earlier

    assert pages == list(range(1, 31))
    assert (newest.total, newest.later, tools.contents("alice", first=1, limit=7).later) == (30, None, 8)
    assert (newest.pages[-1].title, newest.pages[-1].date) == ("Which train goes to stop 29?", "2026-03-02")


@pytest.mark.parametrize("scope", [{"owner": "ada"}, {"context": "alice"}, {"owner": "ada", "context": "alice"}])
def test_what_is_out_of_scope_is_as_if_it_were_not_there(tools_of, scope):
    """Another owner's context is not listed, read, found or appended to, and the error is that of a missing one.

    An append makes a missing one, unless only one context is in scope: so it does here, beside the other owner's.
    """
    tools = tools_of(window=2_000, **scope)

    assert [each.context for each in tools.list_contexts().contexts] == ["alice"]
    assert tools.recall_page(1).context == "alice"  # the only one: it need not be named
    assert {each.context for each in tools.search_memory("My bicycle is green").messages} <= {"alice"}
    for call in (
        lambda: tools.recall_page(1, "bob"),
        lambda: tools.contents("bob"),
        lambda: tools.search_memory("green", "bob"),
        lambda: tools.page_text("bob", 1),
    ):
        with pytest.raises(InvalidSetting, match=r"no context 'bob' here"):
            call()
    with pytest.raises(InvalidSetting, match="several"):
        tools_of().recall_page(1)
    if "context" in scope:
        with pytest.raises(InvalidSetting, match=r"no context 'bob' here"):
            tools.append_turn(["Hi."], "1", "bob")
    else:
        assert tools.append_turn(["Hi."], "1", "bob").context == "bob∷ada"
        assert tools.recall_page(1, "bob").context == "bob∷ada"
        assert [each.context for each in tools_of().list_contexts().contexts] == ["alice", "bob", "bob∷ada"]


def test_contexts_are_listed_by_pages(tools_of):
    """`next` leads to the rest of them."""
    tools = tools_of()

    first = tools.list_contexts(limit=1)

    assert ([each.context for each in first.contexts], first.next) == (["alice"], "alice")
    assert [each.context for each in tools.list_contexts(first.next, 1).contexts] == ["bob"]


def test_an_append_is_stored_once(tools_of):
    """An op_id that is known stores nothing; other messages under it are refused."""
    tools = tools_of()
    message = {"role": "user", "content": "And back?"}

    first, again = tools.append_turn([message], "1", "alice"), tools.append_turn([message], "1", "alice")

    assert (first.page, first.first_entry, first.duplicate, again.duplicate) == (31, 1, False, True)
    with pytest.raises(OpConflict):
        tools.append_turn(["Another."], "1", "alice")
    assert tools.recall_page(31, "alice").messages[0].text == "And back?"


def test_an_append_waits_for_a_writer_that_was_first(path):
    """A write of another handle between opening and storing does no harm: both are stored, in order."""

    class Contended(SQLiteStorage):
        """A store in which another writer is always first, once."""

        waits = True

        def commit(self, transition):
            if self.waits:
                self.waits = False
                with Context.open(path, "alice") as other:
                    other.append_turn("First.")
            return super().commit(transition)

    with closing(StoreTools(lambda: Contended(path))) as tools:
        assert tools.append_turn(["Second."], "1", "alice").page == 32
        assert [tools.recall_page(page, "alice").messages[0].text for page in (31, 32)] == ["First.", "Second."]


def test_a_context_is_made_only_with_a_window(path, tools_of):
    """A new name makes a context of the scope's owner, if the server may make any."""
    made = tools_of(owner="ada", window=3_000)

    assert made.append_turn(["Hello."], "1", "notes").page == 1
    with Context.view(path, "notes") as context:
        assert (context.owner, context.window) == ("ada", 3_000)
    with pytest.raises(InvalidSetting, match="no context 'other'"):
        tools_of().append_turn(["Hello."], "1", "other")
    with pytest.raises(InvalidSetting, match="no context 'other'"):
        tools_of(context="alice", window=3_000).append_turn(["Hello."], "1", "other")


def test_what_is_not_there_is_named(path, tools_of):
    """A wrong page, entry or character says what there is; an erased page says that."""
    tools = tools_of()
    with Context.open(path, "alice") as context:
        context.erase(3)

    with pytest.raises(PageNotFound, match="#1 to #30"):
        tools.recall_page(99, "alice")
    with pytest.raises(Erased):
        tools.recall_page(3, "alice")
    with pytest.raises(Erased):
        tools.page_text("alice", 3)
    with pytest.raises(InvalidSetting, match="the entries 1 to 2, not 9"):
        tools.recall_page(2, "alice", entry=9)
    with pytest.raises(InvalidSetting, match="has 27 characters, not 28"):
        tools.recall_page(2, "alice", entry=1, offset=28)


def test_a_store_that_is_only_read_stays_as_it_is(path, tools_of):
    """Everything but an append works on a store that was opened for reading."""
    tools = tools_of(read_only=True)
    before = path.read_bytes()

    assert tools.recall_page(1, "bob").messages[0].text == "My bicycle is green."
    assert "My bicycle is green." in tools.page_text("bob", 1)
    tools.search_memory("bicycle", "bob")
    tools.contents("bob")
    with pytest.raises(StorageReadOnly):
        tools.append_turn(["Hi."], "1", "bob")

    assert path.read_bytes() == before


@pytest.mark.parametrize("error", [HandlePoisoned("open it again"), CommitUnknown("1", "the disk failed")])
def test_a_store_that_failed_is_opened_again(path, error):
    """After an error that asks for it the next call has a new store, and the old one is closed."""
    opened = []

    class Failing:
        """A store whose records can't be read."""

        def load(self, context):
            raise error

        def close(self):
            opened.append("closed")

    def store():
        opened.append("opened")
        return Failing() if len(opened) == 1 else SQLiteStorage(path)

    with closing(StoreTools(store)) as tools:
        with pytest.raises(type(error)):
            tools.recall_page(1, "alice")
        assert tools.recall_page(1, "alice").page == 1

    assert opened == ["opened", "closed", "opened"]


def test_a_page_has_an_address_whatever_its_context_is_called():
    """Names with slashes, blanks and other signs are quoted."""
    assert page_uri("a/b c?#é", 3) == "memci://a%2Fb%20c%3F%23%C3%A9/pages/3"
