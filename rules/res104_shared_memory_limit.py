"""RES104: more shared memory than a CTA can have."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.arch import ARCHS, Arch
from ptxlint.dataflow.shared_memory import SharedMemory, SharedMemoryAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.sass.function import is_machine_code
from ptxlint.rulekit import Hit, Rule, Sample, Verdict


class SharedMemoryLimit(Rule):
    id = "RES104"
    name = "shared-memory-limit"
    severity = "error"
    confidence = "high"
    category = "resources"
    family = "resources"
    levels = ("ptx", "sass")
    summary = "The kernel needs more shared memory than a CTA of its target can have."
    why = (
        "Static .shared arrays may take 48 KiB; the assembler rejects more. Static and dynamic "
        "shared memory together may take what the architecture lets a CTA opt into, between 64 "
        "and 227 KiB: a launch that asks for more fails with an invalid value error. Kernels "
        "tuned on one GPU often exceed what the next one has: 163 KiB on sm_80 is 99 KiB on sm_86. "
        "Dynamic memory is what Triton's metadata say. Static memory is known from an assembler, a "
        "log of `ptxas -v` or a cubin beside the file; counted in the PTX it is an estimate, to "
        "which padding comes, and a limit that padding may exceed is left open."
    )
    fix = "Use a smaller tile or fewer pipeline stages, or another architecture."
    refs = (
        "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
    )
    bad = (
        Sample(
            "a tile of 128 KiB on sm_86",
            """
            .version 8.0
            .target sm_86
            .address_size 64
            .extern .shared .align 16 .b8 tile[];
            .visible .entry k(.param .u64 .ptr .global out) {
                .reg .b32 %r<2>;
                .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [out];
                ld.shared.u32 %r1, [tile]; //~ RES104
                st.global.u32 [%rd1], %r1;
                ret;
            }
            """,
            {"shared": 131072},
        ),
        Sample(
            "static and dynamic together exceed 99 KiB",
            """
            .version 8.0
            .target sm_89
            .address_size 64
            .shared .align 16 .b8 table[49152];
            .extern .shared .align 16 .b8 tile[];
            .visible .entry k(.param .u64 .ptr .global out) {
                .reg .b32 %r<3>;
                .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [out];
                ld.shared.u32 %r1, [table];
                ld.shared.u32 %r2, [tile]; //~ RES104
                add.u32 %r1, %r1, %r2;
                st.global.u32 [%rd1], %r1;
                ret;
            }
            """,
            {"shared": 65536},
        ),
    )
    good = (
        Sample(
            "the same tile on sm_80",
            """
            .version 8.0
            .target sm_80
            .address_size 64
            .extern .shared .align 16 .b8 tile[];
            .visible .entry k(.param .u64 .ptr .global out) {
                .reg .b32 %r<2>;
                .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [out];
                ld.shared.u32 %r1, [tile];
                st.global.u32 [%rd1], %r1;
                ret;
            }
            """,
            {"shared": 131072},
        ),
        Sample(
            "exactly 48 KiB of static shared memory",
            """
            .shared .align 16 .b8 table[49152];
            .reg .b32 %r<2>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            ld.shared.u32 %r1, [table+49148];
            st.global.u32 [%rd1], %r1;
            ret;
            """,
        ),
        Sample(
            "a large array that this kernel does not use",
            """
            .version 8.0
            .target sm_80
            .address_size 64
            .shared .align 16 .b8 table[65536];
            .visible .entry k() {
                ret;
            }
            """,
        ),
    )

    needs = (SharedMemoryAnalysis,)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit a kernel for each limit exceeded, and a verdict."""
        arch = facts.arch
        known = facts.resources
        # A listing alone does not say what is static.
        is_told = not is_machine_code(fn) or (known is not None and known.shared is not None)
        if arch is None or not is_told:
            return
        shared = facts.get(SharedMemoryAnalysis)
        if shared.largest is None and not shared.dynamic and not shared.static:
            return
        faults = [*_static_fault(shared, arch), *_total_fault(shared, arch)]
        yield from faults
        limit = f"the {_kib(arch.shared_optin_limit)} that {arch.name} has"
        if faults:
            yield Verdict("refuted", faults[0].message, shared.first)
        elif shared.dynamic is None and shared.is_open:
            reason = (
                f"{_kib(shared.static)} of static shared memory fit{_sources(shared)}; how much "
                f"the launch asks for besides is not known, {limit} must hold both"
            )
            yield Verdict("open", reason, shared.first)
        elif (unknown := _unknown(shared, arch)) is not None:
            yield Verdict("open", f"{_kib(shared.total)} of shared memory {unknown}", shared.first)
        else:
            reason = f"{_kib(shared.total)} of shared memory fit {limit}{_sources(shared)}"
            yield Verdict("proved", reason)


def _static_fault(shared: SharedMemory, arch: Arch) -> Iterator[Hit]:
    if shared.static <= arch.shared_static_limit:
        return
    size, limit = _sizes(shared.static, arch.shared_static_limit)
    yield Hit(
        f"{size} of static shared memory, the limit is {limit} on every architecture"
        f"{_sources(shared)}",
        shared.first,
        help="declare it `.extern .shared` and give the size at the launch (opted into by "
        "cudaFuncAttributeMaxDynamicSharedMemorySize), or use less",
        key="static shared memory",
        exact=bool(shared.static_said),
        label=_largest(shared),
    )


def _total_fault(shared: SharedMemory, arch: Arch) -> Iterator[Hit]:
    if shared.dynamic is None or shared.total <= arch.shared_optin_limit:
        return
    fitting = [a.name for a in ARCHS.values() if a.shared_optin_limit >= shared.total]
    size, limit = _sizes(shared.total, arch.shared_optin_limit)
    yield Hit(
        f"{size} of shared memory a CTA, {arch.name} has at most {limit}: the launch fails"
        f"{_sources(shared)}",
        shared.first,
        breaks_when="every launch",
        help=f"use a smaller tile or fewer stages; it fits on {', '.join(fitting)}"
        if fitting
        else "use a smaller tile or fewer stages; it fits on no architecture",
        key="shared memory",
        exact=shared.is_exact,
    )


def _unknown(shared: SharedMemory, arch: Arch) -> str | None:
    """Why shared memory that was counted in the PTX may still exceed a limit; None if it cannot."""
    if shared.slack is None:
        return "are counted, and what is called through a pointer may take more"
    room = min(arch.shared_static_limit - shared.static, arch.shared_optin_limit - shared.total)
    if shared.slack > room:
        return f"are counted, and padding between variables may take {shared.slack} bytes more"
    return None


def _sources(shared: SharedMemory) -> str:
    """Who says how much is static and dynamic."""
    parts = [f"{_kib(size)} {what}: {said}" for size, what, said in shared.parts]
    return f" ({'; '.join(parts)})" if parts else ""


def _largest(shared: SharedMemory) -> str:
    largest = shared.largest
    return f"`{largest.name}` takes {_kib(largest.size or 0)}" if largest is not None else ""


def _sizes(size: int, limit: int) -> tuple[str, str]:
    """A size and the limit that it exceeds, in bytes if they look the same otherwise."""
    if _kib(size) != _kib(limit):
        return _kib(size), _kib(limit)
    return f"{size} bytes", f"{limit} bytes"


def _kib(size: int) -> str:
    """A size as people write it: `48 KiB`, `99.5 KiB`, `20 bytes`."""
    if size < 1024:
        return f"{size} byte{'s' if size != 1 else ''}"
    return f"{size / 1024:.1f}".removesuffix(".0") + " KiB"
