"""The companion: a conversational agent with a memory, built on a context and a model.

    from memci.companion import Companion
    from memci.llm import Chat

    companion = Companion(context, Chat(model="…"), role="You are Ada's travel companion.")
    print(companion.respond("Where did I want to sit?").text)

`memci chat` is one in a terminal.
"""

from .answers import AnswerStream, CompanionAnswer, MessageFacts, SavedMemory
from .async_companion import AsyncAnswerStream, AsyncCompanion
from .companion import Companion
from .query_planning import AnalysisResult, MemoryToSave

__all__ = [
    "AnalysisResult",
    "AnswerStream",
    "AsyncAnswerStream",
    "AsyncCompanion",
    "Companion",
    "CompanionAnswer",
    "MemoryToSave",
    "MessageFacts",
    "SavedMemory",
]
