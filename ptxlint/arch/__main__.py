"""`python -m ptxlint.arch` prints the reference page docs/arch.md."""

from collections.abc import Sequence

from ptxlint.arch.features import FAMILIES, FEATURES, Feature
from ptxlint.arch.tables import ARCHS, KIB, Arch
from ptxlint.arch.targets import LATEST_PTX_VERSION, MIN_PTX_VERSION, PTX_RELEASES, PtxVersion

_INTRODUCTION = """\
# Architectures

This page is printed by `python -m ptxlint.arch`; a test holds it equal to the data.

`ptxlint.arch.get("sm_90a")` gives the limits of a target, with the suffix `a` or `f` resolved
to the base. `find` gives `None` for a target without a row, older or newer than the tables:
nothing is then claimed about its limits. `occupancy`, `register_steps`, `next_register_step`
and `max_threads_per_cta` are exact integer arithmetic over these rows; `supports` answers
whether a target has a feature, and `ptx_version_for` which PTX version it needs.
"""

_SOURCES = """\
## Sources

- *guide*: [CUDA Programming Guide, Compute Capabilities][guide], tables "Device and Streaming
  Multiprocessor (SM) Information" and "Memory Information per Compute Capability".
- *occupancy*: `cuda_occupancy.h` of the CUDA toolkit (13.5): granularities, sub-partitions,
  CTAs and barriers per SM. The tests compile the copy that Triton ships and compare with it.
- *traits*: `cuda/__device/arch_traits.h` of libcu++ (CCCL): memory reserved per CTA.
- Targets and versions: [PTX ISA, Release Notes][ptx]; targets and features are held against
  every ptxas that is at hand.
- sm_90 was also compared with the CUDA driver on an H200: all attributes, and 20,832 answers of
  `cuOccupancyMaxActiveBlocksPerMultiprocessor`, which the tests replay.

sm_107 is a known target without limits: the published headers disagree on its shared memory.
The barriers of sm_103 follow CUDA 13.5; the header of 13.1 gives 64.

[guide]: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html
[ptx]: https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#release-notes
"""


def render() -> str:
    """The reference page, in Markdown."""
    sections = (
        _INTRODUCTION,
        _common_section(next(iter(ARCHS.values()))),
        _limits_section(),
        _features_section(),
        _targets_section(),
        _SOURCES,
    )
    return "\n".join(sections)


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _common_section(arch: Arch) -> str:
    rows = [
        ("Threads per warp", str(arch.warp_size)),
        ("Threads per CTA", str(arch.threads_per_cta)),
        ("CTA dimensions", " x ".join(map(str, arch.cta_limit))),
        ("Grid dimensions", " x ".join(map(str, arch.grid_limit))),
        ("Registers per SM", str(arch.registers_per_sm)),
        ("Registers per CTA", str(arch.registers_per_cta)),
        ("Registers per thread", str(arch.registers_per_thread)),
        ("Register allocation unit, per warp", str(arch.register_allocation_unit)),
        ("Sub-partitions per SM", str(arch.sub_partitions)),
        ("Warp allocation granularity", str(arch.warp_allocation_granularity)),
        ("Static shared memory per kernel", _kib(arch.shared_static_limit)),
    ]
    return "## Limits that all architectures share\n\n" + _table(("Limit", "Value"), rows)


def _limits_section() -> str:
    header = (
        "Architecture",
        "Warps per SM",
        "Threads per SM",
        "CTAs per SM",
        "Shared per SM",
        "Opt-in per CTA",
        "Reserved per CTA",
        "Shared unit",
        "Cluster",
        "Barriers per SM",
        "Source",
    )
    return "## Limits per architecture\n\n" + _table(header, [_row(a) for a in ARCHS.values()])


def _row(arch: Arch) -> tuple[str, ...]:
    return (
        arch.name,
        str(arch.warps_per_sm),
        str(arch.threads_per_sm),
        str(arch.ctas_per_sm),
        _kib(arch.shared_per_sm),
        _kib(arch.shared_optin_limit),
        _kib(arch.shared_reserved_per_cta),
        f"{arch.shared_allocation_unit} B",
        str(arch.cluster_size),
        "no limit" if arch.barriers_per_sm is None else str(arch.barriers_per_sm),
        arch.source,
    )


def _features_section() -> str:
    families = "; ".join(
        f"{first}: " + ", ".join(f"sm_{number}" for number in members)
        for first, members in FAMILIES.items()
    )
    rows = [(f.name, f.what, _targets_of(f), _version(f.since)) for f in FEATURES.values()]
    return (
        "## Features per target\n\nFamilies: "
        + families
        + ".\n\n"
        + _table(("Feature", "Meaning", "Targets", "First PTX version"), rows)
    )


def _targets_of(feature: Feature) -> str:
    parts = [f"sm_{feature.minimum} and later"] if feature.minimum is not None else []
    parts += feature.exact
    if feature.families:
        parts.append("`a` and `f` targets of families " + ", ".join(map(str, feature.families)))
    return ", ".join(parts)


def _targets_section() -> str:
    introduced: dict[PtxVersion, list[str]] = {}
    for name, version in MIN_PTX_VERSION.items():
        introduced.setdefault(version, []).append(name)
    releases = dict(PTX_RELEASES)
    rows = [
        (_version(version), releases[version], ", ".join(names))
        for version, names in introduced.items()
    ]
    return (
        "## PTX version that a target needs\n\n"
        f"The latest version in the table is {_version(LATEST_PTX_VERSION)} "
        f"({releases[LATEST_PTX_VERSION]}). sm_101 is sm_110 from 9.0 on.\n\n"
        + _table(("PTX version", "Release", "New targets"), rows)
    )


def _kib(size: int) -> str:
    return f"{size // KIB} KiB" if size % KIB == 0 else f"{size} B"


def _version(version: PtxVersion) -> str:
    return f"{version[0]}.{version[1]}"


if __name__ == "__main__":
    print(render(), end="")
