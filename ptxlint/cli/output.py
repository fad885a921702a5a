"""Where reports go."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ptxlint.engine.registry import Registry

_PIECE = 1 << 15


def write(text: str, path: str | None = None) -> None:
    """Write to a file, or to standard output when `path` is None. A failure ends the command."""
    if path is None:
        # In pieces: an unbuffered stream (PYTHONUNBUFFERED) drops what is left of a short write
        # without a word, and only the next write tells that the reader is gone.
        for start in range(0, len(text), _PIECE):
            sys.stdout.write(text[start : start + _PIECE])
        sys.stdout.flush()
        return
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None


def check_writable(path: str | None) -> None:
    """To be called before work that takes long: a file that could not be written ends the command
    before it, not behind it."""
    if path is None:
        return
    folder = os.path.dirname(path) or os.curdir
    if not os.path.isdir(folder):
        raise click.ClickException(f"cannot write {path}: no directory {folder}")
    if os.path.isdir(path):
        raise click.ClickException(f"cannot write {path}: it is a directory")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise click.ClickException(f"cannot write {path}: permission denied")


def write_load_problems(registry: Registry) -> int:
    """Tell on standard error which rules could not be loaded; returns 2 if any, 0 otherwise."""
    for problem in registry.problems:
        print(f"Error: {problem}", file=sys.stderr)
    return 2 if registry.problems else 0
