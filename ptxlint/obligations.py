"""Verdicts on checked properties: proved, refuted or open."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ptxlint.diagnostics import Place

Status: TypeAlias = Literal["proved", "refuted", "open"]


SEMANTICS: Final = "semantics"
"""The family of what no kernel can tell about itself. Its verdict is there for every kernel, and no
rate counts it."""
SEMANTICS_OPEN: Final = (
    "wrong constant or missing operation: no reference and no baseline has spoken"
)


class Evidence(NamedTuple):
    """One part of what a verdict rests on, with a verdict of its own; `details` are words."""

    status: Status
    reason: str
    place: Place | None = None
    details: dict[str, str] = {}  # noqa: RUF012


class Generalisation(NamedTuple):
    """How far a verdict on one launch carries: other launches that it is shown for.

    They differ in one number, called `name`, which is `here` in the launch itself and goes from
    `low` to `high` (both included) in multiples of `step`; the `premises` say what goes with it,
    all else is as it was launched.
    `only` says that it is shown not to hold for what is no multiple, `fails_at` the next number
    where it is shown to go wrong there.
    """

    text: str
    name: str
    here: int
    low: int
    high: int
    step: int = 1
    premises: tuple[str, ...] = ()
    only: bool = False
    fails_at: int | None = None


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
    evidence: tuple[Evidence, ...] = ()
    archs: tuple[str, ...] = ()
    """All architectures with this same verdict, filled when verdicts are merged."""
    launch: dict[str, Any] | None = None
    """The launch that it speaks of, as plain data; `more` says how many others have it, too."""
    generalises: tuple[Generalisation, ...] = ()
    """The launches around that one for which it is shown."""
