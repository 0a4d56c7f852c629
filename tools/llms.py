"""Write llms.txt, a list of the documents for coding agents, and llms-full.txt, all of them in one file.

    .venv/bin/python tools/llms.py            `make docs` does so; a test says if they are older than the documents

The order is that of docs/index.md. Each page is described by the line that it has there.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAD = """# memci

> A Python library that keeps an agent's conversation within its model's window: every request fits the token budget, no
> message is lost, and the model reads anything older again, word for word. `from memci import Agent, Context`.

Begin with docs/quick.md: one page for most programs, and ten usual mistakes. llms-full.txt has all pages in one file.
"""
LINE = re.compile(r"^- \[([^]]+)\]\(([\w/-]+\.md)\): (.*)$", re.MULTILINE)
LINK = re.compile(r"!?\[([^]]*)\]\([^)\s]+\)")
APART = ("README.md", "docs/index.md")  # the first page, and the list itself


def listed() -> list[tuple[str, str, str]]:
    """Return path, title and description of each page, in the order of the index; others come at the end."""
    index = (ROOT / "docs/index.md").read_text("utf-8")
    found = [(f"docs/{path}", title, LINK.sub(r"\1", text)) for title, path, text in LINE.findall(index)]
    known = {path for path, _, _ in found} | {*APART}
    pages = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))
    rest = [path for path in pages if path not in known and not path.startswith("docs/zh/")]
    return [*found, *((path, title_of(path), "") for path in rest)]


def title_of(path: str) -> str:
    """Return the heading of the page at *path*."""
    return (ROOT / path).read_text("utf-8").partition("\n")[0].removeprefix("# ")


def written() -> dict[str, str]:
    """Return the text of both files, by name."""
    pages = listed()
    lines = [f"- [{title}]({path}){f': {text}' if text else ''}" for path, title, text in pages]
    texts = [f"<!-- {path} -->\n\n{plain(path)}" for path in ("README.md", *(path for path, _, _ in pages))]
    return {"llms.txt": f"{HEAD}\n## Pages\n\n" + "\n".join(lines) + "\n", "llms-full.txt": "\n\n".join(texts) + "\n"}


def plain(path: str) -> str:
    """Return the page at *path*, its links and pictures as their words."""
    text = (ROOT / path).read_text("utf-8").strip()
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [LINK.sub(r"\1", part) for part in parts[::2]]
    return "".join(parts)


if __name__ == "__main__":
    for name, text in written().items():
        (ROOT / name).write_text(text, "utf-8")
