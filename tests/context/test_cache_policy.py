"""The cache policy at work: gaps of the prompt cache, uses of the past, and the same decisions after a restart."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci import CachePricing, Context, EphemeralStorage, Policy
from memci.errors import InvalidSetting
from memci.history.import_ import import_lines
from memci.memory import NullMemory

from .kit import again, call, calling, opened, result, words

pytestmark = pytest.mark.usefixtures("no_memory")

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def policy(preset="economy", **given):
    """A policy with a short memory of the provider, so that small windows are cached."""
    return Policy(preset=preset, pricing=CachePricing(minimum=64), **given)


def step(number, name="find", **arguments):
    """A turn that calls a tool, and needs what *arguments* say."""
    id_ = f"c{number}"
    return [f"do {number} " + "word " * 20, calling(call(id_, name, arguments)), result(id_, f"found T{number:04}")]


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


def use(context):
    """What the policy has counted."""
    return context.report().use


def test_a_gap_archives_at_the_next_append_and_once():
    """After a pause the request is billed whole anyway: the older pages leave with the append, and only then."""
    clock, events = Clock(), []
    with opened(policy=policy(archive_share=None), clock=clock, on_event=events.append) as context:
        for number in range(60):
            context.append_turn(*step(number))
        assert events == []
        before = context.report().total
        clock.now += HOUR
        context.append_turn("again")

        [event] = [each for each in events if each.kind == "compaction"]
        assert event.reason.startswith("economy")
        assert event.tokens < before - 300
        assert use(context).gaps == 1
        clock.now += timedelta(seconds=10)
        context.append_turn("and again")
        assert [each.kind for each in events] == ["compaction"]


def test_a_pause_that_the_cache_outlives_cuts_what_is_not_needed_across_pauses():
    """A chat is cached still, and keeps its pages; an agent that needs nothing from before a pause drops it."""
    lasting = Policy(preset="economy", pricing=CachePricing(minimum=64, lifetime=86_400))
    events = []
    options = {"policy": lasting, "window": 10_000, "on_event": lambda event: events.append(event.kind)}
    clock = Clock()
    with opened(clock=clock, **options) as chat:
        for number in range(30):
            chat.append_turn(f"say {number} " + "word " * 200, {"role": "assistant", "content": f"said {number}"})
            clock.now += HOUR * (number % 6 == 5)
        assert use(chat).gaps == 4
        assert "compaction" not in events
    clock = Clock()
    with opened(clock=clock, **options) as agent:
        for number in range(30):
            agent.append_turn(*step(number))
            agent.append_turn(*step(number, order=f"T{number:04}"))
            clock.now += HOUR * (number % 6 == 5)
        agent.append_turn("next")

        assert use(agent).gaps == 5
        assert use(agent).far == 0
        assert "compaction" in events
        assert agent.report().pages["active"] < 12


def test_a_gap_is_seen_by_a_rendering_of_the_contexts_own_clock():
    """A rendering with what is pending is the first request after the pause: the older pages leave before it."""
    clock = Clock()
    with opened(policy=policy(), clock=clock) as context:
        for number in range(60):
            context.append_turn(*step(number))
        before = context.report().total
        clock.now += HOUR
        context.render("again")

        assert context.report().total < before - 300
        context.append_turn("again")
        assert use(context).gaps == 1


def test_times_of_the_caller_make_no_gap_in_a_rendering():
    """Appends with times of their own are not compared with the clock on the wall."""
    with opened(policy=policy()) as context:
        for number in range(60):
            context.append_turn(*step(number), at=START + timedelta(seconds=number))
        context.render()
        context.append_turn("again", at=START + timedelta(seconds=30))

        assert use(context).gaps == 0


@pytest.mark.parametrize("times", [[None] * 3, [START, START - HOUR, START - 2 * HOUR]])
def test_without_a_clock_or_backwards_there_is_no_gap(times):
    """Only a later time is a pause."""
    with opened(policy=policy(), clock=None) as context:
        for number, at in enumerate(times):
            context.append_turn(*step(number), at=at)

        assert use(context).gaps == 0


def test_who_only_reads_cuts_nothing():
    """A view long after the last append shows what is stored."""
    storage, clock = EphemeralStorage(), Clock()
    with opened(storage, policy=policy(), clock=clock) as context:
        for number in range(60):
            context.append_turn(*step(number))
        shown = context.render()
    with Context.view(storage, "alice", counter=words) as view:
        assert view.render() == shown


def test_another_model_knows_nothing_of_the_prompt():
    """A context that goes on with another model is cold, without any pause."""
    storage = EphemeralStorage()
    with opened(storage, policy=policy(), model="gpt-4o") as context:
        for number in range(60):
            context.append_turn(*step(number))
    with again(storage, model="claude-sonnet-4-5") as context:
        context.append_turn("again")
        assert use(context).gaps == 1
        context.append_turn("once")
        assert use(context).gaps == 1
    with again(storage) as context:
        context.append_turn("and for good")
        assert use(context).gaps == 1


def test_uses_and_far_uses_are_counted():
    """An argument that was said before is a use; it is far if it was said before the last pause only."""
    clock = Clock()
    with opened(policy=policy(), clock=clock, system="The desk AAA1111.") as context:
        context.append_turn(*step(1))
        context.append_turn(*step(2, id="T0001"))
        context.append_turn(*step(3, id="AAA1111", note="never said"))
        clock.now += HOUR
        context.append_turn(*step(4, id="T0003"))
        context.append_turn(*step(5, id="T0004"))
        clock.now += HOUR
        context.append_turn("thanks")

        assert (use(context).uses, use(context).far, use(context).gaps) == (3, 1, 2)


@pytest.mark.parametrize("times", [1, 3])
def test_uses_between_ends_that_the_text_told_are_counted_behind_their_own_gaps(times):
    """Such an end costs no count: each call is told later by the gap in front of it, and by none behind it."""
    with opened(policy=policy(), window=20_000) as context:
        for at in range(times):
            first = 10 * at
            context.append_turn(*step(first))
            context.append_turn(*step(first + 1, id=f"T{first:04}"))  # near
            context.append_turn(*step(first + 2, id=f"T{max(first - 10, 0):04}"))  # far, but for the first task
            context.append_turn("Thank you!", {"role": "assistant", "content": "You're welcome."})
            context.append_turn("Hello! " + step(first + 3)[0], *step(first + 3)[1:])
        assert (use(context).uses, use(context).gaps, use(context).ends) == (0, times, times)
        context.archive()

        assert (use(context).uses, use(context).far, use(context).gaps) == (2 * times, times - 1, times)


def test_gaps_are_in_order_also_in_a_fork_from_before_the_last_one():
    """What was said behind the fork is not there, and an import accepts what a gap of the fork wrote."""
    thanks = ("Thank you!", {"role": "assistant", "content": "You're welcome."})
    with opened(policy=policy(), window=20_000) as context:
        context.append_turn(*step(0))
        for number in (1, 2):
            context.append_turn(*thanks)
            context.append_turn("Hello! " + step(number)[0], *step(number)[1:])
        fork = context.fork("fork", at=2)
    fork.append_turn("Hello! " + step(3)[0], *step(3)[1:])
    storage = EphemeralStorage()
    import_lines(storage, fork.export())

    assert use(fork).gaps == 3
    with Context.open(storage, "fork", counter=words) as copied:
        assert use(copied) == use(fork)


def test_a_young_context_is_not_counted_before_it_matters():
    """While no count can lower the trigger, calls are counted every 64 messages; from there on every 16."""
    with opened(policy=policy(), window=20_000) as context:
        small, found = context.report().levels.soonest, []
        while (tokens := context._parts.window.tokens) < 1.5 * small:
            context.append_turn(*step(len(found)))
            found.append((tokens > small, context._parts.window.record.head - use(context).counted))

    assert max(since for large, since in found if not large) >= 64
    assert max(since for large, since in found[-20:] if large) < 24


def test_what_left_the_window_is_a_far_use_also_after_a_restart():
    """The ids of archived pages are known from the compactions, so that a restart forgets none."""
    storage, clock = EphemeralStorage(), Clock()
    counts = []
    for reopens in (False, True):
        storage, clock = EphemeralStorage(), Clock()
        context = opened(storage, policy=policy(), clock=clock)
        for number in range(60):
            if number % 12 == 0:
                clock.now += HOUR
            if reopens:
                context.close()
                context = again(storage, clock=clock)
            context.append_turn(*step(number, id=f"T{max(0, number - 30):04}"))
        counts.append((use(context), context.render(), list(context.pages())))
        context.close()

    assert counts[0][0].far > 5
    assert counts[0] == counts[1]


@settings(max_examples=5)
@given(st.data())
def test_a_restart_changes_no_decision(data):
    """Pauses, other prices, tool calls near and far: a context that is opened again before each turn shows the same
    bytes as one that never was."""
    preset = data.draw(st.sampled_from(["economy", "balanced"]))
    turns = data.draw(
        st.lists(st.tuples(st.sampled_from([0, 5, 400, 4_000]), st.integers(0, 40)), min_size=30, max_size=40)
    )
    shown = []
    for reopens in (False, True):
        storage, now = EphemeralStorage(), START
        context = opened(storage, window=1_500, policy=policy(preset), clock=None, memory=NullMemory())
        views = []
        for number, (pause, back) in enumerate(turns):
            now += timedelta(seconds=pause)
            if reopens:
                context.close()
                context = again(storage, clock=None, memory=NullMemory())
            context.append_turn(*step(number, id=f"T{max(0, number - back):04}"), at=now)
            views.append(json.dumps(context.render()))
        context.close()
        shown.append(views)

    assert shown[0] == shown[1]


def test_prices_are_stored_and_checked():
    """A price that is none is refused with its name; a good one holds until another one is given."""
    with pytest.raises(InvalidSetting, match=r"pricing\.read"):
        CachePricing(read=-1.0)
    with pytest.raises(InvalidSetting, match=r"pricing\.minimum"):
        CachePricing(minimum=10.5)
    with pytest.raises(InvalidSetting, match="pricing"):
        opened(policy=Policy(pricing={"read": 0.1}))
    storage = EphemeralStorage()
    with opened(storage, policy=Policy(pricing=CachePricing(read=0.5, input=3.0))) as context:
        context.append_turn("Hello")
        context.render()
        assert context.report().money == pytest.approx(context.report().spent * 3e-6)
    with again(storage) as context:
        assert context._parts.window.settings.pricing == CachePricing(read=0.5, input=3.0)
    with again(storage, policy=Policy(preset="verbatim")) as context:
        assert context._parts.window.settings.pricing.read == 0.5


@pytest.mark.parametrize("marks", ["x y", 5, "-", "5 0000"])
def test_marks_that_were_made_up_are_refused(marks):
    """An import says that the words of a compaction are none."""
    clock = Clock()
    with opened(policy=policy(), clock=clock) as context:
        for number in range(40):
            clock.now += HOUR if number % 9 == 0 else timedelta()
            context.append_turn(*step(number, id=f"T{max(0, number - 3):04}"))
        lines = list(context.export())
    at = next(at for at, line in enumerate(lines) if '"marks":' in line or '\\"marks\\":' in line)
    fields = json.loads(lines[at])
    fields["text"]["marks"] = marks
    lines[at] = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)

    with pytest.raises(InvalidSetting, match="compaction"):
        import_lines(EphemeralStorage(), lines, id="y")


def test_a_chat_without_answers_is_not_counted_with_each_append():
    """Where no model call is in the window, the count goes on all the same: an append costs what is new."""
    with opened(policy=policy()) as context:
        for number in range(200):
            context.append_turn(f"note {number} " + "word " * 60)
            assert context._parts.window.record.head - use(context).counted <= 70


def test_a_count_of_uses_does_not_have_the_whole_window_counted_again():
    """A rendering costs what is new, also in a large window whose uses are counted every few messages."""
    texts = []

    def count(text):
        texts.append(text)
        return len(text.split())

    with opened(policy=policy(), window=1_000_000, counter=count) as context:
        for number in range(150):
            context.append_turn([{"role": "user", "content": f"ask {number}"}, {"role": "assistant", "content": "ok"}])
            context.render()
    assert len(texts) < 150 * 8


def test_a_model_that_returns_while_its_cache_lives_is_no_gap():
    """A router's second model has an empty cache once; after that each model has a clock of its own."""
    storage, clock = EphemeralStorage(), Clock()
    opened(storage, policy=policy(), clock=clock, model="gpt-4o").close()

    def gaps(model, number, later):
        clock.now += later
        with again(storage, model=model, clock=clock) as context:
            context.append_turn(*step(number))
            return use(context).gaps

    minute = timedelta(minutes=1)
    models = ("gpt-4o", "claude-sonnet-4-5") * 4
    assert [gaps(model, number, minute) for number, model in enumerate(models)] == [0] + [1] * 7
    assert gaps("gpt-4o", 22, HOUR) == 2
    assert gaps("claude-sonnet-4-5", 23, minute) == 2


def test_a_model_whose_cache_expired_meanwhile_is_cold_and_ends_no_task():
    """It was absent for longer than its cache lives, while another model went on: old pages leave, once."""
    storage, clock, events = EphemeralStorage(), Clock(), []
    opened(storage, policy=policy(), clock=clock, model="gpt-4o").close()

    def turns(model, times):
        with again(storage, model=model, clock=clock, on_event=events.append) as context:
            for number in range(times):
                clock.now += timedelta(seconds=10)
                context.append_turn(f"say {number} " + "word " * 30, {"role": "assistant", "content": "said"})
            return use(context).gaps

    assert turns("gpt-4o", 1) == 0
    assert turns("gpt-5", 1) == 1
    assert turns("gpt-4o", 28) == 1
    assert events == []
    assert turns("gpt-5", 1) == 1  # absent for 290 seconds: its cache lives
    assert events == []
    assert turns("gpt-4o", 31) == 1
    assert turns("gpt-5", 1) == 1
    assert [each.kind for each in events] == ["compaction"]
    assert turns("gpt-4o", 1) == 1
    assert len(events) == 1


def test_without_a_clock_only_a_model_that_was_never_called_is_a_gap():
    """Where no time is known, nothing says that a cache has expired; what was never called has none."""
    storage = EphemeralStorage()
    opened(storage, policy=policy(), clock=None, model="gpt-4o").close()
    found = []
    for number in range(9):
        with again(storage, clock=None, model=("gpt-4o", "gpt-5", "o3")[number % 3]) as context:
            context.append_turn(*step(number))
            found.append(use(context).gaps)

    assert found == [0, 1, 2, 2, 2, 2, 2, 2, 2]


def tool(name, words="It finds an order."):
    """A schema."""
    return {"type": "function", "function": {"name": name, "description": words, "parameters": {"type": "object"}}}


def test_tools_that_change_are_read_from_no_cache():
    """A request begins with its tools: others each time leave nothing cached, and the report names them."""
    with opened(policy=policy(), window=8_000) as context:
        for number in range(30):
            context.append_turn(*step(number))
            context.render(tools=[tool("find")])
        assert context.report().cached > 0.8
        assert context.report().warnings == ()
        spent = context.report().spent
        for number in range(30, 60):
            context.append_turn(*step(number))
            context.render(tools=[tool(f"find_{number}", "It finds an order. " * 20)])
        report = context.report()

        assert report.cached_last == 0
        assert report.spent - spent > 4 * spent
        assert [each for each in report.warnings if "30 times" in each and "from 'find_58' to 'find_59'" in each]
        context.render(tools=[tool("find_59", "It finds a customer.")])
        assert "in 'find_59'" in context.report().warnings[-1]


def test_a_date_in_the_system_prompt_is_named():
    """Whoever opens a context with another prompt each day reads nothing from the cache: the report says where."""
    storage = EphemeralStorage()
    for day in (24, 25):
        with Context.open(
            storage, "a", window=4_000, counter=words, system=f"Help. Today is 2026-11-{day}, Kyoto."
        ) as context:
            context.append_turn("hello", {"role": "assistant", "content": "hi"})
            warnings = context.report().warnings
            changed = "the system prompt changed, from '2026-11-24,' to '2026-11-25,'"
            assert sum(each.endswith(changed) for each in warnings) == (day == 25)


def test_the_first_system_prompt_breaks_nothing():
    """A framework may store the question before it names its instructions: no request began without them."""
    storage = EphemeralStorage()
    with Context.open(storage, "a", window=4_000, counter=words) as context:
        context.append_turn("hello")
    with Context.open(storage, "a", system="Be brief.") as context:
        assert context.report().warnings == ()


def test_spent_knows_which_pauses_a_cache_outlives():
    """The bill counts a request as new if the cache expired before it, whatever the policy makes of the pause."""
    spent = {}
    for lifetime in (300.0, 3_600.0, 86_400.0):
        clock = Clock()
        prices = CachePricing(minimum=64, lifetime=lifetime, input=2.0)
        with opened(policy=Policy(archive_share=0.5, pricing=prices), window=8_000, clock=clock) as context:
            for number in range(40):
                context.append_turn(*step(number))
                context.render()
                clock.now += timedelta(minutes=0 if number % 4 else 20)
            spent[lifetime] = context.report().spent
            assert context.report().money == pytest.approx(spent[lifetime] * 2e-6)
    assert spent[300.0] > 2 * spent[3_600.0] == 2 * spent[86_400.0]


OPTIONS = ({"role": "user", "content": "Can you tell me what they are?"}, {"role": "assistant", "content": "Two."})
THANKS = ({"role": "user", "content": "Thank you so much!"}, {"role": "assistant", "content": "You're welcome."})


@pytest.mark.parametrize(
    ("before", "said", "ends"),
    [
        ((), "Hi! I need to cancel a booking.", True),
        ((), "你好，我想取消预订。", True),
        (THANKS, "I need to cancel a booking.", True),
        ((), "I need to cancel a booking.", False),
        (THANKS, "Is order A0003 on its way?", False),
        ((), "Hi, is order A0003 on its way?", False),
        (THANKS, "Bye!", False),
        (OPTIONS, "I need to cancel a booking.", False),
    ],
)
def test_an_end_of_a_task_is_seen_without_a_clock(before, said, ends):
    """A greeting, or thanks, and then a new request begin another task, unless something of this one is named."""
    with opened(policy=policy(), window=20_000) as context:
        for number in range(20):
            context.append_turn(*step(number, order=f"A{number % 4:04}"))
        if before:
            context.append_turn(*before)
        gaps = use(context).gaps
        context.append_turn(said)

        assert use(context).gaps == gaps + ends


def test_a_repeated_append_to_another_model_is_no_gap(tmp_path):
    """Nothing changes with it, and the next append notices that the model's cache is empty."""
    pricing = policy("balanced", archive_share=None)
    with opened(tmp_path / "a.db", policy=pricing, clock=None, model="gpt-5", window=20_000) as context:
        for number in range(60):
            context.append_turn(*step(number), op_id=f"op{number}")
    with again(tmp_path / "a.db", policy=pricing, clock=None, model="gpt-4o", window=20_000) as context:
        before, messages = use(context), context.render()
        assert context.append_turn(*step(59), op_id="op59").duplicate
        assert (use(context), context.render()) == (before, messages)
        context.append_turn("next", op_id="op60")
        assert use(context).gaps == before.gaps + 1


def test_a_repeated_append_ends_no_task_again():
    """What an op_id stored before begins nothing: no use is counted, and nothing leaves."""
    with opened(policy=policy(), window=20_000) as context:
        for number in range(20):
            context.append_turn(*step(number, order=f"A{number % 4:04}"))
        context.append_turn("Hi! I need to cancel a booking.", op_id="op")
        context.append_turn(*step(21))
        before, messages = use(context), context.render()

        assert context.append_turn("Hi! I need to cancel a booking.", op_id="op").duplicate
        assert use(context) == before
        assert context.render() == messages


@pytest.mark.parametrize("greets", [True, False])
def test_where_the_text_tells_the_ends_of_tasks_a_pause_is_none(greets):
    """People pause in the middle of tasks: after three greetings only these are gaps, and a pause keeps the task."""
    clock = Clock()
    with opened(policy=policy(), window=8_000, clock=clock) as context:
        for number in range(50):
            hello = "Hello! " * (greets and number % 10 == 0)
            _, calls, found = step(number, order=f"T{number // 10 * 10:04}")
            context.append_turn(f"{hello}I need ({number}). " + "word " * 380, calls, found)
            clock.now += HOUR
        kept = [message["content"] or "" for message in context.render()]

        assert use(context).ends == 4 * greets
        assert use(context).gaps == (31 if greets else 50)
        assert any("(41)" in text for text in kept) == greets


def test_a_wrong_end_of_a_task_drops_nothing_that_is_needed_again():
    """Who greets in each message and needs what was said before keeps it: such uses are far."""
    with opened(policy=policy(), window=20_000) as context:
        context.append_turn(*step(0, order="A0001"))
        for number in range(40):
            context.append_turn(
                {"role": "user", "content": f"Hello! Go on, please ({number})."}, *step(0, order="A0001")[1:]
            )

        assert use(context).gaps > 3
        assert not context.report().levels.forgets
