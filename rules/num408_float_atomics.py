"""NUM408: floating-point atomics whose order changes the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.rulekit import Hit, Note, Rule, Sample

_FLOATS: Final = frozenset("f16 f16x2 bf16 bf16x2 f32 f64".split())


class FloatAtomics(Rule):
    id = "NUM408"
    name = "float-atomics"
    severity = "note"
    confidence = "high"
    category = "numerics"
    family = "rerun"
    summary = "A floating-point atomic add gives sums that differ from run to run."
    why = (
        "Floating-point addition is not associative, and the order in which threads arrive at an "
        "atomic is not fixed: the last bits of the sum change from one launch to the next, more "
        "of them the narrower the type. Many right kernels accept that, so it is a note. It "
        "matters where results are compared bit by bit, or training must be reproducible."
    )
    fix = (
        "Reduce within the CTA and write one partial sum per CTA to be added in a fixed order, or "
        "accumulate in integers; if the order does not matter, ignore the note."
    )
    refs = (
        "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#parallel-synchronization-and-communication-instructions-atom",
    )
    bad = (
        Sample(
            "a sum over CTAs",
            """
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            ld.global.f32 %r1, [%rd1+4];
            red.global.add.f32 [%rd1], %r1; //~ NUM408
            ret;
            """,
        ),
        Sample(
            "half precision, two at a time; the result is used",
            """
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            ld.global.b32 %r1, [%rd1+4];
            atom.global.add.noftz.f16x2 %r2, [%rd1], %r1; //~ NUM408
            st.global.b32 [%rd1+8], %r2;
            ret;
            """,
        ),
        Sample(
            "a bulk reduction from shared memory",
            """
            .version 8.0
            .target sm_90
            .address_size 64
            .shared .align 16 .b8 tile[1024];
            .visible .entry k(.param .u64 .ptr .global out) {
                .reg .b32 %r<3>;
                .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, tile;
                cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 1024; //~ NUM408
                cp.async.bulk.commit_group;
                cp.async.bulk.wait_group 0;
                ret;
            }
            """,  # noqa: E501
        ),
    )
    good = (
        Sample(
            "integers add up the same in any order",
            """
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            ld.global.u32 %r1, [%rd1+4];
            red.global.add.u32 [%rd1], %r1;
            ret;
            """,
        ),
        Sample(
            "an exchange does not add",
            """
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            ld.global.u32 %r1, [%rd1+4];
            atom.global.exch.b32 %r2, [%rd1], %r1;
            st.global.b32 [%rd1+8], %r2;
            ret;
            """,
        ),
    )
    kernels_only = False

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit a function and source line."""
        by_place: dict[object, list[Instr]] = {}
        for instr in facts.instructions(_adds_floats):
            frame = facts.module.python_frame(instr.loc)
            place = (frame.path, frame.line) if frame is not None else None
            by_place.setdefault(place, []).append(instr)
        for group in by_place.values():
            yield _hit(group)


def _adds_floats(shape: Shape) -> bool:
    """True for `atom`, `red`, `cp.reduce` and `multimem.red` of floating-point numbers.

    A reduction through a tensor map does not say its type and is left alone.
    """
    if not shape.has("add") or _FLOATS.isdisjoint(shape.types):
        return False
    if shape.opcode in ("cp", "multimem"):
        return shape.has("reduce") or shape.has("red")
    return shape.opcode in ("atom", "red")


def _hit(group: list[Instr]) -> Hit:
    first = group[0]
    types = list(dict.fromkeys(t for i in group for t in i.shape.types if t in _FLOATS))
    count = f"{len(group)} atomic additions" if len(group) > 1 else "an atomic addition"
    return Hit(
        f"{count} of {' and '.join(types)}: the order, and with it the last bits, change from "
        "run to run",
        first,
        tuple(Note("and here", instr) for instr in group[1:2]),
        key=f"atomic add {' '.join(types)}",
        label=first.shape.mnemonic,
    )
