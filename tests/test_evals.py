"""The question answering is scored as LoCoMo scores it, loses no message, and never takes a failure for an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.errors import ModelUnavailable
from memci.testing.llm import ModelServer, ScriptedChat, Status
from tests.evals_modules import calls, dialogues, evals, figures, memoryos, oracle, prompt, running, systems

TALK = [
    ("Ada", "Hi Ben! I adopted a puppy called Biscuit yesterday."),
    ("Ada", "She sleeps in a red basket."),
    ("Ben", "Lovely! My week was full of pottery, I made two bowls."),
    ("Ada", "Do you still play the violin?"),
    ("Ben", "No, I sold the violin and bought a kayak."),
]
LATER = [
    ("Ben", "The kayak trip on the lake was last weekend."),
    ("Ada", "我上个月搬到了成都。"),
    ("Ben", "Congratulations on the flat!"),
]
QUESTIONS = [
    {"question": "What did Ada adopt?", "answer": "a puppy", "category": 4, "evidence": ["D1:1"]},
    {"question": "When was the kayak trip?", "answer": "mid May 2023", "category": 2, "evidence": ["D2:1"]},
    {"question": "What does Ben do?", "answer": "pottery, kayaking", "category": 1, "evidence": ["D1:3; D1:5"]},
    {"question": "Is Ben still musical?", "answer": "Likely no; he sold it", "category": 3, "evidence": ["D1:5"]},
    {"question": "What did Ben adopt?", "adversarial_answer": "a puppy", "category": 5, "evidence": ["D1:1"]},
    {"question": "Where does Ada live?", "answer": "成都", "category": 4, "evidence": ["D2:2"]},
]


def turns(session, said):
    return [{"speaker": who, "dia_id": f"D{session}:{n}", "text": text} for n, (who, text) in enumerate(said, start=1)]


def sample(*, repeat=1):
    conversation = {"speaker_a": "Ada", "speaker_b": "Ben"}
    filler = [
        (who, f"{text} ({n})") for n in range(repeat - 1) for who, text in (("Ada", "Nice day."), ("Ben", "Yes."))
    ]
    conversation |= {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns(1, TALK)}
    conversation |= {"session_2_date_time": "9:00 am on 20 May, 2023", "session_2": turns(2, [*LATER, *filler])}
    return {"sample_id": "talk-1", "conversation": conversation, "qa": QUESTIONS}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps([sample()]), encoding="utf-8")
    return path


@pytest.fixture
def talk(file):
    return dialogues.read(file)[0]


def models(chat, folder):
    kept = calls.Kept(chat, folder / "calls.jsonl", model="m")
    return running.Models(kept, kept)


def run(chosen, talk, chat, folder, **options):
    made = {name: systems.systems()[name] for name in chosen}
    return list(running.answers(made, [talk], systems.Limits(budget=2_000), models(chat, folder), **options))


def adopts(asked):
    return "adopt" in asked.text.rpartition("Question: ")[2]


# --- dialogues and pages


def test_reading_keeps_every_message_with_its_date_and_its_picture(tmp_path):
    """Lines are in order, dated, and say what a picture shows; a question knows the lines that answer it."""
    raw = sample()
    raw["conversation"]["session_1"][1]["blip_caption"] = "a photo of a basket"
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps([raw]), encoding="utf-8")

    (talk,) = dialogues.read(dialogues.source(tmp_path))

    assert [line.who for line in talk.lines] == [who for who, _ in TALK + LATER]
    assert talk.lines[1].line == (
        "[8 May 2023, 13:56] Ada: She sleeps in a red basket. [shares a picture: a photo of a basket]"
    )
    assert [set(asked.evidence) for asked in talk.asked] == [{0}, {5}, {2, 4}, {4}, {0}, {6}]
    assert talk.asked[4].gold == "a puppy"
    assert [len(page) for page in talk.pages] == [3, 2, 1, 2]


def test_reading_fails_where_a_message_would_be_lost(tmp_path):
    """Two messages of one name are no file that can be asked about."""
    raw = sample()
    raw["conversation"]["session_1"][1]["dia_id"] = "D1:1"
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([raw]), encoding="utf-8")

    with pytest.raises(ValueError, match="8 messages in the file, 8 lines, 7 names"):
        dialogues.read(path)


@given(st.lists(st.lists(st.sampled_from(["Ada", "Ben"]), min_size=1, max_size=8), max_size=5))
def test_pages_hold_every_message_whoever_speaks(sessions):
    """Joined, the pages are the dialogue; none goes over the end of a session, or back to the first speaker."""
    said = [
        dialogues.Said(who, f"{session}.{number}", 86_400.0 * session)
        for session, speakers in enumerate(sessions)
        for number, who in enumerate(speakers)
    ]

    pages = dialogues.Dialogue("d", ("Ada", "Ben"), tuple(said)).pages

    assert [line for page in pages for line in page] == said
    for page in pages:
        assert len({line.at for line in page}) == 1
        assert "BenAda" not in "".join(line.who for line in page)


def test_a_choice_is_read_as_what_it_says(talk):
    """A letter stands for the answer behind it, in an order that does not change; anything else is taken as it is."""
    asked = talk.asked[4]
    put = prompt.question(talk, asked)
    letter = "a" if "(a) Not mentioned" in put else "b"

    assert prompt.question(talk, asked) == put
    assert prompt.resolved(talk, asked, f"({letter})") == prompt.resolved(talk, asked, f" {letter}. ") == prompt.ABSENT
    assert prompt.resolved(talk, asked, "not mentioned") == "not mentioned"
    assert prompt.resolved(talk, talk.asked[0], "a") == "a"


# --- systems


def test_what_a_system_gives_is_dated_and_within_its_budget(tmp_path):
    """The newest lines fit the budget; everything is told to be clipped when it does not fit; nothing is nothing."""
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([sample(repeat=80)]), encoding="utf-8")
    (talk,) = dialogues.read(path)
    found = {}
    for name in ("memci", "sliding", "full", "none"):
        system = systems.systems()[name](systems.Limits(budget=1_000, window=3_000))
        system.tell(talk)
        found[name] = system.recall("What did Ada adopt?")
        system.close()

    assert found["none"].notes == ""
    assert found["full"].clipped
    assert not found["sliding"].clipped
    assert systems.count(found["sliding"].notes) <= 1_000
    assert systems.count(found["memci"].notes) <= 1_000
    assert talk.lines[0].line in found["memci"].notes
    assert talk.lines[0].line not in found["sliding"].notes
    assert found["memci"].notes.endswith(talk.lines[-1].line)


@pytest.mark.parametrize("budget", [200, 700, 1_500])
def test_memci_keeps_to_its_budget_with_dates_and_names(tmp_path, budget):
    """What a search gives within a budget is without dates: with them it fits all the same, and nearly fills it."""
    said = [(who, f"{who} has a kayak, number {n}, and paints it.") for n in range(60) for who in ("Ada", "Ben")]
    path = tmp_path / "talk.json"
    raw = sample()
    raw["conversation"]["session_1"] = turns(1, said)
    path.write_text(json.dumps([raw | {"qa": []}]), encoding="utf-8")
    (talk,) = dialogues.read(path)
    system = systems.systems()["memci"](systems.Limits(budget=budget))

    system.tell(talk)
    notes = system.recall("Which kayak does Ben paint?").notes
    system.close()

    assert 0.8 * budget < systems.count(notes) <= budget


def test_memoryos_asks_three_times_for_a_page_and_twice_for_a_hot_segment(tmp_path):
    """The first seven pages cost nothing; each one more costs its three calls, and what got hot its two."""
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([sample(repeat=20)]), encoding="utf-8")
    (talk,) = dialogues.read(path)
    meter = calls.Meter(ScriptedChat(lambda asked: oracle.Oracle([talk])(asked.messages)))
    system = memoryos.MemoryOS(systems.Limits(chat=meter))

    system.tell(talk)
    handed = len(talk.pages) - memoryos.SHORT_TERM

    assert {step: meter.spent[step]["calls"] for step in ("chain", "topic")} == {"chain": handed, "topic": handed}
    assert meter.spent["continuity"]["calls"] == handed - 1
    assert meter.spent["facts"]["calls"] == meter.spent["profile"]["calls"] == system.details()["analysed"] > 0
    assert talk.pages[-1][-1].line in system.recall("Nice day?").notes


def test_the_oracle_answers_only_what_all_of_its_evidence_is_in_sight_for(talk):
    """A part of the evidence is not enough; how large the part is, the figures say."""
    says = oracle.Oracle([talk])
    asked = talk.asked[2]
    notes = ["", talk.lines[2].line, "\n".join(talk.lines[number].line for number in asked.evidence)]

    assert [says(prompt.messages(talk, asked, each)) for each in notes] == [oracle.UNKNOWN, oracle.UNKNOWN, asked.gold]
    assert [running.in_sight(talk, asked, each) for each in notes] == [0, 0.5, 1]


# --- runs


def test_an_endpoint_that_fails_is_counted_and_never_scored(talk, tmp_path):
    """What was not answered is in no mean, and has its place in the figures; an answer without text is no failure."""
    busy = ModelUnavailable("answer", "busy")
    said = iter(["a puppy", busy, "", busy, "(a)", "?"])
    rows = run(["none"], talk, ScriptedChat(lambda _asked: next(said)), tmp_path, workers=1)

    found = figures.figures(rows, [talk])["none"]

    assert (found["questions"], found["errors"], found["empty"]) == (6, 2, 1)
    assert found["kinds_of_errors"] == {"ModelUnavailable": 2}
    assert sum(each["questions"] for each in found["categories"].values()) == found["all"]["questions"] == 4
    assert found["categories"]["4"]["f1"] == 50
    assert "2" not in found["categories"]


def test_a_run_goes_on_where_it_was_broken_off(talk, tmp_path):
    """A second run asks only what the first one got no answer for, and comes to the figures of a whole run."""
    right = oracle.Oracle([talk])
    failing = ScriptedChat(lambda asked: ModelUnavailable("answer", "down") if adopts(asked) else right(asked.messages))
    first = run(["full"], talk, failing, tmp_path)
    chat = ScriptedChat(lambda asked: right(asked.messages))
    with (tmp_path / "calls.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"call": "cut o')

    second = run(["full"], talk, chat, tmp_path)
    third = run(["full"], talk, ScriptedChat(), tmp_path)

    assert sum(row.get("error") is not None for row in first) == 2
    assert [adopts(asked) for asked in chat.calls] == [True, True]
    assert figures.figures(second, [talk])["full"]["all"]["f1"] == 100
    assert figures.figures(third, [talk])["full"]["all"] == figures.figures(second, [talk])["full"]["all"]


def test_the_same_question_twice_has_two_answers_which_the_next_run_has_again(tmp_path):
    """Who asks again wants another answer, and pays for it once; a failure is not kept."""
    busy = ModelUnavailable("topic", "busy")
    messages = [{"role": "user", "content": "Hi"}]
    first = calls.Kept(ScriptedChat(["a", "b", busy]), tmp_path / "calls.jsonl", model="m")

    said = [first(messages, step="topic").text for _ in range(2)]
    with pytest.raises(ModelUnavailable):
        first(messages, step="topic")
    again = calls.Kept(ScriptedChat(["c"]), tmp_path / "calls.jsonl", model="m")
    other = calls.Kept(ScriptedChat(["d"]), tmp_path / "calls.jsonl", model="n")

    assert said == ["a", "b"]
    assert [again(messages, step="topic").text for _ in range(3)] == ["a", "b", "c"]
    assert other(messages, step="topic").text == "d"


def test_memci_with_a_model_has_its_work_done_and_counted(talk, tmp_path):
    """Its memory's calls are counted by step; what it answers badly is set aside in the end, and said to be."""
    chat = ScriptedChat(lambda asked: "a puppy" if asked.step == "answer" else {})
    kept = calls.Kept(chat, tmp_path / "calls.jsonl", model="m")
    made = {"memci": systems.systems()["memci"]}

    rows = list(running.answers(made, [talk], systems.Limits(), running.Models(kept, kept, improving=True)))
    told = rows[0]["told"]

    assert told["work"]["page"]["calls"] == sum(asked.step == "page" for asked in chat.calls) > 0
    assert told["details"]["set_aside"] > 0
    assert figures.figures(rows, [talk])["memci"]["cost"]["memory_calls"] > 1


def test_a_run_stops_when_nothing_is_answered_any_more(talk, tmp_path):
    """An endpoint that is down is not asked a thousand times; nor is a memory asked that lacks its model's work."""
    asked = tuple(dialogues.Asked(n, f"Question {n}?", 4, "x", frozenset()) for n in range(60))
    down = ScriptedChat(lambda _asked: ModelUnavailable("answer", "down"))
    long = dialogues.Dialogue("d", talk.speakers, talk.lines, asked)

    with pytest.raises(running.Stopped, match="20 questions in a row"):
        run(["none"], long, down, tmp_path)
    with pytest.raises(running.Stopped, match="could not be told"):
        run(["memoryos"], dialogues.Dialogue("d", talk.speakers, talk.lines * 9, asked), down, tmp_path)

    assert len(down.calls) < 40


# --- from end to end, over a socket


def arguments(file, tmp_path, *more):
    places = ["--data", str(file), "--work", str(tmp_path / "work"), "--results", str(tmp_path / "results")]
    return [*places, *more]


def test_a_scripted_run_puts_every_system_through_the_same_door(tmp_path):
    """The whole history answers everything, nothing answers nothing, and the figures say what each of them cost."""
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([sample(repeat=12)]), encoding="utf-8")
    result = evals.main(
        arguments(file, tmp_path, "--scripted", "--categories", "1,2,3,4,5", "--json", str(tmp_path / "figures.json"))
    )
    found = result["figures"]

    assert list(found) == ["memci", "full", "sliding", "memoryos", "none"]
    for name in ("memci", "full"):
        assert {number: each["f1"] for number, each in found[name]["categories"].items()} == dict.fromkeys("12345", 100)
        assert found[name]["evidence"] == 100
    assert found["none"]["categories"]["4"]["f1"] == found["none"]["evidence"] == found["none"]["cost"]["notes"] == 0
    for each in found.values():
        assert (each["questions"], each["errors"], each["empty"]) == (6, 0, 0)
        assert each["cost"]["prompt"] > each["cost"]["notes"]
        assert each["cost"]["messages"] == 30
    assert found["memoryos"]["cost"]["memory_calls"] > 1 > found["memci"]["cost"]["memory_calls"] == 0
    assert result["options"]["scripted"]
    assert json.loads((tmp_path / "results" / "evals.jsonl").read_text()) == result
    assert json.loads((tmp_path / "figures.json").read_text()) == result
    assert str(tmp_path) not in json.dumps(result)


def test_an_endpoint_is_asked_once_for_what_it_answers(file, tmp_path, capsys):
    """What it refused is an error in the figures and asked again by the next run; what it answered is not."""
    with ModelServer(lambda _request: "a puppy") as server:
        server.fails(Status(403))
        asked = arguments(file, tmp_path, "--model", "m", "--base-url", server.base_url, "--systems", "full,none")
        asked += ["--workers", "1", "--questions", "3"]
        first, second, third = (evals.main(asked)["figures"] for _ in range(3))
        sent = [request.body for request in server.requests]

    assert first["full"]["kinds_of_errors"] == {"ModelRefused": 1}
    assert first["full"]["all"]["questions"] == 2
    assert second["full"]["errors"] == 0
    assert third["full"]["categories"] == second["full"]["categories"]
    assert second["full"]["categories"]["4"]["f1"] == 100
    assert len(sent) == 7
    assert {body["temperature"] for body in sent} == {0}
    assert server.base_url not in (tmp_path / "results" / "evals.jsonl").read_text()
    assert "category 4" in capsys.readouterr().out


def test_a_run_without_dialogues_or_a_model_says_so(tmp_path, monkeypatch, capsys):
    """Without the dialogues there is a line that says so, and nothing is kept; without a model it does not begin."""
    monkeypatch.delenv("MEMCI_MODEL", raising=False)
    result = evals.main(arguments(tmp_path, tmp_path, "--scripted"))

    assert result["figures"] == {}
    assert "skipped" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()
    with pytest.raises(SystemExit):
        evals.main(arguments(tmp_path, tmp_path))
