"""Where reports go."""

from __future__ import annotations

import sys

import click


def write(text: str, path: str | None) -> None:
    """Write to a file, or to standard output when `path` is None. A failure ends the command."""
    if path is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None
