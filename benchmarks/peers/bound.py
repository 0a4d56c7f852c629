"""A lower bound: what a manager would pay that knows all that is needed, and when. This module knows no manager."""

from collections import defaultdict

from memci.tokens import TokenCounter, message_tokens

from ..cache.data import Replay
from ..cache.prefix import Billing
from ..cache.sight import needs
from ..conversation import Message, texts


def clairvoyant(replay: Replay, billing: Billing, *, expires: bool, count: TokenCounter) -> float:
    """Return a lower bound of the mean cost of a call, in input tokens, if all evidence is shown verbatim.

    With the prices r of a token that is read from the cache and w of one that goes into it (1, if requests are shorter
    than the least prefix):

    - Each request has the system prompt, of S tokens. No token costs less than r; after a pause, where the cache
      *expires*, none costs less than w. So the system prompt costs at least r S a call, and w S after such a pause.
    - Each request has the new turn, whole. It was never sent before, so its n tokens cost at least w n.
    - A message of m tokens that only itself has an argument of the call that follows request u must stand in u. It
      stood in the request in which it came, or in which it was needed last, g requests before. It was either sent in
      all requests since, at r m each at least, or left out of one and not cached when it came back. So it costs at
      least min(r g, w) m between the two.

    These parts are of different tokens, so their sum is a bound. What is left out only makes a manager dearer: that a
    prefix is cached and not a message, that a message which is needed drags along those before it, arguments that
    stand in several messages, the task. Size is not limited: the bound is the same for all windows. O(messages of a
    run × arguments).
    """
    calls = list(replay.conversation.calls())
    system: Message = {"role": "system", "content": replay.conversation.system}
    fixed = message_tokens(system, count)
    write = billing.write if fixed >= billing.minimum else min(1.0, billing.write)
    read = min(billing.read, write)
    total = 0.0
    run: list[Message] = []
    seen: defaultdict[int, int] = defaultdict(int)
    for number, (paused, turn) in enumerate(calls):
        if number and turn[0]["role"] == "assistant":
            for leaf in needs(turn[0]):
                sources = [at for at, message in enumerate(run) if any(leaf in text for text in texts(message))]
                if leaf not in system["content"] and len(sources) == 1:
                    gap = number - 1 - seen[sources[0]]
                    total += min(read * gap, write) * message_tokens(run[sources[0]], count)
                    seen[sources[0]] = number - 1
        if paused:
            run, seen = [], defaultdict(int)
        for message in turn:
            seen[len(run)] = number
            run.append(message)
        total += write * sum(message_tokens(message, count) for message in turn)
        total += (write if paused and (expires or not number) else read) * fixed
    return total / len(calls)
