"""The mutants: what is taken out of the code, and who has to notice.

Each is a text of one file and what stands there instead. The text is unique in the file; `mutants` says so if it is not
there any more. This module knows nothing of how they are run.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One wrong version of the package."""

    name: str
    """the promise that is taken out"""
    path: str
    old: str
    new: str
    killer: str
    """a harness by name, or what pytest is given"""
    quick: bool = False
    """whether its killer is one test of a few seconds"""


_SQLITE = "memci/storage/sqlite/store.py"
_WRITE = "memci/storage/sqlite/write.py"
_FILE = "memci/storage/sqlite/connection.py"
_LOSS = "memci/storage/sqlite/loss.py"
_ROWS = "memci/storage/sqlite/rows.py"
_COLUMNS = "memci/storage/columns.py"
_WRITER = "memci/history/writer.py"
_ERASING = "memci/history/erase.py"
_QUOTING = "memci/history/quotations.py"
_WINDOW = "memci/window/window.py"
_COMPACTION = "memci/window/compaction.py"
_WINDOW_TESTS = "tests/window/test_window.py"
_CHECKPOINT_TESTS = "tests/faults/test_checkpoint.py"
_ADAPTERS = "memci/adapters/conversations.py"
_ADAPTER_TESTS = "tests/adapters/test_conversations.py"
_GATEWAY = "memci/serve/conversation.py"

MUTANTS: tuple[Mutant, ...] = (
    # -- what is on disk when a call returns
    Mutant(
        "a transition is one transaction",
        _WRITE,
        "    if transition.pages:\n",
        '    connection.execute("COMMIT")\n    connection.execute("BEGIN IMMEDIATE")\n    if transition.pages:\n',
        "syscalls",
    ),
    Mutant("a commit is synced", _FILE, '"full": "FULL"', '"full": "NORMAL"', "power"),
    Mutant("a checkpoint is synced", _FILE, '"full": "FULL"', '"full": "OFF"', "power"),
    Mutant(
        "a failed sync is reported", _SQLITE, "raise CommitUnknown(op_id, str(error)) from error", "return", "syscalls"
    ),
    Mutant(
        "a full disk is reported",
        _SQLITE,
        "        except BaseException:\n            self._roll_back()\n            raise\n        if self._inodes",
        "        except apsw.FullError:\n            self._roll_back()\n            return None  # type: ignore\n"
        "        except BaseException:\n            self._roll_back()\n            raise\n        if self._inodes",
        "syscalls",
    ),
    Mutant(
        "what failed is rolled back",
        _SQLITE,
        '                self._connection.execute("ROLLBACK")',
        '                self._connection.execute("COMMIT")',
        "bombs",
    ),
    Mutant(
        "a file in the place of ours is noticed",
        _SQLITE,
        "if self._stat() != self._inodes:",
        "if False:",
        "tests/storage/test_sqlite.py -k swapped",
    ),
    # -- what was committed is not lost in silence
    Mutant(
        "a damaged log is no torn tail",
        _LOSS,
        "lost = max(ends, default=0) > taken or _is_continued(",
        "lost = False and _is_continued(",
        "tests/storage/test_loss.py",
    ),
    Mutant(
        "a log that is to be begun again is no damage",
        _LOSS,
        "lost and _restarts(log, path)",
        "False",
        f"{_CHECKPOINT_TESTS} -k begun",
    ),
    Mutant(
        "a commit is witnessed",
        "memci/storage/witness.py",
        '            self._write(_place(slot.key), body + crc32(body).to_bytes(4, "little"))',
        "            pass",
        "tests/storage/test_loss.py",
    ),
    Mutant(
        "an erased context is forgotten by the witness",
        "memci/storage/witness.py",
        "        if self.slot(context) is not None:",
        "        if False:",
        "tests/storage/test_loss.py",
    ),
    # -- one writer after the other
    Mutant(
        "a commit follows the one before",
        "memci/storage/validation.py",
        "if revision != record.revision - 1",
        "if False and revision != record.revision - 1",
        "nemesis",
    ),
    Mutant(
        "a compaction raises the revision",
        "memci/window/window.py",
        "state=state.dumps(), revision=self.record.revision + 1",
        "state=state.dumps(), revision=self.record.revision",
        "machine",
    ),
    Mutant(
        "rendering checks whether another writer committed",
        "memci/history/writer.py",
        "if not self.read_only and (stored",
        "if False and (stored",
        "tests/context/test_context_fencing.py",
        quick=True,
    ),
    Mutant(
        "opening causes no write conflict",
        "memci/history/loader.py",
        "    return Unwritten(record.settings, window.views if recount else ()) if window.record != record else None",
        "    if window.record != record:\n"
        "        after = window.record._replace(revision=record.revision + 1)\n"
        "        storage.commit(Transition(record.head, after, views=window.views if recount else ()))\n"
        "        window.record = after\n"
        "    return None",
        "tests/context/test_context_fencing.py",
    ),
    Mutant(
        "a lock has one holder",
        "memci/storage/locks.py",
        "            alive = find_living(before)\n",
        "            alive = []\n",
        "tests/context/test_context_locks.py",
    ),
    Mutant(
        "a lock is given in the order of arrival",
        "memci/storage/sqlite/rows.py",
        'FROM ticket ORDER BY number"',
        'FROM ticket ORDER BY number DESC"',
        "tests/storage/test_sqlite.py",
    ),
    Mutant(
        "a holder that was replaced can't change anything",
        "memci/storage/locks.py",
        "    while (found := storage.load(context)) is not None:",
        "    while (found := None) is not None:",
        "tests/context/test_context_locks.py",
    ),
    Mutant(
        "no thread runs while the interpreter ends",
        "memci/workers.py",
        "@atexit.register\n",
        "",
        "tests/context/test_context_leaving.py",
    ),
    Mutant(
        "an op is applied once",
        _WRITE,
        "        if known:\n            return OPS.read",
        "        if False:\n            return OPS.read",
        "syscalls",
    ),
    Mutant(
        "an op is kept",
        _WRITE,
        "    if transition.ops:\n",
        "    if ():\n",
        "syscalls",
    ),
    # -- what is read is what was written
    Mutant(
        "order is that of seqs",
        _ROWS,
        '_SELECT_ENTRIES = f"{_ENTRIES} ORDER BY e.key',
        '_SELECT_ENTRIES = f"{_ENTRIES} ORDER BY at, e.key DESC',
        "machine",
    ),
    Mutant("the digest of a body is checked", _COLUMNS, "or digest(codec, body) != entry.digest", "or False", "fuzz"),
    Mutant(
        "the check sum of a row is checked",
        _COLUMNS,
        "if check_sum((place, *self._summed(columns))) == columns[-1]:",
        "if True:",
        "fuzz",
    ),
    Mutant(
        "a damaged row is not skipped",
        _ROWS,
        "    except CorruptRecord as error:\n        return entries, error\n",
        "    except CorruptRecord:\n        return entries, None\n",
        "fuzz",
    ),
    Mutant(
        "a message is stored exactly or refused",
        "memci/storage/codec.py",
        "        if decoded == message:",
        "        if True:",
        "fuzz",
    ),
    Mutant(
        "a later schema is refused",
        "memci/storage/sqlite/schema.py",
        "    if found > SCHEMA_VERSION:",
        "    if False:",
        "tests/storage -k 'sqlite and later_version'",
        quick=True,
    ),
    # -- what comes through the door
    Mutant(
        "calls of one message have a limit",
        "memci/messages.py",
        "    if len(calls) > MAX_CALLS:",
        "    if False:",
        "tests/trust/test_trust_steps.py -k limit",
        quick=True,
    ),
    Mutant(
        "a call of any form is read",
        "memci/messages.py",
        "    return body if isinstance(body, dict) else {}",
        "    return body or {}",
        "door",
    ),
    Mutant(
        "a usage of any form is read",
        "memci/formats/usage.py",
        "type(tokens) is not int or not 0 <= tokens <= _MOST",
        "type(tokens) is not int or not 0 <= tokens",
        "tests/bad_input/test_bad_replies.py",
    ),
    Mutant(
        "a message that is imported is one that can be appended",
        "memci/history/verify.py",
        "                    check(message)\n",
        "",
        "tests/context/test_context_transfer_refused.py -k made_up",
    ),
    Mutant(
        "native items that are imported can be sent",
        "memci/history/verify.py",
        "                    check_native(message)\n",
        "",
        "natives",
    ),
    Mutant(
        "an item with a field of another type is refused",
        "memci/formats/__init__.py",
        "    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError):",
        "    except RecursionError:",
        "natives",
    ),
    Mutant(
        "a page that can't be fed is set aside",
        "memci/context/memory_feed.py",
        "            self._set_aside(row, error)\n\n    def _observe",
        "            raise\n\n    def _observe",
        "tests/memory/test_memory_feed_aside.py",
        quick=True,
    ),
    # -- memory follows the store
    Mutant(
        "an append is stored before it is shown",
        _WRITER,
        "        known = self._commit(Transition(window.record.head, record, entries, rows, ops=ops, calls=calls))\n",
        "        before = window.record.head\n        window.append(draft, record, rows, state)\n"
        "        known = self._commit(Transition(before, record, entries, rows, ops=ops))\n        if known is None:\n"
        "            return None\n",
        "bombs",
    ),
    Mutant(
        "a compaction is stored at all",
        _WRITER,
        "            self._commit(transition, made.contents, made)",
        "            pass",
        "machine",
    ),
    Mutant(
        "a chain of compactions ends after 8",
        _WRITE,
        'zdict=text if length % longest else b""',
        "zdict=text",
        "tests/storage/test_sqlite.py -k compactions",
    ),
    Mutant(
        "what is damaged is not built upon",
        _WRITE,
        "with suppress(CorruptRecord):",
        "if True:",
        "tests/storage/test_sqlite_damage.py -k compaction",
    ),
    Mutant(
        "page numbers are not used again",
        "memci/history/undo.py",
        "after = window.changed(state)._replace(open_page=None)",
        "after = window.changed(state)._replace(open_page=None, next_page=record.next_page - len(pages))",
        "machine",
    ),
    # -- a cancelled call
    Mutant(
        "a cancellation waits for the end of what it cancels",
        "memci/context/async_context.py",
        "    running = asyncio.get_running_loop()",
        "    return await asyncio.to_thread(work)\n    running = asyncio.get_running_loop()",
        "tests/async_context/test_async_cancelling.py",
    ),
    Mutant(
        "a cancellation is raised",
        "memci/context/async_context.py",
        "    if cancelled is None:\n        return running.result()",
        "    if True:\n        return running.result()",
        "tests/async_context/test_async_cancelling.py",
        quick=True,
    ),
    # -- the past, forks
    Mutant(
        "a view of an earlier turn ends with that turn",
        "memci/history/as_of.py",
        "bisect_right(range(record.next_page), turn, lo=1",
        "bisect_right(range(record.next_page), turn + 1, lo=1",
        "tests/context/test_context_as_of.py",
        quick=True,
    ),
    Mutant(
        "a fork keeps its own views",
        _ROWS,
        "    views = (number - owner) << 40\n",
        "    views = 0\n",
        "tests/context/test_context_forks.py",
    ),
    Mutant(
        "a fork shares no later messages",
        "memci/history/fork.py",
        "base=was.head if shared else 0",
        "base=max(0, was.head - 1) if shared else 0",
        "tests/context/test_context_forks.py",
    ),
    # -- erasure
    Mutant(
        "deleted rows are overwritten",
        _FILE,
        'connection.pragma("secure_delete", True)',
        'connection.pragma("secure_delete", False)',
        "tests/storage/test_sqlite_opening.py",
    ),
    Mutant(
        "the file is written again after an erasure",
        _WRITE,
        '            connection.execute("VACUUM")',
        "            pass",
        "tests/storage/test_sqlite.py",
    ),
    Mutant(
        "the log is emptied after an erasure",
        _WRITE,
        "        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)",
        "        pass",
        "tests/context/test_context_erase_bytes.py",
        quick=True,
    ),
    Mutant(
        "compactions that contained it are removed, too",
        _WRITE,
        '            gone["compaction"] += _delete(connection, "compaction", number)',
        "            pass",
        "tests/context/test_context_erase.py",
    ),
    Mutant(
        "answers that quoted it are removed, too",
        _QUOTING,
        "            if origin in gone and gone[origin] >= first[origin] + (entry or 1) - 1:",
        "            if False:",
        "tests/context/test_context_erase_spread.py",
    ),
    Mutant(
        "a line of the contents is made again",
        _ERASING,
        "_line_again(window, old, changed[old.index]) if old.index in changed else old",
        "old",
        "tests/context/test_context_erase.py",
    ),
    # -- a folder
    Mutant(
        "a folder that is made lasts",
        "memci/storage/filesystem/store.py",
        'Files(os.path.dirname(self._files.path)).sync("")',
        "pass",
        "power",
    ),
    Mutant(
        "a copy that is not whole is made again",
        "memci/storage/filesystem/store.py",
        "                if _end(file) != first:\n                    return False\n",
        "",
        "tests/storage/filesystem/test_copies.py",
    ),
    Mutant(
        "an erasure removes the copies",
        "memci/storage/filesystem/store.py",
        "            self._remove_copies([*erasure.contexts, *holders])\n",
        "            pass\n",
        "tests/storage/filesystem/test_copies.py",
    ),
    # -- what the window shows
    Mutant(
        "pinned pages are no active ones",
        "memci/context/compactor.py",
        "active.closed) - pinned > most",
        "active.closed) > most",
        _WINDOW_TESTS,
    ),
    Mutant("the state stays small", _WINDOW, "*draft.interrupted)[-WAITING:]", "*draft.interrupted)", _WINDOW_TESTS),
    Mutant(
        "a page that was recalled is not unloaded",
        _COMPACTION,
        ".keys() - again - back",
        ".keys() - back",
        _WINDOW_TESTS,
    ),
    Mutant(
        "lines are by number",
        _COMPACTION,
        "        key=lambda line: line.index,\n    )\n    texts",
        "        key=lambda line: line not in better,\n    )\n    texts",
        _WINDOW_TESTS,
    ),
    Mutant(
        "a page is listed again once",
        _WRITER,
        "window.state._replace(relist=(), compactions",
        "window.state._replace(compactions",
        _WINDOW_TESTS,
    ),
    Mutant(
        "what others said is no instruction of the user",
        "memci/formats/provenance.py",
        "own = own_words(message)",
        "own = text",
        "tests/context/test_context_instructions.py",
    ),
    Mutant(
        "older ranges are joined",
        "memci/chapters/folding.py",
        "[*ranges[:-1], *_join(ranges[-1:], folded)]",
        "[*ranges, *_join([], folded)]",
        "tests/golden -k travel",
    ),
    Mutant(
        "a fold goes no further than it must",
        "memci/chapters/folding.py",
        "target -= page.tokens - ceiling.tokens",
        "target = 0",
        "tests/chapters/test_folding.py",
    ),
    Mutant(
        "all parts of a message are shortened before one goes",
        "memci/segments/clipping.py",
        "cap = max(1, min(cap - (cost - limit) // pieces - 8, cap * 7 // 8))",
        "cap = max(1, cap * 7 // 8)",
        "tests/segments/test_clipping.py",
    ),
    Mutant(
        "a page that is shown is pointed at",
        "memci/tools/recall_page.py",
        "if first in page.shown and (first not in page.clipped or asked.entry is None):",
        "if first in page.shown and first not in page.clipped:",
        "tests/tools/test_recall_page.py",
    ),
    Mutant(
        "a handle that only feeds the memory never commits",
        "memci/context/context.py",
        "            self._client.flush()\n",
        "            self._client.flush()\n            self._parts.writer._store(self._parts.window.state)\n",
        "tests/memory/test_memory_feed.py",
    ),
    # -- what a store asks of the disk beside its commits
    Mutant("the log is copied", _SQLITE, "if self._log_pages >= _CHECKPOINT_PAGES:", "if False:", _CHECKPOINT_TESTS),
    Mutant(
        "a full disk ends no handle at a checkpoint",
        _SQLITE,
        "apsw.LockedError, apsw.FullError)",
        "apsw.LockedError)",
        _CHECKPOINT_TESTS,
    ),
    Mutant(
        "an emptied journal is synced before it is written",
        _WRITE,
        "        os.fsync(journal)\n",
        "        pass\n",
        f"{_CHECKPOINT_TESTS} -k journal",
    ),
    Mutant(
        "a page is the one that its index leads to",
        _ROWS,
        "    if key >> 32 != number or ",
        "    if False and ",
        "tests/storage/test_sqlite_damage.py -k tree",
    ),
    Mutant("a known op is synced", _SQLITE, '"user_version", SCHEMA_VERSION)', '"user_version")', _CHECKPOINT_TESTS),
    Mutant(
        "a context has a number that keys hold",
        _WRITE,
        "        if number > _MAX_CONTEXTS:",
        "        if False:",
        "tests/storage/test_sqlite.py -k contexts_as_it_has",
    ),
    # -- what stands between a framework, or a client, and its model
    Mutant(
        "an edited list goes on in a fork",
        _ADAPTERS,
        "            self._open_version(name, version).fork(after, at=turn).close()\n",
        "            pass\n",
        f"{_ADAPTER_TESTS} -k edited",
    ),
    Mutant(
        "a message that stands as it came is the framework's own",
        _ADAPTERS,
        "messages.append(found[0])",
        "messages += self._load(found[1])",
        f"{_ADAPTER_TESTS} -k frameworks_own",
    ),
    Mutant(
        "a conversation does not wait for another",
        _ADAPTERS,
        "self._locks.setdefault(name, guard_lock(RLock()))",
        'self._locks.setdefault("", guard_lock(RLock()))',
        f"{_ADAPTER_TESTS} -k wait",
    ),
    Mutant(
        "a request is untouched until something is archived",
        _GATEWAY,
        "if not (report.compactions or report.clipped):",
        "if False:",
        "tests/serve/gateway/test_views.py -k untouched",
    ),
    Mutant(
        "two credentials never meet",
        _GATEWAY,
        'return f"{told}:" + (',
        'return "k:" + (',
        "tests/serve/gateway/test_conversations.py -k credentials",
    ),
    Mutant(
        "a list that parts shares what came before",
        _GATEWAY,
        "self.context.fork(name, at=parted.turn, owner=None if shared else name).close()",
        "pass",
        "tests/serve/gateway/test_conversations.py -k last_shared",
    ),
    Mutant(
        "what the client does not see is part of its conversation",
        _GATEWAY,
        "self._list = insert_hidden(form, self._messages, log, own)",
        "self._list = self._messages",
        "tests/serve/gateway/test_tools.py -k answered_inside",
    ),
)
