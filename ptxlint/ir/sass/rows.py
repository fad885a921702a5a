"""The opcodes of SASS, sm_75 to sm_120, as text.

An entry is `opcodes: category words: operands`. The categories are those of an instruction's work,
whatever unit does it, so that kernels for different architectures can be compared. The words are
`convergent`, `effect`, `branch indirect return exit trap`, `call`, and a state space with what is
done to it: `r/global`, `w/shared`, `rw/global` (a copy has two).

An operand is

- `d` a register written, `p` a predicate written, `b` a convergence barrier written;
- `u` read; `a` an address or descriptor; `l` a label; `P` all predicates;
- then how many registers it has, 1 if that is not said: a number, or a rule over the modifiers
  (`ptxlint.ir.sass.widths`): `m` memory, `n` 64-bit arithmetic, `w` a product's result, `W` what is
  added to it, `T` the group that a tensor copy takes, `c` a clock, `f` a pair of floats, `D` and
  `S` result and source of a conversion, `x`, `A`, `B`, `C` a matrix product's, `s` matrices in
  shared memory, `t` tensor memory, `X`, `Y`, `K`, `L` the upper and the lower half of what a
  texture brings, its coordinates and what stands behind them, `G` what a surface holds;
- then `?` if it may be missing, `*` for any number, of predicates and registers such as stand
  there one after the other.

What does not fit in the end is read, one register each.

Sources: "CUDA Binary Utilities", the instruction set references of Turing to Blackwell, which name
the opcodes; what each reads and writes is held to what ptxas makes: no kernel reads a register
that nothing has written, and no more registers are named than the cubin counts (tests).
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
FADD FADD32I FMUL FMUL32I FSWZADD: float: d *
FFMA FFMA32I: float: d *
FMNMX FMNMX3: float: d p* *
FSEL FSET: float: d *
FSETP: float: p p *
FCHK: float: p *
MUFU: special: d *
RRO IPA: special: d *
FADD2 FMUL2 FFMA2: float: df uf*
FHADD FHFMA: float: d *
HADD2 HADD2_32I HFMA2 HFMA2_32I HMUL2 HMUL2_32I HMNMX2 HSET2 VHMNMX: half: d *
HSETP2: half: p p *
DADD DMUL DFMA: double: d2 u2*
DSETP: double: p p u2*

BMSK BREV FLO IABS POPC SGXT ISCADD ISCADD32I LOP LOP32I IDP IDP4A VABSDIFF VABSDIFF4: int: d *
IADD IADD32I VIADD IADD3: int: dn p* un*
IADD2: int: dn p* un*
IMAD IMUL IMUL32I: int: dw p* u u uW *
LEA: int: dn p* un un *
LOP3: int: p? dn un*
IMNMX VIMNMX VIMNMX3 VIADDMNMX: int: p* dn p* un*
ISETP: int: p p un un *
SHF SHL SHR: int: d *
PRMT: move: d *
MOV MOV32I SEL: move: dn un*
CS2R: move: dc *
S2R S2UR B2R CS2UR: move: d p* *
R2UR: move: p? d p* un
R2B: move effect: *
MOVM: move convergent: d *
PLOP3 PSETP: predicate: p p *
P2R: predicate: d P *
R2P: predicate: P *
FRND: conversion: dD uD
F2F: conversion: dD uS
F2I I2F: conversion: dD uS
I2I F2FP F2IP I2IP I2FP: conversion: d *
UADDC: int: d *

UBMSK UBREV UFLO UPOPC USGXT: int: d *
UIADD3 UVIADD UIADD: int: dn p* un*
UIMAD: int: dw p* u u uW *
ULEA UCLEA: int: dn p* un un *
ULOP3 ULOP ULOP32I: int: p? dn un*
UVIMNMX UVIMNMX3: int: p* dn p* un*
UISETP: int: p p un un *
USHF USHL USHR: int: d *
UPRMT: move: d *
UMOV USEL: move: dn un*
UP2UR: predicate: d P *
UR2UP: predicate: P *
UPLOP3 UPSETP: predicate: p p *
UFADD UFMUL UFFMA UFMNMX UFSEL UFSET: float: d *
UFSETP: float: p p *
UFRND: conversion: dD uD
UF2F: conversion: dD uS
UF2I UI2F: conversion: dD uS
UF2FP UF2IP UI2FP UI2IP: conversion: d *

LDG: load r/global: p? dm* p* a *
LD: load r/: p? dm* a *
LDS: load r/shared: dm* a *
LDL: load r/local: dm* a *
LDC ULDC LDCU LDT: constant r/const: dm a *
LDSM: load convergent r/shared: ds a *
STG USTG USTGR: store w/global: a um*
ST: store w/: a um*
STS: store w/shared: a um*
STL: store w/local: a um*
STSM: store convergent w/shared: a us*
STAS: store w/shared: a um*
LDGSTS: async effect r/global w/shared: a a *
LDGDEPBAR DEPBAR: async effect: *
LDGMC: load r/global: dm a *
ATOMG: atomic rw/global: p* dm a um*
ATOM: atomic rw/: p* dm a um*
ATOMS: atomic rw/shared: p* dm a um*
RED: atomic rw/: a um*
REDG UREDGR: atomic rw/global: a um*
REDAS: atomic rw/shared: a um*
QSPC: int: p d *
MATCH: warp convergent: p* d *
CCTL CCTLL CCTLT: cache effect: *
TEX TLD TLD4 TMML TXD TXQ: texture r/tex: p? dX dY uK uL *
SULD: surface effect: p? dG aK *
SUST SURED: surface effect: aK uG *
SUATOM: surface effect: p? dG aK uG*

HMMA IMMA DMMA QMMA OMMA BMMA: tensor convergent: dx uA uB uC *
HGMMA IGMMA QGMMA BGMMA: tensor convergent effect r/shared: dx uA? a uC *
UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA: tensor effect r/shared w/tmem: a*
UTCBAR UTCSHIFT UTCATOMSWS UVIRTCOUNT UGETNEXTWORKID: tensor effect: p* d? *
UTCCP: tensor effect r/shared w/tmem: a*
LDTM: load convergent r/tmem: dt a *
STTM: store convergent w/tmem: a ut*

UBLKCP UBLKPF: async effect r/global w/shared: a2 a2 *
UBLKRED: async effect r/shared rw/global: a*
UTMALDG UTMAPF: async effect r/global w/shared: aT a2 *
UTMASTG: async effect r/shared w/global: aT a2 *
UTMAREDG: async effect r/shared rw/global: aT a2 *
UTMACCTL UTMACMDFLUSH UTMAREDT: async effect: *
UMEMSETS: store w/shared: a *
SYNCS: barrier effect rw/shared: p* dn? a un*
BAR: barrier convergent effect: *
BARRIER: barrier convergent effect: *
UCGABAR_ARV UCGABAR_WAIT ACQBULK ENDCOLLECTIVE: barrier effect: *
MEMBAR FENCE ERRBAR CGAERRBAR: fence effect: *
WARPGROUP WARPGROUPSET USETMAXREG: barrier convergent effect: *
ARRIVES: barrier effect rw/shared: *
SHFL: warp convergent: p d *
VOTE VOTEU: warp convergent: d? p* u
REDUX CREDUX: warp convergent: d *
ELECT: warp convergent: p d *

BRA JMP: control branch: u? l
BRX BRXU JMX JMXU: control indirect: u2 *
CALL: control call: *
RET: control return: u2 *
EXIT: control exit: *
KILL: control exit: *
BPT RTT: control effect: *
BSSY: control: b l
BSYNC: control convergent: u
BREAK: control effect: p? u
BMOV: control effect: *
WARPSYNC: control convergent effect: *
YIELD NANOSLEEP NOP PMTRIG PREEXIT RPCMOV SETCTAID SETLMEMBASE: control effect: *
LEPC GETLMEMBASE: control: d2 *
CSMTEST: control: d *
""".strip()

__all__ = ["TEXT"]
