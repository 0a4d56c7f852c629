"""Lines that programs write: a log, code, the frame of what was copied from a chat, an export or a mail.

    Mara — Today at 14:02          a stamp: who said what is below, and when
    From: Dana Cole                the head of a mail, with its subject
    Tim: ok                        a label; three of them, one twice, are a dialogue

No speaker writes like this: what they belong to is quoted (`memci.text.provenance`).
"""

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

SHORT = 60  # characters of a line that is no full line of a paragraph; columns of a short part

FENCE = re.compile(r"\s{0,3}(```|~~~)")
MACHINE = re.compile(
    r"\s*(?:>>> |\$ |// |[\[(]?\d{1,4}[-./:]\d\d?[-./:]\d\d|\[?\d\d?:\d\d(?::\d\d)?[\])]? +(?:\[|[A-Z]{3,}\b|-)"
    r"|\[\d\d?:\d\d(?::\d\d)?\]"
    r"|\W{0,2}(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE|CRITICAL|NOTICE)\b\W|Traceback "
    r"|\w*(?:Error|Exception)(?: \[\w+\])?: |npm ERR|at \w[\w.$]* ?\(|File \""
    r"|(?:import|from) [\w.]+(?:;| import .*)?$|(?:def|class|function|async|func|fn) \w+[^.]*[:{(]\s*$"
    r"|(?:const|let|var) \w+ =|#include|public |private |SELECT .* FROM |@@ |diff --git|[+-]{3} [ab]/"
    r"|\[[\w.\- ]+\]$|[\w.\-]+ ?=(?!=)\s*\S|</?\w+[^<>]*>|[{}()\[\]]+[;,]?$|\"[\w \-]+\"\s*:)|[^.!?]{0,200}[{;]$"
)
_CLOCK, _DATE = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[.,]\d{3})?(?:\s?[ap]\.?m\.?)?", r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
_STAMP = re.compile(
    rf"\s*(?:[^.!?\[(]{{0,40}}(?:[\[(]{_DATE}[,\s]+{_CLOCK}[\])]|{_DATE}\s+\d\d?:\d\d:\d\d)|{_CLOCK} -->.*"
    rf"|[\[(]{_CLOCK}[\])] [^.!?:]{{1,40}}|(?:[^.!?:]{{1,40}} )?[—–] [^.!?:]{{0,20}}{_CLOCK})\s*|\s+{_CLOCK}\s*"
)
"""a line above a message of an export: its speaker and its time, or the time of a subtitle"""
_SENDER = re.compile(r"\W{0,4}(?:from|von|de|da|van|från|fra|od|от|发件人|寄件者|差出人|보낸 사람)\W{0,3}[:：]")
_SUBJECT = re.compile(
    r"\W{0,4}(?:subject|betreff|objet|asunto|oggetto|assunto|onderwerp|ämne|emne|temat|тема|主题|主旨|件名|제목)\W{0,3}[:：]"
)
"""lines of the head of a mail, which a program writes in its own language"""
NOTICE = re.compile(r"\s*(?:【[^】\n]{1,20}】|\[[가-힣]{1,10}\]|(?:温馨提示|通知|公告|お知らせ|안내|공지)\s*[:：])")
_GREETING = re.compile(r"[^.?。？]{1,30}")
_LABEL = re.compile(r"[-*\s]{0,4}([^\W\d_][^:：\n.!?。！？]{0,30})[:：]\s*\S")


class Line(NamedTuple):
    """A line of a text, or a sentence of its only one."""

    start: int
    end: int
    said: str  # as patterns expect it
    first: bool  # whether it begins a paragraph


def labelled_lines(lines: Sequence[Line]) -> set[int]:
    """Return the numbers of the lines of dialogues: three labels or more, one of them again, and what is between.

    A paragraph that begins without a label ends one.
    """
    found: set[int] = set()
    run: dict[int, str] = {}
    for at in range(len(lines) + 1) if len(lines) > 2 else ():
        label = _LABEL.match(lines[at].said) if at < len(lines) else None
        if label:
            run[at] = label[1].strip()
        elif at == len(lines) or lines[at].first:
            if len(run) > 2 and len(set(run.values())) < len(run):
                found.update(range(min(run), max(run) + 1))
            run = {}
    return found


def stamped_lines(lines: Sequence[Line]) -> set[int]:
    """Return the numbers of the lines of an export: from the first of two stamps or more to what the last one says."""
    stamps = [at for at, line in enumerate(lines) if len(line.said) <= 2 * SHORT and _STAMP.fullmatch(line.said)]
    if len(stamps) < 2:
        return set()
    last = takewhile(lambda at: not lines[at].first, range(stamps[-1] + 1, len(lines)))
    return {*range(stamps[0], stamps[-1] + 1), *last}


def mail_lines(lines: Sequence[Line]) -> set[int]:
    """Return the numbers of the lines of the heads of mails, and of the paragraph behind each, with a greeting."""
    found, goes_on = set[int](), False
    for at, end in pairwise([*(at for at, line in enumerate(lines) if line.first), len(lines)]):
        said = [line.said.strip() for line in lines[at:end]]
        is_head = any(map(_SENDER.match, said)) and any(map(_SUBJECT.match, said))
        if is_head or goes_on:
            found.update(range(at, end))
        goes_on = is_head or (goes_on and len(said) == 1 and _GREETING.fullmatch(said[0]) is not None)
    return found
