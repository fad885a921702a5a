"""The verdict on one operator, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ptxlint.dynamic.runners.outcome import Outcome

Word: TypeAlias = Literal["pass", "fail", "undecided"]

VERSION: Final = 1
"""Of the JSON of `ptxlint gate` (docs/gate.schema.json)."""


class Place(NamedTuple):
    """A place in Python, line from 1 and column from 1 or 0 for none."""

    path: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return ":".join(str(part) for part in self if part)


class Failure(NamedTuple):
    """One way in which an operator is wrong.

    It rests on a run (`seen`, and `smallest` if a smaller one fails alike), on a static finding
    (`rule`), or on both; a finding that no run has shown is not `confirmed`.
    """

    family: str
    """Of the case that failed, or of the finding (`ptxlint.rulekit.FAMILIES`)."""
    reason: str
    place: Place | None = None
    rule: str = ""
    kernel: str = ""
    breaks_when: str = ""
    witness: Mapping[str, Any] | None = None
    confirmed: bool = True
    seen: Outcome | None = None
    smallest: Outcome | None = None
    replay: str = ""
    """The file that `ptxlint replay` takes; empty if none was written."""

    @property
    def shown(self) -> Outcome | None:
        """The smallest run that fails."""
        return self.smallest or self.seen

    def made_smaller(self, smallest: Outcome) -> Failure:
        """The same failure in a smaller run. Without a rule the reason is the smaller run's too, so
        that it goes with the inputs that are told."""
        reason = self.reason if self.rule else smallest.reason or smallest.kind
        return self._replace(smallest=smallest, reason=reason)

    @property
    def max_abs_error(self) -> float | None:
        """The largest finite error of the smallest run; None where nothing was compared."""
        shown = self.shown
        return max((c.max_abs for c in shown.compared), default=None) if shown else None

    def to_json(self) -> dict[str, Any]:
        """Plain data for `from_json`, with what most readers ask for beside the outcomes."""
        shown = self.shown
        case = shown.case if shown else None
        return {
            "family": self.family,
            "reason": self.reason,
            "source": self.place._asdict() if self.place else None,
            "rule": self.rule,
            "kernel": self.kernel,
            "breaks_when": self.breaks_when,
            "witness": dict(self.witness) if self.witness else None,
            "confirmed": self.confirmed,
            "inputs": None if case is None else {
                "shape": dict(case.dims), "dtype": case.dtype, "seed": case.seed,
                "values": case.values, "layout": case.layout,
            },
            "kind": shown.kind if shown else "static",
            "max_abs_error": finite(self.max_abs_error),
            "seen": outcome_to_json(self.seen),
            "smallest": outcome_to_json(self.smallest),
            "replay": self.replay,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Failure:
        """What `to_json` tells. Raises `KeyError` or `TypeError` for what is none."""
        return cls(
            data["family"],
            data["reason"],
            Place(**data["source"]) if data["source"] else None,
            data["rule"],
            data["kernel"],
            data["breaks_when"],
            data["witness"],
            data["confirmed"],
            outcome_from_json(data["seen"]),
            outcome_from_json(data["smallest"]),
            data["replay"],
        )


class Stressed(NamedTuple):
    """An obligation that the static half left open, or a finding that is no error, and what became
    of it: `pass` (nothing failed in `cases` runs), `fail`, or `undecided` with the reason."""

    family: str
    rule: str
    kernel: str
    reason: str
    place: Place | None
    became: Word
    by: tuple[str, ...] = ()
    """The families of stress tests that decided it."""
    cases: int = 0
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data for `from_json`."""
        place = self.place._asdict() if self.place else None
        return {**self._asdict(), "place": place, "by": list(self.by)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Stressed:
        """What `to_json` tells. Raises `KeyError` or `TypeError` for what is none."""
        place = Place(**data["place"]) if data["place"] else None
        return cls(**{**data, "place": place, "by": tuple(data["by"])})


class Verdict(NamedTuple):
    """What became of one operator.

    `problem` is a sentence about why it could not be put to the test (its spec does not load, its
    reference raises): the verdict is then `undecided`, and the command's exit status 2.
    """

    name: str
    verdict: Word
    path: str = ""
    runs_on: str = ""
    runner: str = ""
    problem: str = ""
    reason: str = ""
    """Why it is undecided, where it could be put to the test."""
    failures: tuple[Failure, ...] = ()
    obligations: tuple[Stressed, ...] = ()
    proved: int = 0
    """Properties that the static half proved."""
    cases: int = 0
    """Cases that led to the verdict; those that made a failure smaller are `reducing`."""
    reducing: int = 0
    launches: int = 0
    """Kernel launches of `cases`."""
    saved: int = 0
    """Cases that every strategy, eight times for each dtype, would have taken beyond these."""
    kernels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain data for `from_json`."""
        return {
            **self._asdict(),
            "failures": [failure.to_json() for failure in self.failures],
            "obligations": [tested.to_json() for tested in self.obligations],
            "kernels": list(self.kernels),
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Verdict:
        """What `to_json` tells. Raises `KeyError` or `TypeError` for what is none."""
        return cls(
            **{
                **data,
                "failures": tuple(Failure.from_json(failure) for failure in data["failures"]),
                "obligations": tuple(Stressed.from_json(tested) for tested in data["obligations"]),
                "kernels": tuple(data["kernels"]),
                "notes": tuple(data["notes"]),
            }
        )


def exit_status(verdicts: list[Verdict], *, strict: bool = False) -> int:
    """2 if something could not be put to the test, else 1 on failures, with `strict` also where
    something is undecided, else 0."""
    if any(verdict.problem for verdict in verdicts):
        return 2
    bad = {"fail", "undecided"} if strict else {"fail"}
    return 1 if any(verdict.verdict in bad for verdict in verdicts) else 0


def finite(number: float | None) -> float | None:
    """A number that JSON has; None for others."""
    return number if number is not None and abs(number) <= 1.7976931348623157e308 else None


def outcome_to_json(outcome: Outcome | None) -> dict[str, Any] | None:
    """An outcome for JSON, which has neither NaN nor infinities: those are text."""
    if outcome is None:
        return None
    told: dict[str, Any] = outcome.to_json()
    for compared in told["compared"]:
        for key in _NUMBERS:
            compared[key] = (
                compared[key] if finite(compared[key]) is not None else str(compared[key])
            )
    return told


def outcome_from_json(data: Mapping[str, Any] | None) -> Outcome | None:
    """What `outcome_to_json` tells."""
    if data is None:
        return None
    compared = [{**one, **{key: float(one[key]) for key in _NUMBERS}} for one in data["compared"]]
    outcome: Outcome = Outcome.from_json({**data, "compared": compared})
    return outcome


_NUMBERS: Final = ("max_abs", "max_rel", "max_ulp", "got", "expected", "allowed", "share")

__all__ = [
    "VERSION", "Failure", "Place", "Stressed", "Verdict", "Word", "exit_status", "finite",
    "outcome_from_json", "outcome_to_json",
]  # fmt: skip
