"""Answers to recalls in a task of many steps, which is one open page: there is room for them at each step."""

from memci import Context, EphemeralStorage
from memci.messages import text_of

FACT = "The key of locker {0} hangs behind door {0}."


def asked(step, name, arguments):
    return {"id": f"c{step}", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_search_finds_at_each_step_of_a_long_task():
    """Old steps leave the open page for an answer; else it would say that nothing was found, shortly before they do."""
    with Context.open(EphemeralStorage(), "ann", system="Help.", window=6_000) as context:
        context.append_turn("Look at each locker.")
        for step in range(40):
            call = {"role": "assistant", "content": None, "tool_calls": [asked(step, "look", f'{{"at": {step}}}')]}
            result = FACT.format(step) + f" Step {step} took a while, and nothing else happened." * 20
            context.append_turn(call, {"role": "tool", "tool_call_id": f"c{step}", "content": result})
            context.render()
            if context.report().compactions:
                answer = context.answer(asked("s", "search_memory", '{"query": "Where hangs the key of locker 3?"}'))
                assert FACT.format(3) in text_of(answer), step
                assert 500 < context.count(text_of(answer)) <= context.window // 4
                context.append_turn(
                    {"role": "assistant", "content": None, "tool_calls": [asked(f"s{step}", "search_memory", "{}")]}
                )
                context.append_turn({**answer, "tool_call_id": f"cs{step}"})
                assert context.render()[-1]["content"] == text_of(answer), "it is not clipped"
        assert context.report().compactions > 2
