"""Settings from `[tool.ptxlint]` in pyproject.toml.

====================  ===========================================================
`select`, `ignore`    lists of rule identifiers, prefixes or names
`arch`                list of targets to check, such as `["sm_80", "sm_90"]`
`per-path-ignores`    table: glob = list of rules to leave out there
`format`              `text`, `json`, `sarif` or `github`
`exit-zero`           true: findings do not change the exit status
====================  ===========================================================

Globs are matched against whole paths relative to the file's folder, of the PTX and of the Python
source; `*` also matches `/`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

FILE_NAME: Final = "pyproject.toml"
_TOOL_TABLE = re.compile(
    rb"""tool["']?\s*\.\s*["']?ptxlint|^\s*\[\s*["']?tool["']?\s*\]|^\s*["']?tool["']?\s*=""", re.M
)
"""All ways to open `tool.ptxlint`: dotted, or inside a table called `tool`."""
FORMATS: Final = ("text", "json", "sarif", "github")


class ConfigError(Exception):
    """A fault of the settings: one `file:line: what, what to do` a line."""


class Config(NamedTuple):
    """Settings; empty ones change nothing. `root` is the folder that globs are relative to."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    arch: tuple[str, ...] = ()
    per_path_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    format: str = ""
    exit_zero: bool = False
    baseline: str = ""
    """The file whose findings are held back, relative to here."""
    root: str = ""
    path: str = ""

    def line_of(self, word: str) -> str:
        """`path:line` of a quoted word in the settings file, `path` when it is not found."""
        try:
            with open(self.path, encoding="utf-8") as stream:
                text = stream.read()
        except (OSError, UnicodeDecodeError):
            return self.path
        return _where(self.path, text, [re.compile(rf"""["']{re.escape(word)}["']""")])


def find_config(start: str) -> Config:
    """The settings that hold at a path: the nearest pyproject.toml upwards that has a
    `[tool.ptxlint]` table; empty settings if there is none. Raises `ConfigError`."""
    path = os.path.abspath(start)
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    while True:
        candidate = os.path.join(folder, FILE_NAME)
        if os.path.isfile(candidate):
            config = _load(candidate, required=False)
            if config is not None:
                return config
        parent = os.path.dirname(folder)
        if parent == folder:
            return Config()
        folder = parent


def load_config(path: str) -> Config:
    """The settings in a file that was named. Raises `ConfigError`, also when it has none."""
    config = _load(path, required=True)
    assert config is not None
    return config


def _load(path: str, required: bool) -> Config | None:
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read: {error.strerror or error}") from None
    # Most projects have no settings of ours: do not load a TOML parser to learn that.
    if not required and not (b"ptxlint" in data and _TOOL_TABLE.search(data)):
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise ConfigError(f"{path}:{line[1] if line else 1}: no valid TOML: {error}") from None
    tool = document.get("tool")
    table = tool.get("ptxlint") if isinstance(tool, dict) else None
    if table is None:
        if required:
            raise ConfigError(f"{path}: there is no [tool.ptxlint] table")
        return None
    return _Reader(path, text).read(table)


class _Reader:
    """Checks one table and gathers all that is wrong with it."""

    def __init__(self, path: str, text: str) -> None:
        self.path = _shorten(path)
        self.text = text
        self.faults: list[str] = []

    def read(self, table: Any) -> Config:
        if not isinstance(table, dict):
            raise ConfigError(f"{self.path}: tool.ptxlint must be a table")
        root = os.path.dirname(self.path) or "."
        settings: dict[str, Any] = {"root": root, "path": self.path}
        for key, value in table.items():
            reader = _READERS.get(key)
            if reader is None:
                self._unknown(key)
            else:
                settings[key.replace("-", "_")] = reader(self, key, value)
        if self.faults:
            raise ConfigError("\n".join(self.faults))
        return Config(**settings)

    def _unknown(self, key: str) -> None:
        from difflib import get_close_matches

        near = get_close_matches(key.replace("_", "-").lower(), list(_READERS), n=1, cutoff=0.5)
        advice = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(_READERS)}"
        self._fault(key, f"unknown key {key!r} in [tool.ptxlint]; {advice}")

    def _fault(self, key: str, message: str) -> None:
        named = rf"""["']?{re.escape(key)}["']?\s*="""
        patterns = [re.compile(rf"^[ \t]*(?:tool\.ptxlint\.)?{named}", re.M), re.compile(named)]
        start = re.search(r"^[ \t]*\[\s*tool\s*\.\s*[\"']?ptxlint\b", self.text, re.M)
        at = start.start() if start else 0
        self.faults.append(f"{_where(self.path, self.text, patterns, at)}: {message}")

    def words(self, key: str, value: Any) -> tuple[str, ...]:
        """A list of non-empty strings."""
        if isinstance(value, str):
            self._fault(key, f"{key!r} must be a list of strings: write {key} = [{value!r}]")
        elif not isinstance(value, list) or not all(isinstance(w, str) and w for w in value):
            self._fault(key, f"{key!r} must be a list of strings, not {_show(value)}")
        else:
            return tuple(value)
        return ()

    def targets(self, key: str, value: Any) -> tuple[str, ...]:
        """A list of architecture names."""
        from ptxlint.frontends.target_filter import TargetNameError, parse_targets

        try:
            return parse_targets(self.words(key, value))
        except TargetNameError as error:
            self._fault(key, str(error))
            return ()

    def path_ignores(self, key: str, value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """A table of globs and rule lists."""
        if not isinstance(value, dict):
            self._fault(key, f'{key!r} must be a table: "glob" = ["RULE"]')
            return ()
        return tuple((glob, self.words(glob, rules)) for glob, rules in value.items())

    def format(self, key: str, value: Any) -> str:
        """The name of an output format."""
        if value in FORMATS:
            return str(value)
        from difflib import get_close_matches

        near = get_close_matches(str(value), FORMATS, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(FORMATS)}"
        self._fault(key, f"{key!r} cannot be {_show(value)}; {advice}")
        return ""

    def file(self, key: str, value: Any) -> str:
        """A file, relative to the folder of the settings."""
        if isinstance(value, str) and value:
            return os.path.normpath(os.path.join(os.path.dirname(self.path), value))
        self._fault(key, f"{key!r} must be the path of a file, not {_show(value)}")
        return ""

    def switch(self, key: str, value: Any) -> bool:
        """true or false."""
        if isinstance(value, bool):
            return value
        self._fault(key, f"{key!r} must be true or false, not {_show(value)}")
        return False


_READERS: Final[dict[str, Callable[[_Reader, str, Any], Any]]] = {
    "select": _Reader.words,
    "ignore": _Reader.words,
    "arch": _Reader.targets,
    "per-path-ignores": _Reader.path_ignores,
    "format": _Reader.format,
    "exit-zero": _Reader.switch,
    "baseline": _Reader.file,
}


def _show(value: Any) -> str:
    return repr(value) if isinstance(value, (str, int, float)) else f"a {type(value).__name__}"


def _where(path: str, text: str, patterns: list[re.Pattern[str]], start: int = 0) -> str:
    """`path:line` of the first pattern that matches behind `start`; `path` if none does."""
    for pattern in patterns:
        match = pattern.search(text, start)
        if match is not None:
            line = text.count("\n", 0, match.end() - 1) + 1
            return f"{path}:{line}"
    return path


def _shorten(path: str) -> str:
    absolute, here = os.path.abspath(path), os.getcwd()
    return absolute[len(here) + 1 :] if absolute.startswith(here + os.sep) else absolute
