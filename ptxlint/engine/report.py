"""The result of a run: findings, verdicts, kernels, counts, exit status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxlint.diagnostics import Finding
from ptxlint.engine.pseudo import FAILURES
from ptxlint.engine.result import KernelSummary
from ptxlint.obligations import Obligation
from ptxlint.source import SourceText

if TYPE_CHECKING:
    from ptxlint.engine.baseline.outcome import Outcome


class Summary(NamedTuple):
    """Counts of one run. `suppressed` counts findings that comments held back; `skipped` files
    that `--arch` left out; `launched` kernels that were checked under one of the `launches`, of
    which others were `left_out`;
    `seconds` is wall time."""

    files: int
    kernels: int
    errors: int
    warnings: int
    notes: int
    seconds: float
    lines: int = 0
    suppressed: int = 0
    skipped: int = 0
    launches: int = 0
    launched: int = 0
    left_out: int = 0


class Report:
    """What `ptxlint.check` returns. Nothing in it changes afterwards."""

    __slots__ = ("baseline", "findings", "kernels", "obligations", "summary", "texts", "timings")

    def __init__(
        self,
        findings: Sequence[Finding],
        obligations: Sequence[Obligation],
        kernels: Sequence[KernelSummary],
        summary: Summary,
        timings: dict[str, float] | None = None,
        texts: dict[str, SourceText] | None = None,
        baseline: Outcome | None = None,
    ) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        self.obligations: tuple[Obligation, ...] = tuple(obligations)
        self.kernels: tuple[KernelSummary, ...] = tuple(kernels)
        self.summary = summary
        self.timings: dict[str, float] = timings or {}
        """Wall seconds by stage (`parse`, `analysis NAME`, `rule ID`), with `statistics` only."""
        self.texts: dict[str, SourceText] = texts or {}
        """Inputs that came as text, by path: what a renderer cannot read again."""
        self.baseline = baseline
        """What a baseline held back, with one only."""

    @property
    def exit_code(self) -> int:
        """2 if something asked for was not analysed, else 1 on errors or warnings, else 0."""
        if any(f.rule in FAILURES and f.severity == "error" for f in self.findings):
            return 2
        return 1 if any(f.severity != "note" for f in self.findings) else 0

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, in the published JSON layout (version 1)."""
        from ptxlint.engine.serialise import report_to_dict

        return report_to_dict(self)

    def to_json(self, indent: int | None = 1) -> str:
        """The report as JSON text."""
        import json

        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=True)

    def __repr__(self) -> str:
        s = self.summary
        return (
            f"<Report: {s.errors} errors, {s.warnings} warnings, {s.notes} notes "
            f"in {s.kernels} kernels of {s.files} files>"
        )


def count_severities(findings: Sequence[Finding]) -> tuple[int, int, int]:
    """Numbers of errors, warnings and notes."""
    severities = [finding.severity for finding in findings]
    return severities.count("error"), severities.count("warning"), severities.count("note")
