"""Who does many pieces of work, and where: on this machine, or on others some day.

A piece of work is plain data, and so is what comes of it, so that an engine that distributes them
can take the place of this one. What comes of a piece depends on it alone, never on the place.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeAlias

Task: TypeAlias = Mapping[str, Any]
Result: TypeAlias = Mapping[str, Any]
"""Plain data, as JSON has it."""


class Place(NamedTuple):
    """Where one piece of work is done at a time: a GPU, or a core."""

    number: int
    gpu: int | None = None


Work: TypeAlias = Callable[[Task, Place], Result]
"""Does one piece of work. It is found by its module and its name."""


class Executor(Protocol):
    """Does pieces of work."""

    def results(self, work: Work, tasks: Sequence[Task]) -> Iterator[Result]:
        """What comes of each task, in their order, each as soon as it and those before are there.

        What `work` raises comes up here, at its task.
        """


class LocalExecutor:
    """Does pieces of work on this machine, as many at a time as there are places.

    A thread waits for each: what takes time is done by child processes.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        """Raises `ValueError` without any place."""
        if not places:
            raise ValueError("no place to work: give a GPU or a core")
        self.places = tuple(places)

    def results(self, work: Work, tasks: Sequence[Task]) -> Iterator[Result]:
        """What comes of each task (`Executor`). Those not begun are left when nobody takes more."""
        free: queue.SimpleQueue[Place] = queue.SimpleQueue()
        for place in self.places:
            free.put(place)

        def one(task: Task) -> Result:
            place = free.get()
            try:
                return work(task, place)
            finally:
                free.put(place)

        pool = ThreadPoolExecutor(len(self.places), "ptxlint")
        try:
            waiting = [pool.submit(one, task) for task in tasks]
            for future in waiting:
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def local_places(gpus: Sequence[int] = (), jobs: int = 0) -> tuple[Place, ...]:
    """One for each GPU; without them, `jobs`, or one for each core that this process may use."""
    if gpus:
        return tuple(Place(number, gpu) for number, gpu in enumerate(gpus))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return tuple(Place(number) for number in range(jobs or cores or 1))


__all__ = ["Executor", "LocalExecutor", "Place", "Result", "Task", "Work", "local_places"]
