"""A provider that counts more than memci, or has a smaller window: the request is made once more, shorter."""

import pytest
from starlette.responses import JSONResponse

from memci.serve.gateway import app

from .kit import FORMATS, Talk
from .upstream import Said, Served, Upstream

MOST = 5_000


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_a_conversation_goes_on_where_the_provider_counts_more(form, stream, tmp_path):
    """The client sees answers only; what it asked for first is still there to be recalled."""
    refused = []

    def script(seen):
        tokens = len(seen.body) // 2  # twice as many as the text has
        if tokens > MOST:
            refused.append(tokens)
            said = f"maximum context length is {MOST} tokens. However, your messages resulted in {tokens} tokens."
            return JSONResponse({"error": {"message": said, "type": "invalid_request_error"}}, 400)
        return Said("Noted.")

    with (
        Upstream(script) as provider,
        Served(app(tmp_path / "agents.db", upstream=provider.url, window=MOST + 500, model="unknown")) as url,
        Talk(form, url, stream=stream, model="unknown") as talk,
    ):
        for number in range(24):
            assert talk.say(f"Question {number}. " + "Words and more words. " * 40) == "Noted."
    assert refused
    assert provider.problems == []


def test_another_refusal_is_the_clients(tmp_path):
    """What is no matter of length reaches the client as the provider said it, also behind a view."""

    def script(seen):
        if len(provider.seen) < 12:
            return Said("Noted.")
        return JSONResponse({"error": {"message": "no such tool", "type": "invalid_request_error"}}, 400)

    with (
        Upstream(script) as provider,
        Served(app(tmp_path / "agents.db", upstream=provider.url, window=6_000)) as url,
        Talk("openai_chat", url) as talk,
    ):
        for number in range(11):
            talk.say(f"Question {number}. " + "Words and more words. " * 100)
        with pytest.raises(Exception, match="no such tool"):
            talk.say("And?")
        assert len(provider.seen) == 12
