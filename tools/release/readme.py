"""The README as the package index shows it: its links and its picture lead to the repository, at the version's tag."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


class Readme(MetadataHookInterface):
    """Sets the README of a build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`, with absolute links."""
        root = Path(self.root)
        version = re.search(r'^__version__ = "(.+)"', (root / "memci/__init__.py").read_text("utf-8"), re.MULTILINE)
        assert version is not None, "memci/__init__.py names the version"
        base = f"{metadata['urls']['Repository']}/{{}}/v{version[1]}"

        def absolute(link: re.Match[str]) -> str:
            return f"{link[1]}[{link[2]}]({base.format('raw' if link[1] else 'blob')}/{link[3]})"

        text = LINK.sub(absolute, (root / "README.md").read_text("utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
