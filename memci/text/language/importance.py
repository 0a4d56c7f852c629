"""How much a sentence matters: a sum of signals, from 0 to 1.

    "I got married last Saturday!"     a turn of life, told of oneself, with a date     0.7
    "Did I get married?"               a question                                       0.2
    "Nice weather."                                                                     0.15

Turns of life and business, names, dates and ids, strong words; questions and small talk take away. English, Chinese,
Japanese and Korean. This module knows nothing of who says it, or of what is kept.
"""

import re

from .moods import SCANNED, feelings
from .salience import salient
from .sentences import simplified


def importance(text: str) -> float:
    """Return how much a sentence matters, from 0 to 1. O(characters)."""
    lowered = simplified(text[:SCANNED]).lower().replace("’", "'")
    wide = bool(_WIDE.search(lowered))
    weight = 0.15
    weight += 0.3 if _TURNS.search(lowered) else 0.0
    weight += 0.2 if _STRESSED.search(lowered) else 0.0
    weight += 0.15 if _TOLD.search(lowered) else 0.0
    weight += 0.1 if _DATED.search(lowered) else 0.0
    weight += 0.1 if any(rank <= 2 for rank, _ in salient(text[:SCANNED], errors=False)) else 0.0
    weight += 0.1 if sum(feelings([text])) else 0.0
    weight -= 0.4 if lowered.rstrip(" 。.!").endswith(("?", "？", "吗", "ですか", "ますか", "나요")) else 0.0
    weight -= 0.1 if len(text) < (6 if wide else 16) else 0.0
    weight -= 0.2 if _UNREAL.search(lowered) else 0.0
    return round(min(1.0, max(0.0, weight)), 2)


_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_TURNS = re.compile(
    r"\b(?:married|engaged|divorced|pregnant|born|gave birth|died|passed away|funeral"
    r"|graduat\w+|hired|fired|laid off|promot\w+|retired?|quit my|new job|job offer"
    r"|moved (?:to|in|out)|moving to|bought (?:a|the|my)|sold (?:my|the|our)|adopted|diagnos\w+"
    r"|surgery|hospital|accident|broke (?:my|up)|stolen|lost my|won\b|award"
    r"|accepted (?:to|into|the)|passed (?:my|the)|failed (?:my|the)|launch\w+|released|signed"
    r"|cancel(?:l?ed)|booked|refunded|rescheduled|upgraded|deployed|outage|incident"
    r"|birthday|anniversary|wedding|interview|deadline|started (?:a|my|working|school)|joined)\b"
    r"|结婚|订婚|离婚|怀孕|出生|去世|葬礼|毕业|升职|辞职|离职|失业|退休|搬家|搬到|买了|卖了|领养|确诊|手术|住院|事故"
    r"|分手|丢了|获奖|得奖|考上|通过了|没通过|上线|发布|签了|取消了|预订了|退款|改签|生日|纪念日|婚礼|面试|截止|入职"
    r"|婚約|離婚|妊娠|生まれ|亡くな|葬式|卒業|昇進|退職|転職|引っ越|買った|買いました|診断|入院|事故|別れ"
    r"|受賞|合格|不合格|キャンセルし|予約し|返金|誕生日|記念日|結婚|面接|締め切り|入社"
    r"|결혼|이혼|임신|태어|돌아가셨|장례|졸업|승진|퇴사|퇴직|이직|이사|샀어|샀습니다|진단|수술|입원"
    r"|사고|헤어|수상|합격|불합격|취소했|예약했|환불|생일|기념일|면접|마감|입사"
)
_STRESSED = re.compile(
    r"\b(?:important|urgent|critical|emergency|asap|immediately"
    r"|never forget|remember|finally|big news|allerg\w+|must)\b|!{2,}"
    r"|重要|紧急|务必|终于|记住|过敏|緊急|至急|ついに|やっと|必ず|중요|긴급|드디어|마침내|기억해|알레르기"
)
_TOLD = re.compile(
    r"\b(?:i|we|my|our|i'm|i've|we've)\b|我|咱|私|僕|俺|しました|ました|저는|제가|나는|내가|우리|했습니다|했어"
)
_DATED = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this) (?:night|week|weekend|month"
    r"|year|summer|winter|spring|fall|\w+day)|\w+day|ago|\d{4}-\d\d-\d\d"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)[a-z]* \d{1,2})\b|昨|今天|明天|上周|下周|上个月|下个月"
    r"|去年|今年|明年|\d[月日号]|先週|来週|先月|来月|어제|오늘|내일|지난|다음|작년|내년"
)
_UNREAL = re.compile(
    r"\b(?:if i|would be|could be|might|maybe|i wish|hopefully)\b|如果|可能|也许|もし|かもしれ|만약|아마"
)
