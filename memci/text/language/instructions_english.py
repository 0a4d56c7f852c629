"""Standing instructions in English.

    "always answer in french."       asks for good: always, and a deed
    "i always run late."             tells a habit
    "i sing, and always have."       goes on with what somebody does

This module knows nothing of sentences, or of quotations in them.
"""

import re

from .patterns import any_of


def english(sentence: str) -> bool:
    """Tell whether *sentence* asks for something for good, or tells a lasting preference or constraint."""
    text = " ".join(sentence.lower().split())
    polite = _POLITE.search(text) is not None
    if text.endswith("?") or _QUESTION.match(text):
        return polite
    found = _STANDING.search(text)
    if not found or _REPORTED.search(text, 0, found.start() + 1):
        return False
    # "I sing, and always have": the subject is told of, nobody is asked
    joined = re.match(r"(?:and|but|so|then|also|just|, )", found[0].lstrip()) or found[0].startswith(",")
    return not (
        joined and _NARRATED.match(text) and not re.search(r"\b(?:you|your|please|i (?:ask|want|need))\b", text)
    )


_LEAD = (
    r"^(?:(?:and|but|so|also|oh|hey|hi|hello|ok|okay|well|actually|yes"
    r"|yeah|no|thanks|thank you|btw|by the way|just|first"
    r"|finally|again|important|note|one more thing|two things|please"
    r"|kindly|now|then|plus|remember|\w+(?=,))[,:!.]* +){0,5}"
)
_CLAUSE = r"(?:^|[,;:.–—] +|- +|\b(?:and|but|please|just|so|then|also) +)"
_DEEDS = (
    r"(?:add|address|alert|answer|apply|ask|attach|avoid|begin|book|break"
    r"|bring|calculate|call|check|choose|cite|communicate"
    r"|compare|confirm|consider|convert|create|define|deliver|describe"
    r"|display|do|double-check|draft|emphasi[sz]e|end|ensure"
    r"|explain|express|fly|focus|follow|format|generate|give|greet|help"
    r"|highlight|ignore|include|incorporate|inform|inquire"
    r"|keep|label|limit|list|make|mention|note|notify|offer|omit|order|organi[sz]e|outline|phrase|pick|point|prefer"
    r"|present|prioriti[sz]e|propose|provide|put|quote|recommend|refer"
    r"|reference|remind|reply|report|respond|return|round"
    r"|run|say|schedule|send|set|share|show|sign|skip|speak|specify"
    r"|spell|start|state|stick|structure|suggest|summari[sz]e"
    r"|supply|support|take|talk|tell|translate|treat|try|update|use|verify|wait|walk|warn|write)\b"
)
_ASKED = (
    r"(?:ask|request|mention|say|inquire|bring up|talk about|want|need|tell|send|give|share|type|write|discuss|query)\b"
)
_NO_DEED = (
    r"(?:been|a|an|the|my|had|seen|heard|thought|knew|was|were|is|are|am"
    r"|have|having|good|nice|great|fun|happy|so|that|in|on"
    r"|at|again|too|there|here|will|would|felt|got|did|love|loved|mind|know|ever|enough|forget (?:the|how|that time)"
    r"|(?!need|feed|embed|proceed)\w+ed|(?!bring|ring)\w+ing)\b"
)
_QUESTION = re.compile(
    _LEAD + r"(?:do|does|did|has|had|are|is|was|were|why|how|what|who|where|which|can|could|would|will|should|may|have)"
    r" (?:you|i|we|they|he|she|it|your|my|the|there|that|this|to|about|if)\b"
)
_POLITE = re.compile(
    _LEAD + r"(?:can|could|would|will|may) (?:you|i ask you to|we)(?: please| kindly| also| just| maybe)*,?"
    r" (?:always|never|from now on|in (?:the )?future"
    r"|remember\b(?! (?:when|me|the time))|make sure|keep in mind|stop|not)\b"
    r"|^(?:can|could|would|will|may) you\b.*\b(?:from now on"
    r"|going forward|in (?:the )?future|every time i|whenever i)\b"
)
_REPORTED = re.compile(
    r"\b(?:said|told (?:me|him|her|us|them)|says|asked (?:me|him|her|us|them)|tells me|reminded me|used to)\b"
)
_NARRATED = re.compile(
    r"^(?:and |but |so |well |yeah |oh )*,? ?(?:i|we|he|she|they|it|my \w+|that|this|there)(?:'\w+)?\b"
)
_FUTURE = r"from now on|going forward|from this point|from here on|henceforth|until further notice|as of (?:now|today)"
_ALWAYS = (
    r"by default|as a (?:general )?rule|unless (?:i|otherwise|told"
    r"|asked|specified|explicitly)|no matter what|at all times"
    r"|under no circumstances|(?:every|each|any) ?time (?:you|i \w+[^,]{0,40}$)"
    r"|whenever you(?! (?:need|can|want|like|feel|are|have|get)|')"
    r"|when(?:ever)? (?:responding|answering|giving|providing|writing"
    r"|suggesting|recommending|explaining|showing|generating|creating"
    r"|formatting|presenting|listing|mentioning|discussing"
    r"|talking|speaking|replying|addressing|describing|booking"
    r"|scheduling|planning|it comes to)|in (?:all|every|each|your)"
    r"(?: of your| single)? ?(?:responses?|answers?|repl(?:y|ies)"
    r"|messages?|explanations?|outputs?|code|summar(?:y|ies))"
)
_STANDING = any_of(
    rf"{_LEAD}(?:always|never|(?:don't|do not) ever)(?: please)? (?!{_NO_DEED})\w",
    rf"{_CLAUSE}(?:always|never|(?:don't|do not) ever) (?:{_DEEDS}|be\b)",
    r"\byou (?:should|must|need to|have to|are to|ought to)(?: please)? (?:always|never)\b",
    r"\byou(?:'ll| will)? to (?:please )?(?:always|never)\b|\b(?:i'd|i would) like (?:it )?if you (?:always|never)\b",
    rf"{_CLAUSE}(?:{_FUTURE}|in (?:the )?future)\b(?!,? (?:i'll|i will|i'm"
    r"|i am|we|he|she|they|it|i hope|i think|i may|i might"
    r"|i plan|with|is|holds|looks|slowly)\b)",
    rf"(?:{_LEAD}{_DEEDS}|\bplease\b|\byou (?:should|must)\b|\bi(?: want|'d like| would like| need) you\b).*"
    rf"\b(?:{_FUTURE}|(?:in|for)(?: the| any| all)? future)(?! (?:of|plans|is|holds|looks|career|with))",
    r"\b(?:when(?:ever)?|if|once|every ?time|each time|any ?time) (?:i"
    rf"|we)(?: ever| specifically| explicitly)? {_ASKED}.*"
    r"(?:, *(?:then +)?(?:please|you|always|never|don't|do not|only|just"
    rf"|i (?:want|need|expect|prefer)|{_DEEDS})|\bplease\b"
    r"|\balways\b|\byou (?:should|must)\b)",
    rf"{_LEAD}(?:only |don't |do not |never )?{_DEEDS}.*\b(?:when(?:ever"
    r")?|if|every ?time|each time|any ?time|unless|until)"
    rf" (?:i|we)(?: ever| specifically| explicitly)? {_ASKED}",
    rf"{_LEAD}(?:only |don't |do not |never |you (?:should|must) )?{_DEEDS}.*\b(?:{_ALWAYS})\b",
    rf"\b(?:{_ALWAYS}|(?:every|each|any) ?time i \w+[^,]{{0,40}})\b.*, *(?:ple"
    r"ase |you (?:should|must) |always |never |don't |do not "
    rf"|only )?{_DEEDS}",
    r"(?<!if )\bi(?:'d| would)?(?:(?> \w+ly)| much| also| still| always)* prefer\b(?! not to (?:say|answer))",
    r"\bmy (?:preference|preferred)\b[\w -]{0,30} (?:is|are|would be)\b",
    r"\bi(?:'d| would) rather you\b|\bi (?:really )?(?:like|love|hate|appreciate|dislike) it when you\b",
    r"\bi (?:don't|do not|never) (?:want|like|need) (?:you|your"
    r"|it when you)\b|\bi never want (?!to (?:see|hear|go|leave))",
    r"\bi (?:want|need|expect|would like|'d like)(?: all| every"
    r"| each)?(?: of)? your (?:answers?|responses?|repl|messages?|expl|out)",
    rf"{_LEAD}(?:keep|make) (?:all |each |every )?(?:of )?(?:your"
    r"|the) (?:answers?|responses?|replies|messages|explanations)\b",
    r"(?:^|[,;:.–—] +|\b(?:please|and|but|just|you to|you should|you must|i need you to) +)"
    r"(?:remember|keep in mind|bear in mind|don't forget|do not forget"
    r"|never forget)\b(?:,? (?:that|to|my|i|i'm|not|always"
    r"|never|this|we|for|the (?!time|day|good|old|first|last)\w+)\b|:)(?! (?:the|that|this) (?:time|day|night|trip)\b)"
    r"(?! (?:be kind|take care|enjoy|rest|have fun|breathe|smile|you|(?:always )?here|always here))",
    rf"{_LEAD}(?:note|take note|be aware|be advised)(?: that|:) (?:i|my|we|our|all|any|every)\b",
    r"\bplease,? (?:do not|don't|never|avoid|refrain from"
    r"|stop)\b(?! (?:worry|hesitate|mind|get me|be (?:sorry|mad|sad|afraid"
    r"|shy|upset)|give up|feel|go\b|leave me|apologi|think (?:i|that)|take it|judge|hate|cry|stop|die))",
    rf"{_LEAD}(?:do not|don't|avoid|refrain from|stop)\b(?! (?:know|feel"
    r"|think|see|have|get|want|like|care|need|understand"
    r"|believe|really|even|ever|quit|give up|let|be|you|forget|worry|mind"
    r"|give me wrong))\b.*\b(?:again|any ?more|ever|in your|without|unless|until"
    r"|at all"
    r"|(?:before|after) \d|too many|my)\b",
    rf"{_CLAUSE}(?:make (?:absolutely )?sure|be sure"
    r"|ensure)(?: that)? (?!(?:to|you) (?:take|get some|have fun|enjoy|stay|rest"
    r"|check|let me|tell me|say|come|visit|try|keep me))(?:to|you|your|all|every|the|it|any|i|we|not|always|never)\b",
    r"\bi(?:'m| am)(?: also| severely| highly| very| deathly| mildly"
    r"| really| a| an| strictly| on a)* (?:allergic|\w+[- ]"
    r"intolerant|vegan|vegetarian|pescatarian|celiac|coeliac|diabetic"
    r"|kosher|halal|colou?r-?blind|hard of hearing|dyslexic"
    r"|gluten[- ]free|keto)\b|\bi have (?:a|an)(?: \w+){0,3} (?:allergy"
    r"|intolerance)\b|\bi (?:don't|do not|can't|cannot|never)"
    r" (?:eat|drink)\b(?! (?:it|that|this|much|yet|anymore))",
    r"\bmy (?:pronouns|time ?zone|budget|(?:native|preferred) language"
    r"|dietary \w+|seat preference|home airport) (?:is|are)\b",
    rf"(?:{_CLAUSE}|\byou (?:can|may|should) )(?:call me|address me as"
    r"|refer to me (?:as|by))\b(?! (?:back|out|when|if|later|at|on|tomorrow|crazy"
    rf"|asap|tonight|and|to|old))"
    r"|\bi (?:go by|like to be called)\b",
    rf"{_LEAD}(?:only )?(?:answer|respond|reply|speak|communicate|write"
    r"|talk)(?: to me)?(?: only)? in (?:\w+ )?(?:english|french"
    r"|german|spanish|italian|portuguese|dutch|russian|chinese|mandarin|japanese|korean|arabic|hindi|turkish|polish)\b",
)
