"""What the program told the model within the conversation: it stays in its role when its page has left the window."""

import pytest

from memci import Context, EphemeralStorage
from memci.formats import FORMATS
from memci.messages import text_of
from memci.testing.formats import problems

pytestmark = pytest.mark.usefixtures("no_memory")

RULE = "Deploy and review are your skills. Never push to main."
SAID = "They talked about the weather for a while, and then about the harvest of the year before. " * 4


def talk(context, turns, told=(), role="system"):
    """Append *turns* turns, and in each of those in *told* what the program tells the model."""
    for turn in range(turns):
        rules = [{"role": role, "content": f"{RULE} ({turn})"}] if turn in told else []
        context.append_turn(f"Question {turn}? {SAID}", *rules, {"role": "assistant", "content": f"{turn} {SAID}"})


def said(text):
    return {"role": "assistant", "content": text}


def told_in(messages):
    shown = [(each["role"], text_of(each)) for each in messages if each["role"] in {"system", "developer"}]
    return [each for each in shown if RULE in each[1]]


@pytest.mark.parametrize(("form", "role"), [*zip(FORMATS, ["system", "developer"] * 2, strict=True)])
def test_it_stays_in_its_role(form, role):
    storage = EphemeralStorage()
    with Context.open(storage, "ann", system="Help.", window=2_500, format=form) as context:
        talk(context, 16, told=(2, 5), role=role)
        rules = [(role, f"{RULE} (2)"), (role, f"{RULE} (5)")]
        assert [each.where for each in context.pages() if each.index in (3, 6)] == ["archived", "archived"]
        view = context.render("And now?", format="openai_chat")
        assert told_in(view) == rules
        assert problems(form, context.request("And now?", format=form)) == []
    with Context.open(storage, "ann") as again:
        assert again.render("And now?", format="openai_chat") == view
        assert again.verify() == []


def test_the_newest_stay_as_far_as_there_is_room():
    with Context.open(EphemeralStorage(), "ann", system="Help.", window=4_000) as context:
        talk(context, 40, told=range(1, 40))
        shown = told_in(context.render())
        assert 5 < len(shown) < 39
        assert [text for _, text in shown] == [f"{RULE} ({turn})" for turn in range(40)][-len(shown) :]


def test_one_that_is_told_again_stands_once():
    with Context.open(EphemeralStorage(), "ann", system="Help.", window=4_000) as context:
        talk(context, 3)
        for _ in range(9):
            context.append_turn("Go on.", {"role": "system", "content": RULE}, {"role": "assistant", "content": "Yes."})
        talk(context, 24)
        assert told_in(context.render()) == [("system", RULE)]


def test_one_that_is_told_again_on_a_page_that_stays_is_shown_there_alone():
    with Context.open(EphemeralStorage(), "ann", system="Help.", window=4_000) as context:
        talk(context, 3, told=(1,))
        while context.report().compactions < 3:
            context.append_turn("Go on.", {"role": "system", "content": f"{RULE} (1)"}, "Well.", said(SAID))
        assert told_in(context.render())[0] == ("system", f"{RULE} (1)")
        assert all(shown["role"] == "user" for shown in context.render()[1:3])


def test_a_long_one_stays_where_the_contents_page_has_no_room_for_it():
    rules = f"{RULE} (long)" + " Ask before each deployment." * 200
    with Context.open(EphemeralStorage(), "ann", system="Help.", window=16_000) as context:
        context.append_turn("Begin.", {"role": "developer", "content": rules}, said(SAID))
        while context.report().compactions < 4:
            talk(context, 5)
        assert told_in(context.render("And now?", format="openai_chat")) == [("developer", rules)]
        assert context.report().total <= context.report().budget
        context.append_turn("Read it.", said(SAID * 400))
        assert told_in(context.render("And now?", format="openai_chat")) == [("developer", rules)]


def test_one_that_is_erased_or_taken_back_is_gone():
    with Context.open(EphemeralStorage(), "ann", system="Help.", window=4_000) as context:
        talk(context, 24, told=(3, 4, 9))
        context.erase(4, 2)
        context.erase(5)
        assert [text for _, text in told_in(context.render())] == [f"{RULE} (9)"]
        assert context.verify() == []
        context.pin(10)
        assert [text for _, text in told_in(context.render())] == [f"{RULE} (9)"]
