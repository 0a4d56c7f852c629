"""What went wrong elsewhere when something should be gone, and can't here. The numbers are public issues."""

from tests.context.kit import again, call, calling, talked

SECRET = "aardvark-4711"


def read(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_was_erased_is_found_nowhere(storage, tmp_path):
    """ruflo#2815: what was deleted was still found by search. It is in no page, line, answer, compaction and file."""
    context = talked(3, storage=storage)
    context.append_turn(f"My secret is {SECRET}.", {"role": "assistant", "content": f"I keep {SECRET}."})
    context.archive(keep=0)
    context.append_turn("What was it?", calling(call("r", "recall_page", {"index": 4})))
    context.append_turn(*context.answers(calling(call("r", "recall_page", {"index": 4}))))
    assert SECRET in str(context.render())

    receipt = context.erase(4)

    assert SECRET not in str(context.render()) + str(list(context.messages())) + "".join(context.export())
    assert SECRET not in str(again(storage).render())
    assert receipt.physical == "done"
    assert SECRET.encode() not in read(tmp_path)


def test_erasing_twice_does_not_find_zero(storage):
    """ruflo#2815: the clean-up found nothing to do. A second erasure returns the first one's receipt."""
    context = talked(3, storage=storage)
    receipt = context.erase(1)

    assert context.erase(1) == receipt


def test_erasure_is_one_step(storage):
    """pensyve PR#267: the list and the delete were two steps. Page, line and answers go in one transaction."""
    context = talked(3, storage=storage)
    before = context.report().messages
    revision = storage.revision("alice")

    receipt = context.erase(2)

    assert storage.revision("alice") == revision + 1
    assert receipt.pages == 1
    assert context.report().messages == before
    assert context.verify() == []


def test_receipt_claims_no_more_than_is_true(storage, tmp_path):
    """semantica PR#1027: the tombstone said erased while the vector was there. "done" means that no file has it."""
    context = talked(2, storage=storage)
    context.append_turn(f"My secret is {SECRET}.")

    receipt = context.erase(3)

    assert (receipt.physical == "done") == (SECRET.encode() not in read(tmp_path))
