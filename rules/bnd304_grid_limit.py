"""BND304: a grid or a block that the device refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import SpecialRegister
from ptxlint.launch.analysis import LaunchAnalysis
from ptxlint.launch.bound import BoundLaunches
from ptxlint.rulekit import TILE_START, Hit, Rule, Sample, Verdict

if TYPE_CHECKING:
    from ptxlint.arch import Arch
    from ptxlint.launch.binding import Bound
    from ptxlint.obligations import Generalisation

_ARGUMENTS: Final = {"in_ptr": "float32[1024]", "out_ptr": "int32[65538]", "n_elements": 1024}
_ONE_PLANE: Final = """
            .reg .b32 %r<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %ctaid.z;{mark}
            mul.wide.u32 %rd2, %r1, 4;
            add.s64 %rd3, %rd1, %rd2;
            st.global.b32 [%rd3], %r1;
            ret;
"""


class GridLimit(Rule):
    id = "BND304"
    name = "grid-limit"
    severity = "error"
    confidence = "high"
    category = "bounds"
    family = "launch-limit"
    needs = (BoundLaunches, LaunchAnalysis)
    summary = (
        "The launch has more CTAs along an axis, or more threads in a CTA, than a device takes."
    )
    why = (
        "A grid may have 2^31 - 1 CTAs along x, but only 65535 along y and z. A batch or a number "
        "of heads that is laid on y or z works in every test and fails in production, when it has "
        "grown beyond: the launch returns an invalid value error and nothing runs. Blocks are "
        "limited likewise: 1024 threads, 64 of them along z."
    )
    fix = (
        "Lay the axis that grows on x, where there is room for 2^31 - 1, and take the others from "
        "it by division; or let each CTA walk over several tiles."
    )
    refs = (
        "https://github.com/fla-org/flash-linear-attention/issues/172",
        "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
    )
    bad = (
        Sample(
            "6 heads of a batch of 10923 along z",
            _ONE_PLANE.format(mark=" //~ BND304"),
            launch={"grid": [1, 1, 6 * 10923], "block": 128, "arguments": _ARGUMENTS},
        ),
        Sample(
            "128 threads along z",
            """
            .version 8.0
            .target sm_80
            .address_size 64
            .visible .entry k(.param .u64 .ptr .global out) { //~ BND304
                .reg .b32 %r<2>;
                .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                st.global.u32 [%rd1], %r1;
                ret;
            }
            """,
            launch={"grid": 1, "block": [8, 1, 128], "arguments": {"out": "int32[1]"}},
        ),
    )
    good = (
        Sample(
            "a batch of 10922 is the largest",
            _ONE_PLANE.format(mark=""),
            launch={"grid": [1, 1, 6 * 10922], "block": 128, "arguments": _ARGUMENTS},
        ),
        Sample(
            "x has room",
            TILE_START + "@%p1 st.global.b32 [%rd5], %r5;\nret;",
            launch={"grid": 6 * 10923, "block": 128, "arguments": _ARGUMENTS},
        ),
        Sample("without a launch nothing is known", _ONE_PLANE.format(mark="")),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit for each limit that a launch exceeds, and a verdict for each launch."""
        if not facts.launches or facts.arch is None:
            return
        for bound in facts.get(BoundLaunches):
            hits = list(_exceeded(fn, facts, facts.arch, bound))
            yield from hits
            if hits:
                yield Verdict("refuted", hits[0].message, hits[0].at, launch=bound)
            else:
                reason = f"grid and block are within the limits of {facts.arch.name}"
                generalises = _carried(facts, bound)
                yield Verdict("proved", reason, launch=bound, generalises=generalises)


def _carried(facts: Facts, bound: Bound) -> Iterator[Generalisation]:
    """For which other sizes the grid is within the limits."""
    for found in facts.get(LaunchAnalysis):
        if found.bound is bound:
            yield from found.reach.launched()
            return


def _exceeded(fn: Function, facts: Facts, arch: Arch, bound: Bound) -> Iterator[Hit]:
    for axis, size, limit in zip("xyz", bound.grid, arch.grid_limit, strict=True):
        if size > limit:
            yield Hit(
                f"the grid has {size} CTAs along {axis}, the limit is {limit}: the launch fails",
                _first_read(fn, f"%ctaid.{axis}"),
                breaks_when=f"the grid has more than {limit} CTAs along {axis}",
                key=f"grid {axis}",
                launch=bound,
            )
    for axis, size, limit in zip("xyz", bound.block, arch.cta_limit, strict=True):
        if size > limit:
            yield _too_many(f"{size} threads along {axis}", limit, f"block {axis}", bound)
    threads = bound.block[0] * bound.block[1] * bound.block[2]
    compiled = fn.max_threads()
    if threads > arch.threads_per_cta and max(bound.block) <= arch.threads_per_cta:
        yield _too_many(f"{threads} threads", arch.threads_per_cta, "threads", bound)
    elif compiled is not None and threads > compiled:
        yield _too_many(f"{threads} threads", compiled, "maxntid", bound, " by .maxntid")
    metadata = facts.metadata
    # What the metadata says itself is for RES104, which needs no launch.
    if bound.launch.shared > arch.shared_optin_limit and (
        metadata is None or metadata.shared != bound.launch.shared
    ):
        yield Hit(
            f"the launch asks for {bound.launch.shared} bytes of dynamic shared memory, "
            f"{arch.name} has at most {arch.shared_optin_limit} for a CTA: the launch fails",
            breaks_when=f"it asks for more than {arch.shared_optin_limit} bytes",
            help="use a smaller tile or fewer stages",
            key="dynamic shared memory",
            launch=bound,
        )


def _too_many(what: str, limit: int, key: str, bound: Bound, behind: str = "") -> Hit:
    return Hit(
        f"the block has {what}, the limit is {limit}{behind}: the launch fails",
        breaks_when="every launch with such a block",
        help="use a smaller block",
        key=key,
        launch=bound,
    )


def _first_read(fn: Function, register: str) -> Instr | None:
    """The first instruction that reads a special register."""
    wanted = SpecialRegister(register)
    return next((instr for instr in fn.instrs if wanted in instr.operands), None)
