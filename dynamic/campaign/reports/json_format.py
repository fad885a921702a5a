"""JSON, version 1 (docs/gate.schema.json). Keys are added, never renamed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..verdict import VERSION, Verdict


def render_json(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as one JSON object."""
    return json.dumps(as_dict(verdicts), indent=1, allow_nan=False) + "\n"


def as_dict(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "version": VERSION,
        "verdicts": [verdict.to_json() for verdict in verdicts],
        "summary": summary(verdicts),
    }


def summary(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Counts over all verdicts; what has a problem counts as that, not as undecided."""
    words = ["problem" if verdict.problem else verdict.verdict for verdict in verdicts]
    return {
        "operators": len(verdicts),
        **{word: words.count(word) for word in ("pass", "fail", "undecided", "problem")},
        "cases": sum(verdict.cases for verdict in verdicts),
        "reducing": sum(verdict.reducing for verdict in verdicts),
        "launches": sum(verdict.launches for verdict in verdicts),
        "saved": sum(verdict.saved for verdict in verdicts),
        "seconds": round(sum(verdict.seconds for verdict in verdicts), 3),
    }


__all__ = ["as_dict", "render_json", "summary"]
