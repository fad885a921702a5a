"""Many operators: which there are, each put to the test in a child process, verdicts in order."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import ptxlint
from ptxlint.dynamic.operators.places import Place as SpecPlace
from ptxlint.dynamic.operators.places import places
from ptxlint.dynamic.operators.spec import NUMPY, SpecError
from ptxlint.dynamic.runners.executor import Executor, LocalExecutor, Place, local_places
from ptxlint.dynamic.runners.knowledge import Described
from ptxlint.dynamic.runners.requests import Plan
from ptxlint.dynamic.runners.supervisor import ChildWorker, ForkServer, Limits
from ptxlint.dynamic.runners.worker import WorkerError

from .gate import Gate, Options
from .replay import ReplayError, make_folder, write_replays
from .store import Store, StoreError
from .stress import Stress
from .verdict import Verdict


class Settings(NamedTuple):
    """How operators are put to the test."""

    options: Options = Options()
    arch: str = "sm_90"
    """That kernels are compiled for where there is no GPU."""
    limits: Limits = Limits()
    gpus: tuple[int, ...] = ()
    """Those to use, on the runner `cuda`; none: the first."""
    jobs: int = 1
    """Operators at a time, where GPUs do not say it; 0 for one a core."""
    tolerances: str = ""
    """A file that `ptxlint calibrate` has written; empty for none."""
    store: str = ":memory:"
    replays: str = ""
    """Folder for files that `ptxlint replay` takes; empty writes none."""
    stress: bool = False
    """Run families whatever is proved."""
    families: tuple[str, ...] = ()
    """Those to run with `stress`; empty for all."""


class Task(NamedTuple):
    """One operator, or why a spec file gave none."""

    path: str
    name: str
    problem: str = ""


Progress: TypeAlias = Callable[[int, int, Verdict], None]
"""Called with how many verdicts there are, how many there will be, and the last one."""


class Campaign:
    """Puts operators to the test with the same settings. To be closed."""

    def __init__(self, settings: Settings, server: ForkServer | None = None) -> None:
        """`server` forks the children; without one the campaign has its own. Raises `StoreError`
        where results cannot be kept, `ReplayError` where replay files cannot."""
        self._settings = settings
        self._is_own = server is None
        self._server = server or ForkServer(settings.options.runner)
        self._stores = threading.local()
        self.executor: Executor = LocalExecutor(local_places(settings.gpus, settings.jobs))
        try:
            # Before anything is run, lest it be lost.
            if settings.replays:
                make_folder(settings.replays)
            Store(settings.store).close()
        except (ReplayError, StoreError):
            self.close()
            raise

    def tasks(self, words: Iterable[str]) -> tuple[Task, ...]:
        """The operators that words of a command line mean: files, directories, `FILE.py:NAME`.

        What does not load is a task with its problem.
        """
        return tuple(task for word in words for task in self._tasks(word))

    def _tasks(self, word: str) -> Iterator[Task]:
        try:
            found = places(word)
        except SpecError as error:
            yield Task(word, "", str(error))
            return
        for place in found:
            yield from self._named(place)

    def _named(self, place: SpecPlace) -> Iterator[Task]:
        if place.name:
            yield Task(place.path, place.name)
            return
        worker = ChildWorker(self._server, self._plan(place.path, ""), self._settings.limits)
        try:
            for name in worker.names():
                yield Task(place.path, name)
        except WorkerError as error:
            yield Task(place.path, "", str(error))
        finally:
            worker.close()

    def run(
        self, tasks: Sequence[Task], progress: Progress = lambda done, total, last: None
    ) -> list[Verdict]:
        """A verdict on each task, in their order."""
        verdicts = []
        told = [task._asdict() for task in tasks]
        for result in self.executor.results(self._work, told):
            verdicts.append(Verdict.from_json(result))
            progress(len(verdicts), len(tasks), verdicts[-1])
        return verdicts

    def _work(self, task: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """A piece of work for an executor."""
        told: dict[str, Any] = self.decide(Task(**task), place.gpu).to_json()
        return told

    def worker(self, task: Task, gpu: int | None = None) -> ChildWorker:
        """A worker for the operator of a task. To be closed."""
        plan = self._plan(task.path, task.name, gpu)
        return ChildWorker(self._server, plan, self._settings.limits)

    def decide(self, task: Task, gpu: int | None = None) -> Verdict:
        """The verdict on one task; one that the store has is not made again."""
        runner = self._settings.options.runner
        if task.problem:
            return Verdict(task.name, "undecided", task.path, runner=runner, problem=task.problem)
        worker = self.worker(task, gpu)
        try:
            described = worker.describe()
        except WorkerError as error:
            worker.close()
            return Verdict(task.name, "undecided", task.path, runner=runner, problem=str(error))
        try:
            scope = self._scope(described)
            store = self._store()
            verdict = store.verdict(scope)
            if verdict is None:
                verdict = self._decided(worker, described, store, scope)
                store.decide(scope, verdict)
            if self._settings.replays:
                verdict = write_replays(verdict, described, self._settings)
            return verdict
        finally:
            worker.close()

    def _decided(
        self, worker: ChildWorker, described: Described, store: Store, scope: str
    ) -> Verdict:
        options = self._settings.options
        if described.runs_on == NUMPY:
            options = options._replace(runner=NUMPY)
        kind = Stress if self._settings.stress else Gate
        gate = kind(worker, options, store, scope)
        if isinstance(gate, Stress):
            gate.families = self._settings.families
        return gate.decide(described.name, described.path)

    def _plan(self, path: str, name: str, gpu: int | None = None) -> Plan:
        settings = self._settings
        return Plan(
            path,
            name,
            settings.options.runner,
            settings.arch,
            gpu=gpu,
            tolerances=settings.tolerances,
        )

    def _store(self) -> Store:
        """The store, opened once a thread; one in memory is shared by none."""
        store: Store | None = getattr(self._stores, "store", None)
        if store is None:
            store = self._stores.store = Store(self._settings.store)
        return store

    def _scope(self, described: Described) -> str:
        """Alike for what gives the same results: operator, its sources, settings, ptxlint."""
        settings = self._settings
        told = [
            str(Path(described.path).resolve()),
            described.to_json(),
            list(settings.options),
            settings.arch,
            settings.stress,
            list(settings.families),
            _content(settings.tolerances),
            ptxlint.__version__,
        ]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def close(self) -> None:
        """Let all processes go."""
        if self._is_own:
            self._server.close()


def _content(path: str) -> str:
    """The text of a file; what is missing is told by who reads it."""
    try:
        return Path(path).read_text(encoding="utf-8") if path else ""
    except (OSError, ValueError):
        return ""


__all__ = ["Campaign", "Progress", "Settings", "Task"]
