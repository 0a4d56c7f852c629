"""Overflow: what providers say of a request that is too long, and what is no such error."""

import pytest

from memci.formats.overflow import overflow

SAID = [
    (
        "This model's maximum context length is 8000 tokens. However, your messages resulted in 8412 tokens.",
        (8412, 8000),
    ),
    (
        "This model's maximum context length is 128000 tokens. However, you requested 130,000 tokens "  # noqa: ISC004
        "(66000 in the messages, 64000 in the completion). Please reduce the length of the messages or completion.",
        (66000, 64000),
    ),
    (
        "Error code: 400 - {'error': {'message': 'prompt is too long: 213462 tokens > 200000 maximum'}}",
        (213462, 200000),
    ),
    ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", (188240, 178667)),
    ("The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).", (1050000, 1048576)),
    ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", (40000, 32768)),
    ("request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", (9000, 8192)),
    ("The input (5031 tokens) is longer than the model's context length (4096 tokens).", (5031, 4096)),
    ("Range of input length should be [1, 30720]", (None, 30720)),
    ("the request exceeds the available context size. try increasing the context size", (None, None)),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", (None, None)),
    ("ValidationException: Input is too long for requested model.", (None, None)),
    ("输入超过最大长度限制", (None, None)),
]
OTHERS = [
    "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000.",
    "Request too large for gpt-4o: tokens per minute",
    "max_tokens is too large: 200000. This model supports at most 16384 completion tokens",
    "Invalid API key",
    "messages.3.content: text content blocks must be non-empty",
]


@pytest.mark.parametrize(("said", "numbers"), SAID)
def test_a_request_that_was_too_long_is_known_with_its_numbers(said, numbers):
    """The tokens of the request, and the most that it may have beside the answer."""
    assert overflow(ValueError(said)) == numbers


@pytest.mark.parametrize("said", OTHERS)
def test_another_error_is_none(said):
    """Limits on many requests together, on the answer, and mistakes are other errors."""
    assert overflow(said) is None
