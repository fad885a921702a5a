"""Autotuners: which configurations are launched, and what is said of their launches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from unittest import mock

from ptxlint.launches import Autotuned

from .storages import ZEROED, Storages

FIRST, ALL = "first", "all"
CHOICES = (FIRST, ALL)
_UNTOUCHED = "untouched"
"""What a storage is said to hold while a hook runs."""


class _Run:
    """One call of an autotuner. `reset` and `restored` are the arguments that hooks, before each
    configuration, were seen to set to zero or to write anything else to."""

    __slots__ = ("configurations", "done", "fresh", "measured", "reset", "restored", "tuner")

    def __init__(self, tuner: Any, fresh: list[tuple[Any, str]]) -> None:
        self.tuner = tuner
        self.fresh = fresh
        self.configurations = 0
        self.measured = False
        self.done = False
        self.reset: tuple[str, ...] = ()
        self.restored: tuple[str, ...] = ()

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
    reset, restored = _declared(run.tuner)
    return Autotuned(
        max(1, run.configurations),
        tuple(dict.fromkeys((*reset, *run.reset))),
        tuple(dict.fromkeys((*restored, *run.restored))),
    )


def _declared(tuner: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What `reset_to_zero` and `restore_value` do; nothing beside a hook that takes their place."""
    if getattr(tuner, "user_defined_pre_hook", False):
        return (), ()
    reset = tuple(getattr(tuner, "reset_to_zero", None) or ())
    if getattr(tuner, "user_defined_post_hook", False):
        return reset, ()
    return reset, tuple(getattr(tuner, "restore_value", None) or ())


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
        mock.patch.object(
            Autotuner, "_bench", _one_bench(_hooked(Autotuner._bench, storages), mode, measure)
        ),
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


def _hooked(genuine: Any, storages: Storages) -> Any:
    """A measurement of one configuration in which its hooks are watched."""

    def bench(self: Any, *args: Any, config: Any, **named: Any) -> Any:
        run = _CURRENT.get()
        hooks = [(owner, owner.pre_hook) for owner in (config, self) if owner.pre_hook]
        if run is None:
            return genuine(self, *args, config=config, **named)
        run.reset = run.restored = ()
        try:
            for owner, hook in hooks:
                owner.pre_hook = _watched_hook(hook, run, storages)
            return genuine(self, *args, config=config, **named)
        finally:
            for owner, hook in hooks:
                owner.pre_hook = hook

    return bench


def _watched_hook(hook: Any, run: _Run, storages: Storages) -> Any:
    def watched(arguments: Any, *args: Any, **named: Any) -> Any:
        tensors = {n: v for n, v in arguments.items() if hasattr(v, "untyped_storage")}
        held = {name: storages.of(tensor) for name, tensor in tensors.items()}
        known = {name: storage for name, storage in held.items() if storage is not None}
        before = {storage: storage.fresh for storage in known.values()}
        for storage in before:
            storage.fresh = _UNTOUCHED
        try:
            return hook(arguments, *args, **named)
        finally:
            touched = {name: s.fresh for name, s in known.items() if s.fresh != _UNTOUCHED}
            run.reset += tuple(n for n, fresh in touched.items() if fresh == ZEROED)
            run.restored += tuple(n for n, fresh in touched.items() if fresh != ZEROED)
            for storage, fresh in before.items():
                if storage.fresh == _UNTOUCHED:
                    storage.fresh = fresh

    return watched


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
