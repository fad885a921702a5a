"""What running a case came to, as plain data that a child process hands over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.oracle.compared import Compared

Status: TypeAlias = Literal["pass", "fail", "undecided"]
"""`undecided`: nothing was learnt of a kernel: its reference raised, or a runner cannot run it."""


class Outcome(NamedTuple):
    """One case, run. `kind` says what went wrong, empty for nothing: the name of a check
    (`reference`, `repeat`, …), or `raises`, `hang`, `crash`, `exit`, `memory`, `reference raises`,
    `unsupported`; `reason` is a sentence about it."""

    case: Case
    status: Status
    kind: str = ""
    reason: str = ""
    compared: tuple[Compared, ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()
    """What a sanitizer saw, as findings in the JSON of `check`."""
    launches: int = 0
    """Kernel launches that it took."""
    kernels: tuple[str, ...] = ()
    """Names of the kernels launched, in their order."""
    seconds: float = 0.0
    outputs_key: str = ""
    """Digest of all output bytes; empty if there are none."""
    inputs_key: str = ""
    """Digest of all input bytes, with what lies around them."""
    launches_key: str = ""
    """Digest of what was launched, code and grids; empty for nothing."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for `from_json`."""
        return {
            **self._asdict(),
            "case": self.case.to_json(),
            "compared": [{**c._asdict(), "worst": list(c.worst)} for c in self.compared],
            "findings": [dict(finding) for finding in self.findings],
            "kernels": list(self.kernels),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        """An outcome as `to_json` tells it. Raises `KeyError` or `TypeError` for what is none."""
        given = {name: data[name] for name in cls._fields if name in data}
        compared = tuple(Compared(**{**c, "worst": tuple(c["worst"])}) for c in data["compared"])
        return cls(
            **{
                **given,
                "case": Case.from_json(data["case"]),
                "compared": compared,
                "findings": tuple(data["findings"]),
                "kernels": tuple(data["kernels"]),
            }
        )


__all__ = ["Compared", "Outcome", "Status"]
