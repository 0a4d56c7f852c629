"""memci: a context window that never overflows and never loses a message.

    >>> from memci import Context, EphemeralStorage
    >>> context = Context.open(EphemeralStorage(), id="alice", system="You are a travel agent.", window=8_000)
    >>> receipt = context.append_turn("Book me a flight to Oslo.", {"role": "assistant", "content": "When?"})
    >>> [message["role"] for message in context.render("Tomorrow.")]
    ['system', 'user', 'assistant', 'user']
    >>> context.recall_page(1)[0]["content"]
    'Book me a flight to Oslo.'

Recent pages stay verbatim, older ones are archived and listed, and the model reads any of them again, byte for byte.

    Agent            the whole loop over a client of OpenAI, Anthropic or Google: run, stream, arun, astream
    Context          one conversation and its window, for a loop of your own
                         open, view, list, import_           get one
                         render, request, append_turn        before and after each call of the model
                         tools, answers                      what the model may call, and its answers
                         recall_page, search_memory, pages   what left the window
                         report, calls, verify, erase …      look after it
    AsyncContext     the same, awaited
    Policy           how a window is used: Policy(preset="economy"); CachePricing, NeverRecalled, Stale are parts of it
    SQLiteStorage    where contexts are kept: EphemeralStorage, FilesystemStorage, PostgresStorage, and around others
                     EncryptedStorage, QuotaStorage; a path or a URL is enough for most programs
    Receipt, Report, Event      what an append, `report` and `on_event` give
    MemciError       the base of all errors; each of them is here, too (help(memci.errors) has the tree)

    memci.adapters   for frameworks and clients         memci.llm        models that improve the memory
    memci.companion  an agent with a profile            memci.formats    messages of four providers
    memci.memory     what is searched                   memci.chapters, memci.segments   the parts of a window

llms.txt in the repository, and docs/, have the rest. On a command line: memci --help.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .errors import AnswerRejected as AnswerRejected
from .errors import BudgetExceeded as BudgetExceeded
from .errors import CeilingReached as CeilingReached
from .errors import Closed as Closed
from .errors import CommitUnknown as CommitUnknown
from .errors import CorruptRecord as CorruptRecord
from .errors import Diverged as Diverged
from .errors import EmbeddingFailed as EmbeddingFailed
from .errors import Erased as Erased
from .errors import HandlePoisoned as HandlePoisoned
from .errors import InvalidMessage as InvalidMessage
from .errors import InvalidSetting as InvalidSetting
from .errors import KeyMissing as KeyMissing
from .errors import LimitExceeded as LimitExceeded
from .errors import MemciError as MemciError
from .errors import ModelError as ModelError
from .errors import ModelRefused as ModelRefused
from .errors import ModelUnavailable as ModelUnavailable
from .errors import OpConflict as OpConflict
from .errors import OpenToolGroup as OpenToolGroup
from .errors import PageNotFound as PageNotFound
from .errors import QuotaExceeded as QuotaExceeded
from .errors import SchemaTooNew as SchemaTooNew
from .errors import SeveralOwners as SeveralOwners
from .errors import StorageBusy as StorageBusy
from .errors import StorageError as StorageError
from .errors import StorageFull as StorageFull
from .errors import StorageReadOnly as StorageReadOnly
from .errors import StorageUnavailable as StorageUnavailable
from .errors import Undone as Undone
from .errors import UnknownArgument as UnknownArgument
from .errors import WriteConflict as WriteConflict
from .errors import hint as _hint

if TYPE_CHECKING:
    from .adapters.agent import Agent as Agent
    from .chapters.unload import NeverRecalled as NeverRecalled
    from .chapters.unload import Stale as Stale
    from .context.async_context import AsyncContext as AsyncContext
    from .context.context import Context as Context
    from .context.report import Receipt as Receipt
    from .context.report import Report as Report
    from .history.events import Event as Event
    from .model_catalog import CachePricing as CachePricing
    from .settings import Policy as Policy
    from .storage import EncryptedStorage as EncryptedStorage
    from .storage import EphemeralStorage as EphemeralStorage
    from .storage import FilesystemStorage as FilesystemStorage
    from .storage import PostgresStorage as PostgresStorage
    from .storage import QuotaStorage as QuotaStorage
    from .storage import SQLiteStorage as SQLiteStorage

__version__ = "0.2.0"

# The module of each name that is loaded when it is first asked for: a part of memci is loaded without the rest.
# There is no `__all__`: with it, `help(memci)` prints every class in full, some 3,000 lines.
_LATER = {
    "Agent": "adapters.agent",
    "AsyncContext": "context.async_context",
    "CachePricing": "model_catalog",
    "Context": "context.context",
    "EncryptedStorage": "storage",
    "EphemeralStorage": "storage",
    "Event": "history.events",
    "FilesystemStorage": "storage",
    "NeverRecalled": "chapters.unload",
    "Policy": "settings",
    "PostgresStorage": "storage",
    "QuotaStorage": "storage",
    "Receipt": "context.report",
    "Report": "context.report",
    "SQLiteStorage": "storage",
    "Stale": "chapters.unload",
}


def __getattr__(name: str) -> Any:
    """Load a public name that `import memci` has not loaded."""
    if name[:1].isupper() and name not in _LATER:
        for package in ("chapters", "segments"):  # a structure of a window, which its package lists
            if hasattr(module := import_module(f".{package}", __name__), name):
                return getattr(module, name)
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name, _LATER)}")
    value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    """Return all names of the module, those that are not loaded yet among them, if what they need is installed."""
    missing = set[str]() if find_spec("psycopg_pool") else {"PostgresStorage"}
    return sorted({*globals(), *_LATER} - missing)
