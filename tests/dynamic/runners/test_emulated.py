"""Launches made on the emulator: host code sees what kernels wrote."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ptxlint.dynamic.capture.recording import Recording
from ptxlint.dynamic.capture.writing import write_bundle
from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.cases.checks import CHECKS
from ptxlint.dynamic.operators import Dim, Domain, Operator, Tensor
from ptxlint.dynamic.runners.emulated import Emulation, EmulatorRunner, emulated
from ptxlint.dynamic.runners.execution import run_case
from ptxlint.dynamic.runners.manner import HungError, Manner, NotRunError

ARCH = "sm_80"
SCRIPT = Path(__file__).parents[1] / "scripts" / "on_emulator.py"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Emulation, Recording, Path]]:
    work = tmp_path_factory.mktemp("bundle")
    with emulated(ARCH, work) as (emulation, record):
        yield emulation, record, work


@pytest.fixture(scope="module")
def kernels(stage: tuple[Emulation, Recording, Path]) -> Any:
    return SimpleNamespace(**runpy.run_path(str(SCRIPT)))


@pytest.fixture
def emulation(stage: tuple[Emulation, Recording, Path]) -> Emulation:
    stage[0].begin(Manner())
    return stage[0]


def test_one_kernel_after_the_other_and_host_code_between(
    emulation: Emulation, kernels: Any
) -> None:
    import torch

    x = torch.arange(100.0, device="cuda")
    y = kernels.add(x, x)[1::2]
    z = kernels.add(y.contiguous(), torch.ones(50, device="cuda"))
    assert z.device.type == "cuda"
    assert z.max().item() == 199
    assert z.tolist() == [2 * i + 1.0 for i in range(1, 100, 2)]
    assert emulation.launched == ["add_kernel", "add_kernel"]
    assert emulation.findings == []


def test_operations_of_torch_are_carried_out_however_large(emulation: Emulation) -> None:
    import torch

    x = torch.ones(9 << 20, device="cuda")
    assert (x + 1).sum().item() == 2 * (9 << 20)


def test_an_autotuner_runs_a_kernel_as_often_as_on_a_gpu(
    emulation: Emulation, kernels: Any
) -> None:
    import torch

    x = torch.zeros(100, device="cuda")
    for expected in (2, 3):
        kernels.increment_kernel[lambda meta: (-(-100 // meta["BLOCK"]),)](x, 100)
        assert set(x.tolist()) == {expected}
    assert emulation.launched == ["increment_kernel"] * 3


def test_new_memory_holds_what_it_is_poisoned_with_until_it_is_written(
    stage: tuple[Emulation, Recording, Path], kernels: Any
) -> None:
    import torch

    emulation, record, _ = stage
    emulation.begin(Manner(poison=0x21))
    x = torch.empty(8, dtype=torch.int32, device="cuda")
    assert x.tolist() == [0x21212121] * 8
    assert not record.written(x).any()
    x[2:4] = 7
    assert record.written(x).tolist() == [False] * 8 + [True] * 8 + [False] * 16
    kernels.program_kernel[(3,)](x, torch.zeros(1, dtype=torch.int32, device="cuda"))
    assert x[:3].tolist() == [0, 1, 2]
    assert record.written(x).tolist() == [True] * 16 + [False] * 16
    assert record.written(torch.zeros(3, device="cuda")) is None


def test_programs_come_in_another_order(emulation: Emulation, kernels: Any) -> None:
    import torch

    orders = []
    for order in ("reversed", "1", "1", "2"):
        emulation.begin(Manner(order=order))
        x = torch.empty(300, dtype=torch.int32, device="cuda")
        kernels.program_kernel[(300,)](x, torch.zeros(1, dtype=torch.int32, device="cuda"))
        orders.append(x.tolist())
    assert orders[0] == list(range(300))[::-1]
    assert sorted(orders[1]) == list(range(300))
    assert orders[1] == orders[2] != orders[3]


def test_programs_in_an_order_come_one_after_the_other(emulation: Emulation, kernels: Any) -> None:
    import torch

    def run(order: str) -> list[int]:
        emulation.begin(Manner(order=order))
        x = torch.ones(128, dtype=torch.int32, device="cuda")
        kernels.neighbours_kernel[(4,)](x, 128, BLOCK=32)
        return [int(number) for number in x[::32].tolist()]

    assert run("") == run("reversed") == [1, 2, 2, 2]
    # Where one comes behind the program before it, it reads what that one has written.
    assert {3} < set(run("1")) | set(run("2"))


def test_each_launch_made_twice(emulation: Emulation, kernels: Any) -> None:
    import torch

    emulation.begin(Manner(again=True))
    x = torch.empty(2, dtype=torch.int32, device="cuda")
    kernels.program_kernel[(2,)](x, torch.zeros(1, dtype=torch.int32, device="cuda"))
    assert x.tolist() == [2, 3]


def test_what_lies_outside_is_told_with_its_line(emulation: Emulation, kernels: Any) -> None:
    import torch

    kernels.shifted(torch.ones(64, device="cuda"))
    (finding,) = emulation.findings
    assert (finding.rule, finding.kernel) == ("EMU901", "shifted_kernel")
    source = finding.place.source
    assert source is not None
    assert Path(source.path).name == SCRIPT.name
    assert "tl.store(out + i + 1" in SCRIPT.read_text().splitlines()[source.line - 1]


def test_a_kernel_that_waits_for_ever_ends_the_host_code(
    emulation: Emulation, kernels: Any
) -> None:
    import torch

    with pytest.raises(HungError, match="endless_kernel"):
        kernels.endless_kernel[(1,)](torch.zeros(1, dtype=torch.int32, device="cuda"))
    assert emulation.hung


def test_what_is_not_emulated_is_refused_by_name(emulation: Emulation, kernels: Any) -> None:
    import torch

    words = r"^[^/]+: sm_\d+/[^/]+\.ptx:.* is not run by the emulator"
    with pytest.raises(NotRunError, match=words):
        kernels.inline_kernel[(1,)](torch.zeros(1, dtype=torch.int32, device="cuda"))
    assert emulation.not_run.startswith("inline_kernel: ")
    assert "`vadd.s32.s32.s32`" in emulation.not_run


def test_nothing_is_assembled_and_the_bundle_is_checked_all_the_same(
    stage: tuple[Emulation, Recording, Path], kernels: Any, tmp_path: Path
) -> None:
    import torch

    import ptxlint

    x: Any = torch.zeros(100, device="cuda")
    kernels.increment_kernel[lambda meta: (-(-100 // meta["BLOCK"]),)](x, 100)
    _, record, _ = stage
    assert all(kernel.cubin == b"" for kernel in record.kernels)
    write_bundle(ARCH, record.captured, tmp_path)
    assert not list(tmp_path.rglob("*.cubin"))
    report = ptxlint.check(str(tmp_path))
    assert ("HAZ604", "increment_kernel") in {(f.rule, f.kernel) for f in report.findings}
    assert not [f for f in report.findings if f.rule == "INPUT"]


def test_a_case_of_a_kernel_is_run_and_held_to_its_reference(
    stage: tuple[Emulation, Recording, Path], kernels: Any
) -> None:
    emulation, record, _ = stage
    runner = EmulatorRunner(emulation, record)
    inputs = {name: Tensor("n", layouts=("offset",)) for name in ("x", "y")}
    dims, dtypes = {"n": Dim(1, 4096)}, ("float32", "bfloat16")
    plain: Any = {"inputs": inputs, "dims": dims, "dtypes": dtypes, "name": "add"}
    right = Operator(kernel=kernels.add, reference=lambda x, y: x + y, **plain)
    for dtype in dtypes:
        case = Case("add", dtype, {"n": 193}, layout="offset", checks=tuple(CHECKS))
        outcome = run_case(right, runner, case)
        assert (outcome.status, outcome.reason) == ("pass", "")
        # Once, changed surroundings, twice again, two other orders, three configurations, twice.
        assert outcome.launches == 1 + 1 + 2 + 2 + 3 + 1
        assert outcome.compared[0].elements == 193

    shifted = Operator(
        kernel=kernels.shifted,
        reference=lambda x: x,
        inputs={"x": Tensor("n")},
        dims={"n": Dim(1, 64)},
    )
    for check, reason in {
        "reference": "64 of 64 elements of output 0 are wrong; at [0] it is nan",
        "poison": "1 of 64 elements of output 0 are never written, the first at [0]",
        "sanitizer": "EMU901: shifted_kernel: program (0, 0, 0), thread (",
    }.items():
        outcome = run_case(shifted, runner, Case("", "float32", {"n": 64}, checks=(check,)))
        assert (outcome.status, outcome.kind) == ("fail", check)
        assert outcome.reason.startswith(reason)


def test_kernels_of_atomics_and_other_orders(
    stage: tuple[Emulation, Recording, Path], kernels: Any
) -> None:
    import torch

    def draw(taken: Any) -> Any:
        out = torch.empty(300, dtype=torch.int32, device="cuda")
        kernels.program_kernel[(300,)](out, taken)
        return out

    operator = Operator(
        kernel=draw,
        reference=lambda taken: range(300),
        inputs={"taken": Tensor(1, dtype="int32", domain=Domain(0, 0))},
    )
    runner = EmulatorRunner(*stage[:2])
    for check in ("programs", "rerun", "repeat", "canaries"):
        outcome = run_case(operator, runner, Case("", "float32", {}, checks=(check,)))
        assert outcome.kind == ("" if check == "repeat" else check)


@pytest.mark.slow
def test_what_torch_compiles_is_computed(emulation: Emulation, kernels: Any) -> None:
    import torch

    def double(x: Any) -> Any:
        return torch.relu(x) * 2

    x = torch.linspace(-1, 1, 70, device="cuda")
    y = torch.compile(double)(x)
    z = kernels.add(y, y)
    assert len(emulation.launched) == 2
    assert torch.equal(z, torch.relu(x) * 4)
    assert emulation.findings == []
