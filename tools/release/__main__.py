"""Build a release, and try it as a stranger would.

    .venv-release/bin/python tools/release             dist/: the wheel, the source archive, and what the wheel brings
    .venv-release/bin/python tools/release /opt/python3.14/bin/python        with these interpreters only

The wheel is built from the source archive. Each of the two is installed in a new environment of each Python that is
found, from 3.11 on, and tried there: a conversation is stored and recalled, and the commands look at it. The archive is
unpacked as well, and the core of its tests runs there (`make core`). The bill of
materials (CycloneDX) lists what the wheel needs without extras, as pip resolves it today. Nothing is published.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
TRIAL = """
from memci import Context, __version__
with Context.open("agent.db", "alice", system="Be brief.", window=2_000) as context:
    for day in range(1, 101):
        reply = {"role": "assistant", "content": f"Flight HAT{day:03} costs ${100 + day}."}
        context.append_turn(f"What does the flight on day {day} cost?", reply, op_id=f"day {day}")
    report = context.report()
    assert report.messages == 200 and report.total <= report.budget and report.compactions
    assert context.recall_page(7)[1]["content"] == "Flight HAT007 costs $107."
    context.flush()
    assert context.search_memory("HAT042").pages[0].index == 42
"""
COMMANDS = (["--version"], ["--help"], ["inspect", "agent.db"], ["verify", "agent.db"], ["doctor", "agent.db"])


def main(interpreters: list[str]) -> None:
    """Build, and try what was built with each of *interpreters*, or with all that are found."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    artifacts = sorted(DIST.iterdir())
    wheel = next(each for each in artifacts if each.suffix == ".whl")
    for interpreter in interpreters or found():
        for artifact in artifacts:
            print(f"{tried(interpreter, artifact)}: {artifact.name} is installed, stores, recalls and verifies")
    archive = next(each for each in artifacts if each.name.endswith(".tar.gz"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(archive, folder, filter="data")
        unpacked = f"{folder}/{archive.name.removesuffix('.tar.gz')}"
        print(run("make", "core", f"PYTHON={sys.executable}", folder=unpacked))
    with tempfile.TemporaryDirectory() as folder:
        python = environment(sys.executable, folder, str(wheel))
        by_name = ("--no-index", "--no-deps", "--force-reinstall", "--find-links", str(DIST), "memci")
        run(python, "-m", "pip", "install", "--quiet", *by_name)  # else the bill says where the wheel lay
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
        bill = DIST / f"{wheel.name.split('-py3')[0]}.cdx.json"
        run(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "-o", str(bill), python)
    for each in sorted(DIST.iterdir()):
        print(f"{each.relative_to(ROOT)}  {each.stat().st_size:,} bytes")


def found() -> list[str]:
    """Return the interpreters of this machine that are new enough, one of each version."""
    versions: dict[str, str] = {}
    places = [Path(each) for each in os.get_exec_path()] + sorted(Path.home().glob(".pyenv/versions/*/bin"))
    for minor in range(11, 30):
        for place in places:
            path = str(place / f"python3.{minor}")
            asked = [path, "-c", "import sys; print(*sys.version_info[:2])"]
            if Path(path).is_file() and subprocess.run(asked, capture_output=True, check=False).returncode == 0:
                versions.setdefault(f"3.{minor}", path)
    return list(versions.values())


def tried(interpreter: str, artifact: Path) -> str:
    """Install *artifact* in a new environment of *interpreter*, use it, and return the version of that Python."""
    with tempfile.TemporaryDirectory() as folder:
        python = environment(interpreter, folder, f"{artifact}[cli]")
        run(python, "-c", TRIAL, folder=folder)
        for command in COMMANDS:
            run(python, "-m", "memci", *command, folder=folder)
        return run(python, "--version").strip()


def environment(interpreter: str, folder: str, requirement: str) -> str:
    """Make an environment with *requirement* in *folder*, and return its interpreter."""
    run(interpreter, "-m", "venv", f"{folder}/environment")
    python = f"{folder}/environment/bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement)
    return python


def run(*command: str, folder: str | None = None) -> str:
    """Run *command* and return what it printed; end with that if it failed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
