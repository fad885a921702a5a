"""Hand-written launches: `ptxlint check k.ptx --launch FILE.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ptxlint.frontends.launch_layout import read_launch
from ptxlint.frontends.launch_nodes import LayoutError, Node, Step, needed, spelled
from ptxlint.launches import Launch

VERSION: Final = 1
_MOST_BYTES: Final = 256 << 20
_SPACE: Final = " \t\n\r"
_EXAMPLE: Final = (
    '{"launches": [{"grid": [100, 1, 1], "arguments": {"x": "float32[1000]", "n": 1000}}]}'
)


class LaunchFileError(ValueError):
    """A file of launches that cannot be used: the text names file and line, and says why."""


def read_launch_file(path: str) -> tuple[Launch, ...]:
    """The launches of a file. Raises `LaunchFileError`."""
    text = read_text(path)
    return parse_launches(text, path)


def parse_launches(text: str, path: str) -> tuple[Launch, ...]:
    """The launches that a text in JSON describes. Raises `LaunchFileError`."""
    data = load_json(text, path)
    try:
        root = Node(data)
        members = root.mapping("a launch file", frozenset(("version", "launches", "$schema")))
        if "version" in members:
            members["version"].version(VERSION)
        nodes = needed(root, members, "launches", f"a list, as in {_EXAMPLE}").items("launches")
        if not nodes:
            raise members["launches"].fault("there is no launch in it")
        lines = Lines(text).of_items(("launches",))
        return tuple(
            read_launch(node, f"{path}:{line}") for node, line in zip(nodes, lines, strict=True)
        )
    except LayoutError as error:
        raise LaunchFileError(located(error, text, path)) from None


def read_text(path: str) -> str:
    """The text of a JSON file. Raises `LaunchFileError`."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise LaunchFileError(f"{path}: cannot read: {error.strerror or error}") from None
    except ValueError as error:
        raise LaunchFileError(f"{path!r}: {error}") from None
    if len(data) > _MOST_BYTES:
        raise LaunchFileError(f"{path}: more than {_MOST_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LaunchFileError(f"{path}: this is no UTF-8 text, see byte {error.start}") from None


def load_json(text: str, path: str) -> Any:
    """The data of a JSON text in which no key stands twice. Raises `LaunchFileError`."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise LaunchFileError(
            f"{path}:{error.lineno}:{error.colno}: no valid JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise LaunchFileError(f"{path}: the JSON is nested too deeply") from None
    except ValueError as error:
        raise LaunchFileError(f"{path}: no valid JSON: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key `{twice}` stands twice in one object")
    return out


def _no_number(word: str) -> Any:
    text = {"Infinity": "inf", "-Infinity": "-inf"}.get(word, "nan")
    raise ValueError(f'{word} is no number of JSON; write "{text}" as the value of a scalar')


def located(error: LayoutError, text: str, path: str) -> str:
    """A fault of the data with file, line and path."""
    line = Lines(text).of(error.path)
    where = spelled(error.path)
    return f"{path}:{line}: {where}: {error}" if where else f"{path}: {error}"


class Lines:
    """On which lines of a valid JSON text the data stands."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._decoder = json.JSONDecoder()

    def of(self, path: Sequence[Step]) -> int:
        """The line (from 1) of what a path leads to, or of the last thing on the way to it."""
        at = self._skip(0)
        for step in path:
            for key, begin, _ in self._members(at):
                if key == step:
                    at = begin
                    break
            else:
                break
        return self._line(at)

    def of_items(self, path: Sequence[Step]) -> list[int]:
        """The lines of the items of a list."""
        at = self._skip(0)
        for step in path:
            at = next(begin for key, begin, _ in self._members(at) if key == step)
        lines: list[int] = []
        line, seen = self._line(at), at
        for _, begin, _ in self._members(at):
            line += self._text.count("\n", seen, begin)
            seen = begin
            lines.append(line)
        return lines

    def _line(self, at: int) -> int:
        return self._text.count("\n", 0, at) + 1

    def _skip(self, at: int) -> int:
        text = self._text
        while at < len(text) and text[at] in _SPACE:
            at += 1
        return at

    def _members(self, at: int) -> Iterator[tuple[Step, int, int]]:
        """Key or number, begin and end of what is in an object or list."""
        text, decode = self._text, self._decoder.raw_decode
        closing = {"{": "}", "[": "]"}.get(text[at : at + 1])
        if closing is None:
            return
        at, number = self._skip(at + 1), 0
        while text[at] != closing:
            key: Step = number
            if closing == "}":
                key, at = decode(text, at)
                at = self._skip(self._skip(at) + 1)
            _, end = decode(text, at)
            yield key, at, end
            at, number = self._skip(end), number + 1
            if text[at] == ",":
                at = self._skip(at + 1)
