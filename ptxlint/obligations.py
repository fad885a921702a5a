"""Verdicts on checked properties: proved, refuted or open."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from ptxlint.diagnostics import Place

Status: TypeAlias = Literal["proved", "refuted", "open"]


class Obligation(NamedTuple):
    """The verdict on one property of one kernel. An *open* one is an obligation proper.

    `family` is from the vocabulary of families, `suggest` maps parameters to values worth trying,
    `assumes` names what a proof rests on (such as `finite data`).
    """

    family: str
    kernel: str
    status: Status
    reason: str
    rule: str = ""
    arch: str = ""
    place: Place | None = None
    suggest: dict[str, list[int]] = {}  # noqa: RUF012
    assumes: tuple[str, ...] = ()
    evidence: dict[str, Any] | None = None
    archs: tuple[str, ...] = ()
    """All architectures with this same verdict, filled when verdicts are merged."""
