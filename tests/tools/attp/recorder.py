"""Tools that record what they were called with."""

from collections.abc import Callable


class Recorder:
    """Two typed tools over one list of calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def recall_page(self, page: int, offset: int = 1) -> str:
        """Read an archived page of this conversation in full.

        Args:
            page: The number on its line.
        """
        self.calls.append(("recall_page", page, offset))
        return f"page {page} from {offset}"

    def search_memory(self, query: str, *, k: int | None = None, exact: bool = False, least: float = 0.0) -> str:
        """Search everything that was said."""
        self.calls.append(("search_memory", query, k, exact, least))
        return f"hits for {query}"

    @property
    def tools(self) -> dict[str, Callable[..., object]]:
        """The tools by name."""
        return {"recall_page": self.recall_page, "search_memory": self.search_memory}
