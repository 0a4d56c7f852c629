"""Images and documents: whole in the window while they fit, exact on recall, media again when a model recalls them."""

import base64
import json
import zlib

import pytest

from memci import Context, EphemeralStorage
from memci.formats import FORMATS, write

pytestmark = pytest.mark.usefixtures("no_memory")


def image(number: int) -> dict:
    """Return an image of 512 by 512 pixels, unlike those of other numbers."""
    header = b"\x00\x00\x02\x00\x00\x00\x02\x00\x08\x02\x00\x00\x00"
    chunks = [b"\x00\x00\x00\rIHDR" + header + zlib.crc32(b"IHDR" + header).to_bytes(4, "big"), b"%d" % number * 400]
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def document(pages: int) -> dict:
    """Return a PDF of so many pages."""
    body = b"%PDF-1.4\n" + b"".join(b"%d 0 obj << /Type /Page >> endobj\n" % page for page in range(pages))
    data = f"data:application/pdf;base64,{base64.b64encode(body).decode()}"
    return {"type": "file", "file": {"filename": "a.pdf", "file_data": data}}


def asked(*parts: dict) -> dict:
    return {"role": "user", "content": [{"type": "text", "text": "What is this?"}, *parts]}


def opened(window: int, **settings) -> Context:
    return Context.open(EphemeralStorage(), "alice", system="Be brief.", window=window, **settings)


@pytest.mark.parametrize("window", [32_000, 200_000])
@pytest.mark.parametrize(
    "parts", [[document(n)] for n in (1, 5, 20, 100)] + [[image(n) for n in range(most)] for most in (1, 8, 25, 60)]
)
def test_media_stand_whole_while_they_fit_and_come_back_exactly(window, parts):
    """Nothing but the size of the request clips the newest message; what it is, a recall returns."""
    message = asked(*parts)
    with opened(window) as context:
        room = context.clip_limit
        cost = context._parts.window.weigh(message)
        before = context.render(message)
        context.append_turn(message)
        shown = context.render()

        assert shown == before
        assert (shown[-1] == message) is (cost <= room)
        assert context.report().total <= context.budget
        assert context.recall_page(1) == [message]


CALL = {
    "id": "r1",
    "type": "function",
    "function": {"name": "recall_page", "arguments": '{"index":1,"entry":null,"offset":null}'},
}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}


def recalled(context: Context, form: str) -> list[dict]:
    """Let the model recall the first page, and return what is sent next in *form*."""
    context.append_turn("What was on the first picture?", CALLING, *context.answers(CALLING))
    return context.render(format=form)


def filled(window: int, *parts: dict) -> Context:
    """Return a context whose first page, with *parts*, was archived."""
    context = opened(window)
    context.append_turn(asked(*parts), {"role": "assistant", "content": "A picture."})
    context.append_turn("Thanks.", {"role": "assistant", "content": "Gladly."})
    context.append_turn("And now?", {"role": "assistant", "content": "We wait."})
    context.archive(keep=0)
    return context


@pytest.mark.parametrize("form", FORMATS)
def test_media_that_a_model_recalls_come_back_as_media(form):
    """The bytes of the image are in the request again, behind the text that quotes its entry, in every format."""
    picture = image(7)
    data = picture["image_url"]["url"].partition(",")[2]
    with filled(32_000, picture) as context:
        assert data not in json.dumps(context.render(format=form))
        sent = recalled(context, form)

        assert json.dumps(sent).count(data) == 1
        assert "media: 1 of entry 1 follow" in json.dumps(sent)
        if form == "openai_chat":
            assert [each["role"] for each in sent[-2:]] == ["tool", "user"]
        context.append_turn({"role": "assistant", "content": "A boat."})
        assert context.render(format=form)[: len(sent)] == sent
        assert context.report().total <= context.budget


@pytest.mark.parametrize("form", FORMATS)
def test_recalled_media_are_a_part_of_the_answer(form):
    """The answer with its media stays in the turn that asks, and is erased with the page that it quotes."""
    picture = image(7)
    data = picture["image_url"]["url"].partition(",")[2]
    with filled(32_000, picture) as context:
        turn = context.report().turn
        asked, *reply = write(form, [{"role": "user", "content": "Which?"}, CALLING])
        answers = context.answers(reply[0] if form != "openai_responses" else reply)
        context.append_turn(asked, *reply, *answers)

        assert json.dumps(answers).count(data) == 1
        assert context.report().turn == turn + 1
        assert [message["role"] for message in context.messages()][-3:] == ["user", "assistant", "tool"]
        assert json.dumps(context.render(format=form)).count(data) == 1

        context.erase(1)

        assert data not in json.dumps([*context.messages(), *context.export()])


def test_a_result_with_media_costs_what_is_sent_of_it():
    """Its text names each of the media, and they follow as the user's: all of that is counted."""
    parts = [{"type": "text", "text": "Two boats."}, *(image(n) for n in range(9))]
    with opened(32_000) as context:
        window = context._parts.window
        result = {"role": "tool", "tool_call_id": "c1", "content": parts}

        text, media = write("openai_chat", [result])

        assert window.weigh(result) >= window.weigh(text) + window.weigh(media)


def test_media_that_is_too_large_is_named_with_the_call_that_reads_it():
    """The answer says what it costs and what is free, and never that there is nothing."""
    with filled(8_000, *(image(n) for n in range(40))) as context:
        sent = recalled(context, "openai_chat")

        assert "media: entry 1 has some for" in sent[-1]["content"] and 'recall_page({"index": 1' in sent[-1]["content"]
        assert context.report().total <= context.budget


def test_a_text_protocol_gets_the_text_only():
    """`functions` return texts: the place of the media is told."""
    with filled(32_000, image(1)) as context:
        assert "characters of media" in context.functions["recall_page"](1)
