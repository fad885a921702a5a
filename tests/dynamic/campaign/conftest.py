"""A worker whose operator is a few lines of Python: nothing is compiled, all runs are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.operators import Dim
from ptxlint.dynamic.operators.nearest import nearest
from ptxlint.dynamic.runners import Compared, Outcome
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge
from ptxlint.dynamic.runners.worker import WorkerError

SOFTMAX = Described(
    "softmax",
    {"rows": Dim(1, 4096), "n": Dim(1, 8192)},
    ("float32", "float16"),
    {"x": ("rows", "n")},
    path="specs/softmax.py",
)


def obligation(family: str, status: str = "open", line: int = 10, **more: Any) -> dict[str, Any]:
    source = {"path": "softmax.py", "line": line, "column": 5}
    return {
        "family": family, "kernel": "softmax_kernel", "status": status, "rule": "", "reason": "",
        "source": source, "suggest": {}, **more,
    }  # fmt: skip


def finding(family: str, rule: str, line: int = 10, severity: str = "error") -> dict[str, Any]:
    return {
        "rule": rule, "family": family, "severity": severity, "message": f"{rule} fires",
        "source": {"path": "softmax.py", "line": line, "column": 9}, "breaks_when": "n = 3",
        "witness": None, "kernel": "softmax_kernel",
    }  # fmt: skip


class Fake:
    """`fails` says of a case what goes wrong, empty for nothing; the kernel has one tile a row."""

    def __init__(
        self,
        fails: Callable[[Case], str] = lambda case: "",
        *,
        described: Described = SOFTMAX,
        findings: Sequence[Mapping[str, Any]] = (),
        obligations: Sequence[Mapping[str, Any]] = (),
        constants: Mapping[str, str] | None = None,
        where: Callable[[Mapping[str, int]], bool] = lambda dims: True,
        limit: int = 10_000,
    ) -> None:
        self.ran: list[Case] = []
        self.checked = 0
        self.lost = False
        self._limit = limit
        self._fails = fails
        self._described = described
        self._said = (tuple(findings), tuple(obligations))
        self._constants = constants
        self._where = where

    def describe(self) -> Described:
        return self._described

    def allowed(self, candidates: Sequence[Mapping[str, int]]) -> tuple[bool, ...]:
        return tuple(self._where(dims) for dims in candidates)

    def nearest(self, wanted: Mapping[str, int]) -> dict[str, int] | None:
        return nearest(self._described.dims, wanted, self._where)

    def run(self, case: Case) -> Outcome:
        if len(self.ran) == self._limit:
            raise KeyboardInterrupt
        self.ran.append(case)
        kind = self._fails(case)
        status = "undecided" if kind in ("reference raises", "unsupported") else "fail"
        if not kind:
            return Outcome(case, "pass", launches=1, kernels=("softmax_kernel",))
        compared = (Compared("0", 21, 1, 0.31, 2.0, 70.0),) if kind == "reference" else ()
        return Outcome(
            case, status, kind, f"{kind} it is", compared, launches=1, kernels=("softmax_kernel",)
        )

    def check(self) -> tuple[KernelKnowledge, ...]:
        self.checked += 1
        if self.lost:
            raise WorkerError("the process is gone")
        return tuple(self._known(case) for case in self.ran)

    def _known(self, case: Case) -> KernelKnowledge:
        n = case.dims.get("n", 1)
        own = {"BLOCK": str(1 << max(n - 1, 0).bit_length())}
        return KernelKnowledge(
            "softmax_kernel", f"{case.dtype}{n}", "sm_90", self._constants or own, 4, 3,
            "softmax.py", 8, ((case.dims.get("rows", 1), 1, 1),), tuple(sorted({n})), False,
            self._said[0], self._said[1],
        )  # fmt: skip

    def close(self) -> None: ...


@pytest.fixture
def fake() -> type[Fake]:
    return Fake


@pytest.fixture
def said() -> Callable[..., dict[str, Any]]:
    return obligation


@pytest.fixture
def finds() -> Callable[..., dict[str, Any]]:
    return finding
