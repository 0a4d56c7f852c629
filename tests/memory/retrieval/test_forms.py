"""What a search answers to each form of a question, how sure it is, and what it makes of words that nobody said."""

import pytest
from machine_kit import keeping

from memci.memory import PageRecord, TieredMemory
from memci.memory.retrieval.ranking import certainty
from memci.storage import EphemeralStorage
from memci.testing.memory.pages import told
from tests.talks import told as talk

LONG = " ".join(f"The {word} of it matters here in the long run." for word in ("alpha", "beta", "gamma", "delta") * 6)


@pytest.fixture
def chat():
    """A memory of thirty pages: short messages by a user, long answers by an assistant; three have an instruction."""
    memory = TieredMemory(EphemeralStorage(), owner="ada", counter=lambda text: len(text.split()))
    says = {
        4: "Always show code in Python when I ask about sorting.",
        9: "I prefer short answers. And by the way, how is the garden?",
        20: "Never use abbreviations in letters, please.",
    }
    for index in range(1, 31):
        page = told(
            index, says.get(index, f"We now work on topic{index:02} of the harvest."), f"topic{index:02}: {LONG}"
        )
        keeping(memory.session.storage)(page)
        memory.observe(page)
    return memory


def test_request_gets_the_lasting_instructions_beside_what_is_found(chat):
    """They stand behind the messages, only the clause of each, exact; a question for a fact gets none."""
    pages = chat.search("Can you show me how to do the sorting of topic03?", k=2).pages

    standing = [page for page in pages if page.source == "standing"]
    assert pages[2:] == tuple(standing) and len(pages) == len(standing) + 2
    assert pages[1].text == "Always show code in Python when I ask about sorting."  # found by its words
    assert {page.index for page in standing} == {9, 20}
    assert next(page.text for page in standing if page.index == 9).startswith("I prefer short answers")
    assert all("garden" not in page.text for page in standing)
    assert all(page.source == "words" for page in chat.search("What did we say about sorting?", k=5).pages)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("मैंने मुंबई में तीन किताबें खरीदीं।", "किताब"),
        ("நான் மதுரைக்கு ரயிலில் செல்கிறேன்.", "மதுரைக்கு"),
        ("আমি কলকাতা থেকে ট্রেন ধরব।", "কলকাতা"),
        ("Mo fẹ́ràn ẹ̀kọ́ púpọ̀.", "eko"),
        ("We met Zoé at the lighthouse.", "Zoe\u0301"),
    ],
)
def test_a_word_with_marks_is_found(chat, said, asked):
    """It is found by itself, in another form, and however its accents are written; others of its letters are not."""
    page = told(31, said, "ok")
    keeping(chat.session.storage)(page)
    chat.observe(page)

    assert [each.index for each in chat.search(asked, k=3).pages] == [31]
    assert not chat.search("कबाब தேர் বাতাস", k=3).pages


def test_request_within_a_budget_gets_what_fits(chat):
    """The clauses take a quarter of it at most; none is of a page that is excluded, or out of the time."""
    pages = chat.search("Can you do the sorting for me?", k=9, budget=40, exclude=[("alice", 9)]).pages

    assert sum(len(page.text.split()) for page in pages) <= 40
    assert 0 < sum(len(page.text.split()) for page in pages if page.source == "standing") <= 10
    assert 9 not in {page.index for page in pages}
    assert not chat.search("Can you do the sorting for me?", k=9, since=1.0).pages


def test_list_in_order_is_what_the_user_said_over_time(chat):
    """Only the user's messages are found, and others fill what is left of the budget."""
    pages = chat.search("In what order did I bring up topic07 and topic21?", k=100, budget=80).pages

    assert {page.role for page in pages} == {"user"}
    assert {page.index for page in pages[:2]} == {7, 21}
    assert len([page for page in pages if page.source == "time"]) > 5
    assert all(page.source == "words" for page in chat.search("When was topic07?", k=100, budget=80).pages)


def test_what_fills_a_list_has_the_rarest_words(chat):
    """Small talk says the same again; what tells of something new does not, and a brief reply tells nothing."""
    for index, said in enumerate(
        ("Off to Gdansk at dawn, Rosalind drives.", "We now work on topic99 of a harvest."), 31
    ):
        page = told(index, said, "Welche meinst du?")
        keeping(chat.session.storage)(page)
        chat.observe(page)

    pages = chat.search("Welche Leute habe ich besucht?", k=100, budget=60).pages

    assert {page.index for page in pages[:3]} == {4, 20, 31}
    assert {page.role for page in pages} == {"user"}


def test_user_is_found_before_a_long_answer_with_the_same_words(chat):
    """Who asks what was said means what they said themselves, unless they ask for the assistant's answer."""
    assert [page.role for page in chat.search("topic13", k=2).pages] == ["user", "assistant"]
    assert chat.search("What did you tell me of topic13 alpha beta gamma?", k=1).pages[0].role == "assistant"


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("the accommodation in Bergen", "acommodation"),
        ("a letter from Svetlana", "Svetlan"),
        ("commit 4f3c2a9be1d0 broke it", "4f3c2a9"),
        ("ticket PRX-2024-00817 is open", "prx-2024-0"),
    ],
)
def test_word_that_nobody_said_stands_for_one_that_is_spelled_alike(chat, said, asked):
    """One letter more, less or another in a rare word; the beginning of an identifier."""
    page = told(31, said)
    keeping(chat.session.storage)(page)
    chat.observe(page)

    assert chat.search(asked, k=1).pages[0].index == 31


def test_common_word_is_no_misspelling(chat):
    """A word that many pages have is not taken for one that is spelled alike."""
    assert not chat.search("harves", k=3).pages


def test_answer_is_unsure_where_another_person_said_it():
    """A question that names one person in words of another finds much, and is not answered: it is less sure."""
    said = [
        {"role": "user", "name": "Ann", "content": f"Today I repaired the {thing} with my brother, what a day."}
        for thing in ("fence", "roof", "bike", "radio", "boat", "clock")
    ]
    said += [
        {"role": "user", "name": "Ben", "content": f"I took the {pet} to the vet again and slept badly."}
        for pet in ("cat", "dog", "parrot", "hamster", "rabbit", "pony")
    ]
    memory = TieredMemory(EphemeralStorage(), owner="ada", counter=lambda text: len(text.split()))
    for index, message in enumerate(said, start=1):
        page = PageRecord("alice", index, index, ((1, message),))
        keeping(memory.session.storage)(page)
        memory.observe(page)

    right, wrong = (memory.search(f"When did {name} repair the radio?") for name in ("Ann", "Ben"))

    assert right.certainty > 0.8 and wrong.certainty < 0.3
    assert max(page.score for page in right.pages) > max(page.score for page in wrong.pages)


def test_score_grows_with_how_far_a_message_stands_out():
    """Of equal scores, the one without rivals is surer; a better score is never less sure than a worse one."""
    crowd = [0.6] * 10

    assert certainty(0.6, [0.6, 0.1, *[0.05] * 8]) > 0.7
    assert certainty(0.6, crowd) < 0.3
    assert certainty(0.0, crowd) < 0.1
    sure = [certainty(score / 20, [0.9, 0.8, *[0.2] * 8]) for score in range(19)]
    assert sure == sorted(sure)


def test_question_for_many_gets_every_match_in_a_line():
    """Each match is cut to the part that fits, thanks are no result, and `skip` goes on."""
    memory = TieredMemory(EphemeralStorage(), owner="ada", counter=lambda text: len(text.split()))
    books = ("Stoner", "Emma", "Ulysses", "Dracula")
    for index in range(1, 41):
        said = f"{LONG} I have read the book {books[index // 10]} now." if index % 10 == 5 else f"It is day {index}."
        page = told(index, said, "Thanks for telling me.")
        keeping(memory.session.storage)(page)
        memory.observe(page)

    found = memory.search("Which books have I read?", k=40, budget=250)
    pages = [page for page in found.pages if page.source == "words"]
    rest = memory.search("Which books have I read?", k=40, budget=250, skip=2).pages

    first = sorted(pages[:4], key=lambda page: page.index)
    assert found.matches >= 4 and [page.index for page in first] == [5, 15, 25, 35]
    assert all(book in page.text and len(page.text) <= 300 for book, page in zip(books, first, strict=True))
    assert [page.index for page in rest if page.source == "words"][:4] == [page.index for page in pages[2:6]]
    assert not any("Thanks" in page.text for page in found.pages)


def test_only_messages_with_the_words_of_a_question_match_it():
    """A message that is found by its neighbours, or by one common word of the question, does not count as a match."""
    memory = TieredMemory(EphemeralStorage(), owner="ada")
    said = ["I bought a red kayak from Tom.", "Then I sold the red kayak to Bill."]
    for index in range(1, 31):
        text = f"Ask the shop about topic {index}; they sell a kayak, too." if index % 10 else said[index % 20 // 10]
        page = told(index, text, f"Fine, {index} it is.")
        keeping(memory.session.storage)(page)
        memory.observe(page)

    found = memory.search("red kayak", k=5)

    assert len(found.pages) == 5 and found.matches == 3


def test_statement_comes_before_who_asks_the_same_or_does_not_know(chat):
    """A question asked again, and the answer that it is not known, rank behind what is stated; thanks are no result."""
    said = [
        "Where is the spare key?",
        "I don't know where the spare key is.",
        "The spare key is at Ann's.",
        "Thank you!",
    ]
    for index, text in enumerate(said, start=31):
        page = told(index, text, "Noted.")
        keeping(chat.session.storage)(page)
        chat.observe(page)

    found = [page.index for page in chat.search("Where is the spare key?", k=9).pages]
    assert found[0] == 33 and [index for index in found if index > 30] == [33, 32, 31]
    assert not chat.search("Thank you!", k=3).pages


def test_statement_with_a_question_behind_it_is_no_question(chat):
    """Who tells something and asks back, or says beside it that something is not known, states it."""
    said = [
        "The spare key is at Ann's. Where is your spare key?",
        "I don't know why, but the spare key is red. It shines.",
    ]
    for index, text in enumerate([*said, "A spare bed came."], start=31):
        page = told(index, text, "Noted.")
        keeping(chat.session.storage)(page)
        chat.observe(page)

    assert {page.index for page in chat.search("Where is the spare key?", k=2).pages} == {31, 32}


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Das Konzert von Nils war schön.", "Wie waren die Konzerten?"),
        ("He plantado un limonero.", "¿Qué plantaste?"),
        ("Я прочитала книгу о море.", "Какие книги?"),
        ("Der Kurs dauert lange.", "Welche Kurse?"),  # without "s" in the index, as an English plural
        ("Hice una entrevista.", "¿Quiénes me entrevistaron?"),
        ("Wir machen einen Tangokurs.", "Welche Kurse sind das?"),
        ("Die Hautärztin war freundlich.", "Bei welchen Ärzten war ich?"),
        ("Der Umzug ist im Mai.", "Wann sind die Umzugstermine?"),
    ],
)
def test_question_finds_other_forms_of_its_words(said, asked):
    """Languages that inflect the end of words are searched by stems, and German by the parts of its compounds; function
    words of a question find nothing.
    """
    memory = TieredMemory(EphemeralStorage(), owner="ada", counter=lambda text: len(text.split()))
    for index, text in enumerate((said, "Wie war die Reise? ¿Qué tal? Как дела?"), start=1):
        page = told(index, text)
        keeping(memory.session.storage)(page)
        memory.observe(page)

    assert [page.index for page in memory.search(asked, k=1).pages] == [1]


def test_two_questions_in_one_are_both_answered(chat):
    """What answers one of them well comes before what has a word of each."""
    said = ["The boat lies at the north pier.", "Ann has the silver key.", "Who is at the pier has a key to it."]
    for index, text in enumerate(said, start=31):
        page = told(index, text)
        keeping(chat.session.storage)(page)
        chat.observe(page)

    pages = chat.search("At which pier does the boat lie? And who has the silver key?", k=2).pages

    assert {page.index for page in pages} == {31, 32}


def test_question_for_all_that_one_did_is_answered_with_what_one_said(chat):
    """A reply of the assistant has the words of the message before it, and tells nothing of its own."""
    said = [("I flew to Oslo.", "I see: Oslo."), ("Ann came.", "Noted."), ("I took a boat to Oslo.", "So, Oslo again.")]
    for index, texts in enumerate(said, start=31):
        page = told(index, *texts)
        keeping(chat.session.storage)(page)
        chat.observe(page)

    own = chat.search("How many times did I go to Oslo?", k=2).pages
    any_ = chat.search("How many times did you say Oslo?", k=4).pages

    assert [page.role for page in own] == ["user", "user"]
    assert "assistant" in [page.role for page in any_]


@pytest.mark.parametrize(("times", "first"), [(2, "Eli"), (5, "Emi")])
def test_person_is_known_by_the_name_by_which_others_greet_them(times, first):
    """Emi is called Kate: what Kate likes is what Emi says, from some greetings on."""
    days = [each for at in range(5) for each in (f"Eli: {'Hey Kate! ' * (at < times)}Rain again.", "Emi: It pours.")]

    with talk("Eli: I like hills.", *days, "Emi: I like to swim at noon, at night and at dawn.") as context:
        assert context.search_memory("What does Kate like?", k=1).pages[0].speaker == first
