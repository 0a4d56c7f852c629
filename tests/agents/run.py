"""Run each agent through the gateway and beside it, and say what differs. `make agents`; ONLY="pi" runs one.

Nothing leaves the machine: provider, gateway and agents run in a network namespace of their own, or, where none can be
made, with a proxy that nobody answers.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memci.serve.gateway import app
from tests.agents.session import STEPS, Session, write_modules
from tests.serve.gateway.upstream import Served, Upstream

WINDOW = 32_000  # tokens: the prompt and the tools of qwen-code take half of it
_BIN = Path(".venv-agents/bin").resolve()
_NODE = Path(".venv-agents/node_modules/.bin").resolve()
_SECONDS = 400  # most of it is the start of a command for each of the 60 steps
_INSIDE = "MEMCI_AGENTS_NAMESPACE"
_PROMPT = "Read the modules one after the other."


@dataclass(frozen=True)
class Agent:
    """How an agent is started: its program, its settings for the base URL of the provider."""

    program: Path
    arguments: tuple[str, ...]
    configure: Callable[[Path, str], dict[str, str]]
    """writes settings below the home directory, and returns the environment"""
    submits: bool = False  # whether it ends by a command, not by an answer without one


def _openai(url: str) -> dict[str, str]:
    return {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1"}


def _mini(_home: Path, url: str) -> dict[str, str]:
    quiet = {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_SILENT_STARTUP": "1"}
    return {**_openai(url), **quiet, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def _qwen(home: Path, url: str) -> dict[str, str]:
    (home / ".qwen").mkdir()
    text = '{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}'
    (home / ".qwen" / "settings.json").write_text(text)
    return {**_openai(url), "OPENAI_MODEL": "gpt-4o"}


def _pi(home: Path, url: str) -> dict[str, str]:
    (home / ".pi" / "agent").mkdir(parents=True)
    model = '{"id": "claude-sonnet-4-5", "name": "a", "contextWindow": 200000, "maxTokens": 16000}'
    own = f'{{"baseUrl": "{url}", "api": "anthropic-messages", "apiKey": "k", "models": [{model}]}}'
    text = f'{{"providers": {{"own": {own}}}}}'
    (home / ".pi" / "agent" / "models.json").write_text(text)
    return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}


AGENTS = {
    "mini-swe-agent": Agent(
        _BIN / "mini",
        ("-y", "--exit-immediately", "-l", "0", "-m", "openai/gpt-4o", "-o", "trajectory.json", "-t", _PROMPT),
        _mini,
        submits=True,
    ),
    "qwen-code": Agent(_NODE / "qwen", ("--auth-type", "openai", "--yolo", "-p", _PROMPT), _qwen),
    "pi": Agent(_NODE / "pi", ("-p", "--provider", "own", "--model", "claude-sonnet-4-5", _PROMPT), _pi),
}


def play(agent: Agent, folder: Path, *, gateway: bool) -> tuple[Session, list[str], str]:
    """Let *agent* play a session; return it with what the provider refused, and the end of what the agent printed."""
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    write_modules(work)
    session = Session(submits=agent.submits)
    with Upstream(session.answer) as provider:
        if gateway:
            with Served(app(folder / "agents.db", upstream=provider.url, window=WINDOW)) as url:
                printed = _run(agent, home, work, url)
        else:
            printed = _run(agent, home, work, provider.url)
    return session, provider.problems, printed


def _run(agent: Agent, home: Path, work: Path, url: str) -> str:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "https_proxy") if name in os.environ}
    environment = {**kept, "HOME": str(home), "TERM": "dumb", **agent.configure(home, url)}
    command = [str(agent.program), *agent.arguments]
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_SECONDS} s"
    return (done.stdout + done.stderr).decode(errors="replace")[-600:]


def faults(through: Session, beside: Session, refused: list[str]) -> list[str]:
    """Return what is wrong with a session *through* the gateway, beside the one without it."""
    found = [f"refused: {each}" for each in refused]
    if through.step < STEPS:
        found.append(f"it ended after {through.step} of {STEPS} steps")
    if through.cost > beside.cost:
        found.append(f"it cost {through.cost:,.0f} tokens, and {beside.cost:,.0f} without the gateway")
    return found + [f"not shown and not found: {each}" for each in through.lost]


def main() -> int:
    """Run the agents, print a line for each, and return 1 if one has a fault."""
    named = os.environ.get("ONLY", "").split() or [*AGENTS]
    wrong = False
    for name in named:
        with tempfile.TemporaryDirectory(prefix="memci-agents-") as folder:
            beside, _, _ = play(AGENTS[name], Path(folder, "beside"), gateway=False)
            through, refused, printed = play(AGENTS[name], Path(folder, "through"), gateway=True)
        found = faults(through, beside, refused)
        each = [session.cost / max(1, session.step) for session in (through, beside)]
        _say(
            f"{name}: {through.requests} requests, {len(refused)} refused; {each[0]:,.0f} tokens a step, "
            f"{each[1]:,.0f} without the gateway; tickets {through.visible} shown, {through.recalled} recalled, "
            f"{len(through.lost)} lost"
        )
        if found:
            wrong = True
            _say("\n".join([*(f"  {fault}" for fault in found), f"  it printed: …{printed}"]))
    return int(wrong)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _enter_namespace() -> None:
    """Run this module again in a network namespace of its own, if one can be made."""
    command = [sys.executable, "-m", "tests.agents.run"]
    inside = 'ip link set lo up && exec "$@"'
    tried = ["unshare", "--map-root-user", "--net", "sh", "-c", inside, "sh"]
    if (
        shutil.which("unshare")
        and shutil.which("ip")
        and not subprocess.call([*tried, "true"], stderr=subprocess.DEVNULL)
    ):
        os.execvp("unshare", [*tried, *command])
    _say("no network namespace can be made: the agents get a proxy that nobody answers")
    os.environ["https_proxy"] = "http://127.0.0.1:9"


if __name__ == "__main__":
    if _INSIDE not in os.environ:
        os.environ[_INSIDE] = "1"
        _enter_namespace()
    sys.exit(main())
