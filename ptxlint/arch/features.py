"""Which instructions and data types a `.target` has.

Source: "Target ISA Notes" of each instruction in the PTX ISA and its table of
architecture-specific and family-specific features; every cell is held against ptxas by the
tests. A feature comes to targets in one of three ways: to all targets from a number on
(`minimum`), to the `a` and `f` targets of a family (`families`), or to single `a` targets
(`exact`).
"""

from typing import NamedTuple

from ptxlint.arch.targets import MIN_PTX_VERSION, PtxVersion, Target, parse_target


class Feature(NamedTuple):
    """One capability and the targets that have it."""

    name: str
    what: str
    since: PtxVersion
    """First PTX ISA version in which any target has it."""
    minimum: int | None = None
    families: tuple[int, ...] = ()
    exact: tuple[str, ...] = ()


# Members of a family, by the number of its first `f` target of today's naming.
FAMILIES: dict[int, tuple[int, ...]] = {100: (100, 103, 107), 110: (101, 110), 120: (120, 121)}

_ALL_FAMILIES = (100, 110, 120)
_DATACENTER_FAMILIES = (100, 110)

FEATURES: dict[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("wmma", "warp-level matrix `wmma`, fp16", (6, 0), 70),
        Feature("ldmatrix", "`ldmatrix` of 8x8 b16", (6, 5), 75),
        Feature("ldmatrix_b8", "`ldmatrix`/`stmatrix` of b8", (8, 6), families=_ALL_FAMILIES),
        Feature("stmatrix", "`stmatrix` of 8x8 b16", (7, 8), 90),
        Feature("movmatrix", "`movmatrix`", (7, 8), 75),
        Feature("mma_f16", "`mma` m16n8k16 fp16", (7, 0), 80),
        Feature("mma_f16_k8", "`mma` m16n8k8 fp16", (6, 5), 75),
        Feature("mma_bf16", "`mma` m16n8k16 bf16", (7, 0), 80),
        Feature("mma_tf32", "`mma` m16n8k8 tf32", (7, 0), 80),
        Feature("mma_f64", "`mma` m8n8k4 fp64", (7, 0), 80),
        Feature("mma_int8", "`mma` m16n8k32 s8/u8", (7, 0), 80),
        Feature("mma_int8_k16", "`mma` m8n8k16 s8/u8", (6, 5), 75),
        Feature("mma_int4", "`mma` m16n8k64 s4/u4", (7, 0), 80),
        Feature("mma_int4_k32", "`mma` m8n8k32 s4/u4", (6, 5), 75),
        Feature("mma_b1", "`mma` m16n8k256 b1 and.popc", (7, 1), 80),
        Feature("mma_sparse", "`mma.sp`", (7, 1), 80),
        Feature("mma_fp8", "`mma` m16n8k32 e4m3/e5m2", (8, 4), 89),
        Feature("mma_fp6_fp4", "`mma` kind::f8f6f4", (8, 7), families=(120,)),
        Feature("mma_block_scale", "`mma` block_scale", (8, 7), families=(120,)),
        Feature("wgmma", "warpgroup `wgmma`", (8, 0), exact=("sm_90a",)),
        Feature("tcgen05", "`tcgen05` and tensor memory", (8, 6), families=_DATACENTER_FAMILIES),
        Feature(
            "tcgen05_int8",
            "`tcgen05.mma` kind::i8",
            (8, 6),
            exact=("sm_100a", "sm_101a", "sm_110a"),
        ),
        Feature("bf16", "bf16 `fma`, `min`, `max`, `cvt`", (7, 0), 80),
        Feature("bf16_arithmetic", "bf16 `add`, `sub`, `mul`, `setp`", (7, 8), 90),
        Feature("tf32", "`cvt` to tf32", (7, 0), 80),
        Feature("fp8", "`cvt` to and from e4m3, e5m2", (7, 8), 89),
        Feature("fp6_fp4", "`cvt` to and from fp6, fp4, ue8m0", (8, 6), families=_ALL_FAMILIES),
        Feature(
            "cvt_stochastic",
            "`cvt.rs` to f16x2, bf16x2",
            (8, 7),
            exact=("sm_100a", "sm_103a", "sm_107a"),
        ),
        Feature("f32x2", "packed `add`/`mul`/`fma` f32x2", (8, 6), 100),
        Feature("mixed_precision", "`fma.f32.f16` and the like", (8, 6), 100),
        Feature("min_max_nan", "`min`/`max` with `.NaN`", (7, 0), 80),
        Feature("min_max_3", "`min`/`max` of three inputs", (8, 8), 100),
        Feature("redux", "`redux.sync` of integers", (7, 0), 80),
        Feature("redux_f32", "`redux.sync` of f32", (8, 6), families=(100,)),
        Feature("elect", "`elect.sync`", (8, 0), 90),
        Feature("cp_async", "`cp.async`", (7, 0), 80),
        Feature("mbarrier", "`mbarrier`", (7, 0), 80),
        Feature("mbarrier_try_wait", "`mbarrier.try_wait`", (7, 8), 90),
        Feature("mbarrier_tx", "`mbarrier` transaction counts", (8, 0), 90),
        Feature("tma", "`cp.async.bulk` and its tensor form", (8, 0), 90),
        Feature("tma_gather4", "tile::gather4/scatter4", (8, 6), families=_DATACENTER_FAMILIES),
        Feature(
            "tensormap_replace",
            "`tensormap.replace`",
            (8, 3),
            families=_ALL_FAMILIES,
            exact=("sm_90a",),
        ),
        Feature("fence_proxy_async", "`fence.proxy.async`", (8, 0), 90),
        Feature("cluster", "clusters, `mapa`, `barrier.cluster`", (7, 8), 90),
        Feature("clusterlaunchcontrol", "`clusterlaunchcontrol`", (8, 6), 100),
        Feature("griddepcontrol", "`griddepcontrol`", (7, 8), 90),
        Feature("setmaxnreg", "`setmaxnreg`", (8, 0), families=_ALL_FAMILIES, exact=("sm_90a",)),
        Feature("st_async", "`st.async`", (8, 1), 90),
        Feature("multimem", "`multimem`", (8, 1), 90),
        Feature("atom_bf16", "`atom.add.noftz.bf16x2`", (7, 8), 90),
        Feature("atom_vector", "`atom`/`red` of vectors", (8, 1), 90),
        Feature("atom_b128", "`atom` of b128", (8, 3), 90),
        Feature("cache_hint", "`createpolicy`, `L2::cache_hint`", (7, 4), 80),
        Feature("ld_256", "256-bit `ld`/`st`", (8, 8), 100),
    )
}


def supports(target: str, feature: str) -> bool | None:
    """Whether code for `target` may use `feature`; None when that is unknown.

    Unknown are family and architecture features of a target newer than the tables. Raises
    TargetError for a malformed target and KeyError for a feature not in FEATURES.
    """
    return _has(parse_target(target), FEATURES[feature])


def features_of(target: str) -> frozenset[str]:
    """Names of all features that `target` is known to have."""
    parsed = parse_target(target)
    return frozenset(name for name, feature in FEATURES.items() if _has(parsed, feature))


def _has(target: Target, feature: Feature) -> bool | None:
    if feature.minimum is not None:
        return target.number >= feature.minimum
    if not target.suffix:
        return False
    if not target.defined:
        return None if target.number > _NEWEST_NUMBER else False
    in_family = any(target.number in FAMILIES[family] for family in feature.families)
    return in_family or target.name in feature.exact


_NEWEST_NUMBER = max(parse_target(name).number for name in MIN_PTX_VERSION)
