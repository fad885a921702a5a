"""The way to a verdict: what runs, how often, and what is said."""

from __future__ import annotations

from typing import Any

import pytest

from ptxlint.dynamic.campaign.gate import Gate, Options
from ptxlint.dynamic.campaign.verdict import Place, exit_status
from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.operators import Dim
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge


def free(fake: Any) -> Described:
    """The operator with rows that may lie apart."""
    described: Described = fake().describe()
    return described._replace(layouts=("padded-rows",))


def padded(case: Case) -> str:
    """Wrong where a row is no power of two."""
    n = case.dims["n"]
    return "reference" if n & (n - 1) else ""


def test_what_is_proved_costs_a_launch_for_each_dtype_and_one_more(fake: Any, said: Any) -> None:
    worker = fake(obligations=[said("tail-mask", "proved"), said("semantics")])
    verdict = Gate(worker, Options()).decide()
    assert (verdict.verdict, verdict.cases, verdict.launches) == ("pass", 3, 3)
    assert [(case.dtype, case.values) for case in worker.ran] == [
        ("float32", "graded"), ("float32", "varied"), ("float16", "graded"),
    ]  # fmt: skip
    assert verdict.proved == 1
    assert verdict.saved == 6 * 8 * 2 - 3
    assert (verdict.name, verdict.path, verdict.kernels) == (
        "softmax", "specs/softmax.py", ("softmax_kernel",),
    )  # fmt: skip
    assert exit_status([verdict], strict=True) == 0


def test_the_second_run_for_larger_sizes_is_the_one_that_is_different(fake: Any) -> None:
    """Tensors lie as freely as the spec says, once for all dtypes."""
    worker = fake(described=free(fake), constants={"BLOCK": "1024"})
    assert Gate(worker, Options()).decide().verdict == "pass"
    ran = [(case.dtype, case.values, case.layout, case.dims["n"]) for case in worker.ran]
    assert ran == [
        ("float32", "graded", "contiguous", 131),
        ("float32", "varied", "free", 2055),
        ("float16", "graded", "contiguous", 2055),
    ]


def test_a_stride_that_is_left_out_fails(fake: Any) -> None:
    def leaves_a_stride_out(case: Case) -> str:
        return "" if case.layout == "contiguous" else "reference"

    described = fake().describe()._replace(dtypes=("float32",), layouts=("transposed",))
    verdict = Gate(fake(leaves_a_stride_out, described=described), Options()).decide()
    (failure,) = verdict.failures
    assert (verdict.verdict, verdict.cases) == ("fail", 2)
    assert failure.shown.case.layout == "free"


def test_code_for_whole_tiles_is_run_where_the_host_says_so(fake: Any) -> None:
    def fails(case: Case) -> str:
        return "" if case.dims["n"] % 256 else "reference"

    worker = fake(fails, constants={"BLOCK": "256", "EVEN": "False"})
    (failure,) = Gate(worker, Options()).decide().failures
    assert failure.shown.case.dims == {"rows": 1, "n": 256}
    assert Gate(fake(fails, constants={"BLOCK": "256"}), Options()).decide().verdict == "pass"


def test_what_is_said_of_code_for_whole_tiles_alone_does_not_count(fake: Any, finds: Any) -> None:
    class Specialised(fake):  # type: ignore[misc]
        def check(self) -> tuple[KernelKnowledge, ...]:
            said = [finds("tail-mask", "MSK201")]
            return tuple(
                known._replace(findings=[] if n % 256 else said)
                for known in super().check() for n in known.scalars
            )  # fmt: skip

    worker = Specialised(constants={"BLOCK": "256", "EVEN": "False"})
    verdict = Gate(worker, Options()).decide()
    assert (verdict.verdict, len(worker.ran)) == ("pass", 4)


def test_what_another_layout_leaves_open_is_stressed_once(fake: Any, said: Any) -> None:
    class Strided(fake):  # type: ignore[misc]
        def check(self) -> tuple[KernelKnowledge, ...]:
            found = [said("stride")] if self.ran[-1].layout == "free" else []
            return tuple(k._replace(obligations=found) for k in super().check())

    worker = Strided(described=free(fake))
    verdict = Gate(worker, Options()).decide()
    assert [(one.family, one.became) for one in verdict.obligations] == [("stride", "pass")]
    assert {case.family for case in worker.ran} == {"semantics", "strides", "aliasing"}


def test_a_failure_is_made_smaller_and_points_at_the_kernel(fake: Any) -> None:
    worker = fake(padded)
    verdict = Gate(worker, Options()).decide()
    (failure,) = verdict.failures
    assert verdict.verdict == "fail"
    assert failure.shown.case.dims == {"rows": 1, "n": 3}
    assert failure.place == Place("softmax.py", 8)
    assert (failure.family, failure.kernel) == ("semantics", "softmax_kernel")
    assert failure.max_abs_error == 0.31
    assert verdict.cases == 1, "the second dtype is not run when the first has failed"
    assert verdict.reducing == len(worker.ran) - 1
    assert exit_status([verdict]) == 1


def test_a_refuted_property_is_named_with_its_line_and_confirmed(fake: Any, finds: Any) -> None:
    worker = fake(padded, findings=[finds("tail-mask", "MSK201")])
    (failure,) = Gate(worker, Options()).decide().failures
    assert (failure.rule, failure.family, failure.confirmed) == ("MSK201", "tail-mask", True)
    assert failure.place == Place("softmax.py", 10, 9)
    assert failure.breaks_when == "n = 3"
    assert failure.shown.case.dims == {"rows": 1, "n": 3}


def test_a_refuted_property_fails_even_if_no_run_shows_it(fake: Any, finds: Any) -> None:
    worker = fake(findings=[finds("tail-mask", "MSK201")])
    verdict = Gate(worker, Options(cases=3)).decide()
    (failure,) = verdict.failures
    assert (verdict.verdict, failure.confirmed, failure.seen) == ("fail", False, None)
    assert len(worker.ran) <= 1 + 3


def test_a_warning_alone_does_not_fail(fake: Any, finds: Any) -> None:
    worker = fake(findings=[finds("precision", "NUM403", severity="warning")])
    assert Gate(worker, Options()).decide().verdict == "pass"


def test_only_open_obligations_are_stressed(fake: Any, said: Any) -> None:
    worker = fake(obligations=[said("rescale"), said("accumulation", "proved"), said("resources")])
    verdict = Gate(worker, Options(cases=2)).decide()
    assert verdict.verdict == "pass"
    assert {case.family for case in worker.ran} == {"semantics", "rescale"}
    for tested in verdict.obligations:
        assert (tested.family, tested.became, tested.by) == ("rescale", "pass", ("rescale",))
        assert tested.place == Place("softmax.py", 10, 5)
    assert len(verdict.obligations) == 2, "one for each dtype"


def test_an_open_obligation_that_fails_is_the_line_that_is_named(fake: Any, said: Any) -> None:
    def fails(case: Case) -> str:
        return "reference" if case.values == "masked-rows" else ""

    worker = fake(fails, obligations=[said("nonfinite", line=31, rule="NUM405")])
    verdict = Gate(worker, Options()).decide()
    (failure,) = verdict.failures
    assert (failure.family, failure.rule) == ("masked-rows", "NUM405")
    assert failure.place == Place("softmax.py", 31, 5)
    assert verdict.obligations[-1].became == "fail"


def test_what_a_passed_run_has_shown_is_not_run_again(fake: Any, said: Any) -> None:
    # The first sizes and checks of out-of-bounds are those of the minimum run.
    worker = fake(obligations=[said("bounds")])
    verdict = Gate(worker, Options(cases=1)).decide()
    assert (verdict.verdict, len(worker.ran)) == ("pass", 5), "and what it shows costs no run"
    assert len({case.inputs_key for case in worker.ran}) == 5
    assert [(tested.became, tested.cases) for tested in verdict.obligations] == [("pass", 2)] * 2


def test_a_fill_of_zero_under_a_maximum_is_shown(fake: Any, finds: Any) -> None:
    """Rows of graded numbers have a positive one somewhere: the fill never is the maximum."""

    def fails(case: Case) -> str:
        return "reference" if case.values == "negative" and case.dims["n"] % 256 else ""

    (failure,) = (
        Gate(fake(fails, findings=[finds("tail-mask", "MSK201")]), Options()).decide().failures
    )
    assert failure.confirmed
    assert failure.seen.case.values == "negative"


def test_what_no_family_decides_is_undecided(fake: Any, said: Any) -> None:
    numpy = fake(lambda case: "unsupported" if case.family == "rescale" else "",
                 obligations=[said("rescale", rule="NUM402")])  # fmt: skip
    verdict = Gate(numpy, Options()).decide()
    assert verdict.verdict == "undecided"
    assert verdict.reason == "NUM402: unsupported it is"
    assert (exit_status([verdict]), exit_status([verdict], strict=True)) == (0, 1)


def test_fixed_tiles_get_a_second_minimum_run(fake: Any) -> None:
    worker = fake(constants={"BLOCK": "1024"})
    verdict = Gate(worker, Options()).decide()
    assert [(case.dtype, case.dims["n"]) for case in worker.ran] == [
        ("float32", 131), ("float32", 2055), ("float16", 2055),
    ]  # fmt: skip
    assert verdict.launches == 3


def test_what_the_spec_does_not_allow_is_said(fake: Any) -> None:
    described = Described("r", {"n": Dim(1, 4)}, ("float32",), {"x": ("n",)})
    worker = fake(described=described, constants={"BLOCK": "1024"})
    verdict = Gate(worker, Options()).decide()
    assert verdict.verdict == "pass"
    assert verdict.notes == (
        "no size was more than one tile of 1024", "softmax_kernel ran with one program",
    )  # fmt: skip


def test_sizes_that_do_not_go_together_are_a_problem_of_the_spec(fake: Any) -> None:
    verdict = Gate(fake(where=lambda dims: False), Options()).decide()
    assert (verdict.verdict, exit_status([verdict])) == ("undecided", 2)
    assert "where" in verdict.problem


def test_a_reference_that_raises_is_a_problem_of_the_spec(fake: Any) -> None:
    verdict = Gate(fake(lambda case: "reference raises"), Options()).decide()
    assert verdict.problem == "float32: reference raises it is"
    assert exit_status([verdict]) == 2


@pytest.mark.parametrize("kind", ["hang", "crash", "exit", "memory", "raises"])
def test_what_ends_a_process_is_a_failure_of_its_kind(fake: Any, kind: str) -> None:
    worker = fake(lambda case: kind)
    worker.lost = True
    verdict = Gate(worker, Options()).decide()
    (failure,) = verdict.failures
    assert (failure.shown.kind, failure.reason) == (kind, f"{kind} it is")
