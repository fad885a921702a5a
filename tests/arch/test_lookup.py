"""Looking up limits by target name."""

import pytest

from ptxlint.arch import ARCHS, TargetError, find, get


@pytest.mark.parametrize(
    ("target", "row"),
    [
        ("sm_75", "sm_75"),
        ("sm_90a", "sm_90"),
        ("sm_100a", "sm_100"),
        ("sm_100f", "sm_100"),
        ("sm_103f", "sm_103"),
        ("sm_120a", "sm_120"),
        ("sm_121f", "sm_121"),
        ("compute_80", "sm_80"),
    ],
)
def test_suffix_resolves_to_the_base(target: str, row: str) -> None:
    assert get(target) is ARCHS[row]


@pytest.mark.parametrize("target", ["sm_20", "sm_70", "sm_107", "sm_107a", "sm_130", "sm_200a"])
def test_target_without_a_row_is_unknown(target: str) -> None:
    assert find(target) is None
    with pytest.raises(TargetError, match=r"known architectures: sm_75, sm_80, .*sm_121"):
        get(target)


@pytest.mark.parametrize(
    "text", ["", "sm_", "sm_9", "sm_90b", "sm_09", "gfx942", "sm_90 ", "sm_٩٠"]
)
def test_malformed_name_is_an_error(text: str) -> None:
    with pytest.raises(TargetError, match="is not a target name"):
        find(text)


@pytest.mark.parametrize(
    ("text", "hint"), [("90", "sm_90"), ("sm90a", "sm_90a"), ("SM_80", "sm_80"), ("8.6", "sm_86")]
)
def test_near_miss_names_the_target(text: str, hint: str) -> None:
    with pytest.raises(TargetError, match=f"write {hint}$"):
        get(text)


def test_all_architectures_of_the_tables() -> None:
    numbers = [75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121]
    assert list(ARCHS) == [f"sm_{number}" for number in numbers]


@pytest.mark.parametrize(
    ("name", "warps", "ctas", "shared_kib", "optin_kib"),
    [
        # Read off the guide's tables by hand.
        ("sm_75", 32, 16, 64, 64),
        ("sm_80", 64, 32, 164, 163),
        ("sm_86", 48, 16, 100, 99),
        ("sm_87", 48, 16, 164, 163),
        ("sm_89", 48, 24, 100, 99),
        ("sm_90", 64, 32, 228, 227),
        ("sm_100", 64, 32, 228, 227),
        ("sm_103", 64, 32, 228, 227),
        ("sm_110", 48, 24, 228, 227),
        ("sm_120", 48, 24, 100, 99),
        ("sm_121", 48, 24, 100, 99),
    ],
)
def test_limits_of_the_guide(
    name: str, warps: int, ctas: int, shared_kib: int, optin_kib: int
) -> None:
    arch = get(name)
    assert arch.warps_per_sm == warps
    assert arch.threads_per_sm == warps * 32
    assert arch.ctas_per_sm == ctas
    assert arch.shared_per_sm == shared_kib * 1024
    assert arch.shared_optin_limit == optin_kib * 1024
    assert (arch.registers_per_sm, arch.registers_per_cta) == (65536, 65536)
    assert arch.registers_per_thread == 255


def test_clusters_from_sm_90_on() -> None:
    assert {name for name, arch in ARCHS.items() if arch.cluster_size == 1} == {
        "sm_75",
        "sm_80",
        "sm_86",
        "sm_87",
        "sm_88",
        "sm_89",
    }
