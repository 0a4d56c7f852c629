"""What the calls of the model cost is kept: a row for each, of the usage that an append was given."""

import contextlib
import json
from types import SimpleNamespace

import pytest

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import CorruptRecord, InvalidSetting
from memci.formats.usage import CallsCost, reported
from memci.history.export_format import line_of
from memci.history.import_ import import_lines

from .kit import OWN_TOOL, again, opened, turn

pytestmark = pytest.mark.usefixtures("no_memory")

USAGE = {
    "prompt_tokens": 900,
    "completion_tokens": 41,
    "prompt_tokens_details": {"cached_tokens": 640, "cache_write_tokens": 100},
}


def talked(storage, turns=3, **given):
    """Return a context with a call of the model in each turn."""
    context = opened(storage, model="gpt-4o", **given)
    for number in range(turns):
        context.render(turn(number)[0], tools=[OWN_TOOL])
        context.append_turn(*turn(number), usage=USAGE, op_id=f"op {number}", at="2026-05-01T08:00:00")
    return context


def test_call_of_the_model_is_kept(storage):
    """Each append with a usage leaves a row: predicted and reported tokens, model, time, tools that were sent."""
    context = talked(storage)
    first, second, third = context.calls()

    assert first._replace(predicted=0, tools=None) == (
        2,
        0,
        0,
        "2026-05-01T08:00:00+00:00",
        "gpt-4o",
        0,
        900,
        640,
        100,
        41,
        None,
    )
    assert (second.seq, second.turn, third.seq, third.turn) == (2, 1, 4, 2)
    assert 0 < first.predicted < second.predicted < third.predicted
    assert json.loads(first.tools) == [OWN_TOOL, *context.tools]
    assert context.calls(after=first.revision, limit=1) == [second]
    assert context.report().cost == CallsCost(3, 2_700, 1_920, 300, 123)
    assert again(storage).report().cost == context.report().cost
    assert context.verify() == []


def test_call_is_kept_once_and_with_its_append_only(storage):
    """A retry adds no row, an append without a usage none, one of a refused usage nothing; a usage alone is kept."""
    context = talked(storage, 1)
    context.append_turn(*turn(0), usage=USAGE, op_id="op 0")
    context.append_turn(*turn(1))
    with pytest.raises(InvalidSetting, match="completion_tokens"):
        context.append_turn("lost", usage={**USAGE, "completion_tokens": "many"})
    assert len(context.calls()) == 1

    context.append_turn(usage=USAGE)

    assert [call.seq for call in context.calls()] == [0, 4]
    assert context.report().messages == 4


def test_handle_that_did_not_render_predicts_nothing(storage):
    """The row says what was reported, and neither a prediction nor tools that it does not know."""
    talked(storage, 1)
    context = again(storage)
    context.append_turn(*turn(1), usage=USAGE)

    last = context.calls()[-1]

    assert (last.predicted, last.tools, last.input) == (0, None, 900)
    assert context.report().ratio == again(storage).report().ratio


def test_past_fork_and_export_have_their_calls(storage):
    """A view has those up to its turn, a fork its own, an import all, and exports the same lines again."""
    context = talked(storage, 12, window=760)
    with Context.view(storage, "alice", at=4) as past:
        assert len(past.calls()) == past.report().cost.calls == 5
        early = list(past.export())
    fork = context.fork("bob", at=4)
    assert (fork.calls(), fork.report().cost.calls) == ([], 0)
    fork.append_turn(*turn(5), usage=USAGE)
    assert len(fork.calls()) == 1

    for lines, calls in ((early, 5), (list(context.export()), 12), (list(fork.export()), 1)):
        copy = Context.import_(EphemeralStorage(), lines, counter=lambda text: len(text.split()))
        assert list(copy.export()) == lines
        assert len(copy.calls()) == calls
        assert sum('"kind":"call"' in line and '"tools"' in line for line in lines) == (calls > 1)
        copy.append_turn(*turn(13), usage=USAGE)
        assert copy.verify() == []


@pytest.mark.parametrize("change", ["order", "revision", "at", "missing"])
def test_import_of_calls_that_were_changed_is_refused(change):
    """Their order and fields are checked like those of every line, also where the digest is right."""
    lines = [json.loads(each) for each in talked(EphemeralStorage()).export()]
    calls = [at for at, each in enumerate(lines) if each["kind"] == "call"]
    if change == "order":
        lines[calls[0]], lines[calls[1]] = lines[calls[1]], lines[calls[0]]
    elif change == "missing":
        del lines[calls[0]]
    else:
        lines[calls[0]][change] = 9_999 if change == "revision" else "noon"
    with pytest.raises(InvalidSetting, match="line"):
        import_lines(EphemeralStorage(), map(line_of, lines))


def test_erased_context_leaves_no_call(storage):
    """They go with the context; a new one of its name has none."""
    from memci.history.erase import erase

    talked(storage).close()
    erase(storage, context="alice")
    assert opened(storage).calls() == []


def test_sqlite_keeps_each_list_of_tools_once_and_shows_damage(tmp_path):
    """Rows name their list by a digest; a byte that changed in either is found when it is read."""
    with contextlib.closing(SQLiteStorage(tmp_path / "agent.db")) as storage:
        context = talked(storage, 5)
        change = storage._connection.execute
        assert change("SELECT count(*) FROM tools").fetchall() == [(1,)]
        change("UPDATE tools SET text = x'20'")
        with pytest.raises(CorruptRecord, match="tools"):
            context.calls()
        change("UPDATE call SET input = 1")
        with pytest.raises(CorruptRecord, match="call of the model"):
            context.calls()
        assert any("call of the model" in problem for problem in context.verify())


def test_largest_usage_that_is_taken_can_be_exported():
    """What an append accepts, an import accepts, too; more than that is refused by the append."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    context = opened()
    context.append_turn("Hi", usage=dict.fromkeys(names, 3 * 10**11))
    with pytest.raises(InvalidSetting, match="usage"):
        context.append_turn("Hi", usage={"prompt_tokens": 3 * 10**11 + 1})

    copy = Context.import_(EphemeralStorage(), context.export(), counter=lambda text: len(text.split()))

    assert copy.report().cost == context.report().cost == CallsCost(1, 9 * 10**11, *[3 * 10**11] * 3)


@pytest.mark.parametrize("given", [{"after": -1}, {"after": "x"}, {"limit": 0}, {"limit": True}])
def test_calls_refuses_what_makes_no_sense(given):
    """The error names the argument."""
    with pytest.raises(InvalidSetting) as caught:
        opened().calls(**given)
    assert caught.value.name in given


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (USAGE, (900, 640, 100, 41)),
        (
            {"input_tokens": 9, "input_tokens_details": SimpleNamespace(cached_tokens=4), "output_tokens": 3},
            (9, 4, 0, 3),
        ),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 5, "prompt_tokens_details": None}, (9, 5, 0, 0)),
        (
            {"input_tokens": 60, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 40, "output_tokens": 7},
            (900, 800, 40, 7),
        ),
        (
            {
                "promptTokenCount": 900,
                "cachedContentTokenCount": 640,
                "candidatesTokenCount": 30,
                "thoughtsTokenCount": 11,
            },
            (900, 640, 0, 41),
        ),
        (
            SimpleNamespace(prompt_token_count=9, cached_content_token_count=None, candidates_token_count=2),
            (9, 0, 0, 2),
        ),
        (  # xAI reports reasoning beside the completion
            {
                "prompt_tokens": 37,
                "completion_tokens": 530,
                "total_tokens": 800,
                "completion_tokens_details": {"reasoning_tokens": 233},
            },
            (37, 0, 0, 763),
        ),
        (  # the numbers above the iterations are those of the messages alone
            {
                "input_tokens": 23,
                "output_tokens": 10,
                "iterations": [
                    {"type": "compaction", "input_tokens": 180, "cache_read_input_tokens": 4, "output_tokens": 35},
                    {"type": "message", "input_tokens": 23, "output_tokens": 10},
                ],
            },
            (207, 4, 0, 45),
        ),
        (
            {"input_tokens": 900, "output_tokens": 20, "input_token_details": {"cache_read": 640}},
            (900, 640, 0, 20),
        ),
        (
            {"inputTokens": 900, "outputTokens": 20, "inputTokenDetails": {"cacheReadTokens": 640}},
            (900, 640, 0, 20),
        ),
        (SimpleNamespace(input_tokens=900, cache_read_tokens=640, cache_write_tokens=9), (900, 640, 9, 0)),
    ],
)
def test_usage_of_each_provider_is_read(usage, expected):
    """Input holds what was cached, output the reasoning, whoever reports them and in whatever shape."""
    assert reported(usage) == (1, *expected)


def test_calls_of_a_page_that_was_taken_back_are_in_order(storage):
    """A popped opener opens the page before, and the turn before with it: the calls that were made stay."""
    context = talked(storage)
    for _ in range(2):
        context.pop()
    context.append_turn({"role": "assistant", "content": "And?"}, usage=USAGE)

    assert context.verify() == []
    assert [call.turn for call in context.calls()] == [0, 1, 2, 1]
    context.append_turn(*turn(7), usage=USAGE)
    with Context.view(storage, "alice", at=1) as past:
        assert [call.turn for call in past.calls()] == [0, 1, 1]


@pytest.mark.parametrize(
    ("usage", "input_", "cached"),
    [
        # LiteLLM in front of Anthropic repeats the cached tokens beside a count that includes them
        (
            {
                "prompt_tokens": 9_050,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 9_000},
                "cache_read_input_tokens": 9_000,
            },
            9_050,
            9_000,
        ),
        ({"input_tokens": 50, "output_tokens": 20, "cache_read_input_tokens": 9_000}, 9_050, 9_000),
        (
            {"input_tokens": 9_050, "output_tokens": 20, "total_tokens": 9_070, "cache_read_input_tokens": 9_000},
            9_050,
            9_000,
        ),
        ({"promptTokenCount": 900, "toolUsePromptTokenCount": 300, "cachedContentTokenCount": 100}, 1_200, 100),
        ({"inputTokens": 50, "outputTokens": 20, "totalTokens": 9_070, "cacheReadInputTokens": 9_000}, 9_050, 9_000),
        ({"inputTokens": 9_050, "outputTokens": 20, "totalTokens": 9_070, "cachedInputTokens": 9_000}, 9_050, 9_000),
        ({"prompt_tokens": 9_050.0, "completion_tokens": 20.0}, 9_050, 0),
        # some servers put Anthropic's number, without the cached tokens, under the key of OpenAI's
        ({"prompt_tokens": 50, "total_tokens": 70, "cache_read_input_tokens": 9_000}, 9_050, 9_000),
        ({"inputTokens": 50, "outputTokens": 20, "totalTokens": 70, "cacheReadInputTokens": 9_000}, 9_050, 9_000),
    ],
)
def test_cached_tokens_count_once(usage, input_, cached):
    """Whether they are among the input tokens follows from the keys and the total."""
    cost = reported(usage)
    assert (cost.input, cost.cached_read) == (input_, cached)


@pytest.mark.parametrize("damaged", [False, True])
def test_check_of_a_context_that_others_change_meanwhile(damaged):
    """What another writer adds is no damage; what is damaged is told all the same."""

    class Busy(EphemeralStorage):
        writer = None

        def entries(self, *given, **options):
            if self.writer is not None:
                self.writer, writer = None, self.writer
                writer.append_turn(*turn(9), usage=USAGE)
            return super().entries(*given, **options)

        def pages(self, *given, **options):
            return (page for page in super().pages(*given, **options) if page.index > damaged)

    storage = Busy()
    context = talked(storage)
    storage.writer = talked(storage, 0)

    assert bool(context.verify()) is damaged
