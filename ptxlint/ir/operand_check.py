"""Checks of one instruction's operands against its form of the opcode table.

They see a shape and one description a slot (`describe`), never names, so that one verdict serves
all instructions alike. Rules are those that ptxas was measured to have (`docs/opcodes.md`);
whatever is not known passes.
"""

# No `from __future__ import annotations`: it makes a NamedTuple 1 ms dearer to import.
from typing import NamedTuple

from ptxlint.ir.agreement import literal_fits, register_fits, width
from ptxlint.ir.fragments import fragment_length
from ptxlint.ir.instruction import Pattern, Shape
from ptxlint.ir.opcodes import OperandSpec, spaces_of
from ptxlint.ir.operand import Atom, Immediate, Label, Register, SpecialRegister
from ptxlint.ir.pattern import UNIFIED


class Fault(NamedTuple):
    """What is wrong with an instruction. `operand` counts from 0; -1 is the whole statement."""

    operand: int
    code: str
    message: str
    hint: str = ""


Descriptions = tuple[str, ...]
"""One description a slot; see `describe`."""

_SINKS = frozenset({"atom", "setp", "lop3", "match", "mbarrier", "elect", "call"})
"""Opcodes whose only result may be thrown away with `_`."""
_SCALARS_ONLY = frozenset({"int", "float", "compare", "logic"})
_GENERIC = frozenset({"ld", "ldu", "st", "atom", "red"})
_UNIFIED = frozenset({"ld", "ldu", "atom"})
"""What takes `[a].unified`, with a global or generic address (measured)."""
_ADDRESSED = frozenset({"global", "shared", "local", "const", "param"})
_VECTOR_SPECIALS = frozenset({"%tid", "%ntid", "%ctaid", "%nctaid"})
_NARROW_SPECIALS = _VECTOR_SPECIALS | {"%laneid", "%warpid", "%smid", "%clock"}
_UNKNOWN = "?"


def describe(atom: Atom) -> str:
    """What the checks know of a slot.

    A register's type (`v4.f32` for a vector), `#int`, `#f32`, `#f64`, `#dec` for a literal
    (`#octal` when malformed), `%name` of a special register, `label`, or `@kind` of a symbol.
    """
    if isinstance(atom, Register):
        return f"v{atom.vector}.{atom.type}" if atom.vector > 1 else atom.type
    if isinstance(atom, Immediate):
        return "#octal" if _bad_octal(atom) else "#" + atom.kind
    if isinstance(atom, SpecialRegister):
        return "#int" if atom.name == "WARP_SZ" else atom.name
    if isinstance(atom, Label):
        return "label" if atom.target >= 0 else _UNKNOWN
    return "@" + atom.kind if atom.kind != "unknown" else _UNKNOWN


def _bad_octal(atom: Immediate) -> bool:
    text = atom.text
    return len(text) > 1 and text[0] == "0" and text.isdigit() and not set("89").isdisjoint(text)


def faults(shape: Shape, slots: Descriptions) -> list[Fault]:
    """All that is wrong with the operands; empty when nothing is."""
    found: list[Fault] = []
    if "#octal" in slots:
        found.append(Fault(-1, "syntax", "8 and 9 are no octal digits", "drop the leading 0"))
    if shape.guard and (slots[0] == "label" or slots[0][0] == "@"):
        found.append(Fault(-1, "type", "the guard is no register", "guard by a .pred register"))
    elif shape.guard and slots[0] != "pred" and slots[0][0] not in "%#?":
        found.append(Fault(-1, "type", f"the guard is a .{slots[0]} register, not a .pred one"))
    found += [
        Fault(at, "syntax", "`{}` stands where a value is needed", "only arrays start as `{}`")
        for at, pattern in enumerate(shape.patterns)
        if _has_empty(pattern)
    ]
    form = shape.form
    if form is None or not shape.row.known:
        return found
    for at, (spec, pattern) in enumerate(zip(form.operands, shape.patterns, strict=False)):
        fault = _check(shape, spec, pattern, slots)
        if fault is not None:
            found.append(Fault(at, *fault))
    return found


def _has_empty(pattern: Pattern) -> bool:
    return pattern == ("v",) or any(isinstance(p, tuple) and _has_empty(p) for p in pattern)


_Verdict = tuple[str, str] | tuple[str, str, str] | None


def _check(shape: Shape, spec: OperandSpec, pattern: Pattern, slots: Descriptions) -> _Verdict:
    if pattern[0] in "ai" and (spec.memory or spec.kind == "a"):
        return _check_address(shape, spec, pattern, slots)
    role = spec.role
    if role == "label":
        return _check_label(pattern, slots)
    if shape.row.is_call or role in ("function", "list", "callargs"):
        return _check_call(shape, role, pattern, slots)
    is_pair = pattern[0] == "b" and pattern[1] == "|"
    if is_pair and "|" not in spec.type and "#" not in _kind_of(pattern[2], slots):
        return "operand", "two operands stand where one is needed", "drop the `|` and what follows"
    if spec.type == "P":
        return _check_move(shape, role, pattern, slots)
    if is_pair:
        first, _, second = spec.type.partition("|")
        single = spec._replace(elements="")
        return _check_value(shape, spec, first, pattern[2], slots) or _check_value(
            shape, single, second or first, pattern[3], slots
        )
    return _check_value(shape, spec, spec.type.partition("|")[0], pattern, slots)


# Values ---------------------------------------------------------------------------------------
def needed_type(shape: Shape, rule: str, destination: bool) -> str:
    """The type that a rule comes to for this shape; `any` when it cannot be told."""
    rule = rule.rstrip("+")
    types = shape.types
    if rule == "C":
        return types[0 if destination else 1] if len(types) > 1 else "any"
    if rule == "L":
        # ptxas passes over a `.pred` beside another type.
        return types[-1] if types and (len(types) == 1 or "pred" not in types) else "any"
    if rule == "M":
        return "b64" if "f64" in types else "b32"
    if rule == "W":
        return _twice(types[-1]) if types else "any"
    if rule[0] == "T" and (rule == "T" or rule[1:].isdigit()):
        at = int(rule[1:] or 0)
        return types[at] if at < len(types) else "any"
    return rule


def _twice(type_name: str) -> str:
    return {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}.get(type_name, "any")


def _check_value(
    shape: Shape, spec: OperandSpec, rule: str, pattern: Pattern, slots: Descriptions
) -> _Verdict:
    destination = spec.role in ("def", "update")
    need = needed_type(shape, rule, destination)
    wider = rule.endswith("+") or rule == "C"
    if spec.elements or pattern[0] == "v":
        return _check_vector(shape, spec, need, wider, pattern, slots)
    have = _kind_of(pattern, slots)
    if destination:
        return _check_destination(shape, need, have, wider)
    return _check_source(shape, spec, need, have, wider)


def _kind_of(pattern: Pattern, slots: Descriptions) -> str:
    """The description of a scalar operand: as for a slot, or `_`, `!…`, `-…`, `select`, `?`."""
    kind = pattern[0]
    if kind == "s":
        have = slots[pattern[1]]
        return have if len(pattern) == 2 else _selected(have, pattern[2])
    if kind == "_":
        return "_"
    if kind == "u":
        inner = _kind_of(pattern[2], slots)
        if inner[0] == "#":
            return "-#f32" if inner == "#f32" and pattern[1] == "-" else inner
        return str(pattern[1]) + inner
    if kind == "(":
        return _kind_of(pattern[1], slots) if len(pattern) == 2 else _UNKNOWN
    if kind == "b" and pattern[1] in "+-":
        left = _kind_of(pattern[2], slots)
        # A register or symbol may carry a constant offset in any instruction.
        return left if left[0] != "#" else _literals(pattern, slots)
    if kind in ("b", "?", "t"):
        return _literals(pattern, slots)
    return _UNKNOWN


def _literals(pattern: Pattern, slots: Descriptions) -> str:
    """`#int` for a constant expression over integers, else `?`."""
    stack = [pattern]
    while stack:
        for part in stack.pop():
            if isinstance(part, tuple):
                if part[0] == "s" and slots[part[1]] != "#int":
                    return _UNKNOWN
                stack.append(part)
    return "#int"


def _selected(have: str, selector: str) -> str:
    if have[0] == "%":
        return have + selector
    if selector[1:] in tuple("xyzwrgba") and have[0] == "v" and "." in have:
        return have.partition(".")[2]
    return "select"


def _check_destination(shape: Shape, need: str, have: str, wider: bool) -> _Verdict:
    if have == "select":
        return _check_selection(shape)
    if have == _UNKNOWN:
        return None
    if have == "_":
        if shape.opcode in _SINKS or shape.row.category in (
            "texture",
            "surface",
            "async",
            "tensor",
        ):
            return None
        return "operand", f"`{shape.opcode}` cannot throw its result away", "name a register"
    if have[0] in "#%@!-~+" or have == "label":
        return "operand", f"{_say(have)} cannot be written", "the destination must be a register"
    return _agree(shape, need, have, wider)


def _check_source(shape: Shape, spec: OperandSpec, need: str, have: str, wider: bool) -> _Verdict:
    head = have[0]
    if have == "select":
        return _check_selection(shape)
    if have == "_":
        return "operand", "`_` throws a result away, it cannot be read", "name a register"
    if have in (_UNKNOWN, "#octal") or need == "any":
        return None
    if need == "imm":
        if head in "#@%?":
            return None
        return "operand", f"{_say(have)} stands where a constant is needed"
    if have == "-#f32":
        return "syntax", "a `0f…` pattern takes no minus", "set its sign bit instead"
    if head == "#":
        return None if literal_fits(need, have[1:]) else _no_literal(shape, need, have)
    if head == "%":
        return _check_special(shape, need, have)
    if head == "@":
        return _check_symbol(shape, need, have)
    if have == "label":
        return "operand", "a label stands where a value is needed"
    if head == "!":
        inner = have[1:]
        if (need == "pred" and inner in ("pred", _UNKNOWN)) or inner[0] == "%":
            return None
        return "operand", f"`!` needs a predicate, not {_say(inner)}"
    if head in "-~+":
        if shape.row.category == "video":
            return None
        return "operand", f"`{head}` cannot stand before a register here"
    return _agree(shape, need, have, wider)


def _check_selection(shape: Shape) -> _Verdict:
    if shape.row.category == "video" or not shape.row.known:
        return None
    return "operand", f"`{shape.opcode}` cannot select a part of a register"


def _check_special(shape: Shape, need: str, have: str) -> _Verdict:
    if shape.opcode not in ("mov", "cvt") or shape.types[0] in ("f16", "bf16", "f32", "f64"):
        hint = "read it with `mov` into a register first"
        return "operand", f"`{shape.opcode}` cannot read the special register {have} here", hint
    if have in _VECTOR_SPECIALS:
        return "operand", f"{have} is a vector", f"name a component, such as `{have}.x`"
    if shape.opcode == "mov" and width(need) == 64 and have.partition(".")[0] in _NARROW_SPECIALS:
        return "type", f"{have} has 32 bits", "use `mov.u32`, then `cvt.u64.u32`"
    return None


def _check_symbol(shape: Shape, need: str, have: str) -> _Verdict:
    if shape.opcode == "mov" and need[0] == "f":
        return "type", f"an address stands where .{need} is needed", "use `.u64` or `.b64`"
    if shape.opcode in ("mov", "cvta", "mapa", "getctarank") or not have.startswith("@variable"):
        return None
    hint = "take its address with `mov` first"
    return "operand", f"`{shape.opcode}` cannot take a variable's name as a value", hint


def _no_literal(shape: Shape, need: str, have: str) -> _Verdict:
    sort = "an integer" if have == "#int" else "a floating-point"
    hint = ""
    if have == "#int" and need in ("f32", "f64"):
        hint = "write it as a float, such as `0f3F800000` or `1.0`"
    return "type", f"{sort} literal stands where .{need} is needed", hint


def _agree(shape: Shape, need: str, have: str, wider: bool) -> _Verdict:
    """Whether a register of type `have` (`v4.f32` for a vector one) fits."""
    if need == "any":
        return None
    if have[0] == "v" and "." in have:
        if shape.row.category in _SCALARS_ONLY:
            return "operand", f"`{shape.opcode}` takes no vector register"
        return None
    if register_fits(need, have, wider):
        return None
    article = "at least .{}" if wider and 0 < width(have) < width(need) else ".{}"
    shown = {"i16": "u16", "i32": "u32", "i64": "u64"}.get(need, need)
    return "type", f"a .{have} register stands where {article.format(shown)} is needed"


def _say(have: str) -> str:
    """A description in words."""
    if have[0] == "#":
        return "a literal"
    if have[0] == "%":
        return f"the special register {have}"
    if have[0] == "@":
        return f"a {have[1:].partition(':')[0]}"
    if have == "label":
        return "a label"
    if have[0] in "!-~+":
        return f"`{have[0]}` before an operand"
    return f"a .{have} register"


# Vectors --------------------------------------------------------------------------------------
def _expected_length(shape: Shape, rule: str, pattern: Pattern) -> int:
    """How many elements the modifiers call for; 0 when it cannot be told."""
    if rule in "ma":
        at = next(i for i, p in enumerate(shape.patterns) if p is pattern)
        return fragment_length(shape, at) if rule == "m" or pattern[0] == "v" else 0
    if rule == "v":
        return next((int(m[1]) for m in shape.modifiers if m in ("v2", "v4", "v8")), 1)
    repeat = next((m for m in shape.modifiers if m[0] == "x" and m[1:].isdigit()), "")
    if not repeat:
        return 0
    times = int(repeat[1:])
    if rule in "xy":
        return times * (2 if rule == "y" else 1)
    per = {"16x64b": 1, "32x32b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
    return next((times * per[m] for m in shape.modifiers if m in per), 0)


def _check_vector(
    shape: Shape,
    spec: OperandSpec,
    need: str,
    wider: bool,
    pattern: Pattern,
    slots: Descriptions,
) -> _Verdict:
    if pattern[0] != "v":
        return _check_unbraced(shape, spec, need, wider, pattern, slots)
    if not spec.elements:
        if shape.row.category in _SCALARS_ONLY or (
            shape.opcode == "cvt" and "x" not in need and need != "any"
        ):
            return "operand", f"`{shape.opcode}` takes no vector operand"
        return None
    length = len(pattern) - 1
    expected = _expected_length(shape, spec.elements, pattern)
    if expected and expected != length:
        return "operand", f"a vector of {_count(length)} stands where {expected} are needed"
    return _check_elements(shape, spec, need, wider, pattern, slots)


def _count(length: int) -> str:
    return "1 element" if length == 1 else f"{length} elements"


def _check_unbraced(
    shape: Shape,
    spec: OperandSpec,
    need: str,
    wider: bool,
    pattern: Pattern,
    slots: Descriptions,
) -> _Verdict:
    """A vector place taken by something without braces."""
    have = _kind_of(pattern, slots)
    expected = _expected_length(shape, spec.elements, pattern)
    if have[0] == "v" and "." in have:
        head, _, element = have.partition(".")
        if expected and int(head[1:]) != expected:
            return "operand", f"a vector of {head[1:]} elements stands where {expected} are needed"
        return _agree(shape, _bits_of(need, element), element, wider)
    if have == "_" and spec.role == "use":
        return "operand", "`_` throws a result away, it cannot be read", "name a register"
    if have in (_UNKNOWN, "_") or (have[0] in "#-" and spec.role == "use"):
        return None
    if expected > 1 or (expected and spec.elements in "xytm"):
        message = f"a vector of {_count(expected)} is needed here"
        return "operand", message, "write it in braces: `{…}`"
    if spec.role in ("def", "update"):
        return _check_destination(shape, need, have, wider)
    return _check_source(shape, spec, need, have, wider)


def _check_elements(
    shape: Shape,
    spec: OperandSpec,
    need: str,
    wider: bool,
    pattern: Pattern,
    slots: Descriptions,
) -> _Verdict:
    """ptxas sees a vector as one type: a float when all elements are, else bits."""
    kinds = [_kind_of(part, slots) for part in pattern[1:]]
    registers = [k for k in kinds if k[0] not in "#%@!-~+?_" and k not in ("select", "label")]
    widths = {width(k) for k in registers} - {0, 1}
    if len(widths) > 1:
        return "type", "the elements of a vector differ in size"
    for have in registers:
        same = all(k == have for k in registers)
        if have == "pred" and spec.role == "use":
            return "type", "a predicate cannot stand in a vector"
        if have[0] == "v" or have == "pred":
            continue
        fault = _agree(shape, need if same else _bits_of(need, have), _vector_type(have), wider)
        if fault is not None:
            return fault
    return None


def _vector_type(have: str) -> str:
    """Integers in a vector count as bits."""
    return have if have[0] == "f" else f"b{width(have)}" if width(have) else have


def _bits_of(need: str, have: str) -> str:
    """The bit type of `need`'s size: mixed elements are only compared by size."""
    size = width(need)
    return f"b{size}" if size in (8, 16, 32, 64, 128) and have != "pred" else "any"


_PLAIN = OperandSpec("use", "T")


# Moves, labels, addresses ---------------------------------------------------------------------
def _check_move(shape: Shape, role: str, pattern: Pattern, slots: Descriptions) -> _Verdict:
    """`mov`: a plain copy, a `.v2`/`.v4` one, or packing and unpacking `{…}`."""
    need = shape.types[0] if shape.types else "any"
    spec = _PLAIN
    if any(m in ("v2", "v4") for m in shape.modifiers):
        return None
    if pattern[0] != "v":
        have = _kind_of(pattern, slots)
        if role == "def":
            return _check_destination(shape, need, have, False)
        return _check_source(shape, spec, need, have, False)
    kinds = [_kind_of(part, slots) for part in pattern[1:]]
    sizes = {width(k) for k in kinds if k[0] in "usbf"} - {0}
    if len(sizes) > 1:
        return "type", "the elements of a vector differ in size"
    if need[0] != "b":
        return "type", f"`mov.{need}` takes no vector", "pack and unpack with `.b32` or `.b64`"
    if all(p[0] == "v" for p in shape.patterns):
        return "operand", "one of the operands must be a plain register"
    total = sum(sizes) * len(kinds)
    if sizes and width(need) and total != width(need):
        return "type", f"the elements make up {total} bits, not those of .{need}"
    return None


def _check_call(shape: Shape, role: str, pattern: Pattern, slots: Descriptions) -> _Verdict:
    """An indirect call needs a prototype, an indirect branch a list of labels."""
    have = slots[pattern[1]] if pattern[0] == "s" else _UNKNOWN
    if role == "function" and have[0] in "bus" and "list" not in shape.roles:
        return "operand", "a call through a register needs a `.callprototype`"
    if role == "list" and have == "label":
        return "operand", "a label stands where a target list is needed"
    return None


def _check_label(pattern: Pattern, slots: Descriptions) -> _Verdict:
    if pattern[0] != "s":
        return "operand", "a label is needed here"
    have = slots[pattern[1]]
    if have in ("label", _UNKNOWN):
        return None
    return "operand", f"{_say(have)} stands where a label is needed"


def _check_address(
    shape: Shape, spec: OperandSpec, pattern: Pattern, slots: Descriptions
) -> _Verdict:
    if pattern[-1] == UNIFIED:
        if shape.opcode not in _UNIFIED or _named_space(spec, shape) not in ("", "global"):
            return "operand", f"`.unified` cannot stand behind an address of `{shape.opcode}` here"
        pattern = pattern[:-1]
    if len(pattern) > 2 and pattern[0] == "a":
        return None
    base, steps = pattern[1], []
    while base[0] == "b":
        steps.append((base[1], base[3]))
        base = base[2]
    have = _kind_of(base, slots)
    if pattern[0] == "a":
        fault = _check_sum(base, have, steps, slots)
        if fault is not None:
            return fault
    space = _named_space(spec, shape)
    if space == "tmem":
        return _check_tensor_address(have)
    if space == "const" and "w" in spec.memory:
        return "operand", "constant memory cannot be written"
    if have[0] == "#":
        if space == "local":
            return None
        return "operand", "a constant address is for .local memory only", "use a register"
    if have[0] == "@":
        return _check_space(shape, have, space)
    if have in ("f16", "f32", "f64", "pred", "b128", "f16x2") or (have[0] == "v" and "." in have):
        return "type", f"{_say(have)} cannot hold an address", "use an integer or bit register"
    return None


def _check_tensor_address(have: str) -> _Verdict:
    """An address in tensor memory is 32 bits wide and in a register."""
    if have[0] in "#@":
        return "operand", f"{_say(have)} stands where a register with a tensor address is needed"
    if have == _UNKNOWN or register_fits("i32", have):
        return None
    return "type", f"{_say(have)} cannot hold a tensor memory address", "it has 32 bits"


def _check_sum(
    base: Pattern, have: str, steps: list[tuple[str, Pattern]], slots: Descriptions
) -> _Verdict:
    """An address is a base, then `+` and a constant."""
    hint = "write an offset as `[base+constant]`, a negative one as `[base+-4]`"
    if have[0] == "%" or base[0] == "v" or (base[0] == "u" and have[0] != "#"):
        return "syntax", "an address starts with a register, a symbol or a constant", hint
    if steps and have[0] != "#" and steps[-1][0] != "+":
        return "syntax", f"`{steps[-1][0]}` cannot stand in an address", hint
    for _, right in steps:
        if _kind_of(right, slots) not in ("#int", "#octal", _UNKNOWN):
            return "syntax", "only an integer constant can be added in an address", hint
    return None


def _named_space(spec: OperandSpec, shape: Shape) -> str:
    if spec.space not in ("S", "S2"):
        return spec.space
    spaces = spaces_of(shape.modifiers)
    at = 0 if spec.space == "S" else 1
    return spaces[at] if at < len(spaces) else ""


def _check_space(shape: Shape, have: str, space: str) -> _Verdict:
    """`have` is `@variable:SPACE`, `@param:entry`, `:func` or `:result` when that is known."""
    kind, _, where = have[1:].partition(":")
    if kind == "param":
        if space == "param" and shape.opcode == "st" and where in ("entry", "func"):
            return "operand", "a function cannot write its own parameters"
        if space == "param" and shape.opcode == "ld" and where == "result":
            return "operand", "a function cannot read its own result"
        where = "param"
    if where in _ADDRESSED and space in _ADDRESSED and where != space:
        return "operand", f"a .{where} variable is accessed as .{space}"
    if not space and where in ("const", "param") and shape.opcode in _GENERIC:
        return "operand", f"a generic access does not reach .{where}", f"write `.{where}`"
    return None
