"""Operators in child processes: whatever they do is an outcome, and the next case runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.oracle.calibration import calibrated, written
from ptxlint.dynamic.oracle.compared import Compared
from ptxlint.dynamic.runners.outcome import Outcome
from ptxlint.dynamic.runners.requests import Plan
from ptxlint.dynamic.runners.supervisor import ChildWorker, ForkServer, Limits
from ptxlint.dynamic.runners.worker import WorkerError

SPECS = Path(__file__).parents[1] / "specs"
LIMITS = Limits(seconds=60, memory=300 << 20, printed=8 << 20)
CHECKS = ("reference", "canaries", "poison", "sanitizer")
Work = Callable[..., ChildWorker]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer("numpy")
    yield server
    server.close()
    assert server._process.returncode == 0


@pytest.fixture
def work(server: ForkServer) -> Iterator[Work]:
    workers: list[ChildWorker] = []

    def make(name: str, **limits: Any) -> ChildWorker:
        plan = Plan(str(SPECS / "misbehaving.py"), name, runner="numpy")
        workers.append(ChildWorker(server, plan, LIMITS._replace(**limits)))
        return workers[-1]

    yield make
    for worker in workers:
        worker.close()


@pytest.fixture
def on_triton(triton_server: ForkServer) -> Iterator[Work]:
    workers: list[ChildWorker] = []

    def make(name: str) -> ChildWorker:
        workers.append(ChildWorker(triton_server, Plan(str(SPECS / "on_triton.py"), name)))
        return workers[-1]

    yield make
    for worker in workers:
        worker.close()


def case(n: int = 5, dtype: str = "float32") -> Case:
    return Case("", dtype, {"n": n}, checks=CHECKS)


def said(outcome: Outcome) -> tuple[str, str, str]:
    return outcome.status, outcome.kind, outcome.reason


def test_an_operator_of_a_file(work: Work) -> None:
    worker = work("good")
    described = worker.describe()
    assert (described.name, described.dtypes, described.runs_on) == ("good", ("float32",), "numpy")
    assert worker.allowed([{"n": 7}, {"n": 8}, {"n": 65}]) == (False, True, False)
    assert said(worker.run(case())) == ("pass", "", "")
    assert worker.check() == ()


def test_what_a_kernel_computes_and_what_is_said_of_it(on_triton: Work) -> None:
    worker = on_triton("add")
    outcome = worker.run(case(193))
    assert said(outcome) == ("pass", "", "")
    assert outcome.kernels == ("add_kernel",)
    assert outcome.launches_key == worker.run(case(193)).launches_key != ""
    (known,) = worker.check()
    assert (known.name, known.constants, known.grids) == (
        "add_kernel",
        {"BLOCK": "64"},
        ((4, 1, 1),),
    )
    assert {o["family"] for o in known.obligations if o["status"] != "proved"} == {"semantics"}
    assert said(worker.run(case(64, "float16"))) == ("pass", "", "")
    first, second = worker.check()
    assert first == known
    assert second.hash != known.hash
    assert worker.run(case(65)).launches_key != outcome.launches_key
    assert [len(k.grids) for k in worker.check()] == [2, 1]


def test_a_kernel_that_writes_into_its_neighbour(on_triton: Work) -> None:
    outcome = on_triton("unmasked").run(case(65))
    assert (outcome.status, outcome.kind) == ("fail", "sanitizer")
    assert "EMU901: unmasked_kernel" in outcome.reason
    assert outcome.findings[0]["rule"] == "EMU901"
    assert "/" not in outcome.findings[0]["path"], "results are the same whenever they are made"


def test_a_kernel_that_waits_for_ever(on_triton: Work) -> None:
    outcome = on_triton("waiting").run(case(65))
    assert (outcome.status, outcome.kind) == ("fail", "hang")
    assert "waiting_kernel" in outcome.reason


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("dies", "crash", "the process was ended by SIGSEGV"),
        ("reads_null", "crash", "the process was ended by SIGSEGV"),
        ("leaves", "exit", "the process ended itself with exit status 3"),
        ("leaves_another", "exit", "the process ended itself with exit status 0"),
        ("leaves_politely", "exit", "the operator ended the process: exit('enough') ("),
        ("eats", "memory", "more than 300 MiB of memory"),
        ("talks", "output", "it printed more than 8 MiB"),
        ("garbles", "crash", "it wrote into the pipe of its answers"),
        ("shuts", "exit", "the process ended itself with exit status 1"),
        ("raises", "raises", "the operator raises RuntimeError: no ("),
    ],
)
def test_what_an_operator_may_do(work: Work, name: str, kind: str, reason: str) -> None:
    outcome = work(name).run(case())
    assert said(outcome)[:2] == ("fail", kind)
    assert outcome.reason.startswith(reason)
    assert outcome.case == case()


def test_after_a_hang_the_next_case_runs_in_a_fresh_child(work: Work) -> None:
    worker = work("moody", seconds=0.7)
    assert said(worker.run(case(12))) == ("pass", "", "")
    hung = worker.run(case(13))
    assert said(hung) == ("fail", "hang", "no end after 0.7 s")
    assert 0.7 <= hung.seconds < 4
    with pytest.raises(WorkerError, match="gone"):
        worker.check()
    assert said(worker.run(case(14))) == ("pass", "", "")


def test_what_is_printed_is_kept(work: Work) -> None:
    worker = work("mumbles")
    worker.run(case())
    deadline = time.monotonic() + 10
    while "there" not in worker.printed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert worker.printed == "hello\nthere\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("operator = 1 +\n", "{path}:1: invalid syntax"),
        ("\n\nx = {}['a']\n", "{path}:3: KeyError: 'a'"),
        (
            "import os\nos._exit(4)\n",
            "{path}: loading it: the process ended itself with exit status 4",
        ),
        ("import time\nwhile True: time.sleep(1)\n", "{path}: loading it: no end after 1 s"),
        ("x = 1\n", "{path}: no operators: assign an `Operator` to a variable"),
        (None, "{path}: no such file"),
    ],
)
def test_a_spec_that_cannot_be_loaded(
    server: ForkServer, tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "spec.py"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    worker = ChildWorker(server, Plan(str(path), runner="numpy"), Limits(loading=1))
    expected = message.format(path=path)
    with pytest.raises(WorkerError) as caught:
        worker.describe()
    assert str(caught.value).startswith(expected)
    outcome = worker.run(case())
    assert said(outcome)[:2] == ("undecided", "spec")
    assert outcome.reason.startswith(expected)
    worker.close()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("os._exit(3)", "the reference: the process ended itself with exit status 3"),
        ("sys.exit('no')", "the reference ends the process: exit('no')"),
        ("time.sleep(60)", "the reference: no end after 0.5 s"),
    ],
)
def test_what_a_reference_does_is_not_the_operators_doing(
    server: ForkServer, tmp_path: Path, body: str, reason: str
) -> None:
    path = tmp_path / "spec.py"
    path.write_text(
        "import os, sys, time\n"
        "from ptxlint.dynamic.operators import Operator, Tensor\n"
        "def function(x):\n"
        f"    {body}\n"
        "    return x * 2\n"
        "operator = Operator(lambda x: x * 2, function, {'x': Tensor(4)}, runs_on='numpy')\n"
    )
    worker = ChildWorker(server, Plan(str(path), runner="numpy"), Limits(seconds=0.5))
    assert said(worker.run(Case("", "float32", {}))) == ("undecided", "reference raises", reason)
    worker.close()


def test_of_several_operators_one_must_be_named(work: Work) -> None:
    worker = work("")
    assert worker.names()[:2] == ("good", "moody")
    with pytest.raises(WorkerError, match=r"14 operators: good, moody.*; name one"):
        worker.describe()


def test_nothing_is_left_of_a_parent_that_is_killed(tmp_path: Path) -> None:
    """The child hangs, and so does what it started; the parent has no chance to end them."""
    script = tmp_path / "parent.py"
    script.write_text(
        f"""
import sys, threading, time
from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.runners.requests import Plan
from ptxlint.dynamic.runners.supervisor import ChildWorker, ForkServer
plan = Plan({str(SPECS / "misbehaving.py")!r}, "breeds", "numpy")
worker = ChildWorker(ForkServer("numpy"), plan)
worker.describe()
print(worker._child.number, worker._server._process.pid, flush=True)
worker.run(Case("", "float32", {{"n": 12}}))
""",
        encoding="utf-8",
    )
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child, server = (int(word) for word in parent.stdout.readline().split())
    assert soon(lambda: len(_group(child)) == 2 and _is_there(server))
    parent.kill()
    parent.wait()
    assert soon(lambda: not _group(child) and not _is_there(server))


def test_a_server_that_is_killed_is_an_error_of_the_worker() -> None:
    server = ForkServer("numpy")
    worker = ChildWorker(server, Plan(str(SPECS / "misbehaving.py"), "good", "numpy"))
    worker.describe()
    assert worker._child is not None
    child = worker._child.number
    os.kill(server._process.pid, signal.SIGKILL)
    assert soon(lambda: not _is_there(child))
    assert worker.run(case()).reason.startswith("the process that forks children is gone")
    with pytest.raises(WorkerError, match="the process that forks children is gone"):
        worker.check()
    server.close()


def test_a_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false") or "/bin/false")
    server = ForkServer("numpy")
    worker = ChildWorker(server, Plan(str(SPECS / "misbehaving.py"), "good", "numpy"))
    with pytest.raises(WorkerError, match="children is gone: exit status 1"):
        worker.describe()
    server.close()


def test_a_file_of_tolerances_holds_for_the_operators_that_it_names(
    server: ForkServer, tmp_path: Path
) -> None:
    spec, file = tmp_path / "double.py", tmp_path / "tolerances.json"
    spec.write_text(
        "import numpy as np\n"
        "from ptxlint.dynamic.operators import Operator, Tensor\n"
        "operator = Operator(lambda x: x * np.float32(2.000001), lambda x: x * 2,\n"
        "                    {'x': Tensor(40)}, runs_on='numpy')\n"
    )
    (told,) = calibrated(
        (Case("double", "float32", {}, seed=seed), (Compared("y", 1, 0, 0, 0, 0, share=0.1),))
        for seed in range(8)
    )
    outcomes = []
    for each in ("", told, told._replace(operator="another")):
        file.write_text(written([each]) if each else "{}")
        plan = Plan(str(spec), runner="numpy", tolerances=str(file) if each else "")
        worker = ChildWorker(server, plan, LIMITS)
        outcomes.append(worker.run(Case("double", "float32", {})).status)
        worker.close()
    assert outcomes == ["pass", "fail", "pass"]
    file.write_text("{}")
    worker = ChildWorker(server, plan, LIMITS)
    with pytest.raises(WorkerError, match=r"tolerances\.json: version None of a file"):
        worker.describe()
    worker.close()


def soon(holds: Callable[[], bool]) -> bool:
    """True once something holds, False if it does not within 20 s."""
    deadline = time.monotonic() + 20
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _is_there(number: int) -> bool:
    """True for a process that runs; one that nobody has asked how it ended does not."""
    return _state(str(number))[0] not in ("", "Z")


def _group(leader: int) -> list[str]:
    """The processes that run of a group."""
    every = [name for name in os.listdir("/proc") if name.isdecimal()]
    return [n for n in every if _state(n)[2:3] == [str(leader)] and _is_there(int(n))]


def _state(number: str) -> list[str]:
    """State, parent and group of a process."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return [""]
