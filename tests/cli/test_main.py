"""The program itself: its version, its help, and what it says when its extra is missing."""

import os
import re
import signal
import subprocess
import sys

import pytest
import typer

import memci
from memci.cli.app import app
from memci.cli.commands import COMMANDS
from memci.cli.options import size


def python(code):
    """Run *code* in another Python."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_memci_when_it_is_imported():
    """Importing the package does not import the command line, nor what it needs."""
    result = python("import memci, sys; print(*{'memci.cli', 'typer', 'rich'} & set(sys.modules))")

    assert result.stdout == "\n"


HEAVY = {
    "httpx",
    "jinja2",
    "markdown_it",
    "memci.context.context",
    "memci.settings",
    "numpy",
    "openai",
    "starlette",
    "tiktoken",
}
"""modules that take long to load, by themselves or with what they import"""


def loaded(*arguments):
    """The modules that a program has loaded when the command of *arguments* ends."""
    code = f"import atexit, sys; sys.argv = ['memci', *{arguments}]; atexit.register(lambda: print(*sys.modules))"
    return set(python(f"{code}\nfrom memci.cli import main; main()").stdout.split())


@pytest.mark.parametrize("arguments", [("--version",), ("show", "--help")])
def test_main_when_nothing_is_to_be_done(arguments):
    """A command that only tells of itself loads nothing that takes long."""
    assert loaded(*arguments) & HEAVY == set()


def test_the_options_of_all_commands_are_known_without_loading_what_they_do():
    """The help of no command loads anything that takes long: no memory, no window, no tables of languages."""
    load_all = "from memci.cli.commands import COMMANDS, load; [load(name) for name in COMMANDS]"
    modules = set(python(f"import sys; {load_all}; print(*sys.modules)").stdout.split())

    assert {f"memci.cli.{module}" for module, _ in COMMANDS.values()} <= modules
    assert (
        modules
        & {
            *HEAVY,
            *(
                f"memci.{each}"
                for each in ("llm", "memory", "text.language", "text.summarize", "tokens", "tools", "window")
            ),
        }
        == set()
    )


def test_main_when_all_commands_are_listed():
    """The list of the commands, and what a shell completes, is known without loading any of them."""
    assert not {f"memci.cli.{module}" for module, _ in COMMANDS.values()} & loaded("--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_sentence_of_a_command_is_that_of_its_help(name):
    """What the list says of a command is what its own help begins with; it stands in the list's order."""
    told = typer.main.get_command(app).commands[name].loaded().help

    assert " ".join(told.split()).startswith(COMMANDS[name][1])


def test_main_when_the_extra_is_missing():
    """Without typer, the program ends with 2 and one line that says what to install."""
    result = python("import sys; sys.modules['typer'] = None; from memci.cli import main; main()")

    assert (result.returncode, result.stdout) == (2, "")
    assert "pip install 'memci[cli]'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_main_when_the_version_is_asked_for(run):
    """--version prints the version."""
    result = run("--version")

    assert (result.exit_code, result.stdout) == (0, f"memci {memci.__version__}\n")


def test_main_when_help_is_asked_for(run, monkeypatch):
    """--help has a line for every command, which a terminal of 80 columns shows whole; each has a help of its own."""
    monkeypatch.setenv("COLUMNS", "80")
    told = [line.split(maxsplit=1) for line in run("--help").stdout.splitlines()]

    assert [[name, line] for name, (_, line) in COMMANDS.items() if [name, line] not in told] == []
    assert [name for name in COMMANDS if run(name, "--help").exit_code] == []
    assert "--turns" not in run("demo", "--help").stdout


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there are no such signals here")
def test_a_warning_is_one_line(tmp_path):
    """A person at a terminal reads what is wrong, not which line of memci said it."""
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hi"}]')
    typed = f"import {tmp_path / 'a.db'} {tmp_path / 'chat.json'} --id a --window 8000 --model none-such"
    result = python(f"import sys; sys.argv = {['memci', *typed.split()]!r}; from memci.cli import main; main()")

    assert result.returncode == 0
    assert re.fullmatch("memci: the model 'none-such' is not known.*\n", result.stderr)


def test_main_when_it_is_ended(tmp_path):
    """A command that is ended by a signal leaves no store behind: it may hold a conversation."""
    code = (
        "import os, signal, sys, tempfile\n"
        "from memci.cli import main\nfrom memci.cli.replay import live_picture as picture\n"
        "picture.progress_line = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.argv = ['memci', 'demo']\n"
        "main()\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, env=environment)

    assert result.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "number"), [("8000", 8_000), ("8_000", 8_000), ("32k", 32_000), ("1.5M", 1_500_000)])
def test_a_number_of_tokens_may_have_a_unit(text, number):
    """k is a thousand and m a million, as one says it."""
    assert size(text) == number


@pytest.mark.parametrize("text", ["", "k", "32x", "-", "1e999k", "nank"])
def test_what_is_no_number_of_tokens_is_refused(run, text):
    """The command ends with 2 and says what it takes."""
    result = run("replay", "conversation.json", "--window", text)

    assert result.exit_code == 2
    assert "32k" in result.stderr


def test_a_shell_completes_commands():
    """The program that the shell asks knows all commands; --install-completion tells the shell."""
    asked = {"_MEMCI_COMPLETE": "complete_bash", "COMP_WORDS": "memci re", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "memci"]

    result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | asked)

    assert result.stdout.split() == ["replay"]


def test_a_word_of_other_programs_is_answered_with_the_command_of_this_one(run):
    """It says what that command does; a misspelled one is still recognised."""
    assert "Did you mean 'inspect'? List the contexts" in run("ls", "agents.db").stderr
    assert "Did you mean 'show'?" in run("sho").stderr
