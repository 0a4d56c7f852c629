"""The mood of what is said, by its words.

    "so happy!"  ──▶  positive       "I am not happy", "楽しくない"  ──▶  negative       "happy and sad"  ──▶  mixed

What stands after a "not" counts for the other side. This module knows nothing of who says it, or of days.
"""

import re
from collections.abc import Iterable
from typing import Literal

from .sentences import simplified

SCANNED = 10_000
"""characters of a text that are looked at"""

Mood = Literal["positive", "negative", "mixed", "neutral"]


def mood(texts: Iterable[str]) -> Mood:
    """Return the mood of *texts* by their words; "not good" is bad. O(characters)."""
    return mood_of(*feelings(texts))


def mood_of(good: int, bad: int) -> Mood:
    """Return the mood of a text that has so many words of a good and of a bad one."""
    if good + bad == 0:
        return "neutral"
    if good >= 2 * bad:
        return "positive"
    return "negative" if bad >= 2 * good else "mixed"


def feelings(texts: Iterable[str]) -> tuple[int, int]:
    """Count the words of a good mood in *texts*, and of a bad one. O(characters)."""
    counts = [0, 0]
    for text in texts:
        lowered = simplified(text[:SCANNED]).lower().replace("’", "'")
        for side, pattern in enumerate((_GOOD, _BAD)):
            for match in pattern.finditer(lowered):
                denied = _DENIES.search(lowered, max(0, match.start() - 14), match.start()) or _UNDOES.match(
                    lowered, match.end()
                )
                counts[1 - side if denied else side] += 1
    return counts[0], counts[1]


_DENIES = re.compile(
    r"(?:\b(?:not|no|never|without|hardly|isn't|wasn't|don't|doesn't|didn't|can't"
    r"|aren't)\b(?: \w+)? ?|不(?:太|是很|怎么)?|没有?|别|안 |못 )$"
)
_UNDOES = re.compile(r"(?:く|では|じゃ)?(?:ない|なかった|ありません)|지 않|지 못")
_GOOD = re.compile(
    r"\b(?:good|great|love[ds]?|happy|glad|excit\w+|thank(?:s|ful)?|awesome|amazing|wonderful|excellent|perfect|fun"
    r"|enjoy\w*|proud|grateful|nice|fantastic|pleased|relieved|hope\w*|delighted|best|yay)\b|[😀-😆😊😍🥰🎉❤👍🙂😄]"
    r"|开心|高兴|喜欢|太好了|谢谢|感谢|满意|很好|不错|棒|幸福|期待|爱|哈哈|嬉しい|うれしい|楽し|好き|ありがとう"
    r"|最高|素晴らし|良かった|よかった|幸せ|기뻐|기쁘|좋아|좋은|좋았|행복|감사|고마|최고|즐거"
)
_BAD = re.compile(
    r"\b(?:bad|sad|angry|upset|terrible|awful|hate[ds]?|frustrat\w+|annoy\w+|worr\w+|afraid"
    r"|scared|anxious|stress\w*|tired|sick|pain\w*|disappoint\w+|unhappy|wrong|fail\w*"
    r"|lost|worst|lonely|depress\w+|unacceptable|broken)\b|[😞😢😭😠😡👎😰]"
    r"|难过|伤心|生气|讨厌|糟糕|失望|担心|害怕|焦虑|压力|累|痛|烦|差劲|郁闷|失败|悲し|辛い|つらい|怒|嫌い|最悪|心配"
    r"|不安|疲れ|残念|痛い|困っ|슬퍼|슬프|화나|싫어|최악|걱정|불안|힘들|피곤|아파|실망|짜증"
)
