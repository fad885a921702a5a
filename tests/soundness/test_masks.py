"""No run disproves what is said of masks: padding of loads called proved reaches no store."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from leaking import LAUNCHES, followed

SAMPLE = ("softmax", "argmax", "layer_norm_fwd", "attention", "matmul_dot_fp16", "rmsnorm_bf16")


def leaking(name: str, arch: str, status: str, first: int | None, text: str = "") -> list[bool]:
    """Whether padding of the loads with a verdict leaves each launch that the reference lists;
    empty without such loads."""
    build = LAUNCHES.emulated.build(name, arch)
    return [one.leaks for one in followed(build, status, first, text)]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", SAMPLE)
def test_padding_that_is_proved_to_do_no_harm_reaches_no_store(name: str, arch: str) -> None:
    found = leaking(name, arch, "proved", 2)
    assert found
    assert not any(found)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_no_padding_that_is_proved_to_do_no_harm_reaches_a_store(
    build_names: Callable[[str], list[str]], arch: str
) -> None:
    done = 0
    for name in build_names(arch):
        found = leaking(name, arch, "proved", None)
        assert not any(found), name
        done += len(found)
    print(f"{arch}: {done} replays")
    assert done > 200


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_fill_that_is_refuted_leaks_wherever_there_is_a_tail(arch: str) -> None:
    # Of the sizes of the reference all but 1024 leave lanes empty.
    found = leaking("softmax_buggy", arch, "refuted", None)
    assert found == [True, True, False, True, True, True]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_softmax_that_is_filled_anew_leaks(
    refilled: Callable[..., str | None], arch: str
) -> None:
    text = LAUNCHES.emulated.build("attention", arch).path.read_text()
    changed = refilled(text, {0: "0f3F800000"})
    assert changed is not None
    assert any(leaking("attention", arch, "refuted", 3, changed))
    assert not any(leaking("attention", arch, "proved", 3, changed))


FILLS: tuple[dict[int, str], ...] = (
    {0: "0f3F800000", 0xFF800000: "0f00000000"},
    {0: "0fFF800000", 0xFF800000: "0f7F800000"},
    {0: "0fC0000000", 0xFF800000: "0fC0000000"},
)
"""By what a load fills in, what it does instead: 1 and 0, infinities, a negative number."""


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_builds_that_are_filled_anew(
    refilled: Callable[..., str | None], build_names: Callable[[str], list[str]], arch: str
) -> None:
    """Most new fills are wrong. Of those that are still proved none gets out."""
    kept, out = 0, 0
    for name in build_names(arch):
        text = LAUNCHES.emulated.build(name, arch).path.read_text()
        for fills in FILLS:
            changed = refilled(text, fills)
            if changed is None:
                continue
            found = leaking(name, arch, "proved", 3, changed)
            assert not any(found), (name, fills)
            kept += len(found)
            out += sum(leaking(name, arch, "refuted", 3, changed))
    print(f"{arch}: {kept} proved and kept, {out} refuted that leak")
    assert kept > 30
    assert out > 50
