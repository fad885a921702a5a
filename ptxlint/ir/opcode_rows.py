"""The opcode table: every base opcode of PTX ISA up to 9.4, as text.

An entry starts at the margin: `opcodes: category @version/target words`, its forms follow, one a
line. The version is the PTX ISA that brought the opcode (1.0 when not given), the target says
which architectures have it: `80` sm_80 and later, `90a` that one alone, `100f` the family of
sm_100 with suffix `a` or `f`; several stand with commas. The words are `convergent`, `effect`
(stays although its result is unused), `branch indirect return exit trap`, `call`, `reads` and
`writes` (memory that no address operand names), `carry` (reads CC).

A form is `when => operands`; without `=>` it is for all modifiers. `when` are modifiers that must
be present, `!x` absent, and `@version/target` if the form has its own. Lines with the same `when`
are alternatives. `-` stands for no operands. An operand is

- `d` defined, `p` a pair of which both are defined, `u` used, `x` defined and used, `v` used and
  a vector, `l` label, `f` callee, `t` target list or prototype, `G` and `g` results and arguments
  of a call, `H` the cache policy that `.L2::cache_hint` calls for;
- then `:type` and `*elements` (see `OperandSpec`);
- `[r] [w] [rw] []` an address through which memory is read, written, both or neither, in the
  state space of the modifiers, or `[r/shared]` with the space named; `u[r/tmem]` is either a
  value or such an address;
- then `?` if optional, `?mod` if there exactly when the modifier is.

Sources: PTX ISA, "Instruction Set"; operand counts, types, versions and targets from 4.0 and
sm_50 on are held against ptxas by the tests.
"""

from __future__ import annotations

from typing import Final

_TEXT: Final = """
add sub: int
  d:T u:L u:T

mul: int
  wide => d:W u:T u:T
  d:T u:T u:T

mad: int
  wide => d:W u:T u:T u:W
  d:T u:T u:T u:T

mul24 div rem: int
  d:T u:T u:T

mad24 sad: int
  d:T u:T u:T u:T

abs neg: int
  d:T u:T

min max: int
  f32 => d:T u:T u:T
  f32 @8.8/100 => d:T u:T u:T u:T
  d:T u:T u:T

popc clz bfind: int @2.0/20
  d:i32 u:T

fns: int @6.0/30
  d:b32 u:b32 u:b32 u:b32

brev: int @2.0/20
  d:T u:T

bfe: int @2.0/20
  d:T u:T u:i32 u:i32

bfi: int @2.0/20
  d:T u:T u:T u:i32 u:i32

szext: int @7.6/70
  d:T u:T u:b32

bmsk: int @7.6/70
  d:T u:b32 u:b32

dp4a dp2a: int @5.0/61
  d:i32 u:T u:T1 u:T

addc: int @1.2 carry
  d:T u:T u:T

subc: int @3.0 carry
  d:T u:T u:T

madc: int @3.0/20 carry
  d:T u:T u:T u:T

clmad: int @9.3/80
  d:T u:T u:T u:T

testp: float @2.0/20
  d:pred u:T

copysign: float @2.0/20
  d:T u:T u:T

fma: float
  d:T u:L u:L u:T

rcp sqrt rsqrt sin cos lg2 ex2: float
  d:T u:T

tanh: float @7.0/75
  d:T u:T

set: compare
  and => d:T u:T1 u:T1 u:pred
  or => d:T u:T1 u:T1 u:pred
  xor => d:T u:T1 u:T1 u:pred
  d:T u:T1 u:T1

setp: compare
  and => d:pred|pred u:L u:L u:pred
  or => d:pred|pred u:L u:L u:pred
  xor => d:pred|pred u:L u:L u:pred
  d:pred|pred u:L u:L

selp: compare
  d:T u:T u:T u:pred

slct: compare
  d:T u:T u:T u:T1

and or xor: logic
  d:T u:T u:T

not cnot: logic
  d:T u:T

lop3: logic @4.3/50
  d:b32 u:b32 u:b32 u:b32 u:imm
  @8.2/70 => p:b32|pred u:b32 u:b32 u:b32 u:imm u:pred

shf: logic @3.1/32
  d:b32 u:b32 u:b32 u:i32

shl shr: logic
  d:T u:T u:i32

mov: move
  d:P u:P

prmt: move @2.0/20
  d:b32 u:b32 u:b32 u:b32

isspacep: move @2.0/20
  d:pred u

mapa: move @7.8/90
  d:T u:T u:i32

getctarank: move @7.8/90
  d:i32 u:T

alloca: move @7.3/52 effect
  d:T u:T u:imm?

stacksave: move @7.3/52 effect
  d:T

stackrestore: move @7.3/52 effect
  u:T

cvta: convert @2.0/20
  d:T u:T

cvt: convert
  pack @6.5/72 => d:i32 u:T1 u:T1 u:b32?
  rs @8.7/100f => d u u? u
  d:C u:C u:C? u?

ld: memory
  d:T+*v [r] H

ldu: memory @2.0
  d:T+*v [r]

st: memory effect
  async mbarrier::complete_tx::bytes @8.1/90 => [w] u:T+*v [rw]
  async @8.7/100 => [w] u:T+*v
  bulk @8.6/100 => [w/shared] u u:imm
  [w] u:T+*v H

multimem: memory @8.1/90 effect
  ld_reduce => d:L*v [r]
  red => [rw] u:L*v
  st => [w] u:L*v
  cp reduce async bulk @9.1/90 => [rw/global] [r/shared] u:i32
  cp async bulk @9.1/90 => [w/global] [r/shared] u:i32 u:i16?cp_mask

prefetch prefetchu: memory @2.0/20 effect
  []

applypriority: memory @7.4/80 effect
  async bulk tensor => [] u? u?
  async bulk => [] u:b32
  [] u:imm

discard: memory @7.4/80 effect
  [w] u:imm

createpolicy: memory @7.4/80
  fractional => d:i64 u:f32?
  range => d:i64 [] u:i32 u:i32
  cvt => d:i64 u:i64

cp: async @7.0/80 effect
  async bulk commit_group @8.0/90 => -
  async bulk wait_group @8.0/90 => u:imm
  async bulk prefetch tensor @8.0/90 => [r/global] u? H
  async bulk prefetch @8.0/90 => [r] u:i32 H
  reduce async bulk tensor @8.0/90 => [rw/global] [r/shared] H
  reduce async bulk bulk_group @8.0/90 => [rw] [r/S2] u:i32 H
  reduce async bulk @8.0/90 => [rw] [r/S2] u:i32 [rw/shared] H
  async bulk tensor bulk_group @8.0/90 => [w/global] [r/shared] H
  async bulk tensor @8.0/90 => [w/shared] [r/global] [rw/shared] u? u:i16?multicast::cluster H
  async bulk bulk_group @8.0/90 => [w] [r/S2] u:i32 H u:i16?cp_mask
  async bulk ignore_oob @9.2/90 => [w] [r/S2] u:i32 u:i32 u:i32 [rw/shared] H
  async bulk @8.0/90 => [w] [r/S2] u:i32 [rw/shared] u:i16?multicast::cluster H
  async commit_group => -
  async wait_group => u:imm
  async wait_all => -
  async mbarrier => [rw]
  async => [w/shared] [r/global] u:imm u? H

tensormap: async @8.3/90a,100f,110f,120f effect
  cp_fenceproxy @8.3/90 => [w/global] [r/shared] u:imm
  replace box_dim => [w] u:imm u:T1
  replace global_dim => [w] u:imm u:T1
  replace global_stride => [w] u:imm u:T1
  replace element_stride => [w] u:imm u:T1
  replace => [w] u:T1

mbarrier: barrier @7.0/80 effect
  init => [rw] u:i32
  inval => [rw]
  arrive expect_tx @8.0/90 => d:i64 [rw] u:i32
  arrive => d:i64 [rw] u:i32?
  arrive_drop expect_tx @8.0/90 => d:i64 [rw] u:i32
  arrive_drop => d:i64 [rw] u:i32?
  expect_tx @8.0/90 => [rw] u:i32
  complete_tx @8.0/90 => [rw] u:i32
  test_wait parity @7.1/80 => d:pred [r] u:i32
  test_wait => d:pred [r] u:i64
  try_wait parity @7.8/90 => d:pred [r] u:i32 u:i32?
  try_wait @7.8/90 => d:pred [r] u:i64 u:i32?
  pending_count => d:i32 u:i64

clusterlaunchcontrol: async @8.6/100 effect
  try_cancel => [w/shared] [rw/shared]
  query_cancel is_canceled => d:pred u:b128
  query_cancel => d:b32 u:b128

tex: texture
  d:any|pred*v [r/tex] u? u? u? u?

tld4: texture @2.2/20
  d:any|pred*v [r/tex] u? u? u? u?

txq: texture @2.0
  level => d:b32 [] u:b32
  d:b32 []

istypep: texture @4.0/30
  d:pred u

suld: surface @1.5
  d [r/surf]

sust: surface @1.5 effect
  [w/surf] u

sured: surface @2.0/20 effect
  [rw/surf] u

suq: surface @2.0
  d:b32 []

bra: control branch effect
  l

brx: control @6.0/30 indirect effect
  u:i32 t

call: control call effect reads writes
  G f g t?
  G f g
  f g t
  G f
  f g
  f t
  f

ret: control return effect
  -

exit: control exit effect
  -

trap: control trap effect
  -

brkpt: misc effect
  -

nanosleep: misc @6.2/70 effect
  u:i32

pmevent: misc @1.4 effect
  u:imm

setmaxnreg: misc @8.0/90a,100f,110f,120f convergent effect
  u:imm

griddepcontrol: misc @7.8/90 effect
  -

bar: barrier convergent effect
  warp @6.0/30 => u:i32
  arrive => u:i32 u:i32
  red popc => d:T u:i32 u:i32? u:pred
  red => d:pred u:i32 u:i32? u:pred
  u:i32 u:i32?

barrier: barrier @6.0/30 convergent effect
  cluster @7.8/90 => -
  arrive => u:i32 u:i32
  red popc => d:T u:i32 u:i32? u:pred
  red => d:pred u:i32 u:i32? u:pred
  u:i32 u:i32?

membar: barrier @1.4 effect
  -

fence: barrier @6.0/70 effect
  proxy tensormap::generic acquire @8.3/90 => [rw/] u:imm
  proxy tensormap::generic @8.3/90 => -
  proxy async::generic @8.6/90 => -
  proxy async @8.0/90 => -
  mbarrier_init @8.0/90 => -
  -

atom: atomic @1.1/11 effect
  cas => d:L [rw] u:L u:L H
  d:L*v [rw] u:L*v H

red: atomic @1.2/11 effect
  async mbarrier::complete_tx::bytes @8.1/90 => [rw] u:L [rw]
  async @8.7/100 => [rw] u:L
  [rw] u:L*v H

vote: warp @1.2/12 convergent
  sync ballot @6.0/30 => d:b32 u:pred u:i32
  sync @6.0/30 => d:pred u:pred u:i32
  ballot => d:b32 u:pred
  d:pred u:pred

shfl: warp @3.0/30 convergent
  sync @6.0/30 => d:b32|pred u:b32 u:b32 u:b32 u:i32
  d:b32|pred u:b32 u:b32 u:b32

match: warp @6.0/70 convergent
  any => d:i32 u:T u:i32
  d:i32|pred u:T u:i32

activemask: warp @6.2/30 effect
  d:b32

redux: warp @7.0/80 convergent
  d:T u:T u:i32

elect: warp @8.0/90 convergent
  p:i32|pred u:i32

ldmatrix: tensor @6.5/75 convergent
  m16n16 @8.6/100f,110f,120f => d:b32*y [r]
  m8n16 @8.6/100f,110f,120f => d:b32*x [r]
  d:b32*x [r]

stmatrix: tensor @7.8/90 convergent effect
  m16n8 @8.6/100f,110f,120f => [w] u:b32*x
  [w] u:b32*x

movmatrix: tensor @7.8/75 convergent
  d u:b32

wmma: tensor @6.0/70 convergent
  load => d:M [r] u:b32?
  store => [w] u:M u:b32?
  mma => d:M u:M u:M u:M

mma: tensor @6.4/70 convergent
  sp block_scale @8.7/120f => d:M*m u:M*m u:M*m u:M*m u:b32 u:imm u:b32 v u:b32 v
  sp::ordered_metadata block_scale @8.7/120f => d:M*m u:M*m u:M*m u:M*m u:b32 u:imm u:b32 v u:b32 v
  sp @7.1/80 => d:M*m u:M*m u:M*m u:M*m u:b32 u:imm
  sp::ordered_metadata @8.5/80 => d:M*m u:M*m u:M*m u:M*m u:b32 u:imm
  block_scale @8.7/120f => d:M*m u:M*m u:M*m u:M*m u:b32 v u:b32 v
  kind::f8f6f4 @8.7/120f => d:M*m u:M*m u:M*m u:M*m
  d:M*m u:M*m u:M*m u:M*m

wgmma: tensor @8.0/90a convergent effect reads
  fence => -
  commit_group => -
  wait_group => u:imm
  mma_async sp @8.2/90a => x:M*m u*a u:b64 u:b32 u:imm u:pred u:imm? u:imm? u:imm? u:imm?
  mma_async => x:M*m u*a u:b64 u:pred u:imm? u:imm? u:imm? u:imm?

tcgen05: tensor @8.6/100f,110f effect
  alloc => [w/shared] u:i32
  dealloc => u:i32 u:i32
  relinquish_alloc_permit => -
  ld red @8.8 => d:b32*t d:b32 [r/tmem] u:imm?
  ld => d:b32*t [r/tmem] u:imm?
  st => [w/tmem] u:imm u:b32*t
  st => [w/tmem] u:b32*t
  wait::ld => -
  wait::st => -
  cp => [w/tmem] u:i64
  shift => [rw/tmem]
  commit => [rw/shared] u:i16?multicast::cluster
  fence::before_thread_sync => -
  fence::after_thread_sync => -
  mma ws sp => [rw/tmem] u:i64[r/tmem] u:i64 [r/tmem] u:i32 u:pred u:i64?
  mma ws => [rw/tmem] u:i64[r/tmem] u:i64 u:i32 u:pred u:i64?
  mma sp block_scale => [rw/tmem] u:i64[r/tmem] u:i64 [r/tmem] u:i32 [r/tmem] [r/tmem] u:pred
  mma sp => [rw/tmem] u:i64[r/tmem] u:i64 [r/tmem] u:i32 v u:pred u:imm?
  mma sp => [rw/tmem] u:i64[r/tmem] u:i64 [r/tmem] u:i32 u:pred u:imm?
  mma sp => [rw/tmem] u:i64[r/tmem] u:i64 [r/tmem] u:i32 u u:pred u:imm
  mma block_scale => [rw/tmem] u:i64[r/tmem] u:i64 u:i32 [r/tmem] [r/tmem] u:pred
  mma => [rw/tmem] u:i64[r/tmem] u:i64 u:i32 v u:pred u:imm?
  mma => [rw/tmem] u:i64[r/tmem] u:i64 u:i32 u:pred u:imm?
  mma => [rw/tmem] u:i64[r/tmem] u:i64 u:i32 u u:pred u:imm

vadd vsub vabsdiff vmin vmax: video @2.0/20
  d:T u:T1 u:T2 u:T?

vshl vshr: video @2.0/20
  d:T u:T1 u:T2 u:T?

vmad: video @2.0/20
  d:T u:T1 u:T2 u:T

vset: video @2.0/20
  d:i32 u:T u:T1 u:i32?

vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2: video @3.0/30
  d:T u:T1 u:T2 u:T

vset2: video @3.0/30
  d:b32 u:T u:T1 u:b32

vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4: video @3.0/30
  d:T u:T1 u:T2 u:T

vset4: video @3.0/30
  d:b32 u:T u:T1 u:b32
"""


def _index() -> dict[str, str]:
    rows: dict[str, str] = {}
    for entry in _TEXT.strip().split("\n\n"):
        names, _, body = entry.partition(":")
        for name in names.split():
            rows[name] = body
    return rows


ROWS: Final[dict[str, str]] = _index()
"""The text of each row by base opcode."""
