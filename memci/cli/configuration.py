"""Values of options that were not typed: from the environment, or from a file.

    MEMCI_REPLAY_WINDOW=100k             an option of a command
    [replay]                             the same in memci.toml, in the folder where the command is run; without one,
    window = "100k"                      in memci/config.toml in the folder of the user's settings

A typed value comes first, then the environment, then the file. Options that remove data or accept a loss must be typed.
A file holds no secrets. A `memci.toml` names no server: it may come with a downloaded folder, and would send
conversations to a stranger.
"""

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import InvalidSetting
from .commands import COMMANDS

HERE: Final = "memci.toml"  # the file in the current folder
_TYPED: Final = {"accept", "decrypt", "help"}  # options that must be typed, as must all of `erase`
_SECRET: Final = {"token"}
_SERVERS: Final = {"base_url", "upstream"}


@dataclass(frozen=True, slots=True)
class Setting:
    """An option that was not typed."""

    name: str
    value: Any
    place: str  # the variable, or the file with table and key

    def __str__(self) -> str:
        return f"{'(hidden)' if self.name in _SECRET else self.value}, from {self.place}"


def config_file() -> Path | None:
    """Return the file with settings, None if there is none."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 -- Path.home() may raise
    places = Path(HERE), Path(home, "memci", "config.toml")
    return next((each for each in places if os.path.isfile(each)), None)  # noqa: PTH113 -- so may Path.is_file()


def settings(command: str, options: Collection[str]) -> dict[str, Setting]:
    """Return the *options* of *command* that the environment or the file sets, by their names."""
    found = {each.name: each for each in _of_file(command, options)}
    for name in options:
        variable = f"MEMCI_{command}_{name}".upper()
        if variable in os.environ and name not in _TYPED and command != "erase":
            found[name] = Setting(name, os.environ[variable], variable)
    return found


def _of_file(command: str, options: Collection[str]) -> Iterator[Setting]:
    file = config_file()
    for key, value in _tables(file).get(command, {}).items():
        name, place = key.replace("-", "_"), f"{file}: [{command}] {key}"
        if name not in options:
            known = ", ".join(sorted({*options} - _TYPED - _SECRET))
            raise InvalidSetting(place, f"there is no such option; it has {known}")
        if command == "erase" or name in _TYPED:
            raise InvalidSetting(place, "must be typed")
        if name in _SECRET:
            raise InvalidSetting(place, "is a secret: set " + f"MEMCI_{command}_{name}".upper())
        if name in _SERVERS and file == Path(HERE):
            raise InvalidSetting(place, "names a server: it belongs in your own file, memci/config.toml, or is typed")
        if isinstance(value, dict):
            raise InvalidSetting(place, "is a table: expected a value")
        yield Setting(name, value, place)


def _tables(file: Path | None) -> Mapping[str, dict[str, Any]]:
    if file is None:
        return {}
    try:
        tables = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting(str(file), f"can't be read as TOML: {error}") from None
    for name, table in tables.items():
        if name not in COMMANDS:
            raise InvalidSetting(
                f"{file}: {name}", f"is no command; a table has the name of one: {', '.join(COMMANDS)}"
            )
        if not isinstance(table, dict):
            raise InvalidSetting(f"{file}: {name}", f"is no table: write [{name}], and its options below")
    return tables
