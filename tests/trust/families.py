"""Families of hostile text, made from the tables of the languages and from what separates words."""

import base64
import re
import tomllib
from itertools import product
from pathlib import Path

import memci

TABLES = Path(memci.__file__).parent / "text" / "language" / "tables"
PAIRED = "\n \t.,:-'\"(|0"
SINGLE = (
    PAIRED + "\r\v\xa0\u3000\u2028\u200b!?;…。、，！？～–—_=+*#/\\~`@&%$^<>)[]{}«»“”「」（）·•9½٣aéñßжя中あアー가漢😀🇳"
    "\u0301\u200d\u202e\ufe0f\x00\x1b"
)
WHOLE = {
    "table": "| a | b |\n",
    "rules": "|---|---|\n",
    "base64": base64.b64encode(bytes(range(256))).decode(),
    "hex": "0f9a3c",
    "uuid": "6f1c2b9e-8d3a-4b7c-9e1f-0a2b3c4d5e6f ",
    "depth": "[{",
    "json": '{"a": [1, {"b": null}], "c": "d"}, ',
    "xml": "<a b='c'>",
    "closed": "</a>",
    "link": "[a](https://b.c/d?e=f#g) ",
    "address": "https://a.b/c/",
    "mail": "a.b@c.d ",
    "path": "/a/b.c",
    "fence": "```py\nx = 1\n",
    "quote": "> > ",
    "diff": "+a\n-b\n",
    "log": "2026-01-01 10:00:00 ERROR a: b\n",
    "trace": '  File "a.py", line 1, in b\n',
    "date": "2026-01-01",
    "time": "10:00 ",
    "money": "$1,000.00 ",
    "phone": "+1 (555) 010-9999 ",
    "numbered": "1. a\n",
    "bullets": "- a\n",
    "bold": "**a** ",
    "header": "# a\n",
    "sql": "SELECT a FROM b WHERE c = 'd'; ",
    "call": "f(a, b)[c].d",
    "camel": "aBcD",
    "snake": "a_b_",
    "said": '"A," said B. ',
    "keys": "a: b\n",
    "csv": "a,1,b,2\n",
    "emoji": "👩\u200d👩\u200d👧 ",
    "flags": "🇩🇪🇫🇷",
    "frames": "<memci:recall>",
    "Korean particles": "가는을를이",
    "kana": "ありがとうございます",
    "Han": "中文没有标点",
}


def families() -> dict[str, str]:
    """Return what each family repeats, by name."""
    found = {f"one {each!r}": each for each in SINGLE}
    found |= {f"pair {a + b!r}": a + b for a, b in product(PAIRED, PAIRED) if a != b}
    found |= {f"after a letter {each!r}": f"a{each}" for each in SINGLE if not each.isalnum()}
    found |= {f"whole {name}": text for name, text in WHOLE.items()}
    for table in sorted(TABLES.glob("*.toml")):
        for section, entries in tomllib.loads(table.read_text("utf-8")).items():
            for key, entry in entries.items():
                words = re.findall(r"[^\W\d_]+", entry if isinstance(entry, str) else " ".join(entry))
                if len(words) > 1:
                    for joint in (" ", "\n") if section != "characters" else ("",):
                        found[f"{table.stem} {section}.{key} {joint!r}"] = joint.join(words) + joint
                    found[f"{table.stem} {section}.{key} first"] = words[0] + " "
    return found


def repeat(piece: str, size: int) -> str:
    """Return *size* characters of *piece*."""
    return (piece * (size // len(piece) + 1))[:size]
