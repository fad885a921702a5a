"""The parent's side: children that run operators, held to limits, and replaced when they are lost.

Whatever a child does (hang, crash, leave, eat memory, print without end) becomes an outcome of the
case that it was running; the next request gets a fresh child.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..capture.output import Output
from ..cases.case import Case
from .knowledge import Described, KernelKnowledge
from .outcome import Outcome
from .requests import INPUTS, LOST, NOW, REFERENCE, Lines, Message, Plan, plan_to_json, send
from .worker import WorkerError

_POLL: Final = 0.05
_DRAIN: Final = 2.0
"""Seconds that a child which was told to leave, or closed its pipe, may take to end."""

_LOADING: Final = ("names", "describe")
"""Requests for which the spec's file is executed, and nothing else."""
_KILL: Final = 60.0
"""Seconds that a child which was killed may take to be gone."""


class Limits(NamedTuple):
    """What a child may take for one request."""

    seconds: float = 120.0
    memory: int = 8 << 30
    """Bytes that are resident."""
    printed: int = 32 << 20
    """Bytes written to standard output and error."""
    loading: float = 120.0
    """Seconds that a spec may take to load."""


class LostError(Exception):
    """A child that is gone, or had to be ended: `kind` as outcomes have it, and a sentence."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class ForkServer:
    """A process that forks children (`fork_server`), shared by all workers of this process."""

    def __init__(self, runner: str = "emulator") -> None:
        """Starts it; loading goes on while others work. `runner` is what its children are for:
        `emulator`, `cuda`, or `numpy`, which needs least."""
        ours, theirs = socket.socketpair()
        environment = dict(os.environ)
        environment.pop("TRITON_INTERPRET", None)
        if runner != "cuda":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        # To ask CUDA how many GPUs there are would make it useless to forked processes.
        environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
        environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        environment["TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER"] = "0"
        number = theirs.fileno()
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ptxlint.dynamic.runners.fork_server", str(number), runner],
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=self._printed,
            pass_fds=(number,),
            env=environment,
            # Ctrl-C is for the parent to see; it ends this process by going.
            start_new_session=True,
        )
        theirs.close()
        self._socket = ours
        self._lock = threading.Lock()
        self._is_ready = False

    def fork(self, plan: Plan, pipes: Sequence[int]) -> int:
        """A child for a plan, with the pipes for requests, answers and output. Raises
        `WorkerError`."""
        answer = self._ask({"fork": plan_to_json(plan)}, pipes)
        return int(answer["pid"])

    def poll(self, number: int) -> int | None:
        """How a child ended: an exit status, the negative number of a signal, or None if it is
        still there. To be asked until it has ended, once. Raises `WorkerError`."""
        found: int | None = self._ask({"poll": number}, ())["ended"]
        return found

    def close(self) -> None:
        """End it and all its children."""
        self._socket.close()
        try:
            self._process.wait(_DRAIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._printed.close()

    def _ask(self, message: Message, pipes: Sequence[int]) -> Message:
        with self._lock:
            try:
                if not self._is_ready:
                    self._receive()
                    self._is_ready = True
                socket.send_fds(self._socket, [json.dumps(message).encode()], list(pipes))
                return self._receive()
            except (OSError, ValueError) as error:
                said = self._last_line() or str(error)
                raise WorkerError(f"the process that forks children is gone: {said}") from None

    def _last_line(self) -> str:
        """What it printed last: of an exception that ended it, the message."""
        with suppress(OSError, ValueError):
            self._printed.seek(0)
            lines = self._printed.read().decode(errors="replace").split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ""

    def _receive(self) -> Message:
        data = bytearray()
        while not data.endswith(b"\n"):
            part = self._socket.recv(1 << 12)
            if not part:
                raise OSError(f"exit status {self._process.wait()}")
            data += part
        found: Message = json.loads(data)
        return found


class _Child:
    """One child process."""

    def __init__(self, server: ForkServer, plan: Plan) -> None:
        self._server = server
        request_read, self._requests = os.pipe()
        answer_read, answer_write = os.pipe()
        output_read, output_write = os.pipe()
        try:
            self.number = server.fork(plan, (request_read, answer_write, output_write))
        finally:
            for pipe in (request_read, answer_write, output_write):
                os.close(pipe)
        self._answers = Lines(answer_read)
        self._output_pipe = os.fdopen(output_read, "rb", buffering=0)
        self.output = Output(self._output_pipe)
        self.doing = ""
        """What it said that it is doing, beside what it was asked to."""
        self.inputs_key = ""
        """Of the case that it said it began."""

    def ask(self, request: Message, seconds: float, limits: Limits) -> Message:
        """The answer. Raises `LostError`; the child has ended then."""
        self.doing = self.inputs_key = ""
        try:
            send(self._requests, request)
        except OSError:
            raise self._gone() from None
        until, printed = time.monotonic() + seconds, self.output.total
        while True:
            ready, _, _ = select.select([self._answers.pipe], [], [], _POLL)
            if ready:
                try:
                    messages = self._answers.read()
                except ValueError:
                    raise self._end("crash", "it wrote into the pipe of its answers") from None
                if messages is None:
                    raise self._gone()
                for message in messages:
                    if NOW in message:
                        self.doing = message[NOW]
                    elif INPUTS in message:
                        self.inputs_key = message[INPUTS]
                    else:
                        return message
            elif time.monotonic() > until:
                raise self._end("hang", f"no end after {seconds:g} s")
            if _resident(self.number) > limits.memory:
                # How much more is chance: results are to be the same whenever they are made.
                raise self._end("memory", f"more than {limits.memory >> 20:,} MiB of memory")
            if self.output.total - printed > limits.printed:
                raise self._end("output", f"it printed more than {limits.printed >> 20:,} MiB")
            if not ready:
                self._look()

    def _look(self) -> None:
        """Raises `LostError` if it has ended though something holds its pipes open."""
        ended = self._server.poll(self.number)
        if ended is not None:
            self._release()
            raise _lost(ended)

    def _gone(self) -> LostError:
        """How it ended, once it has closed its pipes."""
        until = time.monotonic() + _DRAIN
        while (ended := self._server.poll(self.number)) is None:
            if time.monotonic() > until:
                return self._end("crash", "it closed its pipes and went on")
            time.sleep(_POLL / 10)
        self._release()
        return _lost(ended)

    def _end(self, kind: str, reason: str) -> LostError:
        self.kill()
        return LostError(kind, reason)

    def kill(self) -> None:
        """End it, and what it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.number, signal.SIGKILL)
        until = time.monotonic() + _KILL
        with suppress(WorkerError):
            # What waits for a device may take its time, or stay.
            while self._server.poll(self.number) is None and time.monotonic() < until:
                time.sleep(_POLL / 10)
        self._release()

    def _release(self) -> None:
        # Whatever it started goes with it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.number, signal.SIGKILL)
        for pipe in (self._requests, self._answers.pipe):
            with suppress(OSError):
                os.close(pipe)
        if self.output.end():
            self._output_pipe.close()


class ChildWorker:
    """A `Worker` whose operator lives in a child process."""

    def __init__(self, server: ForkServer, plan: Plan, limits: Limits | None = None) -> None:
        self._server = server
        self._limits = limits or Limits()
        self._work = tempfile.mkdtemp(prefix="ptxlint-operator-")
        where = plan.directory or os.getcwd()
        self._plan = plan._replace(work=self._work, directory=where)
        self._child: _Child | None = None
        self._described: Described | None = None
        self._number = 0

    def names(self) -> tuple[str, ...]:
        """The operators of the file. Raises `WorkerError`."""
        return tuple(self._ask({"do": "names"}, self._limits.loading))

    def describe(self) -> Described:
        """The operator. Raises `WorkerError`."""
        if self._described is None:
            said = self._ask({"do": "describe"}, self._limits.loading)
            self._described = Described.from_json(said)
        return self._described

    def allowed(self, candidates: Sequence[Mapping[str, int]]) -> tuple[bool, ...]:
        """For each set of sizes, whether the operator takes them together. Raises `WorkerError`."""
        dims = [dict(one) for one in candidates]
        return tuple(self._ask({"do": "allowed", "dims": dims}, self._limits.seconds))

    def nearest(self, wanted: Mapping[str, int]) -> dict[str, int] | None:
        """These sizes if the operator takes them together, else such next to them as it does; None
        if none were found. Raises `WorkerError`."""
        found: dict[str, int] | None = self._ask(
            {"do": "nearest", "dims": dict(wanted)}, self._limits.seconds
        )
        return found

    def run(self, case: Case) -> Outcome:
        """What a case comes to, whatever the kernel does."""
        started = time.perf_counter()
        try:
            # A spec that hangs or dies while it is loaded is none of this case's doing.
            self.describe()
            child = self._ready()
            answer = child.ask(
                {"do": "run", "case": case.to_json()}, self._limits.seconds, self._limits
            )
        except WorkerError as error:
            return Outcome(case, "undecided", "spec", str(error))
        except LostError as lost:
            gone, self._child = self._child, None
            outcome = Outcome(
                case, "fail", lost.kind, lost.reason,
                seconds=time.perf_counter() - started,
                inputs_key="" if gone is None else gone.inputs_key,
            )  # fmt: skip
            if gone is not None and gone.doing == REFERENCE:
                reason = f"the reference: {lost.reason}"
                outcome = outcome._replace(
                    status="undecided", kind="reference raises", reason=reason
                )
            return outcome
        if LOST in answer:
            child.kill()
            self._child = None
            return Outcome(case, "fail", answer[LOST], answer["error"], inputs_key=child.inputs_key)
        if "error" in answer:
            return Outcome(case, "undecided", "spec", answer["error"])
        return Outcome.from_json(answer["ok"])

    def check(self) -> tuple[KernelKnowledge, ...]:
        """What the static half says of all kernels launched so far. Raises `WorkerError`."""
        if self._child is None:
            raise WorkerError("the process that launched the kernels is gone")
        self._number += 1
        said = self._ask({"do": "check", "number": self._number}, self._limits.seconds)
        return tuple(map(KernelKnowledge.from_json, said))

    def close(self) -> None:
        """Let the process go."""
        if self._child is not None:
            self._child.kill()
            self._child = None
        shutil.rmtree(self._work, ignore_errors=True)

    @property
    def printed(self) -> str:
        """What the child that is there has printed: the beginning and the end of much."""
        return "" if self._child is None else self._child.output.kept().decode(errors="replace")

    def _ready(self) -> _Child:
        """The child, a fresh one if there is none. Raises `WorkerError`, `LostError`."""
        if self._child is None:
            Path(self._work).mkdir(exist_ok=True)
            self._child = _Child(self._server, self._plan)
            # Loading is not to count as the time of a case.
            answer = self._child.ask({"do": "names"}, self._limits.loading, self._limits)
            if "error" in answer:
                raise WorkerError(answer["error"])
        return self._child

    def _ask(self, request: Message, seconds: float) -> Any:
        try:
            answer = self._ready().ask(request, seconds, self._limits)
        except LostError as lost:
            self._child = None
            what = f"{self._plan.path}:{self._plan.name}" if self._plan.name else self._plan.path
            told = "loading it: " if request["do"] in _LOADING else ""
            raise WorkerError(f"{what}: {told}{lost.reason}") from None
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["ok"]


def _lost(ended: int) -> LostError:
    """How a process ended by itself."""
    if ended < 0:
        name = signal.Signals(-ended).name
        return LostError("crash", f"the process was ended by {name}")
    return LostError("exit", f"the process ended itself with exit status {ended}")


def _resident(number: int) -> int:
    """Bytes of memory that a process holds; 0 where /proc does not tell."""
    try:
        with open(f"/proc/{number}/statm", "rb") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


__all__ = ["ChildWorker", "ForkServer", "Limits", "LostError"]
