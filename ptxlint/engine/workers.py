"""Checking files in several processes, in a fixed order, a dying process included."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext

from ptxlint.diagnostics import Place
from ptxlint.engine.analyse import Checker, pseudo_finding
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.options import Options
from ptxlint.engine.pseudo import INTERNAL
from ptxlint.engine.registry import default_registry
from ptxlint.engine.result import FileResult
from ptxlint.frontends.discovery import Found

_checker: Checker | None = None
"""The checker of this worker process; never set in the process that starts the workers."""


def check_in_processes(items: list[Found], options: Options, jobs: int) -> Iterator[FileResult]:
    """The results of these inputs in their order, computed by `jobs` processes (0: all CPUs)."""
    count = min(jobs if jobs > 0 else os.cpu_count() or 1, len(items))
    context = _context()
    others = set(multiprocessing.active_children())
    done = 0
    executor = ProcessPoolExecutor(count, context, _start_worker, (options,))
    try:
        for future in [executor.submit(_check, item) for item in items]:
            yield future.result()
            done += 1
        executor.shutdown()
    except BrokenProcessPool:
        # Somebody's file killed a worker, and the pool with it: find out whose, one at a time.
        executor.shutdown()
        for item in items[done:]:
            yield _check_alone(item, options, context)
    except BaseException:
        # Ctrl-C, or nobody wants the rest: do not wait for what the workers are at.
        executor.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise


def _context() -> BaseContext:
    """Fork where that is safe: a process with threads of its own must not be forked."""
    if "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


def _start_worker(options: Options) -> None:
    global _checker
    # Ctrl-C goes to the whole process group; the parent answers it and ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(100_000)
    _checker = Checker(options, default_registry())


def _check(item: Found) -> FileResult:
    assert _checker is not None
    return _checker.check(item)


def _check_alone(item: Found, options: Options, context: BaseContext) -> FileResult:
    """Check one file in a process of its own; if that dies, say so."""
    executor = ProcessPoolExecutor(1, context, _start_worker, (options,))
    try:
        return executor.submit(_check, item).result()
    except BrokenProcessPool:
        message = "the process that checked this file died, perhaps for lack of memory"
        finding = pseudo_finding(INTERNAL, message, Place(item.path, 1, 1))
        fingerprint = Fingerprints().next(INTERNAL.id, item.path, message)
        return FileResult(item.path, (finding._replace(fingerprint=fingerprint),))
    finally:
        executor.shutdown()
