"""Facts: what a page tells of the user, and of what the assistant did.

    user       "I live in Oslo with my dog Rex. How are you?"     →  "I live in Oslo with my dog Rex."
    assistant  "I have cancelled it." + cancel(id=OI5L9G)         →  "I have cancelled it."  "called cancel(id=OI5L9G)"

Whole sentences that patterns know, and the calls that change something. Questions, moods, wishes and quotations tell
nothing lasting.

This module knows nothing of what is known already, or of how facts are stored and found.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...messages import Message, call_name, text_of, tool_calls
from ...text.language.patterns import Writing, writing
from ...text.language.sentences import sentences, simplified
from ...text.summarize import extract, one_line
from ..backend import PageRecord
from .chains import Vector

PER_PAGE = 12
LONGEST = 240
"""characters of a sentence that tells a fact"""
_SHORTEST = 4
_SCANNED = 20_000

About = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A short statement, and where it comes from."""

    text: str
    """as it was said, in one line"""
    about: About
    context: str
    index: int
    """the page that said it last"""
    turn: int
    at: float | None = None
    """when that was, in seconds since 1970 UTC; None: nobody said"""
    pages: tuple[tuple[str, int], ...] = ()
    """(context, index) of every page that said it"""
    retrieved: float = 0.0
    """when it was learned, or found by a search, last"""
    vector: Vector | None = None


Extractor = Callable[[PageRecord], Sequence[Known]]
"""Return the facts that a page tells."""


def facts(page: PageRecord) -> list[Known]:
    """Return the facts that *page* tells, in order, none twice. O(characters)."""
    told: list[tuple[About, str]] = []
    for ordinal, message in page.entries:
        if ordinal not in page.quotes:
            told += _told(message)
    found: list[Known] = []
    for about, text in dict.fromkeys(told):
        if sum(each.about == about for each in found) < PER_PAGE:
            known = Known(text, about, page.context, page.index, page.turn, page.at, (page.key,))
            found.append(known)
    return found


def _told(message: Message) -> Iterator[tuple[About, str]]:
    role = message.get("role")
    speaker = message.get("name")
    if role in {"user", "assistant"}:
        tells = _user if role == "user" else _assistant
        for sentence in sentences(text_of(message)[:_SCANNED]):
            if _SHORTEST <= len(sentence) <= LONGEST and tells(sentence):
                line = one_line(sentence, 2 * LONGEST)
                yield role, f"{one_line(speaker, 40)}: {line}" if isinstance(speaker, str) and speaker else line
    for call in tool_calls(message):
        if not _READS.match(call_name(call)):
            yield (
                "assistant",
                f"called {extract(({'role': 'assistant', 'content': None, 'tool_calls': [call]},)).lines[0]}",
            )


def _user(sentence: str) -> bool:
    return _tells(sentence, _OF_USER)


def _assistant(sentence: str) -> bool:
    return _tells(sentence, _OF_ASSISTANT)


def _tells(sentence: str, patterns: Mapping[Writing, re.Pattern[str]]) -> bool:
    text = _QUOTED.sub("“”", sentence).replace("’", "'")
    if _ASKS.search(text) or text.endswith((":", "：")):
        return False
    written = writing(text)
    said = text.lower() if written == "latin" else simplified(text) if written == "han" else text
    found = patterns[written].search(said)
    return found is not None and not (written == "latin" and _UNREAL.search(said[: found.start()]))


_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』|`[^`]*`")
_ASKS = re.compile(r"(?:[?？]|吗|嗎|呢|ですか|ますか|かな|나요|까요?|습니까)[。.!！~\s]*$")
_READS = re.compile(
    r"(?:get|list|find|search|read|view|calculate|think|recall|look|query"
    r"|fetch|check|describe|open|show|retrieve|count)(?:_|[A-Z]|$)"
)
_UNREAL = re.compile(r"\b(?:if|wish|imagine|suppose|what if|as if|pretend)\b[^,;]*$")
_KIN = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|fianc\w+|spouse|son|daughter"
    r"|kids?|child(?:ren)?|bab(?:y|ies)|mo(?:m|ther)|da(?:d|ther)"
    r"|father|parents?|sister|brother|grand\w+|aunt|uncle|cousin|niece|nephew"
    r"|family|friend|roommate|boss|manager|team|company|dog|puppy"
    r"|cat|kitten|pets?|job|work|career|hobby|hobbies|birthday|name|nickname"
    r"|age|address|home|house|apartment|hometown|country|car|bike"
    r"|phone|email|major|degree|school|university|favou?rite(?: \w+){1,3}"
    r"|user ?(?:id|name)|blood type|allerg\w+|budget|goal|dream)"
)
_STATE = (
    r"(?:a(?! (?:bit|little|few|lot|huge fan of (?:you|that)))|an|from|originally|based"
    r"|married|single|divorced|engaged|allergic|vegan|vegetarian|diabetic"
    r"|retired|self-employed|unemployed|pregnant|\d+|born|in (?:my|college"
    r"|grad|high school)|living|working (?:as|at|for|in)|studying"
    r"|training (?:for|to)|learning|(?:really |super |very )?(?:into|passionate about))"
)
_USER = re.compile(
    rf"\bi(?:'m| am)(?: currently| also| actually| now| still)* {_STATE}\b"
    r"|\bi(?: also| currently| now| still| mostly| usually| really| actually| just"
    r"| recently| always)* (?:work|live|study|teach|own|coach|manage|collect"
    r"|volunteer|speak|play|grew up|was born|was raised|moved|graduated|studied"
    r"|majored|worked|lived|joined|adopted|bought|married|founded"
    r"|quit|retired|run (?:a|my)|drive (?:a|my)|love|like|enjoy|hate|dislike|prefer"
    r"|can't stand|(?:don't|do not|can't|never) (?:like|eat|drink|smoke|drive))\b"
    r"(?! (?:to (?:book|change|cancel|know|see|get|have|make|use|add|proceed|ask|check"
    r"|fly)|it\b|that\b|this\b|your|you\b|how\b|the (?:idea|sound)))"
    r"|\bi(?:'ve| have| had)(?: also| always| just| recently| only)* (?:(?:a|an|two|three"
    r"|four|five|\d+|no|my own) (?!question|problem|issue|feeling|look|point"
    r"|chance|moment|great|good|lot|reservation|flight|request)\w|been (?:\w+ing|married"
    r"|to|a|an)\b|got (?:a|an|two|three)\b|lived|worked|studied|visited)"
    r"|\bi got (?:a (?:new|job|dog|cat|puppy|promotion|offer|degree)|married"
    r"|engaged|promoted|hired|fired|divorced|accepted|laid off)\b"
    rf"|\bmy (?:\w+ )?{_KIN}(?:'s(?: name)?)? (?:\w+ )?(?:is|are|was|were|has|have"
    r"|lives?|works?|loves?|likes?|plays?|studies|turned|got|'s)\b"
    r"|\b(?:we|my \w+ and i) (?:have (?:a|an|two|three|\d)|live|own|adopted|moved"
    r"|got (?:married|engaged|a)|are (?:from|married|expecting))\b"
)
_DONE = (
    r"(?:(?!need|apologi[sz]ed|noticed|understood|assumed|wanted|tried|hoped|appreciated|checked|looked"
    r"|reviewed)\w{3,}ed|sent|made|set|put|wrote|gave|ran|built|took|found|bought|rebooked|paid|began)"
)
_ASSISTANT = re.compile(
    r"\bi(?:'ve| have)(?: now| just| already| also"
    rf"| successfully)* {_DONE}\b|\bi (?:\w+ly |just |also |already )?{_DONE}\b"
    r"|\byour? [^.]{1,80} (?:has|have) (?:now |been |successfully "
    rf"|also )*{_DONE}\b|\bhas (?:now )?been (?:successfully )?{_DONE}\b"
    r"|\bi(?:'ll| will) (?:send|remind|book|call|write|update|cancel|add|set|make sure"
    r"|follow up|let you know|keep|use|always|never|notify|schedule)\b"
    r"|\bi (?:recommend|suggest|advise|promise)\b"
)
_USER_HAN = re.compile(
    r"我(?:今年\d|是(?!说|想|不是|否|要|在|来)|叫|住|来自|出生|毕业|结婚|养|姓|(?:从|在)[^，。]{1,14}(?:工作|上班"
    r"|上学|读书|念书|生活|长大|毕业)|有(?:一|两|三|四|个|只|条|\d)(?!个?(?:问题|疑问|想法))"
    r"|(?:很|最|特别|非常|比较|更|也|不|不太|一直)*(?:喜欢|讨厌|热爱|偏好|习惯)(?!你|这样)"
    r"|不(?:吃|喝|抽烟)|会(?:说|弹|开车|做饭)|学(?:过|习)|对[^，。]{1,14}过敏)"
    r"|我(?:们)?的?(?:家|爸|妈|父|母|儿子|女儿|孩子|老婆|妻子|丈夫|老公|男友|女友|哥|姐|弟|妹|狗|猫|宠物|名字"
    r"|生日|工作|职业|专业|公司|老家|爱好|电话|邮箱)[^，。？]{0,12}(?:是|叫|在|有|住|岁|喜欢)"
)
_DONE_HAN = re.compile(
    r"(?:我|已|已经|成功)(?:已经?)?(?:为|帮|给|替)?(?:您|你)?(?:把[^，。]{1,14})?(?:成功)?(?:预订|取消"
    r"|发送|修改|更新|完成|添加|设置|安排|提交|退款|创建|预约|订|改签|记录|保存|写|发)"
    r"(?:了|好|成功|完成|到|$|。|[^，。]{0,12}(?:了|成功))|我会(?:在|为"
    r"|帮|提醒|给|记住|尽快)|(?:我)?(?:建议|推荐)(?:您|你)"
)
_USER_KANA = re.compile(
    r"(?:私|僕|俺|わたし|ぼく|うち)(?:は|の|が|も)[^。]{2,}(?:です"
    r"|ます|だ|でした|ました|いる|ある|った)[よねが。！\s]*$"
    r"|(?:住んで|働いて|飼って|通って|勤めて)い?(?:ます|る)|(?:と申し|といい|と言い)ます|歳です|出身です"
    r"|結婚し(?:て|ま)|(?:大)?(?:好き|嫌い)(?:です|なん)|趣味(?:は|が|です)|アレルギー"
)
_DONE_KANA = re.compile(
    r"(?:いたしました|致しました|しました|完了です|おきました|送りました|承りました)[。！\s]*$|(?:しておきます"
    r"|お知らせ(?:し|いたし)ます|お送り(?:し|いたし)ます)|(?:おすすめ|お勧め)(?:し|いたし|で)"
)
_USER_HANGUL = re.compile(
    r"(?:^|\s)(?:저는|나는|난|전|제|제가|내|내가|우리|저희)\s.*(?:예요|이에요|입니다|이야|살아|살고|삽니다|일해"
    r"|일하고|일합니다|다녀|다니|좋아|싫어|있어|있습니다|키우|키워|태어|결혼|출신|전공|못\s?먹|배우)"
)
_DONE_HANGUL = re.compile(
    r"(?:했습니다|드렸습니다|되었습니다|됐습니다|완료|했어요|드릴게요|하겠습니다|드리겠습니다|추천(?:해|드))"
)
_OF_USER: Mapping[Writing, re.Pattern[str]] = {
    "latin": _USER,
    "han": _USER_HAN,
    "kana": _USER_KANA,
    "hangul": _USER_HANGUL,
}
_OF_ASSISTANT: Mapping[Writing, re.Pattern[str]] = {
    "latin": _ASSISTANT,
    "han": _DONE_HAN,
    "kana": _DONE_KANA,
    "hangul": _DONE_HANGUL,
}
