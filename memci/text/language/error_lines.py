"""The lines of a text that say what went wrong.

    Traceback (most recent call last):
      File "/srv/app/main.py", line 3, in load    →   ["ValueError: bad id 42"]
    ValueError: bad id 42

English, Chinese, Japanese and Korean. This module knows nothing of messages or of what else a text says.
"""

import re

_ASCII_WORDS = (
    "error",
    "exception",
    "fatal",
    "panic",
    "fail",
    "denied",
    "refused",
    "timed out",
    "not found",
    "no such",
    "cannot",
    "undefined",
    "segmentation",
    "abort",
    "invalid",
    "traceback",
)
_WORDS = (*_ASCII_WORDS, *str.split("错误 失败 异常 报错 エラー 失敗 例外 오류 실패 에러"))
# A line that is an error, rather than one that speaks of errors.
_AT_START = re.compile(
    r"\s*(?:E {2,8}\S|\[?(?:error|fatal|critical|panic|failed|fail|failure)\b\]?[:!\s]"
    r"|[\w.]{0,60}(?:Error|Exception|Exit|Interrupt)(?::|\s|$)"
    r"|[\w./:-]{1,80}: (?:\w{0,40}error|fatal|command not found|cannot|\S[^\n]{0,60}: (?:No such|"
    r"Permission))"
    r"|错误|エラー|오류)",
    re.IGNORECASE,
)
_PHRASE = re.compile(r"\b[A-Za-z_.]{0,60}(?:Error|Exception): [^\n.]{1,80}")


def has_error(text: str) -> bool:
    """Tell whether *text* speaks of something that went wrong. O(characters)."""
    lowered = text.lower()
    return any(map(lowered.__contains__, _ASCII_WORDS if text.isascii() else _WORDS))


def error_lines(text: str) -> list[str]:
    """Return the last two lines of *text* that are errors, oldest first. O(characters)."""
    if not has_error(text):
        return []
    last: list[str] = []
    for line in reversed(text.split("\n")):
        if _AT_START.match(line) and line.strip() not in last:
            last.insert(0, line.strip())
            if len(last) == 2:
                break
    return last or list(dict.fromkeys(found.group() for found in _PHRASE.finditer(text)))[-2:]
