# ruff: noqa: E501 -- a pattern is read as one line, and wide characters count twice
"""Standing instructions: what a user said that is to hold from then on.

    "I fly on Friday. Always answer in French. Do you always book so early? 以后请用中文回答。"
    →  "Always answer in French."   "以后请用中文回答。"

Whole sentences, in the user's own words. A pattern says that a sentence asks for something for good, or tells a lasting
preference or constraint; questions, quotations, habits ("I always run late"), reported speech, code and what machines
print are none. Patterns can't tell that one takes back another: both stay, the later one stands later and wins. Only
the verdict of a model marks one as superseded.

    Standing instructions of the user, in their own words, oldest first. Where two contradict, the later one holds:
    #3 Never book before 11.
    #9 Always answer in French.

This module knows nothing of windows or of how instructions are stored.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..summarizers import one_line

LIMIT = 600
"""tokens that shown instructions cost at most"""
SHARE = 0.05
"""of the window that they take at most"""
LONGEST = 400
"""characters of one instruction; a longer sentence is none"""
SCANNED = 40_000

HEADING = (
    "Standing instructions of the user, in their own words, oldest first. Where two contradict, the later one holds:"
)

Detector = Callable[[str], list[str]]
"""Return the sentences of a user's text that are standing instructions, exactly as they are said."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A sentence of the user that holds until a later one says otherwise."""

    text: str
    """verbatim"""
    context: str
    index: int
    """the page on which it was said"""
    at: float | None = None
    """in seconds since 1970 UTC; None: nobody said"""
    superseded: bool = False
    """the verdict of a model; patterns never set it"""


@dataclass(frozen=True, slots=True)
class Shown:
    """The instructions that fit, oldest first, and the text that shows them; "" if there are none."""

    text: str = ""
    instructions: tuple[Instruction, ...] = ()
    omitted: int = 0
    """older ones that hold and did not fit"""


def instructions(text: str) -> list[str]:
    """Return the standing instructions in a user's *text*, verbatim, in order, none twice. O(characters)."""
    found = [each for each in sentences(text[:SCANNED]) if len(each) <= LONGEST and _stands(each)]
    return list(dict.fromkeys(found))


def shown(
    said: Sequence[Instruction],
    count: Callable[[str], int],
    window: int,
    *,
    context: str = "",
    limit: int = LIMIT,
    share: float = SHARE,
) -> Shown:
    """Return the newest instructions that fit, to be shown oldest first. O(instructions).

    Args:
        said: Oldest first.
        count: The tokens of a text.
        window: Tokens of the whole window.
        context: Whose window it is: instructions from other contexts are marked as such.
        limit: Tokens at most.
        share: The part of the window at most.
    """
    budget = min(limit, int(window * share))
    newest: dict[str, Instruction] = {}
    for each in reversed(said):
        if not each.superseded:
            newest.setdefault(re.sub(r"\W+", " ", each.text.casefold()).strip(), each)
    kept: list[Instruction] = []
    text = ""
    for each in newest.values():
        made = "\n".join([HEADING, *(_line(one, context) for one in (each, *kept))])
        if count(made) > budget:
            # an older one that still fits could be what a newer one took back
            break
        kept.insert(0, each)
        text = made
    return Shown(text, tuple(kept), len(newest) - len(kept))


def _line(instruction: Instruction, context: str) -> str:
    page = f"#{instruction.index}"
    if instruction.context != context:
        page = f"{page} of {one_line(instruction.context, 40)}"
    return f"{page} {one_line(instruction.text, 3 * LONGEST)}"


# Sentences

_FENCED = re.compile(r"(?P<fence>```|~~~).*?(?:(?P=fence)|\Z)", re.DOTALL)
_MACHINE = re.compile(
    r"[{}\[<|$\\]|>|(?:at |File \"|import |def |class |const |function |return |\d{4}-\d\d-\d\d[ T]\d\d:|[\w.-]{1,40}[@:]~?/?\S*[$#] )"
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


# What stands

_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|(?<!\w)'[^']{3,}'(?!\w)|`[^`]*`")
_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3041-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")


def _stands(sentence: str) -> bool:
    bare = _QUOTED.sub("“”", sentence).replace("’", "'")
    if _KANA.search(bare):
        return _japanese(bare)
    if _HANGUL.search(bare):
        return _korean(bare)
    if _HAN.search(bare):
        return _chinese(bare)
    return _english(" ".join(bare.lower().split()))


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_LEAD = (
    r"^(?:(?:and|but|so|also|oh|hey|hi|hello|ok|okay|well|actually|yes|yeah|no|thanks|thank you|btw|by the way|just|first"
    r"|finally|again|important|note|one more thing|two things|please|kindly|now|then|plus|remember|\w+(?=,))[,:!.]* +){0,5}"
)
_CLAUSE = r"(?:^|[,;:.–—] +|- +|\b(?:and|but|please|just|so|then|also) +)"
_DEEDS = (
    r"(?:add|address|alert|answer|apply|ask|attach|avoid|begin|book|break|bring|calculate|call|check|choose|cite|communicate"
    r"|compare|confirm|consider|convert|create|define|deliver|describe|display|do|double-check|draft|emphasi[sz]e|end|ensure"
    r"|explain|express|fly|focus|follow|format|generate|give|greet|help|highlight|ignore|include|incorporate|inform|inquire"
    r"|keep|label|limit|list|make|mention|note|notify|offer|omit|order|organi[sz]e|outline|phrase|pick|point|prefer"
    r"|present|prioriti[sz]e|propose|provide|put|quote|recommend|refer|reference|remind|reply|report|respond|return|round"
    r"|run|say|schedule|send|set|share|show|sign|skip|speak|specify|spell|start|state|stick|structure|suggest|summari[sz]e"
    r"|supply|support|take|talk|tell|translate|treat|try|update|use|verify|wait|walk|warn|write)\b"
)
_ASKED = (
    r"(?:ask|request|mention|say|inquire|bring up|talk about|want|need|tell|send|give|share|type|write|discuss|query)\b"
)
_NO_DEED = (
    r"(?:been|a|an|the|my|had|seen|heard|thought|knew|was|were|is|are|am|have|having|good|nice|great|fun|happy|so|that|in|on"
    r"|at|again|too|there|here|will|would|felt|got|did|love|loved|mind|know|ever|enough|forget (?:the|how|that time)"
    r"|(?!need|feed|embed|proceed)\w+ed|(?!bring|ring)\w+ing)\b"
)
_QUESTION = re.compile(
    _LEAD + r"(?:do|does|did|has|had|are|is|was|were|why|how|what|who|where|which|can|could|would|will|should|may|have)"
    r" (?:you|i|we|they|he|she|it|your|my|the|there|that|this|to|about|if)\b"
)
_POLITE = re.compile(
    _LEAD + r"(?:can|could|would|will|may) (?:you|i ask you to|we)(?: please| kindly| also| just| maybe)*,?"
    r" (?:always|never|from now on|in (?:the )?future|remember\b(?! (?:when|me|the time))|make sure|keep in mind|stop|not)\b"
    r"|^(?:can|could|would|will|may) you\b.*\b(?:from now on|going forward|in (?:the )?future|every time i|whenever i)\b"
)
_REPORTED = re.compile(
    r"\b(?:said|told (?:me|him|her|us|them)|says|asked (?:me|him|her|us|them)|tells me|reminded me|used to)\b"
)
_NARRATED = re.compile(
    r"^(?:and |but |so |well |yeah |oh )*,? ?(?:i|we|he|she|they|it|my \w+|that|this|there)(?:'\w+)?\b"
)
_FUTURE = r"from now on|going forward|from this point|from here on|henceforth|until further notice|as of (?:now|today)"
_ALWAYS = (
    r"by default|as a (?:general )?rule|unless (?:i|otherwise|told|asked|specified|explicitly)|no matter what|at all times"
    r"|under no circumstances|(?:every|each|any) ?time (?:you|i \w+[^,]{0,40}$)|whenever you(?! (?:need|can|want|like|feel|are|have|get)|')"
    r"|when(?:ever)? (?:responding|answering|giving|providing|writing"
    r"|suggesting|recommending|explaining|showing|generating|creating|formatting|presenting|listing|mentioning|discussing"
    r"|talking|speaking|replying|addressing|describing|booking|scheduling|planning|it comes to)|in (?:all|every|each|your)"
    r"(?: of your| single)? ?(?:responses?|answers?|repl(?:y|ies)|messages?|explanations?|outputs?|code|summar(?:y|ies))"
)
_ENGLISH = _any(
    rf"{_LEAD}(?:always|never|(?:don't|do not) ever)(?: please)? (?!{_NO_DEED})\w",
    rf"{_CLAUSE}(?:always|never|(?:don't|do not) ever) (?:{_DEEDS}|be\b)",
    r"\byou (?:should|must|need to|have to|are to|ought to)(?: please)? (?:always|never)\b",
    r"\byou(?:'ll| will)? to (?:please )?(?:always|never)\b|\b(?:i'd|i would) like (?:it )?if you (?:always|never)\b",
    rf"{_CLAUSE}(?:{_FUTURE}|in (?:the )?future)\b(?!,? (?:i'll|i will|i'm|i am|we|he|she|they|it|i hope|i think|i may|i might"
    r"|i plan|with|is|holds|looks|slowly)\b)",
    rf"(?:{_LEAD}{_DEEDS}|\bplease\b|\byou (?:should|must)\b|\bi(?: want|'d like| would like| need) you\b).*"
    rf"\b(?:{_FUTURE}|(?:in|for)(?: the| any| all)? future)(?! (?:of|plans|is|holds|looks|career|with))",
    rf"\b(?:when(?:ever)?|if|once|every ?time|each time|any ?time) (?:i|we)(?: ever| specifically| explicitly)? {_ASKED}.*"
    rf"(?:, *(?:then +)?(?:please|you|always|never|don't|do not|only|just|i (?:want|need|expect|prefer)|{_DEEDS})|\bplease\b"
    r"|\balways\b|\byou (?:should|must)\b)",
    rf"{_LEAD}(?:only |don't |do not |never )?{_DEEDS}.*\b(?:when(?:ever)?|if|every ?time|each time|any ?time|unless|until)"
    rf" (?:i|we)(?: ever| specifically| explicitly)? {_ASKED}",
    rf"{_LEAD}(?:only |don't |do not |never |you (?:should|must) )?{_DEEDS}.*\b(?:{_ALWAYS})\b",
    rf"\b(?:{_ALWAYS}|(?:every|each|any) ?time i \w+[^,]{{0,40}})\b.*, *(?:please |you (?:should|must) |always |never |don't |do not "
    rf"|only )?{_DEEDS}",
    r"(?<!if )\bi(?:'d| would)?(?: \w+ly| much| also| still| always)* prefer\b(?! not to (?:say|answer))",
    r"\bmy (?:preference|preferred)\b[\w -]{0,30} (?:is|are|would be)\b",
    r"\bi(?:'d| would) rather you\b|\bi (?:really )?(?:like|love|hate|appreciate|dislike) it when you\b",
    r"\bi (?:don't|do not|never) (?:want|like|need) (?:you|your|it when you)\b|\bi never want (?!to (?:see|hear|go|leave))",
    r"\bi (?:want|need|expect|would like|'d like)(?: all| every| each)?(?: of)? your (?:answers?|responses?|repl|messages?|expl|out)",
    rf"{_LEAD}(?:keep|make) (?:all |each |every )?(?:of )?(?:your|the) (?:answers?|responses?|replies|messages|explanations)\b",
    r"(?:^|[,;:.–—] +|\b(?:please|and|but|just|you to|you should|you must|i need you to) +)"
    r"(?:remember|keep in mind|bear in mind|don't forget|do not forget|never forget)\b(?:,? (?:that|to|my|i|i'm|not|always"
    r"|never|this|we|for|the (?!time|day|good|old|first|last)\w+)\b|:)(?! (?:the|that|this) (?:time|day|night|trip)\b)"
    r"(?! (?:be kind|take care|enjoy|rest|have fun|breathe|smile|you|(?:always )?here|always here))",
    rf"{_LEAD}(?:note|take note|be aware|be advised)(?: that|:) (?:i|my|we|our|all|any|every)\b",
    r"\bplease,? (?:do not|don't|never|avoid|refrain from|stop)\b(?! (?:worry|hesitate|mind|get me|be (?:sorry|mad|sad|afraid"
    r"|shy|upset)|give up|feel|go\b|leave me|apologi|think (?:i|that)|take it|judge|hate|cry|stop|die))",
    rf"{_LEAD}(?:do not|don't|avoid|refrain from|stop)\b(?! (?:know|feel|think|see|have|get|want|like|care|need|understand"
    r"|believe|really|even|ever|quit|give up|let|be|you|forget|worry|mind|give me wrong))\b.*\b(?:again|any ?more|ever|in your|without|unless|until"
    r"|at all"
    r"|(?:before|after) \d|too many|my)\b",
    rf"{_CLAUSE}(?:make (?:absolutely )?sure|be sure|ensure)(?: that)? (?!(?:to|you) (?:take|get some|have fun|enjoy|stay|rest"
    r"|check|let me|tell me|say|come|visit|try|keep me))(?:to|you|your|all|every|the|it|any|i|we|not|always|never)\b",
    r"\bi(?:'m| am)(?: also| severely| highly| very| deathly| mildly| really| a| an| strictly| on a)* (?:allergic|\w+[- ]"
    r"intolerant|vegan|vegetarian|pescatarian|celiac|coeliac|diabetic|kosher|halal|colou?r-?blind|hard of hearing|dyslexic"
    r"|gluten[- ]free|keto)\b|\bi have (?:a|an)(?: \w+){0,3} (?:allergy|intolerance)\b|\bi (?:don't|do not|can't|cannot|never)"
    r" (?:eat|drink)\b(?! (?:it|that|this|much|yet|anymore))",
    r"\bmy (?:pronouns|time ?zone|budget|(?:native|preferred) language|dietary \w+|seat preference|home airport) (?:is|are)\b",
    rf"(?:{_CLAUSE}|\byou (?:can|may|should) )(?:call me|address me as|refer to me (?:as|by))\b(?! (?:back|out|when|if|later|at|on|tomorrow|crazy"
    rf"|asap|tonight|and|to|old))"
    r"|\bi (?:go by|like to be called)\b",
    rf"{_LEAD}(?:only )?(?:answer|respond|reply|speak|communicate|write|talk)(?: to me)?(?: only)? in (?:\w+ )?(?:english|french"
    r"|german|spanish|italian|portuguese|dutch|russian|chinese|mandarin|japanese|korean|arabic|hindi|turkish|polish)\b",
)


def _english(text: str) -> bool:
    polite = _POLITE.search(text) is not None
    if text.endswith("?") or _QUESTION.match(text):
        return polite
    found = _ENGLISH.search(text)
    if not found or _REPORTED.search(text, 0, found.start() + 1):
        return False
    # "I sing, and always have": the subject is told of, nobody is asked
    joined = re.match(r"(?:and|but|so|then|also|just|, )", found[0].lstrip()) or found[0].startswith(",")
    return not (
        joined and _NARRATED.match(text) and not re.search(r"\b(?:you|your|please|i (?:ask|want|need))\b", text)
    )


_SIMPLE = str.maketrans(
    "請後從現開別應該須給幫復覆記還總會機時間說終遠統務預設優絕對們當問讓詢沒訴擔氣著見誤難緊棄騙鬧薦訂較"
    "歡愛傾習慣這嗎寧飯純區語簡體講溝麼為點儘來買許過歲樂題萬覺願韓",
    "请后从现开别应该须给帮复复记还总会机时间说终远统务预设优绝对们当问让询没诉担气着见误难紧弃骗闹荐订较"
    "欢爱倾习惯这吗宁饭纯区语简体讲沟么为点尽来买许过岁乐题万觉愿韩",
)


def simplified(text: str) -> str:
    """Return *text* with the traditional characters that patterns name written the simplified way. O(length)."""
    return text.translate(_SIMPLE)


_AGO = r"(?:以后|今后|从现在(?:开始|起)?|从今(?:以后|往后|天起|天开始)|往后|从此)"
_DO = r"(?:请|都|不要|别|不用|必须|应该|要|用|叫我|给我|帮我|回答|回复|记得|一律|只|先|就|提供|包括|列出|提醒)"
_BEGIN = r"(?:^|[，,、；：:。！\s]|请|你|希望|所以|但是?|而且|另外|还有|麻烦)"
_HERE = r"(?:^|[，,、；：:。！\s]|而且|另外|还有|但是?|所以)"
_CHINESE = _any(
    rf"{_BEGIN}{_AGO}(?!再说|有(?:机会|时间|空)|的|会|[，,]?我(?:要|会|就|再|打算|也|可能|自己)).*{_DO}",
    r"(?:请|麻烦你?|希望你|你(?:一定)?(?:要|应该|必须|需要|得))\s*(?:总是|始终|一直|永远|每次|一律|统一"
    r"|务必|记住|记得|牢记|勿|避免|尽量|默认|预设|优先)",
    rf"{_HERE}(?:(?:总是|始终|永远|一律|统一|默认|预设|优先)(?:请|要|用|使用|以|给|在|把|回答|提供|包括|不要|别)"
    r"|务必|千万(?:不要|别)|绝对不(?:要|能|可)|切勿|切记"
    r"|(?:记住|记得|记一下|不要忘记|别忘了)(?!上次|那|我们|当时|以前|小时候|嘛|不))",
    rf"{_HERE}(?:每次|每当|只要|一旦|当|如果|凡是)我?(?:问|提|说|要|让|需|询|请|没有?|回答|回复|你)"
    r"(?!.*我都(?:会|要|很|在|能|觉)).*(?:请|必须|应该|不要|别|用|给我|帮我|提供|包括|包含|列出|说明"
    r"|提醒|告诉|先|都要)",
    rf"{_HERE}我(?:问|提到|说到|询问)[^，。]{{0,20}}(?:时|的时候).*(?:请|要|都|必须|先|用|提供|包括|列出|提醒)",
    r"(?:请|拜托)\s*(?:你)?(?:不要|别|勿)(?!担心|客气|着急|介意|见怪|误会|生气|难过)",
    rf"{_HERE}(?:不要|别|不许|不准|禁止)(?!担心|客气|着急|急|紧|怕|难过|生气|放弃|人|的|墅|哭|骗|闹|想太多)"
    r".*(?:再|任何|给我|回答|使用|用|推荐|提|安排|预订|订|叫我|放|加|超过|除非)",
    r"我(?:更|比较|还是|一般|通常|平时|特别|最|很|真的|不太|不|也|都)*(?:喜欢|偏好|偏爱|倾向|习惯)"
    r"(?!上|过|了|这|那|你|他|她|它|吗)|我(?:宁愿|希望你(?:能|可以)?(?:总|一直|每次|不要|别|用))",
    r"我(?:有|是)?[^，。]{0,6}对[^，。]{1,16}(?:过敏|不耐)|我(?:有)?[^，。]{1,6}过敏|我(?:从来?|一直|都|也)?不(?:能)?"
    r"(?:吃|喝|碰)(?!了|饭|完|惯)|我(?:是)?(?:吃素|素食|纯素|清真)|我有糖尿病",
    r"(?:请|就|可以|都)叫我|^叫我(?!去|来|把|做|别|不|起|给|帮|的|怎|什|想|很|买|吃|说|先)"
    r"|我的(?:预算|时区|代词|母语|偏好|最爱)[^，。]{0,6}是",
    r"(?:请|^|[，,])(?:只)?(?:用|以|说|讲)(?:简体|繁体)?(?:中文|英文|英语|日语|日文|韩语|法语|德语|西班牙语)"
    r"(?:回答|回复|交流|跟我|和我|来回|沟通)",
)
_CHINESE_QUESTION = re.compile(
    r"(?:[？?]|吗|呢|么|吧？|没有？|什么|怎么|哪)[。！!~～\s]*$|^(?:为什么|怎么|你(?:还)?记得|你平时|你总是)"
)
_CHINESE_POLITE = re.compile(
    rf"{_AGO}.*(?:能不能|可不可以|可以|可否|能否|能|麻烦|请)|(?:能不能|可不可以|可以|可否|能否)(?:请)?(?:每次|一直|总是)"
)


def _chinese(text: str) -> bool:
    text = simplified(text)
    if _CHINESE_QUESTION.search(text):
        return _CHINESE_POLITE.search(text) is not None
    return _CHINESE.search(text) is not None


_JAPANESE_ASKS = re.compile(
    r"(?:(?:て|で)(?:おいて)?(?:ください|下さい|くれ|ちょうだい|頂戴|ほしい|欲しい|もらえますか|いただけますか|くれますか|もらいたい|いただきたい)?"
    r"|お?願い(?:し|いた|致)?(?:します|します)?|なさい|こと|ように(?:して)?|しろ|せよ|禁止|(?:教え|見せ)て)(?:です)?[ねよ]?[。！!？?♪〜~ー\s]*$"
)
_JAPANESE_TIMES = re.compile(
    r"これから|今後|以降|次(?:回)?から|今日から|いつも(?!お世話|あり|すみ)|必ず|かならず|常に|つねに|毎回|絶対|決して|二度と|一切|なるべく|できるだけ"
    r"|基本的に|デフォルト|(?:聞い|尋ね|質問|頼ん|言っ|話し|依頼|相談).{0,6}(?:とき|時|際|たび|度|場合|たら)|(?:する|の)(?:とき|時|際|たび"
    r"|場合)(?:は|に)"
)
_JAPANESE = _any(
    r"覚えて(?:おいて|おけ|て)?(?:ください|下さい|くれ|ほしい|ね|よ)?[。！!\s]*$|(?:覚えてお|記憶してお|念頭に置|留意し)いて|忘れないで",
    r"(?<!心配し)(?<!気にし)(?<!無理し)(?<!遠慮し)(?<!怒ら)(?<!泣か)ないで(?:ください|下さい|ね|ほしい|欲しい|くれ)|(?:やめて|避けて|控えて)"
    r"(?:ください|下さい|ほしい|欲しい|ね|くれ)",
    r"(?:の|な|い)(?:ほう|方)が(?:いい|良い|よい|好き|好み|助かり|嬉しい|うれしい|ありがたい)(?:です|な|[。！]|$)|が好(?:き|み)(?:です|だ|なので"
    r"|[。！]|$)"
    r"|(?:が|は)(?:苦手|嫌い)(?:です|だ|なので|[。！]|$)|を好みます",
    r"アレルギー(?:が(?:ある|あり)|です|持ち|なの|だ)|食べられ(?:ない|ません)|(?:ベジタリアン|ヴィーガン|ビーガン)(?:です|な|だ)",
    r"(?:と|って)呼んで|予算は",
)
_JAPANESE_OTHERS = re.compile(r"(?:彼|彼女|母|父|妻|夫|友人|友達|さん|くん|君|ちゃん)(?:は|が|も)")
_JAPANESE_LANGUAGE = re.compile(r"(?:日本語|英語|中国語|韓国語|敬語|タメ口|ため口|ですます調|です・ます調|関西弁)で")


def _japanese(text: str) -> bool:
    asks = _JAPANESE_ASKS.search(text) is not None
    if re.search(r"(?:[？?]|ですか|ますか|かな|でしょう)[。\s]*$", text) and not (
        asks and _JAPANESE_TIMES.search(text)
    ):
        return False
    if asks and (_JAPANESE_TIMES.search(text) or _JAPANESE_LANGUAGE.search(text)):
        return True
    return _JAPANESE.search(text) is not None and not _JAPANESE_OTHERS.search(text)


_KOREAN_ASKS = re.compile(
    r"(?:주세요|주십시오|주시기|줘요?|줘라|세요|십시오|바랍니다|바라요|부탁(?:해요?|드려요|드립니다|합니다)?|마(?:세요|십시오|라|요)?|말아요?|해라?"
    r"|할 것|둬요?"
    r"|좋겠(?:어요?|습니다)|싶어요?)[.!~\s]*$"
)
_KOREAN_TIMES = re.compile(
    r"(?:^|[\s,])(?:앞으로|이제부터|지금부터|오늘부터|다음부터|항상|언제나|늘|매번|반드시|꼭|절대|다시는|무조건|가급적|되도록|기본적으로)"
    r"|(?:제가|내가).{0,30}(?:물어보|물으|질문하|요청하|말하|부탁하|얘기하|언급하).{0,6}(?:면|때|마다)"
)
_KOREAN = _any(
    r"기억해\s?(?:줘|주세요|둬|두세요|주십시오)|기억해[.!~\s]*$|잊지\s?(?:마|말)|명심해|참고해\s?(?:줘|주세요)|유의해",
    r"(?<!걱정하)(?<!신경 쓰)(?<!무리하)(?<!울)(?<!포기하)(?<!미안해하)지\s?(?:마(?:세요|십시오|라|요)?|말아(?:\s?(?:주세요|줘|주십시오"
    r"|요))?)[.!~\s]*$",
    r"(?:저는|나는|난|전|제가|내가)\s.*(?:더 좋|선호|좋아해|좋아합니다|좋아하는 편|싫어(?!졌)|편해)|선호(?:해|합니다)|(?:게|이|가) 더 좋(?:아|습)"
    r"|더 좋아(?:해|합)",
    r"(?:알레르기|알러지)(?:가|는)?\s?(?:있|예요|이에요|입니다)|못\s?먹(?:어|습)|채식(?:주의|을 해|해요)|비건(?:이|입)",
    r"(?:이?라고|으로)\s?불러|(?:내|제) 예산은",
)
_KOREAN_OTHERS = re.compile(r"(?:그는|그녀는|친구[는가]|엄마[는가]|아빠[는가]|동생[은이]|남편[은이]|아내[는가])")
_KOREAN_LANGUAGE = re.compile(r"(?:한국어|영어|일본어|존댓말|반말|중국어)로")


def _korean(text: str) -> bool:
    if re.search(r"(?:[?？]|나요|까요?|니|냐)[.\s]*$", text):
        return bool(re.search(r"(?:줄래|주시겠|줄 수|주실 수)", text) and _KOREAN_TIMES.search(text))
    if _KOREAN_ASKS.search(text) and (_KOREAN_TIMES.search(text) or _KOREAN_LANGUAGE.search(text)):
        return True
    return _KOREAN.search(text) is not None and not _KOREAN_OTHERS.search(text)
