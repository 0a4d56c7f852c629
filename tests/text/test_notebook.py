"""What a notebook shows of a value: short, and never markup of others."""

from memci import Context, EphemeralStorage


def test_values_show_themselves_without_markup_of_others():
    """A context, its report, a page and what was found are tables; names and messages are escaped."""
    hostile = "<script>alert('parcel')</script> &lt;b>"
    with Context.open(EphemeralStorage(), hostile, window=8_000, clock=None) as context:
        context.append_turn(hostile, {"role": "assistant", "content": "A parcel. " * 500})
        context.append_turn("Thanks!")
        context.archive(keep=0)
        shown = [context, context.report(), next(context.pages()), context.search_memory("parcel", seen=False)]

        for value in shown:
            html = value._repr_html_()
            assert html.startswith("<table>") and len(html) < 4_000
            assert "<script>" not in html
            assert "&lt;b" not in html  # as it was written: it would be shown as another text
        assert "3" in shown[0]._repr_html_()
        assert "#1" in shown[3]._repr_html_()
