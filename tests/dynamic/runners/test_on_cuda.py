"""Operators on a GPU: what is seen there, what is survived, and what is the same elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ptxlint.dynamic.capture.session import _own_architecture
from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.runners.outcome import Outcome
from ptxlint.dynamic.runners.requests import Plan
from ptxlint.dynamic.runners.supervisor import ChildWorker, ForkServer, Limits

SPEC = Path(__file__).parents[1] / "specs" / "on_triton.py"
CHECKS = ("reference", "canaries", "poison", "surroundings", "repeat", "warps", "rerun")
Work = Callable[..., ChildWorker]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    if _own_architecture() is None:
        pytest.skip("no GPU: nvidia-smi names none")
    server = ForkServer("cuda")
    yield server
    server.close()


@pytest.fixture
def work(server: ForkServer) -> Iterator[Work]:
    workers: list[ChildWorker] = []

    def make(name: str, seconds: float = 120) -> ChildWorker:
        plan = Plan(str(SPEC), name, runner="cuda")
        workers.append(ChildWorker(server, plan, Limits(seconds=seconds)))
        return workers[-1]

    yield make
    for worker in workers:
        worker.close()


def case(n: int, *checks: str, dtype: str = "float32") -> Case:
    return Case("", dtype, {"n": n}, checks=checks or CHECKS)


def said(outcome: Outcome) -> tuple[str, str]:
    return outcome.status, outcome.kind


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_right_kernel_passes_all_checks(work: Work, dtype: str) -> None:
    worker = work("add")
    outcome = worker.run(case(193, dtype=dtype))
    assert (*said(outcome), outcome.reason) == ("pass", "", "")
    assert outcome.launches == 1 + 1 + 2 + 3 + 1
    assert outcome.compared[0].wrong == 0
    known = worker.check()
    assert {k.name for k in known} == {"add_kernel"}
    assert known[0].grids == ((4, 1, 1),)
    assert {o["family"] for o in known[0].obligations if o["status"] != "proved"} == {"semantics"}


@pytest.mark.gpu
@pytest.mark.slow
def test_what_is_written_behind_a_tensor_is_seen(work: Work) -> None:
    outcome = work("unmasked").run(case(65, "canaries"))
    assert said(outcome) == ("fail", "canaries")
    assert outcome.reason == (
        "252 bytes behind the tensor of shape (65,) that the operator allocates were written, "
        "the first 0 bytes behind its end"
    )


@pytest.mark.gpu
@pytest.mark.slow
def test_what_is_never_written_is_seen(work: Work) -> None:
    outcome = work("half").run(case(65, "poison"))
    assert said(outcome) == ("fail", "poison")
    assert outcome.reason.startswith("33 of 65 elements of output 0 are never written, the first")


@pytest.mark.gpu
@pytest.mark.slow
def test_after_an_illegal_address_the_next_case_runs(work: Work) -> None:
    worker = work("far")
    assert said(worker.run(case(12))) == ("pass", "")
    outcome = worker.run(case(13))
    assert said(outcome) == ("fail", "device")
    assert "illegal memory access" in outcome.reason
    assert said(worker.run(case(14))) == ("pass", "")


@pytest.mark.gpu
@pytest.mark.slow
def test_after_a_kernel_that_does_not_end_others_run(work: Work) -> None:
    outcome = work("waiting", seconds=15).run(case(65, "reference"))
    assert (*said(outcome), outcome.reason) == ("fail", "hang", "no end after 15 s")
    assert said(work("add").run(case(65))) == ("pass", "")


def test_without_a_gpu_it_is_said_what_to_do(triton_server: ForkServer) -> None:
    worker = ChildWorker(triton_server, Plan(str(SPEC), "add", runner="cuda"))
    outcome = worker.run(case(5))
    assert said(outcome) == ("undecided", "spec")
    assert outcome.reason.endswith(
        "add: there is no GPU that torch can use here: take --runner emulator, which needs none"
    )
    worker.close()
