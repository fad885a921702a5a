"""The child process: loads one operator and does what it is asked to, until nobody asks any more.

Runs code of people's, which may hang, crash or leave: the parent sees to that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from ..capture.kernels import Captured
from ..capture.writing import write_bundle
from ..cases.case import Case
from ..operators.loading import load
from ..operators.nearest import nearest
from ..operators.places import Place
from ..operators.spec import NUMPY, Operator, SpecError
from ..oracle.calibration import CalibrationError, applied, read
from .execution import run_case
from .knowledge import KernelKnowledge, describe
from .manner import DeviceError, NotRunError
from .on_host import HostRunner
from .requests import INPUTS, LOST, NOW, REFERENCE, Lines, Message, Plan, send
from .runner import Runner
from .static_check import check_bundle


def serve(plan: Plan, requests: int, answers: int) -> None:
    """Answer requests until there are no more."""
    lines = Lines(requests)

    with staged(plan) as stage:
        stage.tell = partial(send, answers)
        while (messages := lines.read()) is not None:
            for message in messages:
                answer = stage.answer(message)
                with suppress(Exception):
                    sys.stdout.flush()
                    sys.stderr.flush()
                send(answers, answer)
                if LOST in answer:
                    return


class Stage:
    """What is there to run an operator with."""

    def __init__(self, plan: Plan, runner: Runner | None, captured: Captured, why: str) -> None:
        self._plan = plan
        self._runner = runner
        self._captured = captured
        self._why = why
        """Why there is no runner for Triton's kernels, if there is none."""
        self.tell: Callable[[Message], None] = lambda message: None
        """Sends what is no answer."""
        self._loaded: dict[str, Operator] | None = None
        self._known: dict[str, tuple[str, KernelKnowledge]] = {}
        """By hash, what was said of a kernel under launches that are told in the text."""
        self._near: dict[tuple[int, ...], dict[str, int] | None] = {}
        """By sizes that were wanted, what the operator takes in their place."""
        self._requests: dict[str, Callable[[Message], Any]] = {
            "names": self._names,
            "describe": self._describe,
            "allowed": self._allowed,
            "nearest": self._nearest,
            "run": self._run,
            "check": self._check,
        }

    def answer(self, message: Message) -> Message:
        """`ok` with what was asked for, or `error` with what to say to people."""
        try:
            return {"ok": self._requests[message["do"]](message)}
        except SpecError as error:
            return {"error": str(error)}
        except DeviceError as error:
            return {"error": str(error), LOST: "device"}
        except (SystemExit, MemoryError, RecursionError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _operators(self) -> dict[str, Operator]:
        if self._loaded is None:
            loaded = load(Place(self._plan.path, self._plan.name))
            self._loaded = _calibrated(loaded, self._plan.tolerances)
        return self._loaded

    def _operator(self) -> Operator:
        every = self._operators()
        if len(every) > 1:
            raise SpecError(
                f"{self._plan.path} has {len(every)} operators: {', '.join(every)}; name one"
            )
        return next(iter(every.values()))

    def _names(self, _: Message) -> list[str]:
        return list(self._operators())

    def _describe(self, _: Message) -> Message:
        operator = self._operator()
        said = operator.uncallable()
        if said:
            raise SpecError(f"{self._plan.path}: {operator.name}: {said}")
        return describe(operator, self._plan.path).to_json()

    def _allowed(self, message: Message) -> list[bool]:
        operator = self._operator()
        return [_takes(operator, dims, self._plan.path) for dims in message["dims"]]

    def _nearest(self, message: Message) -> dict[str, int] | None:
        operator, wanted = self._operator(), message["dims"]
        key = tuple(wanted.values())
        if key not in self._near:
            self._near[key] = nearest(
                operator.dims, wanted, lambda dims: _takes(operator, dims, self._plan.path)
            )
        return self._near[key]

    def _run(self, message: Message) -> Message:
        operator = self._operator()
        runner = HostRunner() if operator.runs_on == NUMPY else self._runner
        if runner is None:
            raise SpecError(f"{self._plan.path}: {operator.name}: {self._why}")
        case = Case.from_json(message["case"])
        return run_case(operator, runner, case, self._referring, self._begun).to_json()

    def _begun(self, inputs_key: str) -> None:
        self.tell({INPUTS: inputs_key})

    @contextmanager
    def _referring(self) -> Iterator[None]:
        """Inside, the reference is at work."""
        self.tell({NOW: REFERENCE})
        try:
            yield
        finally:
            self.tell({NOW: ""})

    def _check(self, message: Message) -> list[Message]:
        """All kernels, checked anew where they were launched in another way since."""
        told = {k.hash: repr(k.launches) for k in self._captured.kernels}
        new = {h for h, text in told.items() if h not in self._known or self._known[h][0] != text}
        if new:
            folder = Path(self._plan.work, f"bundle{message['number']}")
            fresh = Captured()
            for kernel in self._captured.kernels:
                if kernel.hash in new:
                    fresh.add_kernel(kernel.hash, lambda kernel=kernel: kernel)  # type: ignore[misc]
            fresh.troubles = self._captured.troubles
            write_bundle(self._plan.arch, fresh, folder)
            for known in check_bundle(str(folder)):
                self._known[known.hash] = told[known.hash], known
        return [self._known[hash_][1].to_json() for hash_ in told if hash_ in self._known]


def _calibrated(operators: dict[str, Operator], path: str) -> dict[str, Operator]:
    """Operators with their tolerances from a file, if there is one. Raises `SpecError`."""
    if not path:
        return operators
    try:
        tolerances = read(path)
    except CalibrationError as error:
        raise SpecError(str(error)) from None
    return {name: applied(operator, tolerances) for name, operator in operators.items()}


def _takes(operator: Operator, dims: Any, path: str) -> bool:
    try:
        return operator.allows(dims)
    except Exception as error:
        raise SpecError(
            f"{path}: {operator.name}: `where` raises {type(error).__name__}: {error} "
            f"for {dict(dims)}"
        ) from error


@contextmanager
def staged(plan: Plan) -> Iterator[Stage]:
    """With a runner for Triton's kernels, if there can be one."""
    os.environ.pop("TRITON_INTERPRET", None)
    if plan.directory:
        os.chdir(plan.directory)
    if plan.runner == NUMPY:
        yield Stage(
            plan, None, Captured(), "it is no operator of plain numpy; take --runner emulator"
        )
        return
    try:
        import torch
        import triton  # noqa: F401
    except ImportError as error:
        why = f"it needs torch and Triton: {error}"
        yield Stage(plan, None, Captured(), why)
        return
    if plan.runner == "cuda":
        from .buffers import MARGIN
        from .on_cuda import on_cuda

        with ExitStack() as stack:
            try:
                room = MARGIN if plan.margins else 0
                cuda, record = stack.enter_context(on_cuda(plan.gpu, room))
            except NotRunError as error:
                yield Stage(plan, None, Captured(), str(error))
            else:
                yield Stage(plan, cuda, record.captured, "")
        return
    from .emulated import EmulatorRunner, emulated

    # Pools of threads do not live on in a forked process, and cores are shared with other children.
    torch.set_num_threads(1)
    with emulated(plan.arch, Path(plan.work)) as (emulation, record):
        yield Stage(plan, EmulatorRunner(emulation, record), record.captured, "")


__all__ = ["Stage", "serve", "staged"]
