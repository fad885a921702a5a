"""A run held against a baseline: what is reported, what is held back, what is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ptxlint.diagnostics import Finding, Place
from ptxlint.engine.analyse import Checker, pseudo_finding
from ptxlint.engine.baseline.entries import Baseline, FindingEntry, KernelEntry, Strange, base
from ptxlint.engine.baseline.held import Parted, key_of, part, strangers
from ptxlint.engine.baseline.observed import in_order, is_kept, kernel_entries, observe
from ptxlint.engine.baseline.worse import (
    Growth,
    VerdictLoss,
    growths,
    losses,
    partners,
)
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.merge import merge_findings
from ptxlint.engine.pseudo import NUMBERS_WORSE, STALE, VERDICT_WORSE, PseudoRule
from ptxlint.engine.result import FileResult, KernelSummary
from ptxlint.engine.selection import enabled_rules
from ptxlint.wording import counted

_SHOWN: Final = 4
_LONGEST_LINE: Final = 200
"""Characters of a Python line that are kept."""
_ORDER: Final = {"refuted": 0, "open": 1, "proved": 2}
_WORDS: Final = {
    "registers": "registers", "spills": "bytes of spills", "guarded": "guarded accesses",
}  # fmt: skip


class Outcome(NamedTuple):
    """`held` are findings of the baseline, merged as those of the report are; `graver` the
    fingerprints of reported ones that were less grave; `absent` entries that do not occur any more,
    `unmet` kernels of the baseline that were not among those checked. `observed` is what a baseline
    of this run holds, `strange` are kernels and rules with held findings at lines of which the
    baseline knows none."""

    path: str
    held: tuple[Finding, ...]
    graver: frozenset[tuple[str, str, str]]
    absent: tuple[FindingEntry, ...]
    unmet: tuple[KernelEntry, ...]
    observed: Baseline
    strange: frozenset[Strange] = frozenset()

    def state(self, finding: Finding) -> str:
        """`new`, `updated` (known as less grave) or `unchanged`, as SARIF calls it."""
        if finding in self.held:
            return "unchanged"
        key = (finding.kernel, finding.rule, finding.fingerprint)
        return "updated" if key in self.graver else "new"


def compare(
    results: Sequence[FileResult], findings: Sequence[Finding], baseline: Baseline, checker: Checker
) -> tuple[list[Finding], Outcome]:
    """The findings to report, and what became of the others."""
    return _Comparison(results, findings, baseline, checker).outcome()


class _Comparison:
    def __init__(
        self,
        results: Sequence[FileResult],
        findings: Sequence[Finding],
        baseline: Baseline,
        checker: Checker,
    ) -> None:
        self.results = results
        self.findings = findings
        self.baseline = baseline
        self.checker = checker
        self.met: dict[KernelEntry, tuple[FileResult, KernelSummary]] = {}
        for result in results:
            summaries = [kernel for kernel in result.kernels if kernel.measures is not None]
            for entry, kernel in zip(kernel_entries(result), summaries, strict=True):
                self.met.setdefault(entry, (result, kernel))
        self.told = enabled_rules(checker.registry, (), checker.options.ignore)
        """A baseline was asked for: its rules speak though others alone are selected."""

    def outcome(self) -> tuple[list[Finding], Outcome]:
        """Everything."""
        parted = part(self.findings, self.baseline, self._line)
        unmet = self._unmet()
        absent = self._absent()
        strange = strangers(parted.held, self.baseline, self._line)
        own = [*self._worse(strange), *self._stale(absent, unmet)]
        reported = [*parted.new, *parted.graver, *(f for f in own if self._is_wanted(f))]
        return reported, Outcome(
            self.baseline.path,
            tuple(merge_findings(parted.held)),
            _keys(parted),
            absent,
            unmet,
            observe(self.results, self.findings, self._line),
            strange,
        )

    def _is_wanted(self, finding: Finding) -> bool:
        return finding.rule in self.told and not self.checker.ignored_here(
            finding.rule, finding.place
        )

    def _line(self, finding: Finding) -> str:
        source = finding.place.source
        if source is None:
            return ""
        return self.checker.sources.line(source.path, source.line).strip()[:_LONGEST_LINE]

    def _unmet(self) -> tuple[KernelEntry, ...]:
        keys = {(entry.key, entry.is_machine) for entry in self.met}
        return tuple(
            entry for entry in self.baseline.kernels if (entry.key, entry.is_machine) not in keys
        )

    def _absent(self) -> tuple[FindingEntry, ...]:
        """Entries of kernels that were checked, by rules that ran, and that no finding is of."""
        kernels: dict[tuple[str, str], set[str]] = {}
        for entry in self.met:
            kernels.setdefault(entry.key, set()).add("sass" if entry.is_machine else "ptx")
        whole = all(entry.key in kernels for entry in self.baseline.kernels)
        found = {key_of(f) for f in self.findings if is_kept(f)}
        lined = {key_of(f)[:3] for f in self.findings if f.place.source is not None}

        def is_gone(entry: FindingEntry) -> bool:
            archs = {base(arch) for arch in entry.archs} or {""}
            if entry.kernel:
                # A rule for machine code says nothing of the PTX that is there now.
                levels = self._levels(entry.rule)
                met = [a for a in archs if levels & kernels.get((entry.kernel, a), set())]
            else:
                met = [""] if whole else []
            if not entry.is_lined and any((entry.kernel, at, entry.rule) in lined for at in met):
                # Without line information more was told of one line than is now.
                return False
            keys = ((entry.kernel, arch, entry.rule, entry.fingerprint) for arch in met)
            return bool(met) and not any(key in found for key in keys)

        return tuple(
            e for e in self.baseline.findings if e.rule in self.checker.enabled and is_gone(e)
        )

    def _levels(self, rule: str) -> set[str]:
        """What a rule is for; the engine's own are for both."""
        known = self.checker.registry.rules.get(rule)
        return {"ptx", "sass"} if known is None else set(known.levels)

    def _worse(self, strange: frozenset[Strange]) -> Iterator[Finding]:
        numbers = Fingerprints()
        for new, old in partners(self.baseline.kernels, self.met).items():
            result, kernel = self.met[new]
            for loss in losses(old, new, strange):
                yield self._of_verdict(loss, old, new, result, kernel, numbers)
            grown = growths(old, new)
            if grown:
                yield self._of_numbers(grown, kernel, numbers)

    def _of_verdict(
        self,
        loss: VerdictLoss,
        old: KernelEntry,
        new: KernelEntry,
        result: FileResult,
        kernel: KernelSummary,
        numbers: Fingerprints,
    ) -> Finding:
        said = [o for o in result.obligations if o.kernel == new.kernel and o.rule == loss.rule]
        if loss.at is None:
            worst = min(said, key=lambda o: _ORDER[o.status])
            told = f"{_tally(loss.old)} in the baseline, {_tally(loss.new)} now"
        else:
            worst = in_order(said)[loss.at]
            told = f"as many as in the baseline, but number {loss.at + 1} is {worst.status} now"
        name = self.checker.registry.rules[loss.rule].name
        message = f"{loss.rule} {name}: {told}: {worst.reason}"
        help, severity = VERDICT_WORSE.fix, ""
        if old.measures.identity == new.measures.identity:
            severity = "note"
            help = (
                "the kernel is the same: ptxlint, its settings, the launches or what lies beside "
                "the file are others"
            )
        place = worst.place or Place(kernel.path, kernel.line, 1)
        key = f"{loss.rule} {loss.status}"
        return _finding(VERDICT_WORSE, message, place, kernel, key, numbers, severity, help)

    def _of_numbers(
        self, grown: list[Growth], kernel: KernelSummary, numbers: Fingerprints
    ) -> Finding:
        told = ", ".join(f"{_WORDS[g.name]} {g.old} → {g.new}" for g in grown)
        spills = any(growth.name == "spills" for growth in grown)
        place = Place(kernel.path, kernel.line, 1)
        key = " ".join(growth.name for growth in grown)
        severity = "warning" if spills else ""
        return _finding(NUMBERS_WORSE, told, place, kernel, key, numbers, severity)

    def _stale(
        self, absent: tuple[FindingEntry, ...], unmet: tuple[KernelEntry, ...]
    ) -> Iterator[Finding]:
        numbers = Fingerprints()
        path = self.baseline.path
        if unmet and len(unmet) == len(self.baseline.kernels):
            names = _some(dict.fromkeys(f"{e.kernel}{_level(e)}" for e in unmet))
            message = f"no kernel of this baseline was checked: it is of {names}"
            place = Place(path, 1, 1)
            help = "give the files that the baseline was made of, or the baseline of these files"
            yield _finding(STALE, message, place, None, "all", numbers, "warning", help)
            return
        if absent:
            names = _some(dict.fromkeys(f"{e.rule} in {e.kernel or 'no kernel'}" for e in absent))
            message = f"{counted(len(absent), 'finding')} of the baseline no longer found: {names}"
            place = Place(path, self.baseline.line_of(absent[0].fingerprint), 1)
            yield _finding(STALE, message, place, None, "findings", numbers)
        if unmet:
            names = _some(dict.fromkeys(f"{e.kernel} {e.arch}{_level(e)}" for e in unmet))
            message = f"{counted(len(unmet), 'kernel')} of the baseline not checked: {names}"
            place = Place(path, self.baseline.line_of(f'"{unmet[0].kernel}"'), 1)
            yield _finding(STALE, message, place, None, "kernels", numbers)


def _keys(parted: Parted) -> frozenset[tuple[str, str, str]]:
    return frozenset((f.kernel, f.rule, f.fingerprint) for f in parted.graver)


def _tally(counts: tuple[int, int, int]) -> str:
    words = zip(counts, ("proved", "refuted", "open"), strict=True)
    return ", ".join(f"{number} {word}" for number, word in words if number) or "none"


def _level(entry: KernelEntry) -> str:
    return " (machine code)" if entry.is_machine else ""


def _some(names: dict[str, None]) -> str:
    shown = list(names)[:_SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _finding(
    kind: PseudoRule,
    message: str,
    place: Place,
    kernel: KernelSummary | None,
    key: str,
    numbers: Fingerprints,
    severity: str = "",
    help: str = "",
) -> Finding:
    name = kernel.name if kernel is not None else ""
    return pseudo_finding(kind, message, place, severity, help or kind.fix)._replace(
        kernel=name,
        arch=kernel.arch if kernel is not None else "",
        fingerprint=numbers.next(kind.id, name, key),
    )


__all__ = ["Outcome", "compare"]
