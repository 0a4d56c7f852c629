"""The benchmarks run at a tiny size and give the figures that they promise; how fast, no test says."""

import importlib.util
import json
import sys
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from xml.dom import minidom

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="the benchmarks are only in the checkout"),
]


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.syspath_prepend(str(ROOT))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def load(name):
    return importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def conversation():
    return load("conversation").synthetic(runs=10)


def test_varied_turns_never_repeat_a_text_and_keep_its_json(conversation):
    """However often a conversation is looped, each text of it is new, and what was JSON is JSON."""
    texts = load("conversation").texts
    turns = list(islice(conversation.turns(), 500))

    said = [text for turn in turns for message in turn for text in texts(message) if not text.isidentifier()]
    arguments = [
        call["function"]["arguments"] for turn in turns for message in turn for call in message.get("tool_calls", ())
    ]

    assert len(said) == len(set(said))
    assert all(json.loads(each) for each in arguments)
    assert all(json.loads(m["content"]) for turn in turns for m in turn if m["role"] == "tool")


def test_synthetic_turns_have_the_shape_of_recorded_ones():
    """The made-up conversation has about 2.08 messages and 196 tokens a turn, each after the first from a model."""
    shape = load("speed.__main__").shape(load("conversation").synthetic(), turns=600)
    turns = list(islice(load("conversation").synthetic().turns(), 300))

    assert shape["messages_per_turn"] == pytest.approx(2.08, abs=0.05)
    assert shape["tokens_per_turn"] == pytest.approx(196, rel=0.05)
    assert {turn[0]["role"] for turn in turns[1:]} == {"assistant"}


def test_months_give_a_row_per_day(tmp_path):
    """Each page of two days is in a tier when they are over, and what is a day old was asked for; a plot is drawn."""
    months = load("memory.months")

    figures = months.lived(tmp_path, 2)

    assert [row["turns"] for row in figures["days"]] == [50, 100]
    last = figures["days"][-1]
    assert (last["observed"], last["short"] + last["mid"] + last["evicted"]) == (0, 100)
    assert min(last[each] for each in ("episodes", "promoted", "facts", "talk_ms", "maintenance_ms")) > 0
    assert figures["asked"]["1"] == months.ASKED
    if importlib.util.find_spec("matplotlib"):
        months.draw(figures, tmp_path / "months.png")
        assert (tmp_path / "months.png").read_bytes().startswith(b"\x89PNG")


def test_speed_gives_its_figures_and_keeps_them(tmp_path):
    """Each part of the speed benchmark gives its figures, for each store and mark, and a line of the log."""
    arguments = [
        "--turns",
        "30,90",
        "--pages",
        "40,80",
        "--synthetic",
        "--folder",
        str(tmp_path),
        "--parts",
        "growth,memory",
    ]

    result = load("speed.__main__").main([*arguments, "--results", str(tmp_path), "--json", str(tmp_path / "figures")])
    figures = result["figures"]

    assert [run["store"] for run in figures["growth"]] == ["ephemeral", "sqlite", "sqlite-full"]
    for run in figures["growth"]:
        assert [mark["turns"] for mark in run["marks"]] == [30, 90]
        assert run["growth"].keys() == run["growth_over_floor"].keys() == {"90"}
        for mark in run["marks"]:
            assert mark["p99"] >= mark["median"] > 0
            assert mark["times_floor"] > 0
    assert figures["memory"]["pages"] >= 80
    assert figures["ephemeral"]["pages"] == 40
    assert figures["memory"]["disk_times_json"] > 0
    assert figures["ephemeral"]["ram_times_json"] > 0
    assert figures["opening"]["open_ms"] > 0
    assert figures["opening"]["recall_us"] > 0
    assert {"date", "commit", "python", "machine", "options"} <= result.keys()
    assert json.loads((tmp_path / "speed.jsonl").read_text()) == json.loads((tmp_path / "figures").read_text())


def test_imports_gives_its_figures():
    """The import is measured in both clocks."""
    assert load("speed.imports").imports(times=1).keys() == {"wall_ms", "cpu_ms"}


def test_a_result_never_names_its_host_or_a_path(tmp_path):
    """What is kept of a machine says what kind it is, not which."""
    results = load("results")

    kept = json.dumps(results.record({}, {}))

    assert str(ROOT) not in kept
    assert results.platform.node() not in kept


def test_cache_replay_gives_its_figures(conversation):
    """A replay tells the share kept, the cost and the size, and counts no more than the window holds."""
    module, data, memci = load("cache.replay"), load("cache.data"), load("cache.manager").memci
    paused = replace(conversation, starts=frozenset(range(0, 300, 25)))

    def played(preset, budget, talk=conversation, **known):
        replay = data.Replay(talk, (data.Part((talk.messages,)),))
        return module.play(replay, memci(preset, **known), budget=budget, calls=120)

    figures = {preset: played(preset, 4_000) for preset in ("balanced", "economy", "verbatim", "original")}

    for each in figures.values():
        assert each["breaks"] > 1
        assert 0 < each["kept"]["0.1/warm"] < 1
        assert each["tokens"] <= max(each["sizes"]) <= 4_000
        assert each["over"] == 0
        assert 0.1 * each["tokens"] < each["costs"]["0.1/warm"] < 1.25 * each["tokens"]
        assert each["needed"] > 10
    assert figures["original"]["kept"]["0.1/warm"] < figures["balanced"]["kept"]["0.1/warm"]
    costs, unknowing = (played("economy", 8_000, paused, clock=clock)["costs"] for clock in (True, False))
    assert costs["0.1/expires"] > costs["0.1/warm"]
    assert costs["0.1/expires"] < unknowing["0.1/expires"]
    (mean,) = module.merged([figures["economy"], figures["balanced"]], "conversation")
    low, high = (figures[each]["costs"]["0.1/warm"] for each in ("economy", "balanced"))
    assert mean["costs"]["0.1/warm"] == pytest.approx((low + high) / 2)
    assert sum(mean[place] for place in load("cache.sight").PLACES) == pytest.approx(1)


def test_a_prefix_ends_at_the_first_message_that_differs():
    """Kept are the tokens of the messages before the first that is not the same, byte for byte."""
    prefixes = load("cache.prefix").Prefixes(len)
    one, two, other = ({"role": "user", "content": text} for text in ("a", "bb", "cc"))

    compared = [prefixes.compare(each) for each in ([one, two], [one, two, other], [one, other, two], [one])]

    assert [(kept, total) for kept, _, total in compared] == [(0, 11), (11, 17), (5, 17), (5, 5)]
    assert prefixes.breaks == 2


def test_a_marked_prefix_ends_where_a_stable_part_ended():
    """Only what was marked is kept: a rendering that changed in the middle keeps the system prompt, no more."""
    module = load("cache.prefix")
    prefixes = module.Prefixes(len)
    one, two, other = ({"role": "user", "content": text} for text in ("a", "bb", "cc"))

    compared = [prefixes.compare(each) for each in ([one, two], [one, two, other], [one, two, one, two])]

    assert [(marked, total) for _, marked, total in compared] == [(0, 11), (11, 17), (5, 22)]


def test_a_bill_knows_the_least_prefix_and_its_steps():
    """A short prefix is not cached, and a kept one ends at a step."""
    billing = load("cache.prefix").Billing(minimum=100, step=10)

    assert billing.price(99, 200) == 1.25 * 200
    assert billing.price(109, 200) == pytest.approx(0.1 * 100 + 1.25 * 100)
    assert billing.price(0, 50) == 50


def test_evidence_is_looked_for_in_its_own_run():
    """An argument that was said in the run stands verbatim, on a line or nowhere; one of another run does not count."""
    sight = load("cache.sight").Sight("The desk AB123.")
    arguments = {"ids": ["PX4711", "PX4712", "PX4713", "AB123", "never said"], "amount": 250, "few": 12}
    function = {"name": "find", "arguments": json.dumps(arguments)}
    call = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    said = [{"role": "user", "content": text} for text in ("PX4711", "PX4712 for 250", "PX4713 at last", "12")]

    sight.take(said[:1], paused=True)
    sight.take(said[1:], paused=True)
    sight.called(call, [{"role": "user", "content": "PX4713"}, said[1]], [0])
    sight.called(call, [], [], lambda key: "last" in key)

    assert dict(sight.found) == {"verbatim": 2, "line": 1, "none": 2, "listed": 1}


def test_cache_says_what_it_skips(tmp_path, monkeypatch, capsys):
    """Without the recorded conversations there is a line that says so, and nothing is kept."""
    monkeypatch.setenv("MEMCI_DATA", str(tmp_path / "nowhere"))

    result = load("cache.__main__").main(["--results", str(tmp_path)])

    assert result == []
    assert capsys.readouterr().out.count("skipped") == 3
    assert not (tmp_path / "cache.jsonl").exists()


def test_durability_measures_every_store_beside_the_floor(tmp_path):
    """Each store and mode has its latency, and the floor is what they are compared with."""
    durability = load("durability.__main__")

    figures = durability.measured(tmp_path, 12, lambda _turns: None)

    assert list(figures) == ["floor", *durability.STORES]
    assert figures["floor"]["ratio"] == 1
    assert all(row["p50_us"] > 0 for row in figures.values())


def test_memory_gives_its_figures_and_keeps_them(tmp_path, monkeypatch):
    """Telling, searching and what is felt have their figures, for one owner and for many, and a line of the log."""
    monkeypatch.setattr(load("memory.felt"), "_SETTLING", 8)
    sizes = ["--pages", "12,24", "--owners", "2", "--turns", "2", "--last", "8", "--admitted", "12"]

    result = load("memory.__main__").main([*sizes, "--folder", str(tmp_path), "--results", str(tmp_path)])
    figures = result["figures"]

    assert [each["pages"] for each in figures["pages"]] == [12, 24]
    for each in figures["pages"]:
        assert each["observe_ms"] > 0
    assert figures["pages"][0]["whole_times_floor"] > figures["pages"][0]["observe_times_floor"]
    assert figures["pages"][1]["whole_times_floor"] is None
    for each in (*figures["pages"], *figures["owners"]):
        assert each["p99_ms"] >= each["ms"] > 0
        assert each["answered"] == 1
        assert each["memory_per_page"] > 0
    assert figures["owners"][0]["owners_in_ram"] == 2
    assert [each["pause"] > 0 for each in figures["felt"]] == [False, True]
    assert json.loads((tmp_path / "memory.jsonl").read_text())["figures"]["pages"][0]["pages"] == 12


def test_made_up_talks_are_the_same_each_time_and_uneven():
    """Two sources of one seed tell the same pages; a few words make up much of what is said, many come once."""
    talks = load("memory.talks")
    pages, again = (list(islice(talks.Talks().pages(), 200)) for _ in range(2))
    words = " ".join(message["content"] for _, page in pages for message in page).lower().split()
    often = sorted(Counter(words).values(), reverse=True)

    assert pages == again
    assert sum(often[:50]) > 0.2 * len(words)
    assert often.count(1) > 0.3 * len(often)


def test_heat_is_drawn_from_a_run(tmp_path):
    """The picture is well-formed, has a curve per subject, and comes out the same each time."""
    heat = load("memory.heat")
    main = load("memory.__main__").main

    main(["--heat", str(tmp_path / "new" / "heat.svg")])
    drawn = (tmp_path / "new" / "heat.svg").read_text()

    assert len(minidom.parseString(drawn).getElementsByTagName("polyline")) == 4
    assert "prefers-color-scheme:dark" in drawn
    assert drawn == heat.drawn(heat.warmed())


def test_recall_measures_a_memory_like_its_ranking():
    """A context finds in its file what the flat index finds in RAM, but for ties; a budget is kept with names, too."""
    tasks, measure = load("recall.tasks"), load("recall.measure")
    source = load("memory.talks").Talks()
    pages = list(islice(source.pages(), 60))
    lines = tuple(tasks.Line(page[0], at.timestamp()) for at, page in pages)
    asked = [
        tasks.Question(source.question([page[0]]), "any", frozenset([number]))
        for number, (_, page) in enumerate(pages[:20])
    ]
    talk = tasks.Talk("made up", lines, tuple(asked))

    whole = measure.measured(load("recall.whole").Whole, [talk])
    flat = measure.measured(load("recall.systems").Ours, [talk])

    assert whole["questions"] == flat["questions"] == 20
    assert whole["at"][20] == pytest.approx(flat["at"][20], abs=5)
    assert whole["at"][1] > 50
    assert whole["within"][512] >= whole["at"][5] - 5


def test_recall_says_what_it_skips(tmp_path, monkeypatch, capsys):
    """Without the recorded conversations there is a line for each, and nothing is kept."""
    monkeypatch.setenv("MEMCI_DATA", str(tmp_path / "nowhere"))
    module = load("recall.__main__")
    (talk,) = module.statements()
    short = replace(talk, lines=talk.lines[:30], questions=talk.questions[:21])
    monkeypatch.setattr(module, "statements", lambda: [short])
    monkeypatch.setattr(load("recall.many"), "_FILLERS", 0)

    result = module.main(["--quick", "--results", str(tmp_path)])

    assert set(result["figures"]) == {"statements", "many"}, "these are a part of it"
    assert capsys.readouterr().out.count("skipped") == 8
    assert not (tmp_path / "recall.jsonl").exists()


def test_vectors_gives_its_figures(tmp_path):
    """Embedders and each kind of search have their figures."""
    arguments = ["--quick", "--sizes", "300", "--dimensions", "16", "--json", str(tmp_path / "figures")]

    figures = load("vectors.__main__").main(arguments)["figures"]

    assert all(each["texts_per_second"] > 0 for each in figures["embedding"].values())
    (found,) = figures["searching"]
    assert found["rows"] == 300
    assert all(found[way] > 0 for way in ("product_ms", "scores_ms"))
    assert json.loads((tmp_path / "figures").read_text())["figures"]["searching"] == [found]


def test_models_counts_what_a_model_costs():
    """Each step that was due has its calls and tokens for a turn, nothing is left to do, and answers are usable."""
    pytest.importorskip("openai")
    talk = [(at.isoformat(), messages) for at, messages in islice(load("memory.talks").Talks().pages(), 40)]

    figures = load("models.spending").spent([talk])

    assert figures["turns"] == 40
    assert figures["left"] == 0
    assert 0.9 < figures["steps"]["page"]["calls"] < 1.2
    assert {"page", "day", "strategy"} <= figures["steps"].keys()
    assert figures["calls"] < 4.9
    assert figures["tokens"] < 3_874


def test_models_waits_for_no_model(tmp_path, monkeypatch):
    """Turns are measured without a model and with each kind of one, and stay within the budget."""
    pytest.importorskip("openai")
    waiting = load("models.waiting")
    monkeypatch.setattr(waiting, "_rest", lambda: None)  # the figures are not looked at
    monkeypatch.setattr(waiting, "_SETTLING", 20)

    figures = waiting.waited(tmp_path, turns=4, pause=0.0)

    assert {"none", "answers", "30 s", "never"} <= figures.keys()
    assert figures["never"]["median_ratio"] > 0
    assert figures["largest"] <= figures["budget"]
    assert figures["refused"] == 0


def test_servers_gives_slope_and_requests_per_second(monkeypatch, tmp_path):
    """The benchmark of servers counts what stays of each request, and how long requests take beside each other."""
    servers = load("servers.__main__")
    monkeypatch.setattr(servers, "HERE", tmp_path)

    figures = servers.main(["--cycles", "3", "--turns", "4", "--owners", "2", "--requests", "4", "--clients", "1,2"])[
        "figures"
    ]

    assert [each["kind"] for each in figures["cycles"]] == ["one", "grows", "many"]
    # what other tests have left is collected meanwhile
    assert all(first >= last for each in figures["cycles"] for first, last in (each["files"],))
    assert {(each["kind"], each["clients"]) for each in figures["load"]} == {
        (kind, clients) for kind in ("threads", "tasks") for clients in (1, 2)
    }
    assert all(0 < each["p50_ms"] <= each["p99_ms"] for each in figures["load"])


def test_peers_are_billed_beside_memci(conversation):
    """Each manager is billed for its requests, and what it lacks is counted: over budget, orphans, evidence."""
    replays, data, plain = load("cache.replay"), load("cache.data"), load("peers.frameworks.plain")
    begins = [at for at, each in enumerate(conversation.messages) if (each["content"] or "").startswith("Hello, my")]
    bounds = zip(begins, [*begins[1:], None], strict=True)
    parts = tuple(data.Part((conversation.messages[begin:end],)) for begin, end in bounds)
    replay = data._replay(conversation, parts)

    played = {name: replays.play(replay, make, budget=4_000) for name, make in plain.PEERS.items()}
    played["memci"] = replays.play(replay.rotated(1, 2), load("cache.manager").memci("economy"), budget=4_000)

    assert played["full history"]["stopped"]
    for name in ("memci", "sliding window", "drop and forget, half"):
        each = played[name]
        assert (each["over"], each["stopped"]) == (0, False), name
        assert each["verbatim"] + each["line"] + each["listed"] + each["none"] == each["needed"] > 10
        assert each["costs"]["0.1/warm"] <= each["costs"]["0.1/expires"]
        assert 0 < each["costs"]["0.1/warm"] < 1.25 * each["tokens"]
    assert played["sliding window"]["costs"]["0.1/warm"] < played["sliding window"]["costs"]["0.1/expires"]
    assert played["memci"]["costs"]["0.1/expires"] < played["sliding window"]["costs"]["0.1/expires"]
    billing, count = load("cache.prefix").BILLINGS["marked"], replays.counter_for()
    bound = [load("peers.bound").clairvoyant(replay, billing, expires=old, count=count) for old in (False, True)]
    least = [min(each["costs"][f"0.1/{terms}"] for each in played.values()) for terms in ("warm", "expires")]
    assert 0 < bound[0] < bound[1]
    assert all(one < other for one, other in zip(bound, least, strict=True))


def test_sight_knows_what_a_manager_wrote_itself():
    """A message that was not said is the manager's own: what is needed stands on its line, half of the long words."""
    module = load("cache.sight")
    said = [{"role": "user", "content": text} for text in ("the blue kettle boils slowly", "old words", "nobody knows")]
    sight = module.Sight("")
    sight.take(said, paused=True)
    view = [{"role": "user", "content": "Summary:\nkettle slowly, etc.\nwords"}, said[1]]

    sight.asked([said[:1], said[1:]], view, sight.own(view))

    assert sight.own(view) == [0]
    assert dict(sight.found) == {"verbatim": 1, "line": 1, "none": 1}
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}
    result = {"role": "tool", "tool_call_id": "a", "content": ""}
    assert [module.orphans(each) for each in ([call, result], [result], [call, said[0]], [call])] == [0, 1, 1, 0]


def test_cells_compare_at_equal_evidence():
    """memci is ahead where it costs less with no less evidence; a peer over its budget has no cell."""
    compare = load("peers.compare")

    def figure(system, cost, verbatim, over=0.0):
        places = {"verbatim": verbatim, "line": 0, "listed": 0, "none": 1000 - verbatim, "needed": 1000}
        zeros = dict.fromkeys(load("cache.replay").MEANS, 0)
        where = {
            "conversation": "c",
            "window": 1,
            "phase": 0,
            "costs": {"0.1/warm": cost - 1},
            "recalls": {"0.1/warm": 1},
        }
        return {"system": system, **where, **zeros, **places, "over": over}

    figures = [figure("memci economy, r 0.1, kept", 100, 500), figure("full history", 300, 1000, over=0.9)]
    figures += [figure("a", 120, 501), figure("b", 90, 400), figure("c", 120, 600), figure("d", 90, 600)]
    found = compare.cells([*figures, figure("e", 120, 500, over=0.03)], "economy")

    assert [(cell.peer, cell.verdict) for cell in found] == [
        ("a", "ahead"),
        ("b", "dearer"),
        ("c", "less"),
        ("d", "behind"),
    ]
    assert "| all | 4 | 1 | 1 | 1 | 1 |" in compare.summed(figures, "economy")
    assert compare.listed(figures).count("behind · behind · behind") == 1
    figures[1]["over"] = 0.0
    assert compare.cells(figures, "economy") == []


def test_a_script_writes_no_more_than_a_summary():
    """A scripted summary has about 600 tokens, or a fifth of its prompt; with names, the newest identifiers."""
    module = load("cache.script")
    prompt = " ".join(f"Sentence number {at} tells of parcel PX{at:05}." for at in range(2_000))

    for names in (False, True):
        script = module.Script(lambda text: len(text) // 4, names=names)
        text = script.write(prompt)
        assert 400 <= script.written <= 620
        assert ("PX01999" in text and "PX01950" in text) is names
        assert len(script.write(prompt[:1_000])) <= 1_000 // 5


def test_a_table_says_whether_it_is_old():
    """A digest sees code and nothing else; under a table stands whether its code has changed, once."""
    module = load("stale")
    one = 'def f():\n    """Old words."""\n    return 1  # why\n'
    text = "<!-- speed: command; abcdef0; code now -->\n| a |\n| b |\n\ntext\n<!-- cache: c; 1234567 -->\n| a |\n"

    noted, old = module.noted(text, lambda _name: "now")

    assert module.digest([one]) == module.digest(['\n# a comment\ndef f():\n    """New."""\n\n    return 1\n'])
    assert module.digest([one]) != module.digest([one.replace("1", "2")])
    assert old == ["cache"]
    assert "| b |\n\n*The code that this table measures is still that of abcdef0.*\n\ntext" in noted
    assert "| a |\n\n*The code that this table measures has changed since 1234567.*\n" in noted
    assert module.noted(noted, lambda _name: "now") == (noted, ["cache"])
    assert module.noted(noted, lambda _name: "now", measured=["cache"])[1] == []


def test_every_table_of_figures_is_watched():
    """Each kind of table in the document on performance names its code, and all of that code is there."""
    module = load("stale")
    text = module.TABLES.read_text(encoding="utf-8")

    assert set(module._NAMES.findall(text)) <= set(module.MEASURED)
    assert len(module._NAMES.findall(text)) == len(module._NOTE.findall(text)) >= 7
    assert all((module.ROOT / path).exists() for paths in module.MEASURED.values() for path in paths)
    assert all(len(module.code_of(name)) == 12 for name in module.MEASURED)


def test_a_gateway_bill_counts_what_was_sent_before_only_up_to_a_mark():
    """The second request repeats the first: a provider that wants marks keeps what was marked, others all of it."""
    bill = load("gateway.billing").Bill(len)
    first = [{"role": "user", "content": "a" * 3_000}, {"role": "assistant", "content": "b" * 3_000}]
    bill.add("openai_chat", {"messages": first})
    spent = dict(bill.spent)
    bill.add("openai_chat", {"messages": [*first, {"role": "user", "content": "c" * 3_000}]})

    assert spent["marked"] == pytest.approx(1.25 * bill.tokens * 2 / 5, rel=0.02)
    assert bill.spent["automatic"] - spent["automatic"] == pytest.approx(0.1 * 6_000 + 3_000, rel=0.05)
    assert bill.spent["half"] - spent["half"] == pytest.approx(0.5 * 6_000 + 3_000, rel=0.05)


def test_the_inspector_shows_what_the_context_counts(conversation):
    """No number differs in a small window with compactions; one that is wrong is counted."""
    inspector = load("inspector")

    found = inspector.play(conversation, 24, 3_000, "balanced", 8)
    assert (found.compared > 150, found.different.total()) == (True, 0)
    found.compare("it", "turn 3", 7, 8)
    assert found.different == {"it": 1}


def test_encryption_gives_its_figures():
    """Each act has its cost in a plain store and in an encrypted one."""
    figures = load("encryption").main(["--turns", "20", "--pages", "6", "--reads", "2", "--discard"])["figures"]

    assert len(figures) == 10
    assert all(plain > 0 and sealed > 0 for plain, sealed in figures.values())


@pytest.mark.parametrize(("preset", "billing"), [("economy", "marked"), ("balanced", "half"), ("economy", "automatic")])
@pytest.mark.parametrize("drawn", [False, True])
def test_the_bill_and_the_report_agree(conversation, preset, billing, drawn):
    """What a context says that its requests cost is, to 1 %, what the bill says, which is written apart from it."""
    replays, data, manager = load("cache.replay"), load("cache.data"), load("cache.manager")
    paused = replace(conversation, starts=frozenset(range(0, 300, 25)))
    made = []

    def make(setting):
        made.append(manager.memci(preset, billing, drawn=drawn)(setting))
        return made[-1]

    replay = data.Replay(paused, (data.Part((paused.messages,)),))
    played = replays.play(replay, make, budget=4_000, billings=(billing,), calls=150)
    report = made[0].context.report()

    price, pause = load("cache.prefix").BILLINGS[billing].read, "drawn" if drawn else "expires"
    assert report.spent == pytest.approx(played["calls"] * played["costs"][f"{price}/{pause}"], rel=0.01)
    assert report.cached == pytest.approx(played["kept"][f"{price}/warm"], abs=0.01)
    assert report.tokens["tools"] == made[0].tools > 100
    assert report.compactions > 3


def test_what_a_manager_adds_is_billed(conversation):
    """memci's notice and tools are in each request; what a call needs and does not see costs a recall."""
    bills = load("cache.bills")
    bill = bills.Bills(len, ["marked"])
    message = {"role": "user", "content": "word " * 400}
    size = bill.request([message], stable=1, tools=500, after=dict.fromkeys(bills.PAUSES, bills.CALL))

    bill.recall()

    assert bill.sizes == [size] == [500 + 2_000 + 3 + 4 - 3]
    assert bill.figures["costs"]["0.1/warm"] == 1.25 * size
    assert bill.figures["recalls"]["0.1/drawn"] == pytest.approx(0.1 * size + 1.25 * bills.RECALL)


def test_people_pause_as_they_are_said_to():
    """The drawn pauses have a median of 75 seconds, and 14 % are longer than five minutes."""
    bills = load("cache.bills")
    random = bills.Random(1)
    drawn = sorted(bills.pauses(random, paused=False, talks=True)["drawn"].total_seconds() for _ in range(4_000))

    assert drawn[2_000] == pytest.approx(75, rel=0.05)
    assert sum(each > 300 for each in drawn) / 4_000 == pytest.approx(0.14, abs=0.015)
    assert bills.pauses(random, paused=True, talks=False) == {
        "warm": bills.CALL,
        "expires": bills.PAUSE,
        "drawn": bills.CALL,
    }


def test_needs_are_read_from_text_and_found_in_whole_lines():
    """An identifier in a command is needed; it is verbatim in a long piece of whole lines, and not in a short one."""
    module = load("cache.sight")
    function = {"name": "bash", "arguments": json.dumps({"command": "sed -n 1,40p src/app.py | grep runMain"})}
    call = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    assert module.needs(call) >= {"src/app.py", "runMain"}
    listing = "\n".join(
        [f"src/file_{number}.py  {number * 7}" for number in range(40)] + ["src/app.py  99", "def runMain"]
    )
    sight = module.Sight("")
    sight.take([{"role": "tool", "tool_call_id": "a", "content": listing}], paused=True)

    def shown(text):
        sight.found.clear()
        view = [{"role": "tool", "tool_call_id": "a", "content": text}]
        missed = sight.called(call, view, sight.own(view))
        return missed, dict(sight.found)

    assert shown(listing) == (False, {"verbatim": 2})
    assert shown("[cut]\n" + listing[-250:].partition("\n")[2]) == (False, {"verbatim": 2})
    assert shown("[cut]\nsrc/app.py  99\ndef runMain") == (True, {"line": 2})
    assert shown("[cut]\nsrc/app.py  99") == (True, {"line": 1, "none": 1})


def test_single_tasks_have_a_context_each(tmp_path, monkeypatch):
    """Traces are {kind: {system, runs}}: each run is played from nothing, and all of them are billed."""
    function = {"name": "bash", "arguments": json.dumps({"command": "ls src/app.py"})}
    run = [{"role": "user", "content": "fix src/app.py " + "word " * 900}]
    for at in range(3):
        call = {"id": f"c{at}", "type": "function", "function": function}
        run += [{"role": "assistant", "content": "", "tool_calls": [call]}]
        run += [{"role": "tool", "tool_call_id": f"c{at}", "content": f"found {at} " + "word " * 300}]
    (tmp_path / "single_tasks.json").write_text(json.dumps({"terminal": {"system": "Work.", "runs": [run] * 3}}))
    monkeypatch.setenv("MEMCI_DATA", str(tmp_path))
    data, replays, plain = load("cache.data"), load("cache.replay"), load("peers.frameworks.plain")
    replay = data.replay_of("terminal")
    assert data.replay_of("repair") is None

    makes = {**plain.PEERS, "memci": load("cache.manager").memci("economy")}
    one, all_ = (
        {name: replays.play(each, make, budget=64_000) for name, make in makes.items()}
        for each in (replay.first(1), replay)
    )

    for name, each in all_.items():
        assert each["calls"] == 12 == 3 * one[name]["calls"]
        assert each["costs"] == pytest.approx(one[name]["costs"]), name
        assert each["verbatim"] == each["needed"] == 15
    assert all_["memci"]["tokens"] > all_["full history"]["tokens"] + 300
    money = load("peers.money")
    rows = money.priced(replay, 64_000, ["claude-sonnet-5-5", "gpt-6-sol"])
    text = money.written(rows, ["claude-sonnet-5-5", "gpt-6-sol"])
    assert text.count("(1.00)") == len(rows)
    assert "genai-prices" in text
    assert {row["system"] for row in rows} == {*plain.PEERS, "memci economy", "memci balanced"}
    assert all(0 < cost < 100 for row in rows for cost in row["dollars"].values())


def test_plain_rivals_do_what_they_say(conversation):
    """A new thread forgets; a tenth drops more than a half; users' messages stay; old results of tools are cleared."""
    module, plain = load("cache.manager"), load("peers.frameworks.plain")
    script = load("cache.script").Script(len)
    made = {
        name: make(module.Setting("", 3_000, lambda text: len(text) // 4, script)) for name, make in plain.PEERS.items()
    }
    made["context editing"].trigger = 2_000
    sizes = {name: [] for name in made}
    for _, turn in islice(conversation.calls(), 60):
        for name, manager in made.items():
            sizes[name].append(len(manager.call(turn)))
    view = made["context editing"].call([])
    cleared = [each["content"].startswith("[cleared") for each in view if each["role"] == "tool"]

    assert cleared == [True] * (len(cleared) - 3) + [False] * 3
    assert min(sizes["drop and forget, a tenth"][20:]) < min(sizes["drop and forget, half"][20:])
    users = [each for each in made["users' messages kept"].messages if each["role"] == "user"]
    assert len(users) > 3
    assert sum(each["content"].startswith("Summary") for each in users) == 1
    assert len(made["compact"].messages) < len(made["full history"].messages) / 2
    made["a new thread per task"].begin()
    assert len(made["a new thread per task"].call(turn)) == len(turn)
