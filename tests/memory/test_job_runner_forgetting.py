"""What a model made of a page goes with the page, or before it: erased, replaced, or not to be trusted."""

import contextlib

import pytest
from machine_kit import check, items, keeping
from model_kit import DAY, NOON, SMALL, Clock, drained, modelled, obliging, page, shown, steps, tell
from secret_kit import SECRET, WIDE, derived, lived, mixing

from memci import SQLiteStorage
from memci.errors import InvalidSetting, LimitExceeded
from memci.history.erase import erase
from memci.memory import TieredMemory
from memci.memory.backend import Scope
from memci.memory.tiers.facts import sources, vocabulary
from memci.memory.tiers.rules import Rules
from memci.storage import FilesystemStorage
from memci.testing.memory.pages import told


@pytest.fixture(params=["sqlite"])
def storage(request, tmp_path):
    make = SQLiteStorage if request.param == "sqlite" else FilesystemStorage
    with contextlib.closing(make(tmp_path / "agent", durability="fast")) as made:
        yield made


both = pytest.mark.parametrize("storage", ["sqlite", "files"], indirect=True)


@pytest.fixture
def tells(tmp_path):
    """Give what lists the files of the memory that hold a text, in any letters."""

    def held(text, skip=()):
        needles = {text.encode(), text.casefold().encode(), text.title().encode()}
        found = [path for path in tmp_path.rglob("*") if path.is_file()]
        return [path.name for path in found if any(needle in path.read_bytes() for needle in needles)]

    return held


def test_the_secret_is_everywhere_before(storage):
    """A life with a model leaves its marks in everything that is derived, else the tests below show nothing."""
    clock = Clock()
    memory, chat = modelled(storage, clock=clock)

    lived(memory, clock)

    assert {"note", "episode", "fact", "event", "day", "page"} <= set(derived(memory, SECRET))
    assert len(set(steps(chat))) == 7


@pytest.mark.parametrize(
    ("storage", "secrets", "answers"),
    [
        pytest.param("sqlite", (5,), mixing, id="sqlite one careless"),
        pytest.param("sqlite", (12,), mixing, id="sqlite late careless"),
        pytest.param("sqlite", (5, 6), obliging, id="sqlite two careful"),
        pytest.param("files", (5, 6), mixing, id="files two careless"),
    ],
    indirect=["storage"],
)
def test_no_byte_of_an_erased_page_is_left(storage, tells, secrets, answers):
    """What a model said of a page goes with it, where it put words of it into what it said of others too."""
    clock = Clock()
    memory, _ = modelled(storage, answers, clock=clock, rules=WIDE)
    lived(memory, clock, secrets=secrets)
    assert derived(memory, SECRET)

    gone = memory.erase(Scope("alice", secrets))
    for index in secrets:
        keeping(storage)(told(index, "gone"))

    assert gone.pages == len(secrets)
    assert derived(memory, SECRET) == []
    check(memory)
    drained(memory, clock)
    assert derived(memory, SECRET) == []
    check(memory)
    assert set(memory.summaries("alice", range(1, 17))) == set(range(1, 17)) - set(secrets)


def test_topics_keep_their_words_apart(storage):
    """What a model tells of one topic in words of the other one's pages is not kept, so it can't outlive those."""

    def answer(asked):
        return mixing(asked) if asked.step == "topics" else obliging(asked)

    memory, _ = modelled(storage, answer, rules=Rules(capacity=2, batch=2, threshold=9, gap_seconds=0.5, promoted=99))
    tell(memory, page(1, f"violins {SECRET}", at=NOON), page(2, "aardvark digs", at=NOON + DAY), maintain=False)
    memory.maintain()
    drained(memory)
    assert len(items(memory, "episode")) == 2

    memory.erase(Scope("alice", (1,)))

    ((_, episode),) = items(memory, "episode").items()
    assert SECRET not in str(episode)
    assert "half" in episode["keywords"]
    assert derived(memory, SECRET) == []


def test_a_topic_of_two_conversations_gives_each_its_own_words(storage):
    """Where a model names one topic for two talks that go on, each in its episode, neither keeps words of the other."""

    def answer(asked):
        if asked.step != "topics":
            return obliging(asked)
        pages, together = [each["page"] for each in shown(asked)], SECRET in asked.text
        word = SECRET if together else "roses"
        theme = {"theme": f"On {word}", "keywords": [word, "violins"], "content": f"They spoke of {word}"}
        themes = [theme | {"pages": each} for each in ([pages] if together else [[n] for n in pages])]
        return {"themes": themes, "continues": together}

    memory, _ = modelled(storage, answer, rules=Rules(capacity=2, batch=2, promoted=99))
    for index, said in ((1, "the garden"), (2, f"violins {SECRET}")):
        texts = {"alice": "violins and roses in the garden", "bob": f"violins, and {said}"}
        pages = [page(index, text, context=name, at=NOON + index) for name, text in texts.items()]
        tell(memory, *pages, maintain=False)
        memory.maintain()
        drained(memory)
    assert len(items(memory, "episode")) == 2, "each talk goes on in its own"

    memory.erase(Scope("bob"))

    assert derived(memory, SECRET) == []
    assert len(items(memory, "episode")) == 1


def test_facts_of_other_pages_survive(storage):
    """What a model learned of other pages stays when one is erased."""
    clock = Clock()
    memory, _ = modelled(storage, clock=clock)
    lived(memory, clock)

    memory.erase(Scope("alice", (5,)))

    facts = {fact["text"] for fact in items(memory, "fact").values()}
    assert {f"Knows of violins and quokka{index:02}" for index in (1, 2, 3, 4, 8)} <= facts


def test_profile_is_not_brought_back_by_an_analysis_that_was_under_way(storage):
    """If a page of the profile is erased while another episode is analysed, its traits do not come back with that."""
    clock = Clock()
    done = []

    def answer(asked):
        said = obliging(asked)
        if asked.step == "analysis" and "aardvark" in asked.text:
            if not done:
                done.append(memory.erase(Scope("alice", (1,))))
            return said | {"traits": [said["traits"][0] | {"dimension": "trust"}]}
        if asked.step == "analysis" and SECRET in asked.text:
            return said | {"traits": [said["traits"][0] | {"reason": f"asks for {SECRET}"}]}
        return said

    memory, _ = modelled(
        storage, answer, clock=clock, rules=Rules(capacity=2, batch=2, promoted=1.0, threshold=9, gap_seconds=0.5)
    )
    tell(memory, page(1, f"violins {SECRET}"), page(2, "violins too"))
    drained(memory, clock)
    assert "profile" in derived(memory, SECRET)

    tell(memory, page(3, "aardvark digs"), page(4, "aardvark sleeps"))
    drained(memory, clock)

    assert done
    assert derived(memory, SECRET) == []
    assert items(memory, "profile")


@pytest.mark.parametrize("when", ["after", "during"])
@pytest.mark.parametrize("part", ["user", "traits"])
def test_what_is_said_with_a_known_fact_in_view_goes_with_its_page(storage, part, when):
    """A model that sees known facts may repeat them: what it says so goes with their pages, or is not stored."""
    clock = Clock()
    done = []

    def answer(asked):
        said = obliging(asked)
        if asked.step != "analysis" or "aardvark" not in asked.text:
            return said
        if when == "during" and not done:
            done.append(memory.erase(Scope("alice", (1,))))
        if SECRET not in asked.text:
            return said
        leak = {"fact": f"Saw an aardvark near {SECRET}", "page": 1}
        trait = said["traits"][0] | {"dimension": "trust", "reason": f"asks for {SECRET}"}
        return said | ({"user": [leak]} if part == "user" else {"traits": [trait]})

    memory, _ = modelled(
        storage, answer, clock=clock, rules=Rules(capacity=2, batch=2, promoted=1.0, threshold=9, gap_seconds=0.5)
    )
    tell(memory, page(1, f"violins {SECRET}"), page(2, "violins too"))
    drained(memory, clock)
    tell(memory, page(3, "aardvark digs"), page(4, "aardvark sleeps"))
    drained(memory, clock)
    if when == "after":
        assert ("fact" if part == "user" else "profile") in derived(memory, SECRET)
        memory.erase(Scope("alice", (1,)))

    assert derived(memory, SECRET) == []
    drained(memory, clock)
    assert derived(memory, SECRET) == []
    assert items(memory, "fact")


def test_words_tell_where_a_text_comes_from():
    """A text comes from the pages that it says, and from those whose words it has that no page it says has."""
    sent = {1: vocabulary("I live in Oslo."), 2: vocabulary("The code is zanzibar."), 3: vocabulary("Oslo is cold")}

    assert sources("Lives in Oslo.", [1], sent) == [1]
    assert sources("Lives in Oslo, code zanzibar.", [1], sent) == [1, 2]
    assert sources("Cold.", [9], sent) == [3]
    assert sources("住在上海", [1], {1: vocabulary("?"), 2: vocabulary("我住在上海")}) == [1, 2]


def learned(memory):
    """Return the facts that are known, without those that wait for their pages."""
    facts = [fact for fact in items(memory, "fact").values() if fact["pages"]]
    return {(fact["text"], fact["about"], fact["index"]) for fact in facts}


@pytest.mark.parametrize("chat", [True, False], ids=["with a model", "without"])
def test_what_is_to_be_remembered_is_known_once_its_page_is(storage, chat):
    """A fact that somebody asked to be kept waits for its page, outlives the process, and is learned once."""
    memory = modelled(storage)[0] if chat else TieredMemory(storage, owner="anna", rules=SMALL, clock=Clock())
    memory.learn("Anna's sister lives in Oslo.", context="alice", index=3)
    memory.learn("She was told so.", context="alice", index=3, about="assistant")
    memory.maintain()
    assert learned(memory) == set()
    memory.close()
    memory = modelled(storage)[0] if chat else TieredMemory(storage, owner="anna", rules=SMALL, clock=Clock())

    tell(memory, page(3))
    memory.maintain()

    assert learned(memory) == {
        ("Anna's sister lives in Oslo.", "user", 3),
        ("She was told so.", "assistant", 3),
    }
    (fact, *_) = memory.search("Where does Anna's sister live?").user_facts
    assert fact.text == "Anna's sister lives in Oslo."
    assert (fact.at, fact.turn) == (page(3).at, 2)
    memory.learn("Anna's sister lives in OSLO!", context="alice", index=3)
    memory.maintain()
    assert len(learned(memory)) == 2


@both
def test_what_is_to_be_remembered_goes_with_its_page(storage, tells):
    """What waits to be learned, and what was, goes when its page, its context or its owner is erased."""
    memory, _ = modelled(storage)
    for index in (1, 2):
        memory.learn(f"{SECRET} of {index}", context="alice", index=index)
    memory.learn(f"{SECRET} elsewhere", context="bob", index=1)
    tell(memory, page(2))
    memory.maintain()
    assert learned(memory)
    assert tells(SECRET)

    memory.erase(Scope("alice", (2,)))
    memory.erase(Scope("alice", (1,)))
    assert learned(memory) == set()
    assert derived(memory, SECRET) == ["fact"]
    keeping(storage)(page(1, context="bob"))
    erase(storage, context="bob")

    assert derived(memory, SECRET) == []
    memory.learn(f"{SECRET} again", context="alice", index=7)
    memory.erase(Scope())
    assert tells(SECRET) == []


def test_what_is_to_be_remembered_is_checked(storage, monkeypatch):
    """A fact that says nothing is refused, and so is one more than can wait; a long one is cut to a line."""
    monkeypatch.setattr("memci.memory.tiered_memory.MOST", 2)
    memory, _ = modelled(storage)

    for text in ("", " …!", 7):
        with pytest.raises(InvalidSetting):
            memory.learn(text, context="alice", index=1)
    with pytest.raises(InvalidSetting):
        memory.learn("fine", context="alice", index=1, about="nobody")
    memory.learn("a\n<b> " * 200, context="alice", index=1)
    memory.learn("two", context="alice", index=1)
    with pytest.raises(LimitExceeded):
        memory.learn("three", context="alice", index=1)

    tell(memory, page(1))
    memory.maintain()
    assert max(len(text) for text, _, _ in learned(memory)) <= 240
    assert not any("<" in text or "\n" in text for text, _, _ in learned(memory))


def test_earlier_profile_is_the_newest_again(storage):
    """Rolled back, the profile says what it said in that version, as a new one; what it said since is kept."""
    memory, _ = modelled(storage)
    for index in range(1, 12):
        tell(memory, page(index))
        drained(memory)
    ((_, before),) = items(memory, "profile").items()
    target = before["previous"][1]
    assert before["version"] > 2

    memory.rollback(target["version"])

    ((_, after),) = items(memory, "profile").items()
    assert (after["text"], after["traits"]) == (target["text"], target["traits"])
    assert after["version"] == before["version"] + 1
    assert after["previous"][0]["text"] == before["text"]
    assert memory.search("violins").profile == target["text"]
    with pytest.raises(InvalidSetting):
        memory.rollback(999)
    memory.rollback(after["version"])
    assert items(memory, "profile") == {next(iter(items(memory, "profile"))): after}
