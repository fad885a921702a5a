"""A whole run: inputs to one report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING

from ptxlint.diagnostics import Finding, Place
from ptxlint.engine.analyse import Checker, input_finding, pseudo_finding
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.merge import merge_findings, merge_obligations, natural
from ptxlint.engine.options import Options
from ptxlint.engine.pseudo import INTERNAL, MALFORMED, UNUSED
from ptxlint.engine.registry import PACKAGE, Registry, default_registry
from ptxlint.engine.report import Report, Summary, count_severities
from ptxlint.engine.result import FileResult
from ptxlint.engine.suppression import Suppression
from ptxlint.frontends.discovery import Found, Input, InputFault
from ptxlint.source import SourceText

if TYPE_CHECKING:
    from ptxlint.engine.baseline.entries import Baseline
    from ptxlint.engine.baseline.outcome import Outcome

_SHOWN_KERNELS = 8
Progress = Callable[[int, int, str], None]
"""Called with the number of files done, of all files, and the path just done."""


def run(
    items: list[Found],
    options: Options,
    jobs: int = 1,
    progress: Progress | None = None,
    registry: Registry | None = None,
    baseline: Baseline | None = None,
) -> Report:
    """Check these inputs. `jobs` processes share the work, 0 for one per processor. What is in a
    baseline is held back.

    Raises `SelectionError` for a selector that matches nothing.
    """
    start = perf_counter()
    own = registry if registry is not None else default_registry()
    checker = Checker(options, own)
    results: list[FileResult] = []
    for result in _results(items, checker, jobs):
        results.append(result)
        if progress is not None:
            progress(len(results), len(items), result.path)
    findings = [finding for result in results for finding in result.findings]
    findings += _load_faults(own)
    findings += _judge_suppressions(results, checker)
    findings += _nothing_left(results, options)
    if options.launches:
        findings += _of_no_kernel(results, options)
    outcome = None
    if baseline is not None:
        from ptxlint.engine.baseline.outcome import compare

        findings, outcome = compare(results, findings, baseline, checker)
    texts = {i.path: SourceText(i.text, i.path) for i in items if isinstance(i, Input) and i.text}
    return _report(results, findings, perf_counter() - start, options.statistics, texts, outcome)


def _results(items: list[Found], checker: Checker, jobs: int) -> Iterator[FileResult]:
    texts = sum(isinstance(item, Input) for item in items)
    if jobs == 1 or texts < 2:
        for item in items:
            yield checker.check(item)
        return
    from ptxlint.engine.workers import check_in_processes

    yield from check_in_processes(items, checker.options, jobs)


def _load_faults(registry: Registry) -> Iterator[Finding]:
    """INTERNAL findings for rule modules that could not be loaded."""
    numbers = Fingerprints()
    for problem in registry.problems:
        place = Place(problem.path or PACKAGE, problem.line, 1)
        finding = pseudo_finding(INTERNAL, problem.message, place)
        yield finding._replace(fingerprint=numbers.next(INTERNAL.id, "", problem.message))


def _judge_suppressions(results: list[FileResult], checker: Checker) -> Iterator[Finding]:
    """Findings about comments: those without a reason, and those that held nothing back.

    One comment may bear on many files, and of use in one of them is of use.
    """
    used: set[tuple[Suppression, str]] = set()
    covered: set[Suppression] = set()
    comments: dict[Suppression, None] = {}
    for result in results:
        used |= result.used
        covered |= result.covered
        comments.update(dict.fromkeys(result.suppressions))
    numbers = Fingerprints()
    for comment in comments:
        if comment not in covered:
            continue
        if comment.fault:
            kind, message, advice = MALFORMED, comment.fault, MALFORMED.fix
        else:
            idle = [r for r in comment.rules if (comment, r) not in used and r in checker.enabled]
            if not idle:
                continue
            kind, advice = UNUSED, UNUSED.fix
            message = f"this suppression of {', '.join(idle)} holds back nothing"
        if kind.id in checker.enabled and not checker.ignored_here(kind.id, comment.place):
            finding = pseudo_finding(kind, message, comment.place, "", advice)
            yield finding._replace(fingerprint=numbers.next(kind.id, comment.path, message))


def _nothing_left(results: list[FileResult], options: Options) -> Iterator[Finding]:
    """A finding when `--arch` left out every file."""
    if results and all(result.skipped for result in results):
        targets = ", ".join(sorted({result.skipped for result in results}, key=natural))
        message = f"no file targets {', '.join(options.arch)}"
        yield input_finding(InputFault(results[0].path, message, f"found: {targets}"))


def _of_no_kernel(results: list[FileResult], options: Options) -> Iterator[Finding]:
    """Findings for launches of kernels that no file has."""
    met = {number for result in results for number in result.met}
    names = list(dict.fromkeys(kernel.name for result in results for kernel in result.kernels))
    for number, launch in enumerate(options.launches):
        if number not in met:
            message = f"no checked file has a kernel `{launch.kernel}`, of which this launch is"
            hint = f"found: {', '.join(names[:_SHOWN_KERNELS])}" if names else ""
            finding = input_finding(InputFault(launch.place, message, hint))
            path, _, line = launch.place.rpartition(":")
            if line.isdecimal():
                finding = finding._replace(place=Place(path, int(line), 1))
            yield finding


def _report(
    results: list[FileResult],
    findings: list[Finding],
    seconds: float,
    statistics: bool,
    texts: dict[str, SourceText],
    outcome: Outcome | None,
) -> Report:
    merged = merge_findings(findings)
    checked = [result for result in results if not result.skipped]
    kernels = [kernel for result in checked for kernel in result.kernels]
    timings: dict[str, float] = {}
    for result in checked:
        for stage, spent in result.seconds.items():
            timings[stage] = timings.get(stage, 0.0) + spent
    summary = Summary(
        # A listing with code for several architectures is one file.
        len({result.path for result in checked}),
        len(kernels),
        *count_severities(merged),
        seconds,
        sum(result.lines for result in checked),
        sum(result.suppressed for result in checked),
        len(results) - len(checked),
        sum(kernel.launches for kernel in kernels),
        sum(kernel.launches > 0 for kernel in kernels),
        sum(count for kernel in kernels for _, count in kernel.left_out),
    )
    obligations = merge_obligations(o for result in checked for o in result.obligations)
    spent_on = timings if statistics else None
    return Report(merged, obligations, kernels, summary, spent_on, texts, outcome)
