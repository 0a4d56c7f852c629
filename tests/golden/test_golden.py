"""What a context shows and stores is the same, byte for byte, as when the digests were committed.

What is shown is in the caches of providers, and what is stored is in files of users. `golden_cases.py` says how a
digest is renewed after a change that was meant.
"""

import pytest
from golden_cases import OWN, PROMPTED, REAL, committed, differences
from golden_digests import replayed
from golden_model import prompted
from golden_texts import FOLDER, own, real

WHY = "the real conversations are not here: set MEMCI_DATA to their folder"
TALKS = {"own": own, "real": real}


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *(pytest.param("own", case, id=case.name) for case in OWN),
        *(
            pytest.param(
                "real",
                case,
                id=case.name,
                marks=[pytest.mark.data, pytest.mark.slow, pytest.mark.skipif(not FOLDER.is_dir(), reason=WHY)],
            )
            for case in REAL
        ),
    ],
)
def test_a_conversation_gives_the_bytes_that_it_always_gave(name, case, tmp_path):
    """Renderings, answers, tools, exports and stored rows of a conversation are those that were committed."""
    found = replayed(case, TALKS[name]()[case.talk], tmp_path)

    assert differences(found, committed(name)[case.name]) == []


@pytest.mark.parametrize("talk", PROMPTED)
def test_a_memory_asks_its_model_what_it_always_asked(talk, tmp_path):
    """The prompts of every step of the memory are those that were committed: answers depend on them."""
    found = prompted(own()[talk], tmp_path)

    assert differences(found, committed("own")[f"prompts of {talk}"]) == []


def test_every_committed_digest_is_compared():
    """A case that is renamed or dropped leaves no digests behind."""
    assert [*committed("own")] == [*(case.name for case in OWN), *(f"prompts of {talk}" for talk in PROMPTED)]
    assert [*committed("real")] == [case.name for case in REAL]
