"""Hardware limits per compute capability, each row with its source.

Sources:

- *guide*: CUDA Programming Guide, appendix "Compute Capabilities", tables "Device and
  Streaming Multiprocessor (SM) Information" and "Memory Information"
  (https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html).
- *occupancy*: `cuda_occupancy.h` of CUDA 13.5: allocation granularities, sub-partitions,
  CTAs per SM and barriers per SM.
- *traits*: `cuda/__device/arch_traits.h` of libcu++: shared memory reserved per CTA.
"""

from typing import NamedTuple

KIB = 1024


class Arch(NamedTuple):
    """Limits of one compute capability. Sizes are bytes, registers are 32-bit."""

    name: str
    compute_capability: tuple[int, int]
    source: str
    warps_per_sm: int
    threads_per_sm: int
    ctas_per_sm: int
    shared_per_sm: int
    shared_optin_limit: int
    shared_reserved_per_cta: int
    shared_allocation_unit: int
    cluster_size: int
    """CTAs in a cluster that every kernel may ask for; 1 where there are no clusters."""
    barriers_per_sm: int | None
    """CTA barriers the resident CTAs share; None where they do not limit occupancy."""
    warp_size: int = 32
    threads_per_cta: int = 1024
    cta_limit: tuple[int, int, int] = (1024, 1024, 64)
    grid_limit: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    registers_per_sm: int = 64 * KIB
    registers_per_cta: int = 64 * KIB
    registers_per_thread: int = 255
    register_allocation_unit: int = 256
    """Registers are given to a warp in multiples of this."""
    sub_partitions: int = 4
    """A warp's registers all lie in one of these equal parts of the SM."""
    warp_allocation_granularity: int = 4
    """A launch is checked as if the CTA's warps were rounded up to this."""
    shared_static_limit: int = 48 * KIB
    """Static shared memory of a kernel; more must be dynamic and opted into."""


def _arch(
    number: int,
    source: str,
    *,
    warps: int,
    ctas: int,
    shared_kib: int,
    barriers: int | None = None,
) -> Arch:
    # From 8.0 on the driver keeps 1 KiB per CTA and allocates in units of 128 bytes; from
    # 9.0 on there are clusters, of 8 CTAs unless a kernel asks for a non-portable size.
    reserved = KIB if number >= 80 else 0
    return Arch(
        name=f"sm_{number}",
        compute_capability=divmod(number, 10),
        source=source,
        warps_per_sm=warps,
        threads_per_sm=warps * 32,
        ctas_per_sm=ctas,
        shared_per_sm=shared_kib * KIB,
        shared_optin_limit=shared_kib * KIB - reserved,
        shared_reserved_per_cta=reserved,
        shared_allocation_unit=128 if number >= 80 else 256,
        cluster_size=8 if number >= 90 else 1,
        barriers_per_sm=barriers,
    )


_GUIDE = "guide, column {}; occupancy; traits"
_SM_88 = "traits and occupancy: the limits of 8.6; no column in the guide"
_SM_101 = "occupancy, compute capability 10.1; guide, column 11.0 (PTX ISA 9.0 renames 101 to 110)"

ARCHS: dict[str, Arch] = {
    arch.name: arch
    for arch in (
        _arch(75, _GUIDE.format("7.5"), warps=32, ctas=16, shared_kib=64),
        _arch(80, _GUIDE.format("8.0"), warps=64, ctas=32, shared_kib=164),
        _arch(86, _GUIDE.format("8.6"), warps=48, ctas=16, shared_kib=100),
        _arch(87, _GUIDE.format("8.7"), warps=48, ctas=16, shared_kib=164),
        _arch(88, _SM_88, warps=48, ctas=16, shared_kib=100),
        _arch(89, _GUIDE.format("8.9"), warps=48, ctas=24, shared_kib=100),
        _arch(90, _GUIDE.format("9.0"), warps=64, ctas=32, shared_kib=228, barriers=64),
        _arch(100, _GUIDE.format("10.x"), warps=64, ctas=32, shared_kib=228, barriers=64),
        _arch(101, _SM_101, warps=48, ctas=24, shared_kib=228, barriers=24),
        _arch(103, _GUIDE.format("10.x"), warps=64, ctas=32, shared_kib=228, barriers=32),
        _arch(110, _GUIDE.format("11.0"), warps=48, ctas=24, shared_kib=228, barriers=24),
        _arch(120, _GUIDE.format("12.x"), warps=48, ctas=24, shared_kib=100, barriers=24),
        _arch(121, _GUIDE.format("12.x"), warps=48, ctas=24, shared_kib=100, barriers=24),
    )
}
