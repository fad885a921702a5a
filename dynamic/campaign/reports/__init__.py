"""Reports of campaigns, one format a module."""

from __future__ import annotations

from collections.abc import Sequence

from ..verdict import Verdict

FORMATS = ("text", "json", "junit", "sarif")


def render(verdicts: Sequence[Verdict], format_: str, *, obligations: bool = False) -> str:
    """The verdicts in one of `FORMATS`; `obligations` lists in text what was left open, too."""
    if format_ == "json":
        from .json_format import render_json

        return render_json(verdicts)
    if format_ == "junit":
        from .junit import render_junit

        return render_junit(verdicts)
    if format_ == "sarif":
        from .sarif import render_sarif

        return render_sarif(verdicts)
    from .text import render_text

    return render_text(verdicts, obligations=obligations)


__all__ = ["FORMATS", "render"]
