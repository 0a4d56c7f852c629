"""A hook of MkDocs: pages of the site that are made from others, and links that lead out of it.

    README.md          ──▶ index.md          README.zh-CN.md ──▶ zh/index.md
    docs/adapters/*    ──▶ use-with.md       the first lines of each page, a tab per framework
    docstrings         ──▶ reference/*.md

A link to a file that is no page of the site (a test, an example) becomes its path. A link to nothing is an error. This
module knows nothing of what the pages say.
"""

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
MADE = {
    "index.md": "README.md",
    "zh/index.md": "README.zh-CN.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
"""pages that are a file elsewhere in the repository"""
REFERENCE = {
    "context": ("memci.Context", "memci.AsyncContext", "memci.context.report", "memci.history.events"),
    "settings": ("memci.settings", "memci.model_catalog"),
    "errors": ("memci.errors",),
    "formats": ("memci.formats", "memci.testing.formats"),
    "storage": ("memci.rows", "memci.storage.protocol", "memci.storage.sqlite.store", "memci.storage.filesystem.store"),
    "memory": ("memci.memory.backend", "memci.memory.tiered_memory"),
    "llm": ("memci.llm",),
    "adapters": (
        "memci.adapters.conversations",
        "memci.adapters.agent",
        "memci.adapters.clients",
        "memci.adapters.opentelemetry",
    ),
    "serve": ("memci.serve.gateway",),
    "testing": ("memci.testing.adapters.conformance", "memci.testing.storage", "memci.testing.llm.server"),
}
"""pages that are made from docstrings"""
LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    files.remove(files.get_file_from_path("index.md"))
    made = {page: (ROOT / source).read_text("utf-8") for page, source in MADE.items()}
    made["use-with.md"] = tabs()
    for name, names in REFERENCE.items():
        made[f"reference/{name}.md"] = f"# {name}\n\n" + "\n\n".join(f"::: {each}" for each in names) + "\n"
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Write the fences as MkDocs reads them, and the links as the site has them."""
    del config
    here = Path(MADE.get(page.file.src_uri, f"docs/{page.file.src_uri}"))
    parts = FENCED.split(markdown)
    parts[1::2] = [re.sub(r"^```(\w+) .*", r"```\1", part, count=1) for part in parts[1::2]]
    parts[::2] = [LINK.sub(lambda link: linked(link, here, page.file.src_uri, files), part) for part in parts[::2]]
    return "".join(parts)


def linked(link: re.Match[str], here: Path, uri: str, files: Any) -> str:
    """Return the *link* on the page *uri*, whose file is *here* in the repository, as the site has it."""
    image, text, target = link.groups()
    path, _, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return link[0]
    found = Path(os.path.normpath(here.parent / path))
    if not (ROOT / found).exists() and here.parts[0] == "docs" and here.name != "use-with.md":
        raise PluginError(f"{here}: there is no {target}")
    at = next((made for made, source in MADE.items() if source == str(found)), None)
    if at is None and found.parts[0] == "docs":
        at = "index.md" if str(found) == "docs/index.md" else str(found.relative_to("docs"))
    if at is None or files.get_file_from_path(at) is None:
        return f"{text} (`{found}`)" if text.strip("`") != str(found) else f"`{found}`"
    place = os.path.relpath(at, Path(uri).parent)
    return f"{image}[{text}]({place}{'#' + anchor if anchor else ''})"


def tabs() -> str:
    """Return a page with the first code of each adapter's page, a tab for each framework."""
    lines = ["# Use it with …", ""]
    index = (ROOT / "docs/adapters/index.md").read_text("utf-8")
    lines += [index.split("\n\n")[1], ""]  # what its title is followed by
    for path in sorted((ROOT / "docs/adapters").glob("*.md")):
        if path.name == "index.md":
            continue
        text = path.read_text("utf-8")
        title = re.search(r"^# (.+)", text, re.MULTILINE)[1]
        code = re.search(r"^```python[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
        lines += [f'=== "{title}"', "", "    ```python", *(f"    {line}" for line in code.splitlines()), "    ```", ""]
        lines += [f"    [More](adapters/{path.name})", ""]
    return "\n".join(lines)
