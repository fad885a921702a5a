"""Occupancy of an SM, in the integer arithmetic of the CUDA occupancy calculator.

Rules (`cuda_occupancy.h` of the CUDA toolkit): a warp's registers are rounded up to the
allocation unit and lie in one sub-partition; a CTA's shared memory, with what the driver
reserves, is rounded up to the allocation unit; the launch check takes the CTA's warps as
spread over all sub-partitions. Shared memory is taken as opted into and the carve-out as its
largest, which is what the CUDA driver assumes by default.
"""

from typing import NamedTuple

from ptxlint.arch.tables import Arch


class Limits(NamedTuple):
    """CTAs per SM that each resource alone admits; None where it sets no limit."""

    registers: int | None
    shared: int | None
    warps: int
    ctas: int
    barriers: int | None


class Occupancy(NamedTuple):
    """What fits on one SM."""

    ctas_per_sm: int
    """0 when the kernel cannot be launched at all."""
    warps_per_sm: int
    fraction: float
    """Resident warps over the most the SM holds, 0.0 to 1.0."""
    limiter: str
    """The resource that binds: `registers`, `shared`, `warps`, `ctas` or `barriers`."""
    limiters: tuple[str, ...]
    """All resources that bind equally, `limiter` first."""
    limits: Limits


class RegisterStep(NamedTuple):
    """The most registers per thread at which `ctas_per_sm` CTAs still fit."""

    registers: int
    ctas_per_sm: int


def occupancy(
    arch: Arch,
    registers_per_thread: int,
    threads_per_cta: int,
    shared_bytes: int,
    barriers: int = 0,
) -> Occupancy:
    """CTAs and warps resident per SM, and what limits them.

    `shared_bytes` is static plus dynamic shared memory of a CTA, without what the driver
    reserves. `barriers` is the number of CTA barriers the kernel uses (ptxas reports it);
    0 leaves them out. Raises ValueError for a count that no kernel can have.
    """
    _check_counts(registers_per_thread, threads_per_cta, shared_bytes, barriers)
    warps = _warps(arch, threads_per_cta)
    limits = Limits(
        registers=_register_limit(arch, registers_per_thread, warps),
        shared=_shared_limit(arch, shared_bytes),
        warps=arch.warps_per_sm // warps if threads_per_cta <= arch.threads_per_cta else 0,
        ctas=arch.ctas_per_sm,
        barriers=_barrier_limit(arch, barriers),
    )
    ctas = min(limit for limit in limits if limit is not None)
    limiters = tuple(
        name for name, limit in zip(Limits._fields, limits, strict=True) if limit == ctas
    )
    resident = ctas * warps
    return Occupancy(ctas, resident, resident / arch.warps_per_sm, limiters[0], limiters, limits)


def next_register_step(
    arch: Arch, threads: int, shared: int, registers: int, barriers: int = 0
) -> RegisterStep | None:
    """The largest register count below `registers` at which more CTAs fit, and how many.

    None when no smaller count admits more CTAs, that is, registers are not what limits.
    """
    current = occupancy(arch, registers, threads, shared, barriers).ctas_per_sm
    for candidate in _register_counts(arch):
        if candidate < registers:
            ctas = occupancy(arch, candidate, threads, shared, barriers).ctas_per_sm
            if ctas > current:
                return RegisterStep(candidate, ctas)
    return None


def register_steps(
    arch: Arch, threads: int, shared: int, barriers: int = 0
) -> tuple[RegisterStep, ...]:
    """Every reachable number of CTAs with the most registers that admits it, fewest CTAs first.

    Empty when no register count lets the kernel launch.
    """
    steps: list[RegisterStep] = []
    ctas = 0
    for candidate in _register_counts(arch):
        fitting = occupancy(arch, candidate, threads, shared, barriers).ctas_per_sm
        if fitting > ctas:
            steps.append(RegisterStep(candidate, fitting))
            ctas = fitting
    return tuple(steps)


def most_registers(arch: Arch, threads: int, ctas: int) -> int | None:
    """The most registers per thread that let so many CTAs fit, as far as registers go."""
    warps = _warps(arch, threads)
    for candidate in _register_counts(arch):
        limit = _register_limit(arch, candidate, warps)
        if limit is None or limit >= ctas:
            return candidate
    return None


def most_shared(arch: Arch, ctas: int) -> int | None:
    """The most bytes of shared memory that let so many CTAs fit, as far as shared memory goes."""
    unit = arch.shared_allocation_unit
    left = arch.shared_per_sm // ctas // unit * unit - arch.shared_reserved_per_cta
    return min(left, arch.shared_optin_limit) if left >= 0 else None


def most_barriers(arch: Arch, ctas: int) -> int | None:
    """The most barriers that let so many CTAs fit; None where they set no limit."""
    return None if arch.barriers_per_sm is None else arch.barriers_per_sm // ctas


def max_threads_per_cta(arch: Arch, registers_per_thread: int) -> int:
    """The largest CTA that can be launched with so many registers per thread.

    A multiple of the warp size, 0 when the registers exceed what a thread can have. The CUDA
    driver reports the same number as the function's maximum threads per block.
    """
    for warps in range(arch.threads_per_cta // arch.warp_size, 0, -1):
        if _register_limit(arch, registers_per_thread, warps) != 0:
            return warps * arch.warp_size
    return 0


def _check_counts(registers: int, threads: int, shared: int, barriers: int) -> None:
    if threads < 1:
        raise ValueError(f"threads per CTA must be at least 1, not {threads}")
    if min(registers, shared, barriers) < 0:
        raise ValueError(
            "registers, shared bytes and barriers cannot be negative: "
            f"{registers}, {shared}, {barriers}"
        )


def _warps(arch: Arch, threads: int) -> int:
    return -(-threads // arch.warp_size)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _register_counts(arch: Arch) -> range | list[int]:
    # Counts between two multiples of unit / warp_size cost what the upper one costs.
    step = arch.register_allocation_unit // arch.warp_size
    top = arch.registers_per_thread
    return [top, *range(top // step * step, 0, -step)]


def _register_limit(arch: Arch, registers: int, warps: int) -> int | None:
    if registers > arch.registers_per_thread:
        return 0
    if registers == 0:
        return None
    per_warp = _round_up(registers * arch.warp_size, arch.register_allocation_unit)
    checked = per_warp * _round_up(warps, arch.warp_allocation_granularity)
    if checked > arch.registers_per_cta:
        return 0
    per_partition = arch.registers_per_sm // arch.sub_partitions // per_warp
    return per_partition * arch.sub_partitions // warps


def _shared_limit(arch: Arch, shared: int) -> int | None:
    if shared > arch.shared_optin_limit:
        return 0
    allocated = _round_up(shared + arch.shared_reserved_per_cta, arch.shared_allocation_unit)
    return arch.shared_per_sm // allocated if allocated else None


def _barrier_limit(arch: Arch, barriers: int) -> int | None:
    if not barriers or arch.barriers_per_sm is None:
        return None
    return arch.barriers_per_sm // barriers
