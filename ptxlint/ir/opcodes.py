"""Contract of the opcode table; the rows themselves are in `ptxlint.ir.opcode_rows`.

A row lists the forms that an instruction can take. A form says for each operand, in order,
whether it is written, read or both, of which type it must be and which memory it touches.
Rows are text (see `opcode_rows` for the notation) and are parsed at the first look-up of their
opcode. Source: PTX ISA, "Instruction Set".
"""

# No `from __future__ import annotations` here: it makes each NamedTuple 1 ms dearer to import.
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxlint.ir.opcode_rows import ROWS

if TYPE_CHECKING:
    from ptxlint.ir.instruction import Shape

Pattern = tuple[Any, ...]


class OperandSpec(NamedTuple):
    """What the table demands of one operand.

    `role`: `def` written, `use` read, `update` read and written, `address`, `label`, `function`
    (the callee), `list` (target list or prototype), `callargs`. Everything inside an address is
    read. A parenthesised result list of a `call` has role `def`.

    `type`: `any` (not checked), a type name, or a rule over the type modifiers: `T` the first
    one, `T1` the second, `T2` …, `L` the last, `W` twice the width of the last, `M` the registers
    of a matrix fragment, `P` and `C` as `mov` and `cvt` have it. A trailing `+` also allows wider
    registers. `i32` (`i16`, `i64`) is an integer or bit type but no float, `imm` demands a
    constant. `A|B` are the types of a pair.

    `memory`: how memory is touched through the operand when it is an address: any of `r`, `w`,
    `rw`, `""` for none. `space` says which memory: `S` the first state space modifier, `S2` the
    second, else a name; `tmem` is tensor memory. `elements` is the vector length: `""` not
    checked, `v` as `.v2`/`.v4`/`.v8` says, `x` as `.x1`/`.x2`/`.x4` says, `y` twice that, `t` as
    the shape of `tcgen05.ld` and `.st` says, `m` as the fragments of `mma` and `wgmma` are, `a`
    likewise if it is a vector at all. `kind` is the pattern kind demanded (`a` address,
    `(` list, `v` vector, `b` pair), "" for any. `condition` is the modifier that makes this operand
    present, "" when none does.
    """

    role: str
    type: str = "any"
    optional: bool = False
    memory: str = ""
    space: str = ""
    elements: str = ""
    kind: str = ""
    condition: str = ""


class Form(NamedTuple):
    """One way to write an instruction.

    `when` are the modifiers that must be present for this form (`!x`: must be absent). `since` and
    `target` hold for this form only: the PTX ISA version, (0, 0) as the opcode has it, and the
    architectures, as in `Opcode.target`.
    """

    when: tuple[str, ...]
    operands: tuple[OperandSpec, ...]
    since: tuple[int, int] = (0, 0)
    target: str = ""

    @property
    def roles(self) -> tuple[str, ...]:
        """The role of each operand."""
        return tuple(spec.role for spec in self.operands)

    def applies(self, modifiers: tuple[str, ...]) -> bool:
        """True if these modifiers select this form."""
        return all(
            (word[1:] not in modifiers) if word[0] == "!" else (word in modifiers)
            for word in self.when
        )

    def fit(
        self, modifiers: tuple[str, ...], count: int, patterns: tuple[Pattern, ...] = ()
    ) -> "Form | None":
        """This form with exactly `count` operands, or None if it cannot have that many.

        Operands bound to a modifier are there if and only if the modifier is; optional operands
        are left out from the right.
        """
        specs = [s for s in self.operands if not s.condition or s.condition in modifiers]
        spare = sum(s.optional for s in specs) - (len(specs) - count)
        if spare < 0 or len(specs) < count:
            return None
        chosen = []
        for spec in specs:
            if spec.optional:
                if not spare:
                    continue
                spare -= 1
            chosen.append(spec)
        if patterns and not all(map(_agrees, chosen, patterns)):
            return None
        return self._replace(operands=tuple(chosen))


class Opcode(NamedTuple):
    """One row of the table.

    `convergent`: in every form, the threads named must execute it together (see `converges` for
    opcodes where that depends on modifiers). `terminator` is "", `branch`, `indirect`, `return`,
    `exit` or `trap`. `has_effect`: it must stay although its result is unused. `reads_memory` and
    `writes_memory` speak of memory that no address operand names. `reads_carry`: it reads CC;
    the modifier `.cc` tells that CC is written. `since` is the PTX ISA that brought it, `target`
    the architectures that have it (`80`: sm_80 and later; `90a`: that one; `100f`: the family of
    sm_100 with a suffix; "" any). `known` is False for the row of an opcode that the table lacks.
    """

    name: str
    forms: tuple[Form, ...]
    category: str
    convergent: bool = False
    terminator: str = ""
    is_call: bool = False
    has_effect: bool = False
    reads_memory: bool = False
    writes_memory: bool = False
    reads_carry: bool = False
    since: tuple[int, int] = (1, 0)
    target: str = ""
    known: bool = True

    @property
    def min_sm(self) -> int:
        """The oldest architecture that has it, as 75 for sm_75; 0 is any."""
        return int(self.target.split(",")[0].rstrip("af") or 0)

    def form(
        self, modifiers: tuple[str, ...], count: int, patterns: tuple[Pattern, ...] = ()
    ) -> "Form | None":
        """The form for these modifiers whose operands number `count`, None if there is none.

        A vector, an address, a pair and a parenthesised list count as one operand each. Of the
        forms whose `when` holds, those with the `when` of the first one are tried in order. Give
        the operand patterns where they are known: `call f, (a), p` and `call (r), f, (a)` differ
        in nothing else. The result has exactly `count` operands.

        When no `when` holds, the operation is one that the table lacks: conservative roles.
        """
        if not self.known:
            return _conservative(count, patterns)
        when: tuple[str, ...] | None = None
        for form in self.forms:
            if when is None:
                if not form.applies(modifiers):
                    continue
                when = form.when
            elif form.when != when:
                continue
            found = form.fit(modifiers, count, patterns)
            if found is not None:
                return found
        # An operation of a family (`tcgen05.…`) that the table lacks is unknown, not wrong.
        return _conservative(count, patterns) if when is None else None


class MemoryEffect(NamedTuple):
    """State spaces read and written; "" is generic or unknown, `tmem` tensor memory."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


_NO_EFFECT = MemoryEffect((), ())
_rows: dict[str, Opcode] = {}

_SPACE_NAMES = "global shared local param const tex surf"
_SPACES = frozenset(_SPACE_NAMES.split())
_TYPE_NAMES = """
pred b8 u8 s8 b16 u16 s16 f16 bf16 b32 u32 s32 f32 b64 u64 s64 f64 b128 b1024
f16x2 bf16x2 u16x2 s16x2 u8x4 s8x4 f32x2 tf32 b1 b4 u4 s4
e4m3 e5m2 e2m3 e3m2 e2m1 ue8m0 ue4m3 e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 ue8m0x2 s2f6x2
e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4 b8x16 b6x16_p32 b4x16_p64 texref samplerref surfref
"""
_TYPES = frozenset(_TYPE_NAMES.split())


def lookup(name: str) -> Opcode:
    """The row of a base opcode such as `ld`. An unknown one gets a conservative row."""
    row = _rows.get(name)
    if row is None:
        text = ROWS.get(name)
        row = _unknown(name) if text is None else _parse_row(name, text)
        _rows[name] = row
    return row


def types_of(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """The type modifiers in order: `("rn", "f32", "s32")` gives `("f32", "s32")`."""
    return tuple(m for m in modifiers if m in _TYPES)


def spaces_of(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """The state space modifiers in order, sub-qualifiers (`::cta`) stripped."""
    heads = (m.split("::", 1)[0].split("[", 1)[0] for m in modifiers)
    return tuple(head for head in heads if head in _SPACES)


def space_of(opcode: str, modifiers: tuple[str, ...]) -> str:
    """The state space: `global`, `shared`, …; "" for generic or none.

    Copies (`cp`, `tensormap.cp_fenceproxy`) name two: this is the destination. `memory_of` tells
    both. For `cvta` and `isspacep` it is the space converted or asked for.
    """
    spaces = spaces_of(modifiers)
    return spaces[0] if spaces else ""


def converges(shape: "Shape") -> bool:
    """True if all threads that the instruction names must execute it together."""
    if shape.row.convergent or "aligned" in shape.modifiers:
        return True
    return "sync" in shape.modifiers


def carry_of(shape: "Shape") -> tuple[bool, bool]:
    """Whether the condition code CC is read and written (PTX ISA, "Extended-Precision")."""
    return shape.row.reads_carry, "cc" in shape.modifiers


def effectful(shape: "Shape") -> bool:
    """True if the instruction must stay although its results are unused."""
    row = shape.row
    if row.has_effect or row.terminator or row.is_call:
        return True
    return any(m in ("volatile", "acquire", "mmio", "cc") for m in shape.modifiers)


def memory_of(shape: "Shape") -> MemoryEffect:
    """Which state spaces the instruction reads and writes, asynchronous copies included."""
    found = shape.memory
    if found is None:
        found = shape.memory = _memory_of(shape)
    return found


def _memory_of(shape: "Shape") -> MemoryEffect:
    reads: list[str] = []
    writes: list[str] = []
    row, form = shape.row, shape.form
    if form is None or not row.known:
        if any(p[0] in "ai" for p in shape.patterns):
            reads.append(shape.space)
            writes.append(shape.space)
    else:
        for spec, pattern in zip(form.operands, shape.patterns, strict=False):
            if spec.memory and pattern[0] in "ai":
                space = _space(spec.space, shape.modifiers)
                if "r" in spec.memory:
                    reads.append(space)
                if "w" in spec.memory:
                    writes.append(space)
    if row.reads_memory:
        reads.append("shared" if row.category == "tensor" else "")
    if row.writes_memory:
        writes.append("")
    if not reads and not writes:
        return _NO_EFFECT
    return MemoryEffect(tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)))


def _space(rule: str, modifiers: tuple[str, ...]) -> str:
    if rule not in ("S", "S2"):
        return rule
    spaces = spaces_of(modifiers)
    at = 0 if rule == "S" else 1
    return spaces[at] if at < len(spaces) else ""


def _agrees(spec: OperandSpec, pattern: Pattern) -> bool:
    """Whether the spec admits an operand of this outer form."""
    kind: str = pattern[0]
    if spec.kind:
        # `sym[4]` is an address too.
        return kind == spec.kind or (kind == "i" and spec.kind == "a")
    if kind == "a":
        return bool(spec.memory)
    return kind != "(" or spec.role != "function"


def _conservative(count: int, patterns: tuple[Pattern, ...]) -> Form:
    specs = []
    for at in range(count):
        is_address = at < len(patterns) and patterns[at][0] == "a"
        role = "address" if is_address else "use" if at else "update"
        specs.append(OperandSpec(role, memory="rw"))
    return Form((), tuple(specs))


def _unknown(name: str) -> Opcode:
    return Opcode(
        name,
        (),
        "misc",
        convergent=True,
        has_effect=True,
        reads_memory=True,
        writes_memory=True,
        known=False,
    )


_ROLES = {
    "": "address",
    "d": "def",
    "p": "def",
    "u": "use",
    "v": "use",
    "x": "update",
    "l": "label",
    "f": "function",
    "t": "list",
    "G": "def",
    "g": "callargs",
}
_KINDS = {"": "a", "p": "b", "G": "(", "g": "(", "v": "v"}
_TERMINATORS = ("branch", "indirect", "return", "exit", "trap")


def _parse_row(name: str, text: str) -> Opcode:
    """Read a row: a line with category and words, then a form a line."""
    head, *lines = text.strip().split("\n")
    category, *words = head.split()
    since, target, terminator = (1, 0), "", ""
    for word in words:
        if word[0] == "@":
            since, target = _requirement(word)
        elif word in _TERMINATORS:
            terminator = word
    return Opcode(
        name,
        tuple(_parse_form(line) for line in lines),
        category,
        convergent="convergent" in words,
        terminator=terminator,
        is_call="call" in words,
        has_effect="effect" in words,
        reads_memory="reads" in words,
        writes_memory="writes" in words,
        reads_carry="carry" in words,
        since=since,
        target=target,
    )


def _requirement(word: str) -> tuple[tuple[int, int], str]:
    """Read `@7.0/80`: the PTX ISA version and the targets."""
    version, _, target = word[1:].partition("/")
    major, _, minor = version.partition(".")
    return (int(major), int(minor)), target


def _parse_form(text: str) -> Form:
    """Read a form: `when words @version/target => operands`."""
    since, target = (0, 0), ""
    when: list[str] = []
    head, _, body = text.rpartition("=>")
    for word in head.split():
        if word[0] == "@":
            since, target = _requirement(word)
        else:
            when.append(word)
    operands = tuple(_parse_operand(word) for word in body.split() if word != "-")
    return Form(tuple(when), operands, since, target)


def _parse_operand(word: str) -> OperandSpec:
    """Read an operand: `role:type*elements?condition`, with `[memory/space]` where it has one."""
    if word == "H":
        return OperandSpec("use", "i64", condition="L2::cache_hint")
    word, question, condition = word.partition("?")
    head, bracket, inner = word.partition("[")
    memory, _, space = inner.rstrip("]").partition("/")
    head, _, elements = head.partition("*")
    letter, _, rule = head.partition(":")
    return OperandSpec(
        _ROLES[letter],
        rule or "any",
        bool(question) and not condition,
        memory,
        (space or "S") if bracket else "",
        elements,
        _KINDS.get(letter, ""),
        condition,
    )
