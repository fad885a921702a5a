"""The gate from pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.dynamic.campaign import campaign
from ptxlint.dynamic.runners.supervisor import ForkServer

pytest_plugins = ("pytester",)
SPEC = """
from ptxlint.dynamic.operators import Dim, Operator, Tensor

def spec(factor):
    return Operator(
        kernel=lambda x: x * factor, reference=lambda x: x * 2, dims={"n": Dim(1, 64)},
        inputs={"x": Tensor("n")}, runs_on="numpy",
    )

right = spec(2)
"""
TESTS = """
def test_own(ptxlint_gate):
    assert ptxlint_gate(right).name == "right"

def test_of_a_file(ptxlint_gate):
    ptxlint_gate("specs/two.py:wrong")

def test_of_another(ptxlint_gate):
    ptxlint_gate(spec(2))
"""


def test_specs_are_collected_and_the_fixture_judges(
    pytester: pytest.Pytester, triton_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "ForkServer", lambda runner: triton_server)
    monkeypatch.setattr(triton_server, "close", lambda: None)
    (pytester.path / "specs").mkdir()
    Path(pytester.path, "specs", "two.py").write_text(SPEC + "wrong = spec(3)\n")
    pytester.makepyfile(SPEC + TESTS)
    pytester.makeini("[pytest]\nptxlint_specs = specs/*.py\n")
    # The plugin is there by its entry point, as for everybody who installs ptxlint.
    result = pytester.runpytest_inprocess("--ptxlint-runner", "emulator", "-v")
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines_random(
        [
            "*two.py::right PASSED*", "*two.py::wrong FAILED*", "*::test_own PASSED*",
            "*with n=1, float32, *", "*is a variable of the test's module*",
        ]
    )  # fmt: skip
