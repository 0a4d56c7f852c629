"""A tour: an airline's agent over a month, 120 passengers in a window of 8,000 tokens. No network, no key, seconds.

    python examples/tour_airline.py

On the last day somebody asks about a booking of the first: the model searches, reads the page, and answers.
"""

import re
from datetime import UTC, datetime, timedelta

from scripted import Scripted, call

from memci import Agent, Context, EphemeralStorage
from memci.tokens import message_tokens

CITIES = ("Oslo", "Bergen", "Lisbon", "Porto", "Vienna", "Graz", "Kyoto", "Osaka", "Lima", "Quito")


def book(passenger: int, city: str) -> dict[str, object]:
    """Book a seat, and return the booking."""
    reference = f"K{passenger:03}{'ABCDEFGHJK'[passenger % 10]}"
    seat, price = f"{passenger % 30 + 1}{'ABCDEF'[passenger % 6]}", 90 + passenger * 37 % 400
    return {"reference": reference, "city": city, "seat": seat, "price": price, "refundable": passenger % 3 == 0}


def model(messages: list[dict]) -> object:
    """Play a model that books, and that recalls the page of a booking which it does not see."""
    last, text = messages[-1], str(messages[-1]["content"])
    if last["role"] == "user":
        wish = re.match(r"Passenger (\d+) wants to fly to (\w+)", text)
        return call("book", passenger=int(wish[1]), city=wish[2]) if wish else call("search_memory", query=text)
    if text.startswith("{"):
        return "It is booked."
    if (found := re.search(r"#(\d+)", text)) and "found for" in text:
        return call("recall_page", index=int(found[1]), entry=None, offset=None)
    seat = re.search(r"seat\W+(\d+[A-F])", text)
    return f"It has seat {seat[1]}." if seat else "I can't find it."


now, largest = datetime(2026, 10, 1, 8, tzinfo=UTC), 0
prompt = "You work at the desk of an airline."
with Context.open(EphemeralStorage(), "desk", system=prompt, model="gpt-5", window=8_000, clock=lambda: now) as context:
    agent = Agent(Scripted(model), context, tools=[book])
    for passenger in range(120):
        agent.run(f"Passenger {passenger} wants to fly to {CITIES[passenger % 10]}, with a dog.")
        largest = max(largest, context.report().total)
        now += timedelta(minutes=2) if passenger % 4 < 3 else timedelta(days=1, minutes=-6)
    said = sum(message_tokens(message, context.count, "gpt-5") for message in context.messages())
    print(f"All that was said has {said:,} tokens, the largest request {largest:,}.\n{context.report()}\n")

    question = "Which seat has booking K007H?"
    answer = agent.run(question)
    print(f"user   {question}")
    for message in context.turns(1)[0][1:-1]:
        for made in message.get("tool_calls") or ():
            print(f"model  {made['function']['name']}({made['function']['arguments']})")
        for line in str(message["content"]).splitlines():
            if message["role"] == "tool" and "K007H" in line:
                print(f"memci  {line[:110]} …")
    print(f"model  {answer}")
