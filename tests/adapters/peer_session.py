"""Lets the OpenAI Agents SDK's own tests of sessions run over memci's, as a plugin of pytest.

PYTHONPATH=tests/adapters python -m pytest -p peer_session FOLDER_OF_THE_SDK/tests/memory/test_session.py
"""

import agents

from memci import EphemeralStorage
from memci.adapters.openai_agents import Memci, MemciSession


class SQLiteSession(MemciSession):
    """One of memci's, made with the arguments of the SDK's; without the filter of a run it gives all its items."""

    def __init__(self, session_id, db_path=None, *, session_settings=None):
        self._memci = Memci(str(db_path) if db_path is not None else EphemeralStorage(), window=100_000)
        super().__init__(session_id, self._memci.conversations)
        self.session_settings = session_settings or agents.SessionSettings()

    def close(self):
        self._memci.close()


agents.SQLiteSession = SQLiteSession
