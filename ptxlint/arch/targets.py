"""PTX targets and PTX ISA versions: what a `.target` name means and when it appeared.

Source: PTX ISA, "Release Notes", table "PTX Release History"
(https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#release-notes).
The minimum versions are held against ptxas by the tests.
"""

from typing import NamedTuple

PtxVersion = tuple[int, int]


class TargetError(ValueError):
    """A target or version that is malformed, or a target without limits in the tables."""


class Target(NamedTuple):
    """A `.target` architecture: `sm_90a` is number 90 with suffix `a`.

    Suffix `a` is architecture-specific (runs on that architecture alone), `f` is
    family-specific (runs on later members of the family), empty is portable forward.
    """

    name: str
    number: int
    suffix: str

    @property
    def base(self) -> str:
        """The name without its suffix: `sm_90` for `sm_90a`."""
        return f"sm_{self.number}"

    @property
    def compute_capability(self) -> tuple[int, int]:
        """(major, minor): (9, 0) for `sm_90a`, (12, 1) for `sm_121`."""
        return divmod(self.number, 10)

    @property
    def defined(self) -> bool:
        """Whether a PTX ISA release known to this table defines the target."""
        return self.name in MIN_PTX_VERSION


# PTX ISA version and the CUDA release (or driver) that brought it, oldest first.
PTX_RELEASES: tuple[tuple[PtxVersion, str], ...] = (
    ((1, 0), "CUDA 1.0"),
    ((1, 1), "CUDA 1.1"),
    ((1, 2), "CUDA 2.0"),
    ((1, 3), "CUDA 2.1"),
    ((1, 4), "CUDA 2.2"),
    ((1, 5), "driver r190"),
    ((2, 0), "CUDA 3.0"),
    ((2, 1), "CUDA 3.1"),
    ((2, 2), "CUDA 3.2"),
    ((2, 3), "CUDA 4.0"),
    ((3, 0), "CUDA 4.1"),
    ((3, 1), "CUDA 5.0"),
    ((3, 2), "CUDA 5.5"),
    ((4, 0), "CUDA 6.0"),
    ((4, 1), "CUDA 6.5"),
    ((4, 2), "CUDA 7.0"),
    ((4, 3), "CUDA 7.5"),
    ((5, 0), "CUDA 8.0"),
    ((6, 0), "CUDA 9.0"),
    ((6, 1), "CUDA 9.1"),
    ((6, 2), "CUDA 9.2"),
    ((6, 3), "CUDA 10.0"),
    ((6, 4), "CUDA 10.1"),
    ((6, 5), "CUDA 10.2"),
    ((7, 0), "CUDA 11.0"),
    ((7, 1), "CUDA 11.1"),
    ((7, 2), "CUDA 11.2"),
    ((7, 3), "CUDA 11.3"),
    ((7, 4), "CUDA 11.4"),
    ((7, 5), "CUDA 11.5"),
    ((7, 6), "CUDA 11.6"),
    ((7, 7), "CUDA 11.7"),
    ((7, 8), "CUDA 11.8"),
    ((8, 0), "CUDA 12.0"),
    ((8, 1), "CUDA 12.1"),
    ((8, 2), "CUDA 12.2"),
    ((8, 3), "CUDA 12.3"),
    ((8, 4), "CUDA 12.4"),
    ((8, 5), "CUDA 12.5"),
    ((8, 6), "CUDA 12.7"),
    ((8, 7), "CUDA 12.8"),
    ((8, 8), "CUDA 12.9"),
    ((9, 0), "CUDA 13.0"),
    ((9, 1), "CUDA 13.1"),
    ((9, 2), "CUDA 13.2"),
    ((9, 3), "CUDA 13.3"),
    ((9, 4), "CUDA 13.4"),
    ((9, 5), "CUDA 13.5"),
)

LATEST_PTX_VERSION: PtxVersion = PTX_RELEASES[-1][0]

# Targets by the PTX ISA version that introduced them. No release withdraws a target name:
# sm_101 was renamed to sm_110 in 9.0, and assemblers still read the old name.
_INTRODUCED: tuple[tuple[PtxVersion, str], ...] = (
    ((1, 0), "10 11"),
    ((1, 2), "12 13"),
    ((2, 0), "20"),
    ((3, 0), "30"),
    ((3, 1), "35"),
    ((4, 0), "32 50"),
    ((4, 1), "37 52"),
    ((4, 2), "53"),
    ((5, 0), "60 61 62"),
    ((6, 0), "70"),
    ((6, 1), "72"),
    ((6, 3), "75"),
    ((7, 0), "80"),
    ((7, 1), "86"),
    ((7, 4), "87"),
    ((7, 8), "89 90"),
    ((8, 0), "90a"),
    ((8, 6), "100 100a 101 101a"),
    ((8, 7), "120 120a"),
    ((8, 8), "100f 101f 103 103a 103f 120f 121 121a 121f"),
    ((9, 0), "88 110 110a 110f"),
    ((9, 4), "107 107a 107f"),
)

MIN_PTX_VERSION: dict[str, PtxVersion] = {
    f"sm_{number}": version for version, numbers in _INTRODUCED for number in numbers.split()
}

RENAMED: dict[str, str] = {"sm_101": "sm_110", "sm_101a": "sm_110a", "sm_101f": "sm_110f"}


def parse_target(text: str) -> Target:
    """Read a target name such as `sm_80`, `sm_90a`, `sm_100f` or `compute_90`.

    `compute_NN` is read as `sm_NN`, as ptxas does. The result may be a target that no
    release defines (`Target.defined`). Raises TargetError when the text is no such name.
    """
    prefix, _, rest = text.partition("_")
    suffix = rest[-1:] if rest[-1:] in ("a", "f") else ""
    digits = rest.removesuffix(suffix)
    well_formed = prefix in ("sm", "compute") and digits.isascii() and digits.isdigit()
    if not well_formed or len(digits) < 2 or digits[0] == "0":
        raise TargetError(f"{text!r} is not a target name{_suggestion(text)}")
    return Target(f"sm_{digits}{suffix}", int(digits), suffix)


def _suggestion(text: str) -> str:
    """A hint for a near miss such as `90`, `sm90a` or `SM_90`."""
    tail = text.strip().lower().removeprefix("compute").removeprefix("sm").lstrip("_-")
    candidate = "sm_" + tail.replace(".", "")
    if candidate in MIN_PTX_VERSION:
        return f": write {candidate}"
    return ": expected sm_NN, optionally followed by a or f, such as sm_80 or sm_90a"


def parse_version(text: str) -> PtxVersion:
    """Read a `.version` operand such as `8.7`. Raises TargetError when it is not MAJOR.MINOR."""
    major, dot, minor = text.partition(".")
    if not (dot and major.isascii() and minor.isascii() and major.isdigit() and minor.isdigit()):
        raise TargetError(f"{text!r} is not a PTX version: expected MAJOR.MINOR, such as 8.7")
    return int(major), int(minor)


def is_released(version: PtxVersion) -> bool:
    """Whether the version is one of the PTX ISA releases in this table."""
    return any(release == version for release, _ in PTX_RELEASES)


def ptx_version_for(target: str) -> PtxVersion | None:
    """The lowest PTX ISA `.version` that `.target` needs; None for a target not in the table."""
    return MIN_PTX_VERSION.get(parse_target(target).name)


def targets_known_to(version: PtxVersion) -> tuple[str, ...]:
    """All targets that PTX ISA `version` accepts, oldest first.

    For a version newer than LATEST_PTX_VERSION the answer is a lower bound.
    """
    return tuple(name for name, since in MIN_PTX_VERSION.items() if since <= version)


def version_accepts(version: PtxVersion, target: str) -> bool | None:
    """Whether a module of PTX ISA `version` may name `target`.

    None when that is unknown: the version is newer than this table and so may define a
    target that the table lacks.
    """
    since = ptx_version_for(target)
    if since is not None:
        return since <= version
    return None if version > LATEST_PTX_VERSION else False
