"""Autotuners: which configurations are launched, and what is said of their launches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from unittest import mock

from ptxlint.launches import Autotuned

from .storages import Storages

FIRST, ALL = "first", "all"
CHOICES = (FIRST, ALL)


class _Run:
    """One call of an autotuner."""

    __slots__ = ("configurations", "done", "fresh", "measured", "tuner")

    def __init__(self, tuner: Any, fresh: list[tuple[Any, str]]) -> None:
        self.tuner = tuner
        self.fresh = fresh
        self.configurations = 0
        self.measured = False
        self.done = False

    def restore(self) -> None:
        """What storages held before the first configuration."""
        for storage, held in self.fresh:
            storage.fresh = held


_CURRENT: ContextVar[_Run | None] = ContextVar("autotuner", default=None)


def autotuned() -> Autotuned | None:
    """What to say of a launch that is made now."""
    run = _CURRENT.get()
    if run is None or not run.measured:
        return None
    tuner = run.tuner
    return Autotuned(
        max(1, run.configurations),
        tuple(getattr(tuner, "reset_to_zero", None) or ()),
        tuple(getattr(tuner, "restore_value", None) or ()),
    )


def tuning() -> Any:
    """The autotuner that is at work; None outside of any."""
    run = _CURRENT.get()
    return None if run is None else run.tuner


@contextmanager
def tuners_steered(storages: Storages, mode: str, measure: bool) -> Iterator[None]:
    """Inside, each configuration is launched once (`all`), or the first that can be (`first`).

    With `measure` (there is a GPU) timing is the genuine one, and `first` has no say.
    """
    from triton.runtime.autotuner import Autotuner

    met: dict[int, Any] = {}
    with (
        mock.patch.object(Autotuner, "run", _watched_run(Autotuner.run, storages, met)),
        mock.patch.object(Autotuner, "prune_configs", _counted(Autotuner.prune_configs)),
        mock.patch.object(Autotuner, "_bench", _one_bench(Autotuner._bench, mode, measure)),
        # Timings of nothing must neither be read from the disk nor get there.
        mock.patch.object(Autotuner, "check_disk_cache", _no_disk, create=True),
    ):
        yield
    if not measure:
        # What won here won nothing.
        for tuner in met.values():
            tuner.cache.clear()


def _watched_run(genuine: Any, storages: Storages, met: dict[int, Any]) -> Any:
    def run(self: Any, *args: Any, **named: Any) -> Any:
        met[id(self)] = self
        tensors = [v for v in (*args, *named.values()) if hasattr(v, "untyped_storage")]
        known = [s for s in map(storages.of, tensors) if s is not None]
        token = _CURRENT.set(_Run(self, [(s, s.fresh) for s in known]))
        try:
            return genuine(self, *args, **named)
        finally:
            _CURRENT.reset(token)

    return run


def _counted(genuine: Any) -> Any:
    def prune_configs(self: Any, *args: Any, **named: Any) -> Any:
        left = genuine(self, *args, **named)
        run = _CURRENT.get()
        if run is not None:
            run.configurations = len(left)
        return left

    return prune_configs


def _one_bench(genuine: Any, mode: str, measure: bool) -> Any:
    never = float("inf")

    def bench(self: Any, *args: Any, **named: Any) -> Any:
        run = _CURRENT.get()
        if run is None or measure:
            if run is not None:
                run.measured = True
            return genuine(self, *args, **named)
        if mode == FIRST and run.done:
            return [never] * 3
        run.measured = True
        run.restore()
        try:
            took = genuine(self, *args, **named)
        finally:
            run.restore()
        times = took if isinstance(took, list | tuple) else [took]
        run.done = run.done or (bool(times) and times[0] != never)
        return took

    return bench


def _no_disk(self: Any, tuning_key: Any, configs: Any, bench_fn: Any) -> bool:
    bench_fn()
    return False
