"""Pieces of JSON data that are read with care: each fault says where it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, TypeVar

Step: TypeAlias = str | int
T = TypeVar("T")
_WORD = re.compile(r"[A-Za-z_]\w*")
LARGEST: Final = (1 << 64) - 1


class LayoutError(ValueError):
    """A fault of the data. `path` leads there; the text says what is wrong and what to write."""

    def __init__(self, path: tuple[Step, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


def spelled(path: Iterable[Step]) -> str:
    """A path as people write it: `launches[0].arguments.x`."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif _WORD.fullmatch(step):
            out += f".{step}" if out else step
        else:
            out += f"[{step!r}]"
    return out


class Node:
    """A piece of the data, with the path that led to it."""

    __slots__ = ("data", "path")

    def __init__(self, data: Any, path: tuple[Step, ...] = ()) -> None:
        self.data = data
        self.path = path

    def fault(self, message: str) -> LayoutError:
        """An error about this piece."""
        return LayoutError(self.path, message)

    def unfit(self, wanted: str) -> LayoutError:
        """An error that says what should stand here."""
        return self.fault(f"expected {wanted}, found {shown(self.data)}")

    def mapping(self, what: str, known: frozenset[str] | None = None) -> dict[str, Node]:
        """The members of an object by key, none but the known ones."""
        if not isinstance(self.data, dict):
            raise self.unfit(f"{what}, an object")
        for key in self.data:
            if known is not None and key not in known:
                near = nearest(key, known)
                advice = f"; did you mean `{near}`?" if near else f"; there is {_listed(known)}"
                raise Node(self.data[key], (*self.path, key)).fault(
                    f"`{key}` is no key of {what}{advice}"
                )
        return {key: Node(value, (*self.path, key)) for key, value in self.data.items()}

    def items(self, what: str) -> list[Node]:
        """The items of a list."""
        if not isinstance(self.data, list):
            raise self.unfit(f"a list of {what}")
        return [Node(item, (*self.path, number)) for number, item in enumerate(self.data)]

    def integer(self, low: int, high: int = LARGEST) -> int:
        """A whole number in a range."""
        data = self.data
        if not isinstance(data, int) or isinstance(data, bool):
            raise self.unfit("a whole number")
        if not low <= data <= high:
            bound = f"at least {low}" if data < low else f"at most {high}"
            raise self.fault(f"{data} is out of range, expected {bound}")
        return data

    def version(self, known: int) -> None:
        """A number that must be the known one."""
        if isinstance(self.data, bool) or self.data != known:
            raise self.fault(f"version {shown(self.data)} is not known, this ptxlint reads {known}")

    def integers(self, low: int, high: int = LARGEST) -> tuple[int, ...]:
        """A list of whole numbers in a range."""
        return tuple(item.integer(low, high) for item in self.items("whole numbers"))

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.data, bool):
            raise self.unfit("true or false")
        return self.data

    def text(self, among: Iterable[str] = ()) -> str:
        """A text, one of several if they are given."""
        allowed = list(among)
        if not isinstance(self.data, str) or (allowed and self.data not in allowed):
            near = nearest(self.data, allowed) if isinstance(self.data, str) else ""
            hint = f"; did you mean `{near}`?" if near else ""
            one_of = ", ".join(f'"{word}"' for word in allowed)
            raise self.fault(
                f"expected {'one of ' + one_of if allowed else 'a text'}, "
                f"found {shown(self.data)}{hint}"
            )
        return self.data


def given(members: dict[str, Node], key: str, read: Callable[[Node], T], default: T) -> T:
    """A member that may be left out."""
    return read(members[key]) if key in members else default


def needed(node: Node, members: dict[str, Node], key: str, what: str) -> Node:
    """A member that must be there."""
    if key not in members:
        raise node.fault(f"`{key}` is missing: {what}")
    return members[key]


def shown(data: Any) -> str:
    """A value as it stands in JSON, cut if it is long."""
    import json

    text = json.dumps(data)
    return text if len(text) <= 60 else f"{text[:57]}…"


def nearest(word: str, known: Iterable[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(word, list(known), 1)), "")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(words))
