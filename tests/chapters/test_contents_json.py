"""The Contents Page as JSON: the same bytes come back."""

import json

from hypothesis import given
from hypothesis import strategies as st

from memci.chapters.chapter import Entry
from memci.chapters.contents import Block, ContentsPage, ListedPage, ListedRange


def dumps(page: ContentsPage) -> str:
    return json.dumps(page.to_json())


def loads(text: str, *, nonce: str, weigh) -> ContentsPage:
    return ContentsPage.from_json(json.loads(text), nonce=nonce, weigh=weigh)


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)


def weigh(message: dict) -> int:
    return len(message["content"])


@st.composite
def contents(draw) -> ContentsPage:
    blocks, index = [], 0
    for _ in range(draw(st.integers(0, 3))):
        lines, ranges = [], []
        for _ in range(draw(st.integers(0, 2))):
            pages = tuple(range(index + 1, index + 1 + draw(st.integers(1, 4))))
            index = pages[-1]
            ranges.append(ListedRange(pages, tuple((page, draw(texts)) for page in pages[:2])))
        for _ in range(draw(st.integers(0, 3))):
            index += 1
            roles = draw(st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=4))
            entries = [Entry(index, at, role, draw(texts)) for at, role in enumerate(roles, 1)]
            joined = tuple(range(index + 1, index + 1 + draw(st.integers(0, 2))))
            lines.append(ListedPage.of(index, draw(texts), entries, len, joined))
            index = (index, *joined)[-1]
        blocks.append(Block.of(lines, ranges, "1f9a03c2", weigh))
    return ContentsPage(tuple(blocks))


@given(contents(), st.booleans())
def test_compaction_comes_back_equal(compaction, recount):
    """What is read equals what was written: messages, tokens, lines, ranges, levels."""
    text = dumps(compaction)

    back = loads(text, nonce="1f9a03c2", weigh=weigh if recount else None)

    assert back == compaction
    assert json.dumps([each.message for each in back.blocks]) == json.dumps(
        [each.message for each in compaction.blocks]
    )
    assert dumps(back) == text


def test_compaction_is_counted_anew_when_it_is_asked():
    """Another counter weighs the blocks again; without one the counts are trusted."""
    line = ListedPage.of(1, "t", [Entry(1, 1, "user", "s")], len)
    text = dumps(ContentsPage((Block.of([line], (), "00000000", weigh),)))

    assert loads(text, nonce="00000000", weigh=lambda _: 7).tokens == 7
    assert loads(text, nonce="00000000", weigh=None).tokens > 7


def test_empty_compaction_comes_back():
    """No block is a compaction too."""
    assert loads(dumps(ContentsPage()), nonce="00000000", weigh=None) == ContentsPage()
