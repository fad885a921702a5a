"""Which modifiers and which types each opcode takes, as text.

Measured with ptxas 12.9 and 13.4: each modifier put into each measured statement of each opcode,
alone in a kernel, and each type and pair of types put in the place of its own. What at least one
form of an opcode takes stands here; what ptxas passes over without a word stands in `ANYWHERE`.
An opcode without a row takes whatever there is. PTX ISA 9.4; the tests measure again.
"""

from __future__ import annotations

from typing import Final

GROUPS: Final[dict[str, str]] = {
    "SPACE": "const global local param param::entry param::func"
    " shared shared::cluster shared::cta tex",
    "COMPARE": "eq equ ge geu gt gtu hi hs le leu lo ls lt ltu nan ne neu num",
    "BOOLEAN": "and or xor",
    "ROUND": "rm rn rp rz",
    "INTEGER": "rmi rni rpi rzi",
    "SCOPE": "cluster cta gpu sys",
    "VECTOR": "v2 v4 v8",
    "EVICT": "L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged L1::no_allocate"
    " L2::evict_first L2::evict_last L2::evict_normal"
    " evict_first evict_last evict_normal evict_unchanged no_allocate",
    "GEOMETRY": "1d 1d_buffer 2d 2dms 3d 4d 5d a1d a2d a2dms acube cube",
    "QUERY": "addr_mode_0 addr_mode_1 addr_mode_2 array_size channel_data_type channel_order depth"
    " filter_mode force_unnormalized_coords height memory_layout normalized_coords"
    " num_mipmap_levels num_samples width",
}
"""Words in capitals in the rows, and what they stand for."""

ANYWHERE: Final = """
acc::f32 assume_large b2 box_dim element_stride elemtype fill_mode finite global_address global_dim
global_stride infinite interleave_layout normal notanumber number rank s2 subnormal
swizzle_atomicity swizzle_mode u2
"""
"""Words of some opcodes that ptxas does not object to in any other."""

ELSEWHERE: Final = """
128x128b 128x256b 16x128b 16x256b 16x32bx2 16x64b 32x128b 32x32b 4x256b 64x128b alloc ashift
block16 block32 block_scale bulk_group c col collector::a::discard collector::a::fill
collector::a::lastuse collector::a::use collector::b0::discard collector::b0::fill
collector::b0::lastuse collector::b0::use collector::b1::discard collector::b1::fill
collector::b1::lastuse collector::b1::use collector::b2::discard collector::b2::fill
collector::b2::lastuse collector::b2::use collector::b3::discard collector::b3::fill
collector::b3::lastuse collector::b3::use commit commit_group cp cp_fenceproxy cp_mask
cta_group::1 cta_group::2 cvt d dealloc fence fence::after_thread_sync fence::before_thread_sync
fractional get_first_ctaid get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z ignore_oob
im2col im2col::w im2col::w::128 im2col_no_offs is_canceled kind::f16 kind::f8f6f4 kind::i8
kind::mxf4 kind::mxf4nvf4 kind::mxf8f6f4 kind::tf32 ld ld_reduce load m16n16 m16n16k16 m16n8
m16n8k16 m16n8k256 m16n8k32 m16n8k64 m16n8k8 m64n128k16 m64n256k16 m64n32k16 m64n64k16 m64n64k32
m64n64k8 m64n8k16 m64n8k256 m64n8k32 m64n8k64 m64n8k8 m8n16 m8n8 m8n8k128 m8n8k4 matrix::A
matrix::D matrix::scaleA matrix::scaleB matrix::sparseMetadata mbarrier mbarrier::arrive::one mma
mma_async multicast multimem noinc pack::16b prefetch query_cancel range read reduce
relinquish_alloc_permit replace row scale_vec::1X scale_vec::2X scale_vec::4X shift sp
sp::ordered_metadata st store tile tile::gather4 tile::scatter4 trans try_cancel unpack::16b
wait::ld wait::st wait_all wait_group warpx2::01_23 warpx2::02_13 warpx4 ws x1 x128 x16 x2 x32 x4
x64 x8
"""
"""Words that only opcodes without a row take."""

MODIFIERS: Final = """
bra call: uni
brx: idx uni
abs neg slct: ftz
activemask alloca and bfe bfi brev brkpt clz cnot copysign dp4a exit fns istypep nanosleep not or
  popc rem sad selp shl shr stackrestore stacksave testp trap xor:
add sub: ROUND cc ftz relu rna sat satfinite
addc subc: cc relu sat
applypriority: SPACE EVICT L2::evict_unchanged L2::no_allocate async bulk tensor
atom: SPACE BOOLEAN SCOPE VECTOR L2::cache_hint acq_rel acquire add cas dec exch inc max maxabs
  min noftz popc relaxed release safeadd
bar: BOOLEAN add all any arrive cas cta dec exch inc max maxabs min no_membermask_overlap popc red
  safeadd sync warp
barrier: BOOLEAN acquire add aligned arrive cas cluster cta dec exch inc max maxabs min popc red
  relaxed release safeadd sync wait
bfind: shiftamt
bmsk szext: clamp wrap
clmad: lo
cos ex2 lg2 rsqrt sin: approx ftz
cvt: ROUND INTEGER ftz pack relu rna rs sat satfinite scaled::n2::ue8m0
cvta: SPACE to
discard: SPACE L2
div: ROUND approx ftz full rna
dp2a mul24: hi lo
elect: sync
fence: SPACE SCOPE acq_rel acquire alias async async::generic mbarrier_init proxy release sc
  sync_restrict::shared::cluster sync_restrict::shared::cluster::read sync_restrict::shared::cta
  tensormap::generic
fma: ROUND ftz oob relu rna sat
getctarank isspacep mapa: SPACE
griddepcontrol: launch_dependents wait
ld: SPACE SCOPE EVICT VECTOR L1::32B L2::128B L2::256B L2::64B L2::cache_hint acquire ca cg cs cv
  gl lu mmio nc proxy::readonly relaxed volatile weak
ldu: SPACE VECTOR
lop3: BOOLEAN add cas dec exch inc max maxabs min popc safeadd
mad: ROUND cc ftz hi lo rna sat wide
mad24: hi lo sat
madc: cc hi lo sat
match vote: all any ballot no_membermask_overlap sync uni
max: NaN abs ftz relu sat xorsign
mbarrier: SPACE acquire arrive arrive_drop cluster complete_tx cta expect_tx init inval
  multicast::cluster multicast::cluster::all noComplete parity pending_count relaxed release
  test_wait try_wait
membar: SPACE alias async cta gl proxy sys
min: NaN abs ftz relu xorsign
mov: VECTOR
mul: ROUND ftz hi lo relu rna sat satfinite wide
pmevent: mask
prefetch: SPACE EVICT L1 L1::32B L2 L2::evict_unchanged L2::no_allocate tensormap valid_addr
prefetchu: L1 const global local param shared tex
prmt: b4e ecl f4e rc16 rc8
rcp sqrt: ROUND approx ftz rna
red: SPACE BOOLEAN SCOPE VECTOR L2::cache_hint add async cas dec exch inc max maxabs
  mbarrier::complete_tx::bytes min mmio noftz popc relaxed release safeadd
redux: BOOLEAN NaN abs add cas dec exch inc max maxabs min no_membermask_overlap popc safeadd sync
ret: uni
set setp: COMPARE BOOLEAN add cas dec exch ftz inc max maxabs min popc safeadd
setmaxnreg: aligned dec inc sync
shf: clamp l r wrap
shfl: bfly down idx no_membermask_overlap sync up
st: SPACE SCOPE EVICT VECTOR L2::cache_hint async bulk cg cs gl mbarrier::complete_tx::bytes mmio
  relaxed release volatile wb weak wt
suld: GEOMETRY VECTOR b ca cg clamp cs cv trap zero
suq: QUERY
sured: BOOLEAN GEOMETRY add b cas clamp dec exch inc max maxabs min p popc safeadd trap zero
sust: GEOMETRY VECTOR b cg clamp cs p trap wb wt zero
tanh: approx
tex: GEOMETRY VECTOR base grad level uni
tld4: GEOMETRY VECTOR a b g r uni
txq: QUERY level
vabsdiff vabsdiff4: BOOLEAN add cas dec exch inc max maxabs min popc safeadd sat
vabsdiff2 vadd4: add relu sat
vadd vadd2 vsub: BOOLEAN add cas dec exch inc max maxabs min popc relu safeadd sat
vavrg2 vavrg4 vmax2 vmax4 vmin2 vmin4 vsub2 vsub4: add sat
vmad: po relu sat shr15 shr7
vmax vmin: add max maxabs min popc sat
vset vset4: COMPARE BOOLEAN add cas dec exch inc max maxabs min popc safeadd
vset2: COMPARE add
vshl: add clamp max maxabs min popc sat wrap
vshr: BOOLEAN add cas clamp dec exch inc max maxabs min popc safeadd sat wrap
"""
"""Rows `opcodes: words`; a line that starts with blanks goes on with the one before."""

TYPES: Final = """
abs: bf16 bf16x2 f16 f16x2 f32 f64 s16 s32 s64
neg: bf16 bf16x2 f16 f16x2 f32 f64 s16 s16x2 s32 s64 s8x4 u16x2 u8x4
activemask bmsk fns lop3 prmt shf shfl: b32
add sub: bf16 bf16x2 f16 f16x2 f32 f32x2 f64 s16 s16x2 s32 s64 s8x4 u16 u16x2 u32 u64 u8x4
  e4m3x4.e4m3x4 f32.bf16/f16
addc madc rem sad subc: s16 s32 s64 u16 u32 u64
alloca stackrestore stacksave: s32 u32 u64
and not or xor: b16 b32 b64 pred
applypriority brkpt discard elect exit fence griddepcontrol isspacep membar pmevent prefetch
  prefetchu ret trap bra brx call: -
atom: b128 b16 b32 b64 bf16 bf16x2 f16 f16x2 f32 f64 s32 s64 u32 u64
bar barrier: - pred s32 u32
bfe bfind cvta getctarank mapa: s32 s64 u32 u64
bfi brev clz match popc: b32 b64
clmad: s64 u64
cnot shl: b16 b32 b64
copysign testp: f32 f64
cos lg2 sin: f32
cvt: bf16/f16/f32/f64/s16/s32/s64/s8/u16/u32/u64/u8.bf16/f16/f32/f64/s16/s32/s64/s8/u16/u32/u64/u8
  bf16x2/f16x2.e2m1x2/e2m3x2/e3m2x2/e4m3x2/e5m2x2/f32/s2f6x2/ue8m0x2
  e2m1x2/e2m3x2/e3m2x2/e4m3x2/e5m2x2/s2f6x2/ue8m0x2.bf16x2/f16x2/f32
  e4m3x4/e5m2x4/e2m3x4/e3m2x4/e2m1x4/tf32.f32
div: f32 f64 s16 s32 s64 u16 u32 u64
dp2a dp4a vset vset2 vset4: s32/u32.s32/u32
ex2: bf16 bf16x2 f16 f16x2 f32
fma: bf16 bf16x2 f16 f16x2 f32 f32x2 f64 f32.bf16/f16
ld ldu: b128 b16 b32 b64 b8 f32 f64 s16 s32 s64 s8 u16 u32 u64 u8
mad: f32 f64 s16 s32 s64 u16 u32 u64
mad24 mul24 nanosleep setmaxnreg szext: s32 u32
max min: bf16 bf16x2 f16 f16x2 f32 f64 s16 s16x2 s32 s64 s8x4 u16 u16x2 u32 u64 u8x4
mbarrier: b64
mov: b128 b16 b32 b64 f32 f64 pred s16 s32 s64 u16 u32 u64
mul: bf16 bf16x2 f16 f16x2 f32 f32x2 f64 s16 s32 s64 u16 u32 u64
rcp rsqrt sqrt: f32 f64
red: b32 b64 bf16 bf16x2 f16 f16x2 f32 f64 s32 s64 u32 u64
redux: b32 f32 s32 u32
selp: b16 b32 b64 f32 f64 s16 s32 s64 u16 u32 u64
set: bf16.b16/b32/b64/bf16/f16/f32/f64/s16/s32/s64/u16/u32/u64 bf16x2.bf16x2
  f16.b16/b32/b64/f16/f32/f64/s16/s32/s64/u16/u32/u64 f16x2.f16x2
  f32.b16/b32/b64/f32/f64/s16/s32/s64/u16/u32/u64 s16/u16.bf16/f16 s16x2 s8x4 u16x2 u8x4
  s32/u32.b16/b32/b64/bf16/bf16x2/f16/f16x2/f32/f64/s16/s32/s64/u16/u32/u64
setp: b16 b32 b64 bf16 bf16x2 f16 f16x2 f32 f64 s16 s32 s64 u16 u32 u64
shr: b16 b32 b64 s16 s32 s64 u16 u32 u64
slct: b16/b32/b64/f32/f64/s16/s32/s64/u16/u32/u64.f32/s32/u32
st: - b128 b16 b32 b64 b8 f32 f64 s16 s32 s64 s8 u16 u32 u64 u8
tanh: bf16 bf16x2 f16 f16x2 f32
vote: b32 pred
"""
"""Rows `opcodes: types`; `-` is none at all, `a/b.c/d` are four pairs. `cvt.pack`, with its three
types, is left out, and so is `.pred` beside another type, which ptxas passes over."""
