"""What a memory's model costs: what is kept of it, and the ceiling of a day."""

from model_kit import DAY, NOON, SMALL, Clock, modelled, obliging, page, tell, waiting

from memci.memory import TieredMemory


def test_ceiling_holds_for_a_day(storage):
    """When the tokens of a day are spent no call is made until the next UTC day, by no handle."""
    clock = Clock()
    memory, chat = modelled(storage, clock=clock, ceiling=500)
    tell(memory, *(page(index) for index in range(1, 9)), maintain=False)
    while memory.run_job():
        pass
    made = len(chat.calls)
    other, second = modelled(storage, clock=clock, ceiling=500)

    assert 0 < made < 8
    assert not memory.run_job()
    assert not other.run_job()
    assert second.calls == []
    assert memory.work().waiting >= 8 - made
    clock.now += DAY
    while other.run_job():
        pass
    assert second.calls
    assert sum(each.tokens for each in other.work().spent.values()) > 500


def test_ceiling_ends_with_the_day(storage):
    """What the ceiling held back is due when the next day begins, not later."""
    clock = Clock(NOON + DAY / 2 - 1)
    memory, chat = modelled(storage, clock=clock, ceiling=300)
    tell(memory, *(page(index) for index in range(1, 9)), maintain=False)
    while memory.run_job():
        pass
    for _ in range(5):
        memory.run_job()
    made = len(chat.calls)

    clock.now += 1
    memory.run_job()

    assert len(chat.calls) == made + 1


def test_ceiling_holds_within_a_job(storage):
    """A job whose answers are rejected asks no more when the tokens are spent, and that is no fault of the job."""
    memory, chat = modelled(storage, lambda asked: {"title": "x" * 800}, ceiling=500)
    tell(memory, page(1))

    assert not memory.run_job()

    assert len(chat.calls) == 2
    assert waiting(memory) == [("page", 1, 0)]


def test_what_was_spent_is_kept_by_step(storage):
    """Calls and tokens are counted by step, with failures and rejected answers, and outlive the handle."""
    answers = iter([{"title": ""}, "no JSON", None])

    def answer(asked):
        return next(answers, None) or obliging(asked)

    memory, chat = modelled(storage, answer)
    tell(memory, page(1))
    while memory.run_job():
        pass
    memory.close()

    spent = TieredMemory(storage, owner="anna").work().spent

    assert set(spent) == {"page"}
    assert (spent["page"].calls, spent["page"].rejected, spent["page"].failed) == (3, 2, 0)
    assert spent["page"].prompt == chat.ledger.total.prompt
    assert spent["page"].completion == chat.ledger.total.completion
    assert chat.ledger.total.rejected == 2


def test_provider_that_reports_no_usage_is_counted_by_the_texts(storage):
    """Tokens are counted from what was sent and said if the reply tells none, so that a ceiling holds."""
    from dataclasses import replace

    from memci.llm import Usage

    memory, chat = modelled(storage)

    def silent(messages, /, **given):
        return replace(chat(messages, **given), usage=Usage())

    memory = TieredMemory(storage, owner="anna", rules=SMALL, chat=silent, clock=Clock(), counter=len)
    tell(memory, page(1))
    memory.run_job()

    spent = memory.work().spent["page"]

    assert spent.prompt > 100
    assert spent.completion > 50
