"""Sentences of what somebody said, as patterns read them.

    Hi Dr. Li! How are you?        "Hi Dr. Li!"  "How are you?"
    - Book HAT1.                   "Book HAT1."
    > as quoted                    nothing
    ERROR: no such flight          nothing

They stand in the text letter by letter, without the marks of a list; code, quoted lines and what machines print are
left out. Chinese that is written the traditional way is read by patterns in the simplified one.

This module knows nothing of what a sentence says.
"""

import re
from collections.abc import Iterator

_FENCED = re.compile(r"(?P<fence>```|~~~).*?(?:(?P=fence)|\Z)", re.DOTALL)
_MACHINE = re.compile(
    r"[{}\[<|$\\]|>|(?:at |File \"|import |def |class |const |function "
    r"|return |\d{4}-\d\d-\d\d[ T]\d\d:|[\w.-]{1,40}[@:]~?/?\S*[$#] )"
    r"|(?:\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE)\b|Traceback )|[\w.-]+\s*[=({]|\"[\w -]+\"\s*:"
)
_BULLET = re.compile(r"(?:[-*•–]\s+|\(?\d{1,2}[.)]\s+|#{1,6}\s+)")
_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]*]*+(?=\s)|[。！？｡…]+[」』”’）)]*")
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|no|vs|etc|e\.g|i\.e|a\.m|p\.m|approx|inc|jr|sr|\w)\.$", re.IGNORECASE
)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of what somebody said, exactly as they stand; code and machine's lines are left out."""
    for line in _FENCED.sub("\n", text).splitlines():
        bare = line.strip()
        bullet = _BULLET.match(bare)
        bare = bare[bullet.end() :] if bullet else bare
        if not bare or _MACHINE.match(bare):
            continue
        start = 0
        for end in _END.finditer(bare):
            if end[0] == "." and _SHORTENED.search(bare, max(start, end.end() - 8), end.end()):
                continue
            if sentence := bare[start : end.end()].strip():
                yield sentence
            start = end.end()
        if rest := bare[start:].strip():
            yield rest


_SIMPLE = str.maketrans(
    "請後從現開別應該須給幫復覆記還總會機時間說終遠統務預設優絕對們當問讓詢沒訴擔氣著見誤難緊棄騙鬧薦訂較"
    "歡愛傾習慣這嗎寧飯純區語簡體講溝麼為點儘來買許過歲樂題萬覺願韓",
    "请后从现开别应该须给帮复复记还总会机时间说终远统务预设优绝对们当问让询没诉担气着见误难紧弃骗闹荐订较"
    "欢爱倾习惯这吗宁饭纯区语简体讲沟么为点尽来买许过岁乐题万觉愿韩",
)


def simplified(text: str) -> str:
    """Return *text* with the traditional characters that patterns name written the simplified way. O(length)."""
    return text.translate(_SIMPLE)
