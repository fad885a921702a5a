"""One table per compute capability: limits, features, occupancy, PTX targets and versions."""

from ptxlint.arch.features import FEATURES, Feature, features_of, supports
from ptxlint.arch.occupancy import (
    Limits,
    Occupancy,
    RegisterStep,
    max_threads_per_cta,
    most_barriers,
    most_registers,
    most_shared,
    next_register_step,
    occupancy,
    register_steps,
)
from ptxlint.arch.tables import ARCHS, Arch
from ptxlint.arch.targets import (
    LATEST_PTX_VERSION,
    MIN_PTX_VERSION,
    PTX_RELEASES,
    PtxVersion,
    Target,
    TargetError,
    is_released,
    parse_target,
    parse_version,
    ptx_version_for,
    targets_known_to,
    version_accepts,
)

__all__ = [
    "ARCHS",
    "FEATURES",
    "LATEST_PTX_VERSION",
    "MIN_PTX_VERSION",
    "PTX_RELEASES",
    "Arch",
    "Feature",
    "Limits",
    "Occupancy",
    "PtxVersion",
    "RegisterStep",
    "Target",
    "TargetError",
    "features_of",
    "find",
    "get",
    "is_released",
    "max_threads_per_cta",
    "most_barriers",
    "most_registers",
    "most_shared",
    "next_register_step",
    "occupancy",
    "parse_target",
    "parse_version",
    "ptx_version_for",
    "register_steps",
    "supports",
    "targets_known_to",
    "version_accepts",
]


def find(arch: str) -> Arch | None:
    """Limits of a target, `sm_90a` resolved to `sm_90`; None when they are unknown.

    None is the answer for a well-formed target without a row, older or newer than the tables:
    the caller then claims nothing about limits. Raises TargetError for a malformed name.
    """
    return ARCHS.get(parse_target(arch).base)


def get(arch: str) -> Arch:
    """Limits of a target that must be known, `sm_90a` resolved to `sm_90`.

    Raises TargetError, naming the known architectures, when there is no row.
    """
    found = find(arch)
    if found is None:
        known = ", ".join(ARCHS)
        raise TargetError(f"no limits are known for {arch}; known architectures: {known}")
    return found
