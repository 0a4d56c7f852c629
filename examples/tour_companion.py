"""A tour in Chinese: a companion over a year, a talk every third day, in a window of 6,000 tokens. No network, no key.

    python examples/tour_companion.py

In January the user names a sister's birthday, in June they move. At the end of the year the model reads what was found
in front of each question, and what came later.
"""

import re
from datetime import UTC, datetime, timedelta

from memci import Context, EphemeralStorage, Policy
from memci.companion import Companion
from memci.testing.llm import ScriptedChat

TALK = (
    "今天跑了步。",
    "晚饭吃了面条。",
    "下班路上堵车。",
    "看了一部老电影。",
    "周末想去爬山。",
    "最近在学吉他。",
    "今天下雨了。",
)
NEWS = {
    9: "我妹妹叫小雨，她的生日是3月5日。",
    20: "我住在上海，离外滩不远。",
    40: "我对花生过敏，点菜时请记得。",
    165: "我上周搬到成都了。",
}


def model(asked: object) -> str:
    """Play a model that answers from what it reads in the request."""
    text = "\n".join(str(message["content"]) for message in asked.messages)
    question = asked.text
    if "生日" in question:
        return "小雨的生日是" + (re.search(r"生日是(\d+月\d+日)", text) or ["", "……我不记得了"])[1] + "。"
    if "住在哪" in question:
        return "您现在住在成都。" if "搬到成都" in text else "您住在上海。" if "住在上海" in text else "我不知道。"
    if "花生" in text and "点菜" in question:
        return "别点有花生的菜。"
    return "好的，我记下了。"


start = datetime(2026, 1, 1, 20, tzinfo=UTC)
with Context.open(
    EphemeralStorage(),
    "today",
    owner="小林",
    system="你是小林的伙伴。",
    window=6_000,
    zone="Asia/Shanghai",
    policy=Policy(language="zh"),
) as context:
    chat = ScriptedChat(model)
    companion = Companion(context, chat, analysis=False)
    for day in sorted({*range(1, 365, 3), *NEWS}):
        companion.respond(NEWS.get(day, f"第{day}天：{TALK[day % 7]}"), at=start + timedelta(days=day))
    for question in ("我妹妹的生日是哪天？", "我现在住在哪儿？", "今晚点菜要注意什么？"):
        answer = companion.respond(question, at=start + timedelta(days=365))
        found = [page.text for page in answer.recollection.pages[:3]]
        print(f"用户  {question}\n找到  {' / '.join(found)}\n伙伴  {answer.text}\n")
    print(context.report())
