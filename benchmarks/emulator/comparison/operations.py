"""Single instructions, with the operands that say most of each.

An instruction is a text whose `$0` is the result and whose `$1`, `$2`, … are operands of the kinds
that are listed; `%q` is a predicate and `%t`, `%w` are words of 32 and 64 bits to spare.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_MODES: Final = ("rn", "rz", "rm", "rp")
_PLAIN: Final = {"rn": "rni", "rz": "rzi", "rm": "rmi", "rp": "rpi"}
_HALVES: Final = ("f16", "f16x2", "bf16", "bf16x2")
_INTEGERS: Final = ("u16", "s16", "u32", "s32", "u64", "s64")
_BYTES: Final = ("u8", "s8")


class Operation(NamedTuple):
    """One instruction. `result` is the kind of `$0`; `bound` names the error that the manual allows
    (`errors.BOUNDS`), "" for an exact one."""

    text: str
    result: str
    kinds: tuple[str, ...]
    bound: str = ""

    @property
    def name(self) -> str:
        """What it is called: the instruction that matters, without its operands."""
        parts = [part.split()[0] for part in self.text.split(";") if part.strip()]
        keeps = [part for part in parts if not part.startswith("selp.u32")]
        return " ".join(keeps)


def _plain(name: str, kind: str, arity: int, result: str = "") -> Operation:
    listed = ", ".join(f"${at}" for at in range(arity + 1))
    return Operation(f"{name} {listed};", result or kind, (kind,) * arity)


def _tested(name: str, kind: str) -> Operation:
    text = f"{name} %q, $1, $2; selp.u32 $0, 1, 0, %q;"
    return Operation(text, "u32", (kind, kind))


def floating() -> list[Operation]:
    """Sums, products and what else is rounded once."""
    found = []
    for name, arity in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
        for mode in _MODES:
            tails = ("", ".ftz", ".sat", ".ftz.sat")
            found += [_plain(f"{name}.{mode}{tail}.f32", "f32", arity) for tail in tails]
            found.append(_plain(f"{name}.{mode}.f64", "f64", arity))
        for kind in ("f16", "f16x2"):
            tails = ("", ".ftz", ".sat", ".ftz.sat")
            found += [_plain(f"{name}.rn{tail}.{kind}", kind, arity) for tail in tails]
        found += [_plain(f"{name}.rn.{kind}", kind, arity) for kind in ("bf16", "bf16x2")]
    found += [_plain(f"fma.rn.relu.{kind}", kind, 3) for kind in _HALVES]
    for mode in _MODES:
        for name, arity in (("div", 2), ("rcp", 1), ("sqrt", 1)):
            found += [_plain(f"{name}.{mode}{f}.f32", "f32", arity) for f in ("", ".ftz")]
            found.append(_plain(f"{name}.{mode}.f64", "f64", arity))
    return found


def choosing() -> list[Operation]:
    """Minima, maxima, signs, comparisons."""
    found = []
    for name in ("min", "max"):
        for tail in ("", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
            kinds = ("f32", "f16", "f16x2") if "ftz" in tail else ("f32", *_HALVES)
            found += [_plain(f"{name}{tail}.{kind}", kind, 2) for kind in kinds]
        found.append(_plain(f"{name}.f64", "f64", 2))
    for name in ("neg", "abs"):
        found += [_plain(f"{name}.{kind}", kind, 1) for kind in ("f32", "f64", *_HALVES)]
        found += [_plain(f"{name}.ftz.{kind}", kind, 1) for kind in ("f32", "f16", "f16x2")]
    for kind in ("f32", "f64"):
        found.append(_plain(f"copysign.{kind}", kind, 2))
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            text = f"testp.{test}.{kind} %q, $1; selp.u32 $0, 1, 0, %q;"
            found.append(Operation(text, "u32", (kind,)))
    names = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split()
    for kind in ("f32", "ftz.f32", "f64", "f16", "ftz.f16", "bf16"):
        found += [_tested(f"setp.{name}.{kind}", kind.split(".")[-1]) for name in names]
    for kind in ("s16", "s32", "s64"):
        found += [_tested(f"setp.{name}.{kind}", kind) for name in ("eq", "lt", "le", "gt", "ge")]
    for kind in ("u16", "u32", "u64"):
        found += [_tested(f"setp.{name}.{kind}", kind) for name in ("ne", "lo", "ls", "hi", "hs")]
    for kind in ("f32", "ftz.f32", "s32"):
        found.append(Operation(f"set.lt.u32.{kind} $0, $1, $2;", "u32", (kind.split(".")[-1],) * 2))
    found.append(Operation("set.gt.f32.f32 $0, $1, $2;", "f32", ("f32", "f32")))
    found.append(Operation("slct.b32.s32 $0, $1, $2, $3;", "u32", ("u32", "u32", "s32")))
    for tail in ("", ".ftz"):
        text = f"slct{tail}.b32.f32 $0, $1, $2, $3;"
        found.append(Operation(text, "u32", ("u32", "u32", "f32")))
    return found


def converting() -> list[Operation]:
    """`cvt`, all pairs of types that there are and all roundings."""
    found = []

    def cvt(name: str, to: str, *kinds: str) -> None:
        listed = ", ".join(f"${at}" for at in range(len(kinds) + 1))
        found.append(Operation(f"cvt.{name} {listed};", to, kinds))

    for to in (*_BYTES, *_INTEGERS):
        for source in (*_BYTES, *_INTEGERS):
            if to != source:
                cvt(f"{to}.{source}", to, source)
            if not _holds_all(to, source):
                cvt(f"sat.{to}.{source}", to, source)
        floats = ("f16", "f32", "f64") if to in _BYTES else ("f16", "bf16", "f32", "f64")
        for source in floats:
            for mode in _PLAIN.values():
                cvt(f"{mode}.{to}.{source}", to, source)
        cvt(f"rzi.ftz.{to}.f32", to, "f32")
        cvt(f"rni.sat.{to}.f32", to, "f32")
        for target in floats:
            for mode in _MODES:
                cvt(f"{mode}.{target}.{to}", target, to)
    cvt("rn.sat.f32.s32", "f32", "s32")
    for kind in ("f16", "f32", "f64"):
        for mode in _PLAIN.values():
            cvt(f"{mode}.{kind}.{kind}", kind, kind)
    cvt("rni.sat.f32.f32", "f32", "f32")
    cvt("rni.ftz.f32.f32", "f32", "f32")
    cvt("rzi.bf16.bf16", "bf16", "bf16")
    for to, source in (("f32", "f64"), ("f16", "f32"), ("f16", "f64"), ("bf16", "f32"),
                       ("bf16", "f64")):  # fmt: skip
        for mode in _MODES:
            cvt(f"{mode}.{to}.{source}", to, source)
    for name in (
        "f32.f16", "f64.f16", "f32.bf16", "f64.bf16", "f64.f32", "ftz.f64.f32", "ftz.f32.f16",
        "sat.f32.f16", "rn.sat.f16.f32", "rn.ftz.f16.f32", "rn.ftz.f32.f64", "rn.sat.f32.f64",
        "rn.bf16.f16", "rz.bf16.f16", "rn.f16.bf16", "rna.tf32.f32", "rn.tf32.f32", "rz.tf32.f32",
        "rn.relu.tf32.f32", "rna.satfinite.tf32.f32",
    ):  # fmt: skip
        *_, to, source = name.split(".")
        cvt(name, "u32" if to == "tf32" else to, source)
    for to in ("f16", "bf16"):
        for tail in ("", ".relu", ".satfinite", ".relu.satfinite"):
            for mode in ("rn", "rz"):
                cvt(f"{mode}{tail}.{to}.f32", to, "f32")
                cvt(f"{mode}{tail}.{to}x2.f32", f"{to}x2", "f32", "f32")
    for kind in ("e4m3x2", "e5m2x2"):
        for tail in ("", ".relu"):
            cvt(f"rn.satfinite{tail}.{kind}.f32", kind, "f32", "f32")
            cvt(f"rn.satfinite{tail}.{kind}.f16x2", kind, "f16x2")
            cvt(f"rn{tail}.f16x2.{kind}", "f16x2", kind)
    for to in ("s8", "u8", "s16", "u16"):
        if "16" in to:
            found.append(Operation(f"cvt.pack.sat.{to}.s32 $0, $1, $2;", "u32", ("s32", "s32")))
        else:
            text = f"cvt.pack.sat.{to}.s32.b32 $0, $1, $2, $3;"
            found.append(Operation(text, "u32", ("s32", "s32", "u32")))
    return found


def _holds_all(to: str, source: str) -> bool:
    """True if every number of one integer type is one of another: nothing is to be clamped."""
    widths = int(to[1:]), int(source[1:])
    if to[0] == source[0]:
        return widths[0] >= widths[1]
    return to[0] == "s" and widths[0] > widths[1]


def integers() -> list[Operation]:
    """Integer arithmetic."""
    found = []
    for kind in _INTEGERS:
        names = ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max")
        found += [_plain(f"{name}.{kind}", kind, 2) for name in names]
        found += [_plain(f"mad.{part}.{kind}", kind, 3) for part in ("lo", "hi")]
        if kind[0] == "s":
            found += [_plain(f"{name}.{kind}", kind, 1) for name in ("neg", "abs")]
        found.append(_plain(f"sad.{kind}", kind, 3))
        wide = {"16": "32", "32": "64"}.get(kind[1:])
        if wide:
            result = kind[0] + wide
            found.append(_plain(f"mul.wide.{kind}", kind, 2, result))
            text = f"mad.wide.{kind} $0, $1, $2, $3;"
            found.append(Operation(text, result, (kind, kind, result)))
    for name in ("add.sat.s32", "sub.sat.s32"):
        found.append(_plain(name, "s32", 2))
    found.append(_plain("mad.hi.sat.s32", "s32", 3))
    for kind in ("u32", "s32"):
        for part in ("lo", "hi"):
            found.append(_plain(f"mul24.{part}.{kind}", kind, 2))
            found.append(_plain(f"mad24.{part}.{kind}", kind, 3))
    found.append(_plain("mad24.hi.sat.s32", "s32", 3))
    for kind in ("u16x2", "s16x2"):
        found += [_plain(f"{name}.{kind}", kind, 2) for name in ("add", "min", "max")]
    found += [_plain(f"{name}.relu.{k}", k, 2) for name in ("min", "max") for k in ("s32", "s16x2")]
    for kind, other in (("u32", "%t"), ("u64", "%w")):
        for first, second in (("add.cc", "addc"), ("sub.cc", "subc")):
            text = f"{first}.{kind} {other}, $1, $2; {second}.{kind} $0, $3, $1;"
            found.append(Operation(text, kind, (kind,) * 3))
        text = f"mad.lo.cc.{kind} {other}, $1, $2, $3; madc.hi.{kind} $0, $1, $2, $3;"
        found.append(Operation(text, kind, (kind,) * 3))
    for first in ("u32", "s32"):
        for second in ("u32", "s32"):
            result = "u32" if (first, second) == ("u32", "u32") else "s32"
            kinds = ("u32", "u32", result)
            found.append(Operation(f"dp4a.{first}.{second} $0, $1, $2, $3;", result, kinds))
            for part in ("lo", "hi"):
                text = f"dp2a.{part}.{first}.{second} $0, $1, $2, $3;"
                found.append(Operation(text, result, kinds))
    return found


def bits() -> list[Operation]:
    """Logic, shifts and fields."""
    found = []
    for width in ("16", "32", "64"):
        kind = f"u{width}"
        found += [_plain(f"{name}.b{width}", kind, 2) for name in ("and", "or", "xor")]
        found += [_plain(f"{name}.b{width}", kind, 1) for name in ("not", "cnot")]
        for name in (f"shl.b{width}", f"shr.b{width}", f"shr.u{width}", f"shr.s{width}"):
            found.append(Operation(f"{name} $0, $1, $2;", kind, (kind, "count")))
    for width in ("32", "64"):
        kind = f"u{width}"
        for name in ("popc", "clz"):
            found.append(_plain(f"{name}.b{width}", kind, 1, "u32"))
        found.append(_plain(f"brev.b{width}", kind, 1))
        for sign in "us":
            found.append(_plain(f"bfind.{sign}{width}", kind, 1, "u32"))
            found.append(_plain(f"bfind.shiftamt.{sign}{width}", kind, 1, "u32"))
            text = f"bfe.{sign}{width} $0, $1, $2, $3;"
            found.append(Operation(text, kind, (kind, "byte", "byte")))
        text = f"bfi.b{width} $0, $1, $2, $3, $4;"
        found.append(Operation(text, kind, (kind, kind, "byte", "byte")))
    for way in "lr":
        for end in ("clamp", "wrap"):
            text = f"shf.{way}.{end}.b32 $0, $1, $2, $3;"
            found.append(Operation(text, "u32", ("u32", "u32", "count")))
    for end in ("clamp", "wrap"):
        found.append(Operation(f"bmsk.{end}.b32 $0, $1, $2;", "u32", ("count", "count")))
        for kind in ("u32", "s32"):
            found.append(Operation(f"szext.{end}.{kind} $0, $1, $2;", "u32", ("u32", "count")))
    for table in (0x01, 0x1B, 0x96, 0xCA, 0xE8, 0xFE):
        found.append(Operation(f"lop3.b32 $0, $1, $2, $3, {table};", "u32", ("u32",) * 3))
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        found.append(Operation(f"prmt.b32{mode} $0, $1, $2, $3;", "u32", ("u32",) * 3))
    found.append(Operation("fns.b32 $0, $1, $2, $3;", "u32", ("u32", "bit", "offset")))
    return found


def approximate() -> list[Operation]:
    """Instructions whose error the manual bounds."""
    found = []

    def add(name: str, kind: str, bound: str, arity: int = 1) -> None:
        found.append(_plain(name, kind, arity)._replace(bound=bound))

    for name in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos"):
        for tail in ("", ".ftz"):
            add(f"{name}.approx{tail}.f32", "f32", f"{name}.f32")
    add("tanh.approx.f32", "f32", "tanh.f32")
    for kind in ("f16", "f16x2"):
        add(f"ex2.approx.{kind}", kind, "ex2.f16")
        add(f"tanh.approx.{kind}", kind, "tanh.f16")
    for kind in ("bf16", "bf16x2"):
        add(f"ex2.approx.ftz.{kind}", kind, "ex2.bf16")
        add(f"tanh.approx.{kind}", kind, "tanh.bf16")
    for tail in ("", ".ftz"):
        add(f"div.full{tail}.f32", "f32", "div.full.f32", 2)
        add(f"div.approx{tail}.f32", "f32", "div.approx.f32", 2)
    for name in ("rcp.approx.ftz.f64", "rsqrt.approx.f64", "rsqrt.approx.ftz.f64"):
        add(name, "f64", f"{name.partition('.')[0]}.f64")
    return found


GROUPS: Final = {
    "floating": floating, "choosing": choosing, "converting": converting, "integers": integers,
    "bits": bits, "approximate": approximate,
}  # fmt: skip
"""All instructions, by what they do."""
