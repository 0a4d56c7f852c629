"""The companion: a conversational agent with a memory, built on a context and a model.

    from memci.companion import Companion
    from memci.llm import Chat

    companion = Companion(context, Chat(model="…"), role="You are Ada's travel companion.")
    print(companion.respond("Where did I want to sit?").text)

`memci chat` is one in a terminal.
"""

from .answers import AnswerStream as AnswerStream
from .answers import CompanionAnswer as CompanionAnswer
from .answers import MessageFacts as MessageFacts
from .answers import SavedMemory as SavedMemory
from .async_companion import AsyncAnswerStream as AsyncAnswerStream
from .async_companion import AsyncCompanion as AsyncCompanion
from .companion import Companion as Companion
from .query_planning import AnalysisResult as AnalysisResult
from .query_planning import MemoryToSave as MemoryToSave
