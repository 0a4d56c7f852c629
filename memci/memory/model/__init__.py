"""The steps of the memory as a model does them: functions of values, that give what is usable or raise `ModelError`.

    a page closes ──▶ pages.describe     title, lines, keywords, continuity, chain, events     1 call
    a hand-over   ──▶ topics.themes      at most two topics of the batch                       1 call
                  ──▶ episodes.retold    summary, keywords, importance of an episode           1 call for each topic
    an episode is hot  ─▶ analysis.learned   traits, facts of both sides                       1 call
    … is used often    ─▶ concepts.related   concepts and relations                            1 call
    5 pages, a day     ─▶ days.day           text and mood of the day                          1 call
    a silence          ─▶ days.conversation  the conversation in short                         1 call
    10 turns           ─▶ strategy.treated   strategy and tags                                 1 call

Without an answer the memory keeps what it made without a model. This package knows nothing of the store, of jobs, or
of when a step is due.
"""

from .analysis import Learned, learned
from .concepts import related
from .days import conversation, day
from .episodes import Retold, retold
from .pages import Before, PageNote, describe
from .strategy import treated
from .topics import themes

__all__ = [
    "Before",
    "Learned",
    "PageNote",
    "Retold",
    "conversation",
    "day",
    "describe",
    "learned",
    "related",
    "retold",
    "themes",
    "treated",
]
