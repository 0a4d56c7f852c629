"""Models: chat and embeddings over any OpenAI-compatible server, structured answers, what they cost.

    from memci.llm import Chat, ask

    chat = Chat("gpt-4.1-mini", base_url="http://localhost:11434/v1")    # or OPENAI_BASE_URL, OPENAI_API_KEY
    reply = chat([{"role": "user", "content": "Hi"}])
    title = ask(chat, messages, Title, step="title")                     # a pydantic model, validated

`model` says what a model is to the rest of memci. This package knows nothing of pages, windows or memories.
"""

from .model import ChatModel, Reply, Usage

__all__ = ["ChatModel", "Reply", "Usage"]
