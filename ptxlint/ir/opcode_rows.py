"""The opcode table: one line of text for each base opcode of PTX ISA up to 9.x.

Notation: `category words | form; form; …`. The words are the ISA version that brought the opcode
(`1.0` when not given), the oldest architecture (`sm80`) and properties: `convergent`, `effect`
(stays although its result is unused), `branch indirect return exit trap`, `call`, `reads` and
`writes` (memory that no address operand names), `carry` (reads CC).

A form is `when => operands`; without `=>` it is for all modifiers. `when` are modifiers that must
be present, `!x` absent, `@8.6/90a` an ISA version and a target of its own. ` or ` separates
forms with the same `when`. `-` stands for no operands. An operand is

- `d` defined, `u` used, `x` defined and used, `v` used and a vector, `l` label, `f` callee,
  `t` target list or prototype, `G` and `g` results and arguments of a call;
- then `:type` and `*elements` (see `OperandSpec`);
- `[r] [w] [rw] []` an address through which memory is read, written, both or neither, in the
  state space of the modifiers, or `[r/shared]` with the space named; `u[r/tmem]` is either a
  value or such an address;
- then `?` if optional, `?mod` if there exactly when the modifier is.
"""

from __future__ import annotations

from typing import Final

_UNARY = "d:T u:T"
_BINARY = "d:T u:T u:T"
_TERNARY = "d:T u:T u:T u:T"
_MIXED = "d:T u:L u:T"
_VIDEO = "video 2.0 sm20 | d:T u:T1 u:T2 u:T?"
_SIMD = "video 3.0 sm30 | d:T u:T1 u:T2 u:T"
_EXTREME = "d:T u:T u:T u:T?"
_POLICY = "u:b64?L2::cache_hint"
_BARRIER = (
    "arrive => u:b32 u:b32;red popc => d:b32 u:b32 u:b32? u:pred;red => d:pred u:b32 u:b32? u:pred;"
)
_TEX = "d:any|pred [r/tex] u? u? u? u?"
_MMA = "d u u u"
_MBAR = "[rw]"

ROWS: Final[dict[str, str]] = {
    # Integer arithmetic
    "add": f"int | {_MIXED}",
    "sub": f"int | {_MIXED}",
    "mul": f"int | wide => d:W u:T u:T; {_BINARY}",
    "mad": f"int | wide => d:W u:T u:T u:W; {_TERNARY}",
    "mul24": f"int | {_BINARY}",
    "mad24": f"int | {_TERNARY}",
    "sad": f"int | {_TERNARY}",
    "div": f"int | {_BINARY}",
    "rem": f"int | {_BINARY}",
    "abs": f"int | {_UNARY}",
    "neg": f"int | {_UNARY}",
    "min": f"int | {_EXTREME}",
    "max": f"int | {_EXTREME}",
    "popc": "int 2.0 sm20 | d:b32 u:T",
    "clz": "int 2.0 sm20 | d:b32 u:T",
    "bfind": "int 2.0 sm20 | d:b32 u:T",
    "fns": "int 6.0 sm30 | d:b32 u:b32 u:b32 u:b32",
    "brev": f"int 2.0 sm20 | {_UNARY}",
    "bfe": "int 2.0 sm20 | d:T u:T u:b32 u:b32",
    "bfi": "int 2.0 sm20 | d:T u:T u:T u:b32 u:b32",
    "szext": "int 7.6 sm70 | d:T u:T u:b32",
    "bmsk": "int 7.6 sm70 | d:T u:b32 u:b32",
    "dp4a": "int 5.0 sm61 | d:b32 u:b32 u:b32 u:b32",
    "dp2a": "int 5.0 sm61 | d:b32 u:b32 u:b32 u:b32",
    "addc": f"int 1.2 carry | {_BINARY}",
    "subc": f"int 3.0 carry | {_BINARY}",
    "madc": f"int 3.0 sm20 carry | {_TERNARY}",
    # Floating point
    "testp": "float 2.0 sm20 | d:pred u:T",
    "copysign": f"float 2.0 sm20 | {_BINARY}",
    "fma": "float | d:T u:L u:L u:T",
    "rcp": f"float | {_UNARY}",
    "sqrt": f"float | {_UNARY}",
    "rsqrt": f"float | {_UNARY}",
    "sin": f"float | {_UNARY}",
    "cos": f"float | {_UNARY}",
    "lg2": f"float | {_UNARY}",
    "ex2": f"float | {_UNARY}",
    "tanh": f"float 7.0 sm75 | {_UNARY}",
    # Comparison and selection
    "set": "compare | d:T u:T1 u:T1 u:pred?",
    "setp": "compare | d:pred|pred u:L u:L u:pred?",
    "selp": "compare | d:T u:T u:T u:pred",
    "slct": "compare | d:T u:T u:T u:T1",
    # Logic and shift
    "and": f"logic | {_BINARY}",
    "or": f"logic | {_BINARY}",
    "xor": f"logic | {_BINARY}",
    "not": f"logic | {_UNARY}",
    "cnot": f"logic | {_UNARY}",
    "lop3": (
        "logic 4.3 sm50 | d:b32 u:b32 u:b32 u:b32 u:imm"
        " or d:b32|pred u:b32 u:b32 u:b32 u:imm u:pred"
    ),
    "shf": "logic 3.1 sm32 | d:b32 u:b32 u:b32 u:b32",
    "shl": "logic | d:T u:T u:b32",
    "shr": "logic | d:T u:T u:b32",
    # Data movement and conversion
    "mov": "move | d:T u:T",
    "prmt": "move 2.0 sm20 | d:b32 u:b32 u:b32 u:b32",
    "shfl": (
        "warp 3.0 sm30 convergent |"
        "sync @6.0/30 => d:b32|pred u:b32 u:b32 u:b32 u:b32;"
        "d:b32|pred u:b32 u:b32 u:b32"
    ),
    "ld": f"memory | d:T+*v [r] {_POLICY}",
    "ldu": "memory 2.0 | d:T+*v [r]",
    "st": (
        f"memory effect |"
        f"async mbarrier::complete_tx::bytes @8.1/90 => [w] u:T+*v [rw];"
        f"async @8.7/100 => [w] u:T+*v;"
        f"bulk @8.6/100 => [w/shared] u u:imm;"
        f"[w] u:T+*v {_POLICY}"
    ),
    "multimem": (
        "memory 8.1 sm90 effect |"
        "ld_reduce => d:L*v [r];"
        "cp reduce async bulk @9.1/90 => [rw/global] [r/shared] u:b32;"
        "cp async bulk @9.1/90 => [w/global] [r/shared] u:b32 u:b16?cp_mask;"
        "red => [rw] u:L*v;"
        "st => [w] u:L*v"
    ),
    "prefetch": "memory 2.0 sm20 effect | []",
    "prefetchu": "memory 2.0 sm20 effect | []",
    "applypriority": "memory 7.4 sm80 effect | [] u:imm",
    "discard": "memory 7.4 sm80 effect | [w] u:imm",
    "createpolicy": (
        "memory 7.4 sm80 |"
        "fractional => d:b64 u:f32?;"
        "range => d:b64 [] u:b32 u:b32;"
        "cvt => d:b64 u:b64"
    ),
    "isspacep": "move 2.0 sm20 | d:pred u",
    "cvta": "convert 2.0 sm20 | d:T u:T",
    "cvt": (
        "convert |pack @6.5/72 => d:T u:T1 u:T1 u:b32?;rs @8.7/100a => d u u? u;d:T+ u:T1+ u? u?"
    ),
    "mapa": "move 7.8 sm90 | d:T u u:b32",
    "getctarank": "move 7.8 sm90 | d:b32 u:T",
    "alloca": "move 7.3 sm52 effect | d:T u:T u:imm?",
    "stacksave": "move 7.3 sm52 effect | d:T",
    "stackrestore": "move 7.3 sm52 effect | u:T",
    # Asynchronous copies
    "cp": (
        "async 7.0 sm80 effect |"
        "async bulk commit_group @8.0/90 => -;"
        "async bulk wait_group @8.0/90 => u:imm;"
        f"async bulk prefetch tensor @8.0/90 => [r/global] u? u? {_POLICY};"
        f"async bulk prefetch @8.0/90 => [r] u:b32 {_POLICY};"
        f"reduce async bulk tensor @8.0/90 => [rw/global] [r/shared] {_POLICY};"
        f"reduce async bulk bulk_group @8.0/90 => [rw] [r/S2] u:b32 {_POLICY};"
        f"reduce async bulk @8.0/90 => [rw] [r/S2] u:b32 [rw/shared] {_POLICY};"
        f"async bulk tensor bulk_group @8.0/90 => [w/global] [r/shared] {_POLICY};"
        f"async bulk tensor @8.0/90 =>"
        f" [w/shared] [r/global] [rw/shared] u? u:b16?multicast::cluster {_POLICY};"
        f"async bulk bulk_group @8.0/90 => [w] [r/S2] u:b32 {_POLICY} u:b16?cp_mask;"
        f"async bulk ignore_oob @9.2/90 =>"
        f" [w] [r/S2] u:b32 u:b32 u:b32 [rw/shared] u:b16?multicast::cluster {_POLICY};"
        f"async bulk @8.0/90 => [w] [r/S2] u:b32 [rw/shared] u:b16?multicast::cluster {_POLICY};"
        "async commit_group => -;"
        "async wait_group => u:imm;"
        "async wait_all => -;"
        "async mbarrier => [rw];"
        f"async => [w/shared] [r/global] u:imm u? {_POLICY}"
    ),
    "tensormap": (
        "async 8.3 sm90 convergent effect |"
        "cp_fenceproxy => [w/global] [r/shared] u:imm;"
        "replace box_dim => [w] u:imm u:T1;"
        "replace global_dim => [w] u:imm u:T1;"
        "replace global_stride => [w] u:imm u:T1;"
        "replace element_stride => [w] u:imm u:T1;"
        "replace => [w] u:T1"
    ),
    "mbarrier": (
        "barrier 7.0 sm80 effect |"
        f"init => {_MBAR} u:b32;"
        f"inval => {_MBAR};"
        f"arrive => d:b64 {_MBAR} u:b32? or {_MBAR} u:b32?;"
        f"arrive_drop => d:b64 {_MBAR} u:b32? or {_MBAR} u:b32?;"
        f"expect_tx @8.0/90 => {_MBAR} u:b32;"
        f"complete_tx @8.0/90 => {_MBAR} u:b32;"
        "test_wait parity => d:pred [r] u:b32;"
        "test_wait => d:pred [r] u:b64;"
        "try_wait parity @7.8/90 => d:pred [r] u:b32 u:b32?;"
        "try_wait @7.8/90 => d:pred [r] u:b64 u:b32?;"
        "pending_count => d:b32 u:b64"
    ),
    "clusterlaunchcontrol": (
        "async 8.6 sm100 effect |"
        "try_cancel => [w/shared] [rw/shared];"
        "query_cancel is_canceled => d:pred u:b128;"
        "query_cancel => d:b32 u:b128"
    ),
    # Texture and surface
    "tex": f"texture | {_TEX}",
    "tld4": f"texture 2.2 sm20 | {_TEX}",
    "txq": "texture 2.0 | level => d:b32 [] u:b32; d:b32 []",
    "istypep": "texture 4.0 sm30 | d:pred u",
    "suld": "surface 1.5 | d [r/surf]",
    "sust": "surface 1.5 effect | [w/surf] u",
    "sured": "surface 2.0 sm20 effect | [rw/surf] u",
    "suq": "surface 2.0 | d:b32 []",
    # Control flow
    "bra": "control branch effect | l",
    "brx": "control 6.0 sm30 indirect effect | u:b32 t",
    "call": ("control call effect reads writes |G f g t? or G f g or f g t or f g or f t or f"),
    "ret": "control return effect | -",
    "exit": "control exit effect | -",
    "trap": "control trap effect | -",
    "brkpt": "misc effect | -",
    "nanosleep": "misc 6.3 sm70 effect | u:b32",
    "pmevent": "misc 1.4 effect | u:imm",
    "setmaxnreg": "misc 8.0 sm90 convergent effect | u:imm",
    "griddepcontrol": "misc 7.8 sm90 effect | -",
    # Synchronisation
    "bar": (f"barrier convergent effect |warp @6.0/30 => u:b32;{_BARRIER} u:b32 u:b32?"),
    "barrier": (
        f"barrier 6.0 sm30 convergent effect |cluster @7.8/90 => -;{_BARRIER} u:b32 u:b32?"
    ),
    "membar": "barrier 1.4 effect | -",
    "fence": ("barrier 6.0 sm70 effect |proxy tensormap::generic acquire @8.3/90 => [rw/] u:imm;-"),
    "atom": (
        f"atomic 1.1 sm11 effect |cas => d:L [rw] u:L u:L {_POLICY};d:L*v [rw] u:L*v {_POLICY}"
    ),
    "red": (
        f"atomic 1.2 sm11 effect |"
        f"async mbarrier::complete_tx::bytes @8.1/90 => [rw] u:L [rw];"
        f"async @8.7/100 => [rw] u:L;"
        f"[rw] u:L*v {_POLICY}"
    ),
    "vote": (
        "warp 1.2 sm12 convergent |"
        "sync ballot @6.0/30 => d:b32 u:pred u:b32;"
        "sync @6.0/30 => d:pred u:pred u:b32;"
        "ballot => d:b32 u:pred;"
        "d:pred u:pred"
    ),
    "match": "warp 6.0 sm70 convergent | any => d:b32 u:T u:b32; d:b32|pred u:T u:b32",
    "activemask": "warp 6.2 sm30 effect | d:b32",
    "redux": "warp 7.0 sm80 convergent | d:T u:T u:b32",
    "elect": "warp 8.0 sm90 convergent | d:b32|pred u:b32",
    # Matrix
    "ldmatrix": "tensor 6.5 sm75 convergent | d:b32*x [r]",
    "stmatrix": "tensor 7.8 sm90 convergent effect | [w] u:b32*x",
    "movmatrix": "tensor 7.8 sm75 convergent | d:b32 u:b32",
    "wmma": (f"tensor 6.0 sm70 convergent |load => d [r] u:b32?;store => [w] u u:b32?;{_MMA}"),
    "mma": (
        "tensor 6.4 sm70 convergent |"
        "sp block_scale @8.7/120a => d u u u u:b32 u:imm u:b32 v u:b32 v;"
        "sp::ordered_metadata block_scale @8.7/120a => d u u u u:b32 u:imm u:b32 v u:b32 v;"
        "sp @7.1/80 => d u u u u:b32 u:imm;"
        "sp::ordered_metadata @8.5/80 => d u u u u:b32 u:imm;"
        "block_scale @8.7/120a => d u u u u:b32 v u:b32 v;"
        f"{_MMA}"
    ),
    "wgmma": (
        "tensor 8.0 sm90 convergent effect reads |"
        "fence => -;"
        "commit_group => -;"
        "wait_group => u:imm;"
        "mma_async sp => x u u:b64 u:b32 u:imm u:pred u:imm? u:imm? u:imm? u:imm?;"
        "x u u:b64 u:pred u:imm? u:imm? u:imm? u:imm?"
    ),
    "tcgen05": (
        "tensor 8.6 sm100 effect |"
        "alloc => [w/shared] u:b32;"
        "dealloc => u:b32 u:b32;"
        "relinquish_alloc_permit => -;"
        "ld red => d d [r/tmem] u:imm?;"
        "ld => d [r/tmem] u:imm?;"
        "st => [w/tmem] u:imm u or [w/tmem] u;"
        "wait::ld => -;"
        "wait::st => -;"
        "cp => [w/tmem] u:b64;"
        "shift => [rw/tmem];"
        "commit => [rw/shared] u:b16?multicast::cluster;"
        "fence::before_thread_sync => -;"
        "fence::after_thread_sync => -;"
        "mma ws sp => [rw/tmem] u[r/tmem] u:b64 [r/tmem] u:b32 u:pred u:b64?;"
        "mma ws => [rw/tmem] u[r/tmem] u:b64 u:b32 u:pred u:b64?;"
        "mma sp block_scale =>"
        " [rw/tmem] u[r/tmem] u:b64 [r/tmem] u:b32 [r/tmem] [r/tmem] u:pred;"
        "mma sp => [rw/tmem] u[r/tmem] u:b64 [r/tmem] u:b32 v u:pred u:imm?"
        " or [rw/tmem] u[r/tmem] u:b64 [r/tmem] u:b32 u:pred u:imm?;"
        "mma block_scale => [rw/tmem] u[r/tmem] u:b64 u:b32 [r/tmem] [r/tmem] u:pred;"
        "mma => [rw/tmem] u[r/tmem] u:b64 u:b32 v u:pred u:imm?"
        " or [rw/tmem] u[r/tmem] u:b64 u:b32 u:pred u:imm?"
    ),
    # Video
    "vadd": _VIDEO,
    "vsub": _VIDEO,
    "vabsdiff": _VIDEO,
    "vmin": _VIDEO,
    "vmax": _VIDEO,
    "vshl": _VIDEO,
    "vshr": _VIDEO,
    "vmad": "video 2.0 sm20 | d:T u:T1 u:T2 u:T",
    "vset": "video 2.0 sm20 | d:b32 u:T u:T1 u:b32?",
    "vadd2": _SIMD,
    "vsub2": _SIMD,
    "vavrg2": _SIMD,
    "vabsdiff2": _SIMD,
    "vmin2": _SIMD,
    "vmax2": _SIMD,
    "vset2": "video 3.0 sm30 | d:T u:T1 u:T1 u:T",
    "vadd4": _SIMD,
    "vsub4": _SIMD,
    "vavrg4": _SIMD,
    "vabsdiff4": _SIMD,
    "vmin4": _SIMD,
    "vmax4": _SIMD,
    "vset4": "video 3.0 sm30 | d:T u:T1 u:T1 u:T",
}
"""Rows by base opcode."""
