"""Every cell of the feature table against ptxas, one probe instruction a feature."""

from pathlib import Path

import pytest

from ptxlint.arch import (
    FEATURES,
    PTX_RELEASES,
    TargetError,
    features_of,
    parse_version,
    ptx_version_for,
    supports,
)

_C4 = "{%f0,%f1,%f2,%f3}"
_R4 = "{%r0,%r1,%r2,%r3}"
_R2 = "{%r4,%r5}"

PROBES = {
    "wmma": "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 "
    "{%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [s];",
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [s];",
    "ldmatrix_b8": "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [s];",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x1.shared.b16 [s], {%r0};",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;",
    "mma_f16": f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {_C4}, {_R4}, {_R2}, {_C4};",
    "mma_f16_k8": f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {_C4}, {_R2}, {{%r6}}, {_C4};",
    "mma_bf16": f"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {_C4}, {_R4}, {_R2}, {_C4};",
    "mma_tf32": f"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {_C4}, {_R4}, {_R2}, {_C4};",
    "mma_f64": "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
    "{%fd0,%fd1}, {%fd2}, {%fd3}, {%fd0,%fd1};",
    "mma_int8": f"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {_R4}, {_R4}, {_R2}, {_R4};",
    "mma_int8_k16": "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 "
    "{%r0,%r1}, {%r2}, {%r3}, {%r0,%r1};",
    "mma_int4": f"mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {_R4}, {_R4}, {_R2}, {_R4};",
    "mma_int4_k32": "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 "
    "{%r0,%r1}, {%r2}, {%r3}, {%r0,%r1};",
    "mma_b1": "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
    f"{_R4}, {_R4}, {_R2}, {_R4};",
    "mma_sparse": "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
    f"{_C4}, {_R4}, {_R4}, {_C4}, %r8, 0x0;",
    "mma_fp8": f"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {_C4}, {_R4}, {_R2}, {_C4};",
    "mma_fp6_fp4": "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32 "
    f"{_C4}, {_R4}, {_R2}, {_C4};",
    "mma_block_scale": "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale."
    f"scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 {_C4}, {_R4}, {_R2}, {_C4}, "
    "{%r6}, {0,0}, {%r7}, {0,0};",
    "wgmma": "wgmma.fence.sync.aligned;",
    "tcgen05": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;",
    "tcgen05_int8": "tcgen05.mma.cta_group::1.kind::i8 [%r0], %rd0, %rd1, %r1, %p0;",
    "bf16": "fma.rn.bf16 %h0, %h1, %h2, %h3;",
    "bf16_arithmetic": "add.rn.bf16 %h0, %h1, %h2;",
    "tf32": "cvt.rna.tf32.f32 %r0, %f0;",
    "fp8": "cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;",
    "fp6_fp4": "cvt.rn.satfinite.e2m3x2.f32 %h0, %f0, %f1;",
    "cvt_stochastic": "cvt.rs.f16x2.f32 %r0, %f0, %f1, %r1;",
    "f32x2": "add.rn.f32x2 %rd0, %rd1, %rd2;",
    "mixed_precision": "fma.rn.f32.f16 %f0, %h0, %h1, %f1;",
    "min_max_nan": "max.NaN.f32 %f0, %f1, %f2;",
    "min_max_3": "max.f32 %f0, %f1, %f2, %f3;",
    "redux": "redux.sync.add.s32 %r0, %r1, 0xffffffff;",
    "redux_f32": "redux.sync.max.f32 %f0, %f1, 0xffffffff;",
    "elect": "elect.sync %r0|%p0, 0xffffffff;",
    "cp_async": "cp.async.ca.shared.global [s], [%rd0], 16;",
    "mbarrier": "mbarrier.init.shared.b64 [s], 1;",
    "mbarrier_try_wait": "mbarrier.try_wait.shared.b64 %p0, [s], %rd0;",
    "mbarrier_tx": "mbarrier.arrive.expect_tx.shared.b64 %rd0, [s], 16;",
    "tma": "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
    "[s], [%rd0, {%r0,%r1}], [s];",
    "tma_gather4": "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4."
    "mbarrier::complete_tx::bytes [s], [%rd0, {%r0,%r1,%r2,%r3,%r4}], [s];",
    "tensormap_replace": "tensormap.replace.tile.global_dim.global.b1024.b32 [%rd0], 0, %r0;",
    "fence_proxy_async": "fence.proxy.async;",
    "cluster": "barrier.cluster.arrive;",
    "clusterlaunchcontrol": "clusterlaunchcontrol.try_cancel.async.shared::cta."
    "mbarrier::complete_tx::bytes.b128 [s], [s+32];",
    "griddepcontrol": "griddepcontrol.wait;",
    "setmaxnreg": "setmaxnreg.inc.sync.aligned.u32 104;",
    "st_async": "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [s], %r0, [s];",
    "multimem": "multimem.ld_reduce.relaxed.sys.global.add.f32 %f0, [%rd0];",
    "atom_bf16": "atom.global.add.noftz.bf16x2 %r0, [%rd0], %r1;",
    "atom_vector": "atom.global.add.v2.f32 {%f0,%f1}, [%rd0], {%f2,%f3};",
    "atom_b128": "{.reg .b128 q<3>; atom.global.exch.b128 q0, [%rd0], q1;}",
    "cache_hint": "ld.global.L2::cache_hint.b32 %r0, [%rd0], %rd1;",
    "ld_256": "ld.global.v8.f32 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, [%rd0];",
}

_REGISTERS = (
    ".reg .b16 %h<4>; .reg .b32 %r<10>; .reg .f32 %f<8>; .reg .b64 %rd<4>; "
    ".reg .f64 %fd<8>; .reg .pred %p<2>; .shared .align 128 .b8 s[256];"
)


def test_every_feature_has_a_probe() -> None:
    assert list(PROBES) == list(FEATURES)


def _module(version: str, target: str, names: list[str]) -> str:
    """One kernel a line from line 4 on, so that a line number names the feature."""
    lines = [f".version {version}", f".target {target}", ".address_size 64"]
    lines += [f".entry {name}() {{ {_REGISTERS} {PROBES[name]} ret; }}" for name in names]
    return "\n".join(lines) + "\n"


def test_ptxas_has_the_same_features(assemblers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    names = list(PROBES)
    cells = 0
    for assembler in assemblers:
        for target in assembler.targets:
            text = _module(assembler.version, target, names)
            errors = assembler.errors(text, target, tmp_path)
            rejected = {names[line - 4] for line, _ in errors if line >= 4}
            # A line below 4 would be a fault of the module itself and hide all else.
            assert not [error for error in errors if 0 < error[0] < 4], (target, errors)
            expected = {name for name in names if supports(target, name) is False}
            assert rejected == expected, (assembler.path, target, rejected ^ expected)
            cells += len(names)
    assert cells >= 20 * len(names)


def test_supported_features_assemble(assemblers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Code generation too, not only the target check, for all features of the target at once."""
    for assembler in assemblers:
        for target in set(assembler.targets) & {"sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"}:
            names = [name for name in PROBES if supports(target, name)]
            assert (
                assembler.errors(_module(assembler.version, target, names), target, tmp_path) == []
            )


def test_ptxas_has_features_since_the_same_version(assemblers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Some target assembles the probe with version `since`, and none with the release before."""
    versions = [version for version, _ in PTX_RELEASES]
    assembler = max(assemblers, key=lambda a: len(a.targets))
    for name, feature in FEATURES.items():
        before = versions[versions.index(feature.since) - 1]
        hosts = [t for t in assembler.targets if supports(t, name)]
        oldest = [t for t in hosts if (ptx_version_for(t) or before) <= feature.since]
        assert oldest, name
        assert any(_assembles(assembler, name, feature.since, t, tmp_path) for t in oldest), name
        earlier = [t for t in hosts if (ptx_version_for(t) or before) <= before]
        assert not any(_assembles(assembler, name, before, t, tmp_path) for t in earlier[:3]), name


def _assembles(assembler, name: str, version: tuple[int, int], target: str, scratch: Path) -> bool:  # type: ignore[no-untyped-def]
    text = _module(f"{version[0]}.{version[1]}", target, [name])
    if version < (6, 3):
        text = text.replace(".aligned", "")  # 6.3 introduced the modifier.
    assert version <= parse_version(assembler.version)
    return assembler.errors(text, target, scratch) == []


@pytest.mark.parametrize(
    ("target", "feature", "answer"),
    [
        ("sm_75", "cp_async", False),
        ("sm_80", "cp_async", True),
        ("sm_90", "wgmma", False),
        ("sm_90a", "wgmma", True),
        ("sm_100a", "wgmma", False),
        ("sm_90", "tma", True),
        ("sm_100", "tcgen05", False),
        ("sm_100f", "tcgen05", True),
        ("sm_120a", "tcgen05", False),
        ("sm_86", "fp8", False),
        ("sm_89", "fp8", True),
        ("sm_20", "ldmatrix", False),
        # Newer than the tables: portable features carry over, others are unknown.
        ("sm_200", "cp_async", True),
        ("sm_200", "tcgen05", False),
        ("sm_200a", "tcgen05", None),
    ],
)
def test_known_answers(target: str, feature: str, answer: bool | None) -> None:
    assert supports(target, feature) is answer
    assert (feature in features_of(target)) is bool(answer)


def test_unknown_feature_and_malformed_target() -> None:
    with pytest.raises(KeyError):
        supports("sm_80", "teleport")
    with pytest.raises(TargetError):
        features_of("ampere")
