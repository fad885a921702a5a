"""Target names and PTX versions, by known answers and against ptxas."""

from pathlib import Path

import pytest

from ptxlint.arch import (
    ARCHS,
    LATEST_PTX_VERSION,
    MIN_PTX_VERSION,
    PTX_RELEASES,
    Target,
    TargetError,
    get,
    is_released,
    parse_target,
    parse_version,
    ptx_version_for,
    targets_known_to,
    version_accepts,
)


def test_parse_target() -> None:
    assert parse_target("sm_90a") == Target("sm_90a", 90, "a")
    assert parse_target("sm_90a").base == "sm_90"
    assert parse_target("sm_100f").compute_capability == (10, 0)
    assert parse_target("sm_121").compute_capability == (12, 1)
    assert parse_target("sm_80").suffix == ""
    assert parse_target("compute_75").name == "sm_75"


@pytest.mark.parametrize(
    ("name", "defined"),
    [("sm_90a", True), ("sm_90f", False), ("sm_80a", False), ("sm_51", False), ("sm_107f", True)],
)
def test_defined_targets(name: str, defined: bool) -> None:
    assert parse_target(name).defined is defined


@pytest.mark.parametrize(
    ("target", "version"),
    [
        ("sm_10", (1, 0)),
        ("sm_13", (1, 2)),
        ("sm_35", (3, 1)),
        ("sm_70", (6, 0)),
        ("sm_75", (6, 3)),
        ("sm_80", (7, 0)),
        ("sm_86", (7, 1)),
        ("sm_87", (7, 4)),
        ("sm_88", (9, 0)),
        ("sm_89", (7, 8)),
        ("sm_90", (7, 8)),
        ("sm_90a", (8, 0)),
        ("sm_100a", (8, 6)),
        ("sm_100f", (8, 8)),
        ("sm_103", (8, 8)),
        ("sm_110", (9, 0)),
        ("sm_120", (8, 7)),
        ("sm_121a", (8, 8)),
        ("sm_51", None),
        ("sm_130", None),
    ],
)
def test_version_that_a_target_needs(target: str, version: tuple[int, int] | None) -> None:
    assert ptx_version_for(target) == version


def test_targets_known_to_a_version() -> None:
    assert targets_known_to((1, 4)) == ("sm_10", "sm_11", "sm_12", "sm_13")
    assert "sm_90" in targets_known_to((7, 8))
    assert "sm_90a" not in targets_known_to((7, 8))
    assert set(targets_known_to(LATEST_PTX_VERSION)) == set(MIN_PTX_VERSION)


def test_version_accepts() -> None:
    assert version_accepts((8, 0), "sm_90a") is True
    assert version_accepts((7, 8), "sm_90a") is False
    assert version_accepts((8, 8), "sm_51") is False
    assert version_accepts((99, 0), "sm_90") is True
    assert version_accepts((99, 0), "sm_500") is None


def test_parse_version() -> None:
    assert parse_version("8.7") == (8, 7)
    assert is_released((8, 7))
    assert not is_released((8, 9))
    assert not is_released((5, 1))
    for text in ("", "8", "8.", ".7", "8.7.1", "8,7", "-8.7", "v8.7"):
        with pytest.raises(TargetError, match=r"expected MAJOR\.MINOR"):
            parse_version(text)


def test_releases_are_in_order() -> None:
    versions = [version for version, _ in PTX_RELEASES]
    assert versions == sorted(set(versions))
    assert set(MIN_PTX_VERSION.values()) <= set(versions)


def test_ptxas_needs_the_same_versions(assemblers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Each target assembles with its first version, and some ptxas refuses the one before."""
    versions = [version for version, _ in PTX_RELEASES]
    accepted, refused = set(), set()
    for assembler in assemblers:
        newest = parse_version(assembler.version)
        for target, first in MIN_PTX_VERSION.items():
            old = parse_target(target).number < 75
            if first > newest or not (old or target in assembler.targets):
                continue
            host = target if target in assembler.targets else "sm_75"
            assert _errors(assembler, first, target, host, tmp_path) == [], assembler.path
            accepted.add(target)
            if first == versions[0]:
                continue
            before = versions[versions.index(first) - 1]
            messages = _errors(assembler, before, target, host, tmp_path)
            # ptxas 13.0 is lax with sm_88: it takes 8.8, which later ones refuse.
            if (
                f"PTX .version {before[0]}.{before[1]} does not support .target {target}"
                in messages
            ):
                refused.add(target)
    assert accepted >= {"sm_10", "sm_75", "sm_90a", "sm_103f", "sm_121f"}
    assert accepted - refused == {"sm_10", "sm_11"}


def _errors(assembler, version, target: str, host: str, scratch: Path) -> list[str]:  # type: ignore[no-untyped-def]
    text = f".version {version[0]}.{version[1]}\n.target {target}\n.entry k {{ ret; }}\n"
    return [message for _, message in assembler.errors(text, host, scratch)]


def test_every_target_of_ptxas_is_defined(assemblers) -> None:  # type: ignore[no-untyped-def]
    for assembler in assemblers:
        undefined = [name for name in assembler.targets if not parse_target(name).defined]
        assert not undefined or parse_version(assembler.version) > LATEST_PTX_VERSION


def test_ptxas_has_the_same_limits(assemblers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Static shared memory and registers per thread, one byte or register around the limit."""
    checked = set()
    for assembler in assemblers:
        for name in set(ARCHS) & set(assembler.targets):
            limit = get(name).shared_static_limit
            head = f".version {assembler.version}\n.target {name}\n.address_size 64\n"
            body = (
                ".entry k {{ .reg .b32 %r; .shared .b8 s[{}]; "
                "ld.volatile.shared.b32 %r, [s]; st.volatile.shared.b32 [s], %r; ret; }}\n"
            )
            assert assembler.errors(head + body.format(limit), name, tmp_path) == []
            (_, message), *_ = assembler.errors(head + body.format(limit + 1), name, tmp_path)
            assert "too much shared data (0xc001 bytes, 0xc000 max)" in message
            checked.add(name)
    assert checked >= {"sm_75", "sm_80", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"}
