"""`ptxlint.check`: the public entry point."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from ptxlint.config import Config, load_config
from ptxlint.engine.options import Options
from ptxlint.engine.report import Report
from ptxlint.engine.run import Progress, run
from ptxlint.frontends.discovery import Found, Input, discover
from ptxlint.frontends.target_filter import parse_targets
from ptxlint.source import SourceText

if TYPE_CHECKING:
    from ptxlint.engine.baseline.entries import Baseline
    from ptxlint.launches import Launch

Source: TypeAlias = str | os.PathLike[str] | SourceText
Words: TypeAlias = str | Iterable[str]
LaunchFiles: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def check(
    source: Source | Iterable[Source],
    *,
    select: Words = (),
    ignore: Words = (),
    arch: Words = (),
    jobs: int = 1,
    config: Config | str | os.PathLike[str] | None = None,
    parser: str = "memo",
    statistics: bool = False,
    evidence: bool = True,
    budget: float = 1.0,
    progress: Progress | None = None,
    launch: LaunchFiles = (),
    baseline: str | os.PathLike[str] | Baseline | None = None,
    exact: bool = False,
    ptxas: str = "",
) -> Report:
    """Check PTX and return all findings, verdicts and counts.

    `source` is a path (a file, a directory, `-` for standard input), a `SourceText` that holds
    PTX itself, or several of these. `select`, `ignore` and `arch` are words or comma-separated
    lists and take precedence over `config`, which is a `Config`, the path of a `pyproject.toml`,
    or None for none: no file is looked for. `jobs` is the number of processes, 0 for one per CPU.
    Without `evidence` verdicts do not list what they rest on, which saves time. Each analysis may
    take a number of steps that grows with the kernel; `budget` multiplies it. `launch` names files
    of launches (docs/launch-files.md) that the kernels are checked under.
    What is in `baseline`, a file or a `Baseline`, is held back, and what got worse is reported
    (docs/baseline.md); None takes that of `config`, "" none.
    of launches (docs/launch-files.md) that the kernels are checked under. With `exact` an assembler
    (`ptxas`, else the one that fits) tells registers and spills; a cubin or log beside a file is
    read in any case.

    Whatever is wrong with an input is a finding (`PARSE`, `INPUT`, `INTERNAL`), never an
    exception. Raises `ConfigError`, `SelectionError` or `TargetNameError` for bad settings and
    `LaunchFileError` for a bad file of launches, `BaselineError` for a bad baseline.
    """
    if parser not in ("memo", "lark"):
        raise ValueError(f"parser {parser!r} is neither 'memo' nor 'lark'")
    if jobs < 0:
        raise ValueError(f"jobs is {jobs}; give a number of processes, or 0 for one per CPU")
    if not 0 < budget < 1e9:
        raise ValueError(f"budget is {budget}; give a factor greater than 0")
    settings = _settings(config)
    known = _baseline(settings.baseline if baseline is None else baseline)
    options = Options(
        words(select) or settings.select,
        words(ignore) or settings.ignore,
        parse_targets(words(arch) or settings.arch),
        settings.per_path_ignores,
        settings.root,
        parser,
        statistics,
        evidence,
        budget,
        known is not None,
        exact or bool(ptxas),
        ptxas,
        _launches(launch),
    )
    return run(inputs(source), options, jobs, progress, baseline=known)


def _launches(files: LaunchFiles) -> tuple[Launch, ...]:
    single = isinstance(files, (str, os.PathLike))
    paths: Iterable[str | os.PathLike[str]] = [files] if single else files  # type: ignore[list-item, assignment]
    out: list[Launch] = []
    for path in paths:
        from ptxlint.frontends.launch_file import read_launch_file

        out += read_launch_file(os.fspath(path))
    return tuple(out)


def _baseline(given: str | os.PathLike[str] | Baseline) -> Baseline | None:
    if not isinstance(given, (str, os.PathLike)):
        return given
    path = os.fspath(given)
    if not path:
        return None
    from ptxlint.engine.baseline.layout import read_baseline

    return read_baseline(path)


def _settings(config: Config | str | os.PathLike[str] | None) -> Config:
    if config is None:
        return Config()
    return config if isinstance(config, Config) else load_config(os.fspath(config))


def words(value: Words) -> tuple[str, ...]:
    """`"A,B"` or `["A,B", "C"]` as ("A", "B", "C")."""
    parts = [value] if isinstance(value, str) else value
    return tuple(word.strip() for part in parts for word in part.split(",") if word.strip())


def inputs(source: Source | Iterable[Source]) -> list[Found]:
    """Everything that `source` stands for."""
    single = isinstance(source, (str, os.PathLike, SourceText))
    sources: Iterable[Source] = [source] if single else source  # type: ignore[list-item, assignment]
    found: Iterable[str | Input] = (
        Input(item.path, item.text) if isinstance(item, SourceText) else os.fspath(item)
        for item in sources
    )
    return discover(found, machine_code=True)
