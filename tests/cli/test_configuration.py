"""Options that are set in the environment or in a file."""

import json

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty folder to run in, beside that of the user's own settings."""
    folder = tmp_path / "here"
    (tmp_path / "user" / "memci").mkdir(parents=True)
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    return folder


def replayed(run, talk, *arguments):
    """The window that a replay has used."""
    return json.loads(run("replay", talk, "--json", *arguments).stdout)["report"]["window"]


def test_an_option_when_it_is_set_in_several_places(run, here, tmp_path, monkeypatch):
    """What is typed comes first, then the environment, the file here, the user's own file, and the default."""
    talk = tmp_path / "talk.json"
    talk.write_text('[{"role": "user", "content": "Hi."}]')
    default = replayed(run, talk)

    (tmp_path / "user" / "memci" / "config.toml").write_text('[replay]\nwindow = "9k"\n')
    own = replayed(run, talk)
    (here / "memci.toml").write_text("[replay]\nwindow = 100_000\n")
    file = replayed(run, talk)
    monkeypatch.setenv("MEMCI_REPLAY_WINDOW", "12k")

    assert (own, file, replayed(run, talk)) == (9_000, 100_000, 12_000)
    assert replayed(run, talk, "--window", "10k") == 10_000
    assert default not in {own, file}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[inspect]\njsn = true", "memci.toml: [inspect] jsn: there is no such option"),
        ('[inspect]\njson = "perhaps"', "memci.toml: [inspect] json"),
        ("[inspct]\njson = true", "memci.toml: inspct: is no command"),
        ("inspect = 1", "memci.toml: inspect: is no table"),
        ("[inspect", "memci.toml: can't be read as TOML"),
        ("[inspect.json]\nyes = 1", "is a table"),
    ],
)
def test_a_file_when_something_in_it_makes_no_sense(run, store, here, text, told):
    """The command ends with 2 before anything is read, and names the file and the key."""
    (here / "memci.toml").write_text(text)

    result = run("inspect", store)

    assert (result.exit_code, result.stdout) == (2, "")
    assert told in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "text", "told"),
    [
        ("erase", "yes = true", "must be typed"),
        ("doctor", "accept = true", "must be typed"),
        ("ui", 'token = "abc"', "is a secret"),
        ("chat", 'base_url = "http://stranger"', "names a server"),
        ("serve", 'upstream = "http://stranger"', "names a server"),
    ],
)
def test_a_file_when_it_came_with_a_folder(run, store, here, command, text, told):
    """It erases nothing, holds no secret, and sends no conversation anywhere."""
    (here / "memci.toml").write_text(f"[{command}]\n{text}")
    before = store.read_bytes()

    result = run(command, store)

    assert result.exit_code == 2
    assert told in " ".join(result.stderr.replace("│", " ").split())
    assert store.read_bytes() == before


def test_doctor_when_options_are_set(run, here, monkeypatch):
    """It says which value comes from where, hides a secret, and finds what makes no sense."""
    (here / "memci.toml").write_text('[replay]\nwindow = "100k"')
    monkeypatch.setenv("MEMCI_UI_PORT", "9000")
    monkeypatch.setenv("MEMCI_UI_TOKEN", "hush")
    shown = run("doctor").stdout
    (here / "memci.toml").write_text("[replay]\nwindw = 1")
    wrong = run("doctor")

    assert "100k, from memci.toml: [replay] window" in shown
    assert "9000, from MEMCI_UI_PORT" in shown
    assert "hush" not in shown
    assert wrong.exit_code == 1
    assert "[replay] windw" in wrong.stdout


def test_settings_when_the_folder_of_the_user_cannot_be_reached(run, unprivileged, monkeypatch):
    """A service may have the home of another user: then there are no settings."""
    (unprivileged / "closed").mkdir(mode=0)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(unprivileged / "closed"))

    assert run("doctor").exit_code == 0
