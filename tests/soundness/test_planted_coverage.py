"""The judge can see: errors planted in what proofs of coverage rest on are disproved by runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import corpus
import pytest

from ptxlint.dynamic.judge import apart, coverage
from ptxlint.dynamic.judge.replay import Criterion
from ptxlint.engine.samples import module_text
from ptxlint.launch.coverage import complete, influence, writes
from ptxlint.launch.coverage.complete import Found
from ptxlint.launch.coverage.mixed_radix import Known
from ptxlint.launch.coverage.parting import Parting
from ptxlint.launches import Argument, Launch, Scalar, Tensor
from ptxlint.rulekit import Sample

Plant = Callable[[pytest.MonkeyPatch], None]
SAMPLE = ("softmax", "rope", "matmul", "gelu", "layer_norm_fwd")


def subjects() -> Iterator[corpus.Subject]:
    """Two outputs by two axes, fixtures with sizes one off, the launches of the rules' samples, and
    some of fixtures."""
    yield flag()
    yield corpus.off("softmax", -1)
    yield from corpus.samples("HAZ601", "BND307", "HAZ603")
    yield corpus.off("gelu", -1)
    yield from (corpus.fixture(name, "sm_80", 2) for name in SAMPLE)


def one_program_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of programs count as if the grid had one more along each axis."""
    own = complete._Work.__init__

    def more(self: Any, *args: Any) -> None:
        own(self, *args)
        self._grid = {axis: extent + 1 for axis, extent in self._grid.items()}

    monkeypatch.setattr(complete._Work, "__init__", more)


def programs_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever programs are asked for, there are."""
    monkeypatch.setattr(
        complete._Work, "_of_programs", lambda self, digits: Found(is_complete=True)
    )


def one_element_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that leaves out the last element counts as one that does not."""
    own = complete._follows
    monkeypatch.setattr(complete, "_follows", lambda poly, fact: own(poly + 1, fact))


def masks_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores count as done in all lanes."""
    monkeypatch.setattr(complete._Work, "_of_lanes_alone", lambda self: [[] for _ in self._stores])


def updates_taken_for_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """An atomic counts as a plain store."""
    own = writes.writes_of

    def all_plain(found: Any) -> Any:
        real = found.outcomes
        found.outcomes = [_as_store(outcome) for outcome in real]
        try:
            return own(found)
        finally:
            found.outcomes = real

    monkeypatch.setattr(writes, "writes_of", all_plain)


def _as_store(outcome: Any) -> Any:
    access = outcome.judged.access
    if access.kind != "atomic":
        return outcome
    judged = outcome.judged._replace(access=access._replace(kind="store"))
    return outcome._replace(judged=judged)


def one_axis_tells_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number is known of a program tells which one it is."""
    monkeypatch.setattr(Known, "tells", lambda self, axis: bool(self.numbers))


def last_element_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left below a radix may reach an element beyond it."""
    own = Parting._is_at_most
    monkeypatch.setattr(
        Parting,
        "_is_at_most",
        lambda self, number, guard, bound: own(self, number, guard, bound + 4),
    )


def axes_mixed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What depends on one axis of the grid is taken to depend on another one."""
    mixed = {"x": influence.Y, "y": influence.X, "z": influence.Z}
    monkeypatch.setattr(influence, "_AXES", mixed)


FLAG = """
            .reg .pred %p<2>;
            .reg .b32 %r<6>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, %ctaid.x;
            mov.u32 %r3, %ctaid.y;
            mul.wide.u32 %rd3, %r1, 4;
            add.s64 %rd4, %rd1, %rd3;
            st.global.b32 [%rd4], %r2;
            st.global.b32 [%rd2], %r3;
            ret;
"""


def flag() -> corpus.Subject:
    """Two outputs, one by x and one by y, each the same in all programs along its axis."""
    arguments: dict[str, Argument] = {
        "in_ptr": Tensor("int32", (128,), (1,), 0, 512),
        "out_ptr": Tensor("int32", (1,), (1,), 1, 4),
        "n_elements": Scalar("", 1),
    }
    grids = ((1, 2, 1), (2, 1, 1))
    launches = [Launch(grid, (128, 1, 1), arguments) for grid in grids]
    return corpus.of_text("flag", module_text(Sample("", FLAG)), launches, None)


PLANTS: list[tuple[Plant, Criterion]] = [
    (one_program_more, coverage.judge),
    (programs_not_counted, coverage.judge),
    (one_element_less, coverage.judge),
    (masks_ignored, coverage.judge),
    (updates_taken_for_stores, coverage.judge),
    (one_axis_tells_all, apart.judge),
    (last_element_forgotten, apart.judge),
    (axes_mixed_up, apart.judge),
]


@pytest.mark.parametrize(("plant", "criterion"), PLANTS, ids=lambda p: p.__name__)
def test_a_planted_error_is_caught(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, criterion: Criterion
) -> None:
    plant(monkeypatch)
    assert corpus.disproved(subjects(), 2, (criterion,))
