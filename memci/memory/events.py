# ruff: noqa: E501 -- a pattern is read as one line, and wide characters count twice
"""Events: what happened, when, to whom, and how much it matters; days and conversations in short.

    5 pages  ──▶  Event("I got married last Saturday!", 2024-05-04, "Mel", 0.85)     above 0.5: kept
                  Event("Nice weather.", …, 0.1)                                     not kept
             ──▶  DailySummary(2024-05-04, …, key events, 5 conversations, 10 messages, users, mood)
    the end  ──▶  ConversationSummary(date, summary, key topics, sentiment, notable moments)

Importance is a sum of signals: turns of life and business, names, dates and ids, strong words; questions and small talk
take away. Days are those of the zone that is given. (The design of the context layers has a model do this, while the
conversation waits.)

This module knows nothing of when it is called, or of where events are stored.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from ..messages import text_of
from ..summarizers import extract, one_line
from ..summarizers.salience import salient
from .backend import PageRecord
from .instructions import sentences, simplified
from .keywords import keywords

INTERVAL = 5
"""pages after which events are extracted"""
LEAST = 0.5
"""an event that matters no more than this is not kept"""
PER_PAGE = 2
KEY_EVENTS = 8
MOST_USERS = 100
WHAT_COLUMNS = 240
_SCANNED = 10_000

Mood = Literal["positive", "negative", "mixed", "neutral"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, in the words of whoever told it."""

    what: str
    who: str
    """the name of who told it, or "user" or "assistant" """
    importance: float
    """from 0 to 1"""
    context: str
    index: int
    when: float | None = None
    """in seconds since 1970 UTC; None: nobody said"""


Events = Callable[[Sequence[PageRecord]], Sequence[Event]]
"""Return the events of pages that are worth keeping."""


@dataclass(frozen=True, slots=True)
class DailySummary:
    """A day of one agent."""

    date: str
    """as 2024-05-04"""
    agent: str = ""
    summary: str = ""
    """what it was about, in one line"""
    key_events: tuple[Event, ...] = ()
    """what mattered most, in the order in which it was told"""
    conversations: int = 0
    """pages: a question and what came of it"""
    messages: int = 0
    users: tuple[str, ...] = ()
    good: int = 0
    """words of a good mood, and of a bad one"""
    bad: int = 0

    @property
    def unique_users(self) -> int:
        """How many people spoke; at most `MOST_USERS` are counted."""
        return len(self.users)

    @property
    def mood(self) -> Mood:
        """The mood of the whole day."""
        return _mood(self.good, self.bad)

    def updated(self, pages: Sequence[PageRecord], found: Sequence[Event]) -> "DailySummary":
        """Return it with *pages* of the same day and the events *found* in them. O(characters of pages)."""
        spoken = [(page, message) for page in pages for _, message in _own(page)]
        good, bad = _feelings(text_of(message) for _, message in spoken if message.get("role") == "user")
        names = [str(message.get("name") or "user") for _, message in spoken if message.get("role") == "user"]
        told = list(dict.fromkeys((*self.key_events, *found)))
        best = sorted(told, key=lambda event: -event.importance)[:KEY_EVENTS]
        topics = keywords([self.summary, *(text_of(message) for _, message in spoken)], limit=8)
        return replace(
            self,
            summary=", ".join(topics),
            key_events=tuple(event for event in told if event in best),
            conversations=self.conversations + len(pages),
            messages=self.messages + len(spoken),
            users=tuple(dict.fromkeys((*self.users, *names)))[:MOST_USERS],
            good=self.good + good,
            bad=self.bad + bad,
        )


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation, once it is over."""

    date: str
    """when it ended, as 2024-05-04; "" if nobody said"""
    summary: str
    key_topics: tuple[str, ...]
    sentiment: Mood
    notable_moments: tuple[str, ...]


def events(pages: Sequence[PageRecord], *, least: float = LEAST) -> list[Event]:
    """Return what matters more than *least* in *pages*, in order, at most two of each page. O(characters)."""
    found: list[Event] = []
    for page in pages:
        own: list[Event] = []
        for _, message in _own(page):
            who = str(message.get("name") or message["role"])
            for sentence in sentences(text_of(message)[:_SCANNED]):
                weight = importance(sentence)
                if weight > least:
                    when = None if page.at is None else page.at + 86_400 * _days_off(sentence)
                    what = one_line(sentence, WHAT_COLUMNS)
                    own.append(Event(what, who, weight, page.context, page.index, when))
        best = sorted(dict.fromkeys(own), key=lambda event: -event.importance)[:PER_PAGE]
        found += [event for event in dict.fromkeys(own) if event in best]
    return found


def importance(text: str) -> float:
    """Return how much a sentence matters, from 0 to 1. O(characters)."""
    lowered = simplified(text[:_SCANNED]).lower().replace("’", "'")
    wide = bool(_WIDE.search(lowered))
    weight = 0.15
    weight += 0.3 if _TURNS.search(lowered) else 0.0
    weight += 0.2 if _STRESSED.search(lowered) else 0.0
    weight += 0.15 if _TOLD.search(lowered) else 0.0
    weight += 0.1 if _DATED.search(lowered) else 0.0
    weight += 0.1 if any(rank <= 2 for rank, _ in salient(text[:_SCANNED], errors=False)) else 0.0
    weight += 0.1 if sum(_feelings([text])) else 0.0
    weight -= 0.4 if lowered.rstrip(" 。.!").endswith(("?", "？", "吗", "ですか", "ますか", "나요")) else 0.0
    weight -= 0.1 if len(text) < (6 if wide else 16) else 0.0
    weight -= 0.2 if _UNREAL.search(lowered) else 0.0
    return round(min(1.0, max(0.0, weight)), 2)


def conversation(pages: Sequence[PageRecord], zone: tzinfo = UTC) -> ConversationSummary:
    """Return a conversation in short, made of its own words. O(characters)."""
    texts = [text_of(message) for page in pages for _, message in _own(page)]
    spoken = [text_of(message) for page in pages for _, message in _own(page) if message.get("role") == "user"]
    titles = [extract([message for _, message in page.entries]).title for page in pages if page.entries]
    told = list(dict.fromkeys(titles))
    shown = told if len(told) <= 4 else [told[0], *told[-3:]]
    moments = sorted(events(pages), key=lambda event: -event.importance)[:3]
    times = [page.at for page in pages if page.at is not None]
    return ConversationSummary(
        date=day_of(max(times), zone) if times else "",
        summary=" · ".join(shown),
        key_topics=keywords(texts, limit=5),
        sentiment=mood(spoken),
        notable_moments=tuple(dict.fromkeys(event.what for event in moments)),
    )


def mood(texts: Iterable[str]) -> Mood:
    """Return the mood of *texts* by their words; "not good" is bad. O(characters)."""
    return _mood(*_feelings(texts))


def day_of(at: float, zone: tzinfo = UTC) -> str:
    """Return the day of a moment, as 2024-05-04, where *zone* is the time."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at)).astimezone(zone).date().isoformat()


def _own(page: PageRecord) -> list[tuple[int, dict[str, object]]]:
    return [
        (ordinal, message)
        for ordinal, message in page.entries
        if ordinal not in page.quotes and message.get("role") in {"user", "assistant"} and text_of(message).strip()
    ]


def _mood(good: int, bad: int) -> Mood:
    if good + bad == 0:
        return "neutral"
    if good >= 2 * bad:
        return "positive"
    return "negative" if bad >= 2 * good else "mixed"


def _feelings(texts: Iterable[str]) -> tuple[int, int]:
    """Count the words of a good mood and of a bad one; what stands after a "not" counts for the other."""
    counts = [0, 0]
    for text in texts:
        lowered = simplified(text[:_SCANNED]).lower().replace("’", "'")
        for side, pattern in enumerate((_GOOD, _BAD)):
            for match in pattern.finditer(lowered):
                denied = _DENIES.search(lowered, max(0, match.start() - 14), match.start()) or _UNDOES.match(
                    lowered, match.end()
                )
                counts[1 - side if denied else side] += 1
    return counts[0], counts[1]


def _days_off(text: str) -> int:
    lowered = text.lower()
    return next((days for word, days in _OFFSETS.items() if word in lowered), 0)


_OFFSETS = {"day before yesterday": -2, "day after tomorrow": 2, "yesterday": -1, "last night": -1, "tomorrow": 1} | {
    "前天": -2, "昨天": -1, "昨晚": -1, "明天": 1, "后天": 2, "一昨日": -2, "昨日": -1, "明日": 1, "어제": -1, "내일": 1, "모레": 2
}  # fmt: skip
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_TURNS = re.compile(
    r"\b(?:married|engaged|divorced|pregnant|born|gave birth|died|passed away|funeral|graduat\w+|hired|fired|laid off|promot\w+|retired?|quit my|new job|job offer"
    r"|moved (?:to|in|out)|moving to|bought (?:a|the|my)|sold (?:my|the|our)|adopted|diagnos\w+|surgery|hospital|accident|broke (?:my|up)|stolen|lost my|won\b|award"
    r"|accepted (?:to|into|the)|passed (?:my|the)|failed (?:my|the)|launch\w+|released|signed|cancel(?:l?ed)|booked|refunded|rescheduled|upgraded|deployed|outage|incident"
    r"|birthday|anniversary|wedding|interview|deadline|started (?:a|my|working|school)|joined)\b"
    r"|结婚|订婚|离婚|怀孕|出生|去世|葬礼|毕业|升职|辞职|离职|失业|退休|搬家|搬到|买了|卖了|领养|确诊|手术|住院|事故|分手|丢了|获奖|得奖|考上|通过了|没通过|上线|发布|签了|取消了|预订了|退款|改签|生日|纪念日|婚礼|面试|截止|入职"
    r"|婚約|離婚|妊娠|生まれ|亡くな|葬式|卒業|昇進|退職|転職|引っ越|買った|買いました|診断|入院|事故|別れ|受賞|合格|不合格|キャンセルし|予約し|返金|誕生日|記念日|結婚|面接|締め切り|入社"
    r"|결혼|이혼|임신|태어|돌아가셨|장례|졸업|승진|퇴사|퇴직|이직|이사|샀어|샀습니다|진단|수술|입원|사고|헤어|수상|합격|불합격|취소했|예약했|환불|생일|기념일|면접|마감|입사"
)
_STRESSED = re.compile(
    r"\b(?:important|urgent|critical|emergency|asap|immediately|never forget|remember|finally|big news|allerg\w+|must)\b|!{2,}"
    r"|重要|紧急|务必|终于|记住|过敏|緊急|至急|ついに|やっと|必ず|중요|긴급|드디어|마침내|기억해|알레르기"
)
_TOLD = re.compile(
    r"\b(?:i|we|my|our|i'm|i've|we've)\b|我|咱|私|僕|俺|しました|ました|저는|제가|나는|내가|우리|했습니다|했어"
)
_DATED = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this) (?:night|week|weekend|month|year|summer|winter|spring|fall|\w+day)|\w+day|ago|\d{4}-\d\d-\d\d"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)[a-z]* \d{1,2})\b|昨|今天|明天|上周|下周|上个月|下个月|去年|今年|明年|\d+[月日号]|先週|来週|先月|来月|어제|오늘|내일|지난|다음|작년|내년"
)
_UNREAL = re.compile(
    r"\b(?:if i|would be|could be|might|maybe|i wish|hopefully)\b|如果|可能|也许|もし|かもしれ|만약|아마"
)
_DENIES = re.compile(
    r"(?:\b(?:not|no|never|without|hardly|isn't|wasn't|don't|doesn't|didn't|can't|aren't)\b(?: \w+)? ?|不(?:太|是很|怎么)?|没有?|别|안 |못 )$"
)
_UNDOES = re.compile(r"(?:く|では|じゃ)?(?:ない|なかった|ありません)|지 않|지 못")
_GOOD = re.compile(
    r"\b(?:good|great|love[ds]?|happy|glad|excit\w+|thank(?:s|ful)?|awesome|amazing|wonderful|excellent|perfect|fun|enjoy\w*|proud|grateful|nice|fantastic|pleased|relieved|hope\w*|delighted|best|yay)\b|[😀-😆😊😍🥰🎉❤👍🙂😄]"
    r"|开心|高兴|喜欢|太好了|谢谢|感谢|满意|很好|不错|棒|幸福|期待|爱|哈哈|嬉しい|うれしい|楽し|好き|ありがとう|最高|素晴らし|良かった|よかった|幸せ|기뻐|기쁘|좋아|좋은|좋았|행복|감사|고마|최고|즐거"
)
_BAD = re.compile(
    r"\b(?:bad|sad|angry|upset|terrible|awful|hate[ds]?|frustrat\w+|annoy\w+|worr\w+|afraid|scared|anxious|stress\w*|tired|sick|pain\w*|disappoint\w+|unhappy|wrong|fail\w*|lost|worst|lonely|depress\w+|unacceptable|broken)\b|[😞😢😭😠😡👎😰]"
    r"|难过|伤心|生气|讨厌|糟糕|失望|担心|害怕|焦虑|压力|累|痛|烦|差劲|郁闷|失败|悲し|辛い|つらい|怒|嫌い|最悪|心配|不安|疲れ|残念|痛い|困っ|슬퍼|슬프|화나|싫어|최악|걱정|불안|힘들|피곤|아파|실망|짜증"
)
