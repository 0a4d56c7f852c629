"""A copy of an error, by pickle or by copy, is equal to it: errors cross processes."""

import copy
import pickle

import pytest

from memci import errors

ERRORS = [
    errors.InvalidMessage("content[0]", "no text"),
    errors.LimitExceeded("message bytes", 2, 1),
    errors.QuotaExceeded("ada", "messages", 11, 10),
    errors.OpenToolGroup(["call_1"]),
    errors.BudgetExceeded(3, {"pins": 5}),
    errors.PageNotFound(3, (1, 2)),
    errors.Undone("page #1"),
    errors.ModelUnavailable("draft", "no answer", partial="Hel"),
    errors.EmbeddingFailed("e5", "no vectors", retryable=True),
    errors.StorageFull("no space is left"),
    errors.CommitUnknown(None, "disk"),
    errors.KeyMissing("alice", "3fa9b1c0", "another key was given"),
    errors.CorruptRecord("alice", 1, "it is missing"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_copied_error_says_the_same(error: errors.MemciError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
