"""A coding session that a provider plays: a file is read with each call, and its ticket is asked for later.

    step 1 …  39     cat src/module_07.py          # ticket NEEDLE-07-3f9a01c2
    step 40 … 60     every third: the ticket of a module from the beginning: is it in the request? else search_memory,
                     and if that finds the call, recall_page from its entry on

The agent is real, and the model is not: it reads the results only to see that they came.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.serve.gateway.upstream import Said, Seen

STEPS = 60
_ASKED_FROM = 2 * STEPS // 3  # the step from which tickets of the first steps are asked for
_RECALLS = 3  # recalls for one ticket, at most
_CACHED = 0.1  # what a token that the provider has cached costs, in others
_SHELLS = ("bash", "shell", "run_shell_command", "exec_command", "execute_command")
_COMMANDS = ("command", "cmd", "code")
_FOUND = re.compile(r"#(\d+) entry (\d+) assistant")
# providers compare neither marks nor whether a text stands in a block: what is cached stays so where these change
_MARK = re.compile(r', "cache_control": \{[^{}]*\}')
_TEXT = re.compile(r'"content": \[\{"type": "text", "text": ("(?:[^"\\]|\\.)*")\}\]')
_NEXT = re.compile(r"next: recall_page\((\{.*\})\)")
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # by this command mini-swe-agent knows the end


def ticket(module: int) -> str:
    """The ticket of a module, which stands nowhere else."""
    return f"NEEDLE-{module:02}-{hashlib.sha256(b'%d' % module).hexdigest()[:8]}"


def write_modules(folder: Path) -> None:
    """Write a source file for each step, of some 1,200 tokens."""
    (folder / "src").mkdir(parents=True)
    for module in range(STEPS + 1):
        lines = [f"# ticket {ticket(module)}"]
        for number in range(40):
            name = hashlib.sha256(b"%d %d" % (module, number)).hexdigest()[:12]
            lines += [f"def {name}(order, ledger={number}):", f"    return order * {number} + ledger * {module}", ""]
        (folder / "src" / f"module_{module:02}.py").write_text("\n".join(lines))


class Session:
    """What one agent was asked, and what that cost."""

    def __init__(self, *, submits: bool) -> None:
        self.submits = submits
        self.step = 0
        self.requests = 0
        self.cost = 0.0
        """tokens of all requests, of 4 bytes each; those that begin a request as an earlier one began count a tenth"""
        self.visible = self.recalled = 0
        self.lost: list[str] = []
        self._prefixes: set[bytes] = set()
        self._wanted: str | None = None
        """the ticket that memci was asked for in the request before"""
        self._recalls = 0
        """how often a page was recalled for it"""

    def answer(self, seen: Seen) -> Said:
        """Return what the model says to a request."""
        schemas = {(tool.get("function") or tool)["name"]: tool for tool in seen.json.get("tools") or ()}
        self._bill(seen)
        shell = next((name for name in _SHELLS if name in schemas), None)
        if shell is None:  # a title, or a summary
            return Said("A session about modules.")
        if self._wanted is not None:
            found = "".join(seen.results)
            asked = None if self._wanted in found else self._further(found)
            if asked is not None:
                self._recalls += 1
                return Said(calls=((f"call_{self.step:03}_r{self._recalls}", "recall_page", asked),))
            self.recalled += self._wanted in found
            self.lost += [self._wanted] if self._wanted not in found else []
            self._wanted, self._recalls = None, 0
            return self._call(shell, schemas[shell])
        self.step += 1
        if self.step > STEPS + self.submits:
            return Said("Done.")
        if self.step > STEPS:
            return Said("I submit.", (("call_end", shell, _arguments(schemas[shell], SUBMIT)),))
        if self.step >= _ASKED_FROM and self.step % 3 == 0:
            module = self.step - _ASKED_FROM + 1
            wanted = ticket(module)
            if wanted.encode() in seen.body:
                self.visible += 1
            elif "search_memory" in schemas:
                self._wanted = wanted
                asked = {"query": f"ticket of src/module_{module:02}.py"}
                return Said(calls=((f"call_{self.step:03}_m", "search_memory", asked),))
            else:
                self.lost.append(wanted)
        return self._call(shell, schemas[shell])

    def _further(self, found: str) -> dict[str, Any] | None:
        """Return what of memci's answer is read next: the result of the call that it found, then the rest of that."""
        if self._recalls:
            rest = _NEXT.search(found)
            return json.loads(rest[1]) if rest and self._recalls < _RECALLS else None
        place = _FOUND.search(found)
        if place is None:
            return None
        index, entry = map(int, place.groups())
        return {"index": index, "entry": entry, "last": entry + 1}

    def _call(self, shell: str, schema: Mapping[str, Any]) -> Said:
        given = _arguments(schema, f"cat src/module_{self.step:02}.py")
        return Said(f"Step {self.step}.", ((f"call_{self.step:03}", shell, given),))

    def _bill(self, seen: Seen) -> None:
        """Add what a request costs at a provider that caches the beginnings of requests."""
        self.requests += 1
        body = seen.json
        pieces = [json.dumps([body.get("tools"), body.get("system"), body.get("instructions")])]
        pieces += [json.dumps(item) for item in seen.items]
        whole, known = hashlib.sha256(), 0
        for piece in pieces:
            whole.update(_TEXT.sub(r'"content": \1', _MARK.sub("", piece)).encode())
            cached = whole.digest() in self._prefixes
            self._prefixes.add(whole.digest())
            self.cost += len(piece) / 4 * (_CACHED if cached and known >= 0 else 1)
            known = 0 if cached else -1


def _arguments(schema: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Return arguments that *schema* requires, for a tool that runs *command*."""
    body = schema.get("function") or schema
    wanted = body.get("parameters") or body.get("input_schema") or {}
    made: dict[str, Any] = {}
    for name, field in wanted.get("properties", {}).items():
        kind = field.get("type")
        if name in _COMMANDS:
            made[name] = ["bash", "-lc", command] if kind == "array" else command
        elif name in wanted.get("required", ()):
            made[name] = {"boolean": False, "integer": 10_000, "number": 10_000, "array": []}.get(kind, "read a module")
    return made
