"""The steps of the memory that ask a model: functions from values to values.

    when                   step                 gives                                        calls   prompt, per turn
    a page closes          pages.describe       title, lines, keywords, chain, events        1       380
    a full queue           episodes.themes      at most two topics of ten pages              0.3     105
    an episode is hot      facts.learned        traits, facts of both sides                  0.2     180
    … is used often        facts.related        concepts and relations                       < 0.1   50
    5 pages, a day, the    days.day             text and mood of the day                     0.2     90
      conversation's end   days.conversation    a conversation in short                      < 0.1   20
    10 turns               strategy.treated     strategy and tags                            0.1     60

The last columns are estimates for chats of 50 tokens per turn: 1.9 calls and about 850 tokens in all. (MemoryOS,
arXiv 2506.06326, reports 4.9 calls and 3,874 tokens for an answer.) Each function returns what is usable, or raises a
`ModelError`.
"""
