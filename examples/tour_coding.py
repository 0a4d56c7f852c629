"""A tour: a coding agent makes 300 calls behind one message, in a window of 16,000 tokens. No network, no key, seconds.

    python examples/tour_coding.py

Its page never ends, so old calls leave the open page; the contents list them. At the end the model needs an error of
the beginning word for word: it recalls that stretch of its own page.
"""

import re

from scripted import Scripted, call

from memci import Agent, Context, EphemeralStorage
from memci.tokens import message_tokens

CALLS = 300


def run(command: str) -> str:
    """Run a shell command, and return what it prints."""
    number = int(re.findall(r"\d+", command)[0])
    if command.startswith("pytest") and number == 12:
        return (
            "E   AssertionError: invoice_0012 totals 1,204.50, expected 1,240.50 (rounding.py:88)\n1 failed, 7 passed"
        )
    if command.startswith("pytest"):
        return f"tests/test_module_{number}.py ........ 8 passed in 0.{number:03}s"
    lines = [f"{line:4} def step_{number}_{line}(order):  # part {line} of module {number}" for line in range(1, 13)]
    return "\n".join(lines)


def model(messages: list[dict]) -> object:
    """Play a model that reads and tests one module after the other, and recalls its one failure for the report."""
    number = sum(message["role"] == "assistant" for message in messages)
    model.calls = max(number, getattr(model, "calls", 0) + 1)
    last = str(messages[-1]["content"])
    if model.calls < CALLS - 2:
        at = (model.calls + 1) // 2
        return call("run", command=f"sed -n 1,12p module_{at}.py" if model.calls % 2 else f"pytest test_{at}.py")
    if "AssertionError: invoice" not in last:
        return call("search_memory", query="AssertionError of a failed test")
    return f"One test fails: {re.search(r'invoice_.*?rounding.py:88.', last)[0]}"


largest, question = 0, "Test all modules of the shop, then tell me the failure with its exact numbers."
with Context.open(
    EphemeralStorage(), "shop", system="You are a coding agent.", model="gpt-5", window=16_000
) as context:
    client = Scripted(model)
    answer = Agent(client, context, tools=[run], steps=CALLS + 10).run(question)
    largest = max(sum(message_tokens(each, context.count, "gpt-5") for each in sent) for sent in client.requests)
    said = sum(message_tokens(message, context.count, "gpt-5") for message in context.messages())
    calls = len(client.requests)
    print(f"{calls} calls of the model; all that was said has {said:,} tokens, the largest request {largest:,}.")
    print(f"{context.report()}\n\nuser   {question}\nmodel  … {calls - 2} calls of run …")
    for message in context.turns(1)[0][-3:]:
        for made in message.get("tool_calls") or ():
            print(f"model  {made['function']['name']}({made['function']['arguments']})")
        for line in str(message["content"]).splitlines():
            if message["role"] == "tool" and "invoice" in line:
                print(f"memci  {line[:150]} …")
    print(f"model  {answer}")
