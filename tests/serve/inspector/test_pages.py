"""The inspector over plain HTTP: what a page says is true, and nothing of a store is ever markup."""

import base64
import cProfile
import pstats
import re
from contextlib import closing
from hashlib import sha256
from html import unescape
from urllib.parse import parse_qsl

import pytest
from starlette.testclient import TestClient

from memci import Context, EphemeralStorage, Policy
from memci.errors import InvalidSetting
from memci.serve.inspector.application import app
from memci.serve.inspector.inspected import InspectedContext
from memci.serve.inspector.page_story import PageStory, receipt
from memci.serve.inspector.past_request import past_request
from memci.serve.inspector.standalone import standalone
from memci.serve.inspector.timeline import window_sizes
from memci.serve.inspector.views import Views
from memci.serve.inspector.visibility import fact_places
from memci.storage.audit import audit
from tests.serve.inspector.prepared import HOSTILE, LONG, NAME, long_store, prepared

PATHS = ("/window", "/request", "/pages", "/page", "/search", "/why", "/costs")


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    with_all = prepared(str(tmp_path_factory.mktemp("inspector") / "desk.db"), turns=60, long=60_000)
    yield with_all
    with_all.close()


@pytest.fixture(scope="module")
def client(storage):
    with TestClient(app(storage), base_url="http://localhost") as opened:
        yield opened


def test_a_window_over_time_is_what_each_view_of_the_past_has(storage):
    """The picture shows the tokens of every turn as a view of that turn counts them."""
    sizes = window_sizes(InspectedContext(storage, "travel-desk"), 0, 59)

    assert [size.turn for size in sizes] == list(range(60))
    for size in sizes[::6]:
        with Context.view(storage, "travel-desk", at=size.turn) as view:
            assert size.total == view.report().total
    with Context.view(storage, "travel-desk", at=59) as view:
        assert sum(size.compactions for size in sizes) == view.report().compactions > 1


@pytest.mark.parametrize("last", [None, 3])
def test_turns_before_a_fork_or_an_erasure_are_left_out(last):
    """Their windows are not known any more: every page opens, and the picture begins where they are."""
    storage = EphemeralStorage()
    with Context.open(storage, "desk", window=2_000) as desk:
        for number in range(20):
            desk.append_turn(f"Question {number}. " + "More words. " * 30, {"role": "assistant", "content": "Yes."})
        with desk.fork("fork") as fork:
            fork.append_turn("Another question?", {"role": "assistant", "content": "No."})
        if not last:
            desk.erase(9)  # in the fork, too
        desk.append_turn("And one?", {"role": "assistant", "content": "No."})

    for name, known in (("desk", range(21) if last else [19, 20]), ("fork", [19, 20] if last else [20])):
        sizes = window_sizes(InspectedContext(storage, name), 0, 20)
        assert [size.turn for size in sizes] == [*known]
        assert (sum(size.compactions for size in sizes) > 0) == (len(known) == 21)
        assert standalone(storage, name).pages == 21
        with TestClient(app(storage), base_url="http://localhost") as opened:
            asked = {"id": name, "turn": 3, "n": 4, "q": "question"} | ({"last": last} if last else {})
            assert [opened.get(path, params=asked).status_code for path in PATHS] == [200] * len(PATHS)


def test_a_request_as_of_a_turn_marks_where_the_cache_breaks(client, storage):
    """The break stands at a turn with a compaction only, and each format has a page."""
    sizes = window_sizes(InspectedContext(storage, "travel-desk"), 0, 59)
    compacted = next(size.turn for size in sizes if size.compactions)

    broken = client.get("/request", params={"id": "travel-desk", "turn": compacted})
    whole = client.get("/request", params={"id": "travel-desk", "turn": compacted - 1, "format": "gemini"})

    assert "the cache breaks here" in broken.text
    assert "the cache breaks here" not in whole.text
    assert "a prompt cache keeps all" in whole.text


def test_sizes_of_requests_are_those_of_the_report_with_the_tools():
    """What was kept and what is new is together what `report` said after each turn, within the budget."""
    storage, said = EphemeralStorage(), {}
    tools = [{"type": "function", "function": {"name": "look", "description": "Look a thing up. " * 20}}]
    with Context.open(storage, "desk", window=3_000, clock=None) as desk:
        for number in range(24):
            desk.append_turn(f"Where is parcel {number}? " * 12)
            desk.render(tools=tools)
            desk.append_turn({"role": "assistant", "content": f"On shelf {number}. " * 12})
            said[number] = desk.report()
    inspected = InspectedContext(storage, "desk")

    assert {each.turn: each.total for each in window_sizes(inspected, 0, 23)} == {n: r.total for n, r in said.items()}
    for turn, report in said.items():
        for form in ("openai_chat", "anthropic"):
            kept, new = past_request(inspected, turn, form).tokens
            assert kept + new == report.total <= report.budget
            assert (kept > 0) == (turn > 0)


def test_sizes_have_the_times_that_a_window_tells_and_the_place_of_a_missing_result():
    """A line with a new day costs tokens, and so does what stands for the result of an interrupted call, afterwards."""
    storage, said = EphemeralStorage(), {}
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    with Context.open(storage, "desk", window=2_500, zone="UTC") as desk:
        for number in range(24):
            day = f"2026-03-{number + 1:02}T09:30:00+00:00"
            desk.append_turn(f"Where is parcel {number}? " * 12, at=day)
            answer = {"content": None, "tool_calls": [call]} if number % 5 == 4 else {"content": "On shelf 7. " * 12}
            desk.append_turn({"role": "assistant", **answer}, at=day)
            shown = "".join(str(each["content"]) for each in desk.render(strict=False))
            said[number] = desk.report()
    assert "Mar" in shown and said[23].compactions > 2

    sizes = window_sizes(InspectedContext(storage, "desk"), 0, 23)
    parts = {n: (r.tokens["active"], r.tokens["open"], r.total) for n, r in said.items()}
    assert {each.turn: (each.active, each.open, each.total) for each in sizes} == parts


def test_a_change_of_settings_is_no_compaction():
    """It is stored with a state of the window, as a compaction is, and is not marked as one."""
    storage = EphemeralStorage()
    for window in (3_000, 4_000):
        with Context.open(storage, "desk", window=window, clock=None) as desk:
            for number in range(3):
                desk.append_turn(f"Where is parcel {number}?", {"role": "assistant", "content": "On shelf 7."})
            counted = desk.report().compactions

    sizes = window_sizes(InspectedContext(storage, "desk"), 0, 5)
    assert len(list(storage.compactions("desk"))) == 1
    assert [size.compactions for size in sizes] == [0] * 6
    assert counted == 0


def test_sizes_are_those_before_a_message_was_clipped():
    """A compaction of `economy` shortens long words of the user; earlier turns have them whole, as they were shown."""
    storage, said = EphemeralStorage(), {}
    with Context.open(storage, "desk", window=2_500, clock=None, policy=Policy(preset="economy")) as desk:
        for number in range(24):
            desk.append_turn(f"Where is parcel {number}? " * (150 if number % 3 == 0 else 9))
            desk.append_turn({"role": "assistant", "content": "On shelf 7. " * 60})
            said[number] = desk.render(), desk.report().total
    whole = [entry.clip for entry in storage.entries("desk", as_appended=True)]
    assert sum(entry.clip and not was for entry, was in zip(storage.entries("desk"), whole, strict=True)) > 2

    sizes = {each.turn: each.total for each in window_sizes(InspectedContext(storage, "desk"), 0, 23)}
    assert sizes == {turn: total for turn, (_, total) in said.items()}
    for turn, (shown, total) in said.items():
        with Context.view(storage, "desk", at=turn) as view:
            assert (view.render(), view.report().total) == (shown, total)


def test_a_compaction_says_what_left_what_is_listed_and_what_is_nowhere(client, storage):
    """Each page that a compaction moved is there, with the place that it has now."""
    inspected = InspectedContext(storage, "allergy")
    moved = {turn: receipt(inspected, turn) for turn in range(inspected.last_turn + 1)}
    moved = {turn: pages for turn, pages in moved.items() if pages}
    left = [index for pages in moved.values() for index, before, _ in pages if before.place == "whole"]
    now = {index: after.place for pages in moved.values() for index, _, after in pages}

    assert len(left) == len(set(left)) > 20  # each leaves once
    places = {"whole": "active", "line": "archived", "folded": "folded", "unlisted": "unloaded"}
    assert {index: places[place] for index, place in now.items()} == {
        page.index: page.where for page in inspected.pages() if page.index in now
    }
    gone = next(turn for turn, pages in moved.items() if any(after.place == "unlisted" for _, _, after in pages))
    assert "nowhere" in client.get("/request", params={"id": "allergy", "turn": gone}).text


def test_a_fact_is_found_by_its_meaning_with_its_date_and_its_source():
    """Words that nobody wrote lead to the message, and what a user quotes is said to be quoted."""
    storage = EphemeralStorage()
    with Context.open(storage, "anna", window=4_000, zone="UTC") as anna:
        anna.append_turn("I moved my flat to Graz last week.", at="2026-03-02T09:30:00+00:00")
        anna.append_turn({"role": "assistant", "content": "Noted."})
        anna.append_turn("Is this phishing?\nYour account is locked. Send the zebra code today.")
        anna.append_turn({"role": "assistant", "content": "Yes."})
        anna.flush()
    with TestClient(app(storage), base_url="http://localhost") as client:
        moved = client.get("/why", params={"id": "anna", "q": "moving flats, Graz"}).text
        quoted = client.get("/why", params={"id": "anna", "q": "zebra code"}).text

    assert "found by its words and meaning" in moved
    assert "2026-03-02 09:30" in moved
    assert "quoted by the user" in quoted


def test_instructions_and_facts_come_with_their_page_and_the_command_that_drops_them():
    """The command can be copied into a shell, whatever the names are."""
    storage = EphemeralStorage()
    with Context.open(storage, "it's", owner="o'neil", window=4_000) as context:
        context.append_turn("Always answer in French.", {"role": "assistant", "content": "D'accord."})
        context.append_turn("I am allergic to cashew nuts.", {"role": "assistant", "content": "Noted."})
        context.flush()
        context.memory.learn("The user reads French.", context=context.id, index=1)
        instruction = context.instructions()[0]
    with TestClient(app(storage), base_url="http://localhost") as client:
        window = unescape(client.get("/window", params={"id": "it's"}).text)
        memory = unescape(client.get("/memory", params={"owner": "o'neil"}).text)

    name = "'it'\"'\"'s'"
    assert f"memci instructions 'a store' --context {name} --drop {instruction.id}" in window
    assert "memci facts 'a store' --owner 'o'\"'\"'neil' --forget " in memory


def test_a_page_says_where_it_is_and_how_it_came_there(storage):
    """The last event of each page agrees with what the store says of it."""
    context = InspectedContext(storage, "travel-desk")
    places = {"open": "whole", "active": "whole", "archived": "line", "folded": "folded", "unloaded": "unlisted"}

    for page in context.pages():
        story = PageStory(context, context.row(page.index))
        now = story.at(context.record.head)
        assert now.place == places[page.where]
        changes = [event.standing for event in story.events() if event.compaction is not None]
        assert now.place == "whole" or changes[-1] == now
        assert now.place == "whole" or "left the window" in [event.what for event in story.events()]


@pytest.mark.parametrize(
    ("name", "fact", "verdict"),
    [
        ("door-code", "lift needs no key", "Page #2 left the window"),
        ("allergy", "cashew nuts", "rule NeverRecalled(10)"),
        ("contract", "ninety days of notice", "shown clipped"),
        ("contract", "399 clauses", "It was visible"),
        ("contract", "no such words", "Never said"),
    ],
)
def test_a_fact_that_was_not_visible_has_a_reason(client, name, fact, verdict):
    """A fact is found letter by letter, with what became of its page."""
    page = client.get("/why", params={"id": name, "q": fact})

    assert page.status_code == 200
    assert verdict in page.text


def test_the_inspector_speaks_the_language_of_the_browser_or_of_the_link(storage):
    """Chinese for a browser that asks for it; the link chooses for good; texts of the store stay as they are."""
    with TestClient(app(storage), base_url="http://localhost") as client:
        chinese = {"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"}
        asked = {"id": "allergy", "q": "cashew nuts"}
        pages = {path: client.get(path, params=asked, headers=chinese).text for path in PATHS}
        english = client.get("/why", params=asked).text
        client.get("/", params={"lang": "zh"})
        kept = client.get("/why", params=asked).text

    assert "为什么没有" in pages["/why"]
    assert "不再列出" in pages["/why"]
    assert re.search("页 #2 在第 \\d+ 轮离开窗口", pages["/why"])
    assert "allergic to" in pages["/why"]
    labels = [label for page in pages.values() for label in re.findall("<d?t[dht]>([^<]*[A-Za-z]{4}[^<]*)</d?t", page)]
    labels += [word for page in pages.values() for word in re.findall('<span class="(?:role|kind)">([a-z]+)<', page)]
    assert labels == []
    assert all('lang="zh"' in page and "Skip to the content" not in page for page in pages.values())
    assert "Not listed any more" in english
    assert "不再列出" in kept


def test_hostile_texts_are_never_markup(client):
    """Names and messages of an attacker are text on every page, and long ones are bounded."""
    pages = [client.get("/"), client.get("/memory", params={"owner": "<b>mallory"}), client.get("/health")]
    pages += [client.get(path, params={"id": NAME, "q": HOSTILE[0]}) for path in PATHS]
    pages += [client.get("/page", params={"id": NAME, "n": n}) for n in range(1, 5)]

    assert {page.status_code for page in pages} == {200}
    for page in pages:
        text = re.sub(r'value="[^"<>]*"', "", page.text)  # a field gives back what was typed
        for hostile in ("<img", "<script>", "<b>mallory", "</script><style>", "\u202e", "\x1b"):
            assert hostile not in text
        assert len(page.text) < 400_000
        assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "U+202E" in pages[0].text


def test_the_door_asks_beyond_this_machine(storage):
    """A name of another machine is refused; a token is asked for once, and then known."""
    with TestClient(app(storage, token="secret"), base_url="http://localhost") as client:
        assert client.get("/", headers={"host": "evil.example"}).status_code == 403
        assert client.get("/window", params={"id": "allergy"}).status_code == 401
        assert "allergy" not in client.get("/").text
        assert client.post("/enter", data={"token": "other"}).status_code == 401
        assert "allergy" in client.post("/enter", data={"token": "secret"}).text
        assert client.post("/").status_code == 405


def test_reading_writes_nothing_and_counts_no_use(client, storage):
    """All pages together leave every revision as it was."""
    before = {record.id: record.revision for record in storage.contexts()}
    rows = list(storage.pages("travel-desk"))

    for path in PATHS:
        client.get(path, params={"id": "travel-desk", "q": "flight", "turn": 30})

    assert {record.id: record.revision for record in storage.contexts()} == before
    assert list(storage.pages("travel-desk")) == rows


def test_conversations_are_found_by_their_beginning_and_owner(client):
    """A list holds what begins with the text, of the owner; what is not there says so."""
    assert "travel-desk-2" in client.get("/", params={"q": "travel"}).text
    assert "allergy" not in client.get("/", params={"q": "travel"}).text
    assert "No conversation is like this" in client.get("/", params={"owner": "nobody"}).text
    assert client.get("/window", params={"id": "nobody"}).status_code == 404


def test_a_store_with_one_message_is_shown_without_what_it_lacks():
    """One of a thing is not many, a log is a table of times, and figures that would all be 0 are left out."""
    storage = EphemeralStorage()
    Context.open(storage, "new", window=4_000).append_turn("Hello.")
    audit(storage, "export", context="new")

    with TestClient(app(storage), base_url="http://localhost") as opened:
        shown = {path: opened.get(path, params={"id": "new", "owner": "new"}).text for path in ("/", *PATHS, "/memory")}
        health = opened.get("/health").text

    assert "1 message · 1 page ·" in shown["/window"]
    assert "No call was reported" in shown["/costs"]
    assert "This memory knows no page yet" in shown["/memory"]
    assert 'class="figures"' not in shown["/costs"] + shown["/memory"]
    assert "fork of" not in shown["/"]
    assert re.search(r">\d{4}-\d\d-\d\d \d\d:\d\d</td><th[^>]*>export</th>", health)


def test_a_file_stands_alone(storage):
    """Every link leads to a place in the file, every place has one name, nothing is loaded, and one script runs."""
    made = standalone(storage, "door-code", memory=True)
    text = made.html.decode()
    ids = re.findall(r' id="([^"]*)"', text)
    head, script = re.fullmatch("(.*)<script>(.*)</script>.*", text, re.DOTALL).groups()
    style = re.search("<style>(.*)</style>", head, re.DOTALL)[1]
    digests = [base64.b64encode(sha256(each.encode()).digest()).decode() for each in (script, style)]

    assert (made.pages, made.left_out) == (16, 0)
    assert len(ids) == len(set(ids))
    assert {f"#{each}" for each in ids} >= set(re.findall(r' href="([^"]*)"', text))
    assert "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'".format(*digests) in text
    assert not re.search(r"<(script|form|img|link|iframe|object)|\b(src|style|action)=|@import|url\(", head)
    assert not re.search(r"fetch|import|http|innerHTML|eval", script)


def test_a_file_has_the_request_and_every_message(storage):
    """The request as of a turn is whole, and so is each message of each page."""
    text = unescape(standalone(storage, "door-code", turns=[12]).html.decode())

    with Context.view(storage, "door-code", at=12) as view:
        assert all(each["content"] in text for each in view.render(strict=False) if each["content"])
    with Context.view(storage, "door-code") as view:
        assert all(each["content"] in text for each in view.messages() if each["content"])
    assert "those of the 15 other turns are not" in text
    assert 'id="memory"' not in text


def test_a_file_has_the_requests_of_several_turns(storage):
    """Each turn that is asked for has its request, links lead to them, and no place has two names."""
    text = standalone(storage, "door-code", turns=[12, 3, 12]).html.decode()
    ids = re.findall(r' id="([^"]*)"', text)

    assert [each for each in ids if each.startswith("request")] == ["request-3", "request-12"]
    assert len(ids) == len(set(ids))
    assert 'href="#request-3"' in text.partition("request-12")[2]
    assert "those of the 14 other turns are not" in text


def test_a_file_says_what_it_leaves_out(storage, monkeypatch):
    """A text beyond the limit says how much more there is, and older pages for which there is no room are counted."""
    monkeypatch.setattr("memci.serve.inspector.standalone.LETTERS", 1_000)
    monkeypatch.setattr("memci.serve.inspector.standalone.ROOM", 60_300)

    made = standalone(storage, NAME)

    assert (made.pages, made.left_out) == (2, 3)
    assert "… and 59,000 more characters" in made.html.decode()
    assert "the newest 2 are here, the 3 before them are not" in made.html.decode()


def test_a_file_of_hostile_texts_is_inert(storage):
    """Names and messages of an attacker are text in a file, too."""
    text = standalone(storage, NAME, memory=True).html.decode().rpartition("<script>")[0]

    assert "x" * 60_000 in text
    for hostile in ("<img", "<script>", "<b>mallory", "</script><style>", "\u202e", "\x1b", "\x00"):
        assert hostile not in text
    assert text.count("</style>") == 1
    assert "U+202E" in text


def test_a_file_of_an_empty_conversation():
    """A conversation without a message has a file as well."""
    storage = EphemeralStorage()
    Context.open(storage, "new", window=4_000).close()

    made = standalone(storage, "new")
    with pytest.raises(InvalidSetting, match="turn"):
        standalone(storage, "new", turns=[1])

    assert (made.pages, made.left_out) == (0, 0)
    assert b"No page was opened yet." in made.html


def test_what_a_page_costs_follows_what_it_shows(tmp_path):
    """The first page of each tab calls as many functions after 20,000 pages as after 5,000."""
    short, long = (calls_of_tabs(str(tmp_path / f"{count}.db"), count) for count in (5_000, 20_000))

    assert {tab: (calls, short[tab]) for tab, calls in long.items() if calls > 1.2 * short[tab]} == {}


def calls_of_tabs(path, count):
    """Return how many functions the first page of each tab calls, for a conversation of *count* pages."""
    found = {}
    with closing(long_store(path, count)) as storage:
        views = Views(storage)
        for tab in LONG:
            name, _, query = tab[1:].partition("?")
            page, values = getattr(views, name or "conversations"), dict(parse_qsl(query))
            page(values)  # what a process does once
            with cProfile.Profile() as profile:
                page(values)
            found[tab] = pstats.Stats(profile).total_calls
    return found


def test_a_fact_that_a_digest_lacks_has_a_reason():
    """The page says that the result is shown as a digest, and which call reads it."""
    storage = EphemeralStorage()
    listing = "".join(f"src/part_{at}.py: def read_part_{at}(path)\n" for at in range(400))
    call = {"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{}"}}
    with Context.open(storage, "gated", window=32_000, policy=Policy(preset="economy")) as context:
        context.append_turn("Look.", {"role": "assistant", "content": None, "tool_calls": [call]})
        context.append_turn({"role": "tool", "tool_call_id": "a", "content": listing})
        context.append_turn("Thanks.")
    [found] = fact_places(InspectedContext(storage, "gated"), "def read_part_200(path)", 1)

    assert found.verdict == "digest" and "recall_page(1, entry=3)" in found.sentence
