"""Faults that a person or a generator makes in PTX, one a mutant, drawn from a seeded generator.

A mutation works on the lines of a module: it takes an instruction, a declaration or a header line
apart, changes one thing and puts it together again. Nothing here knows what is legal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

Lines = list[str]
Mutation = Callable[[Lines, Random], Lines | None]

MUTATIONS: dict[str, Mutation] = {}
"""All mutations by name; each gives None where a module has nothing that it could change."""

_TRIES = 500
"""Draws of a module for a mutation, before the mutation is left out."""


class Mutant(NamedTuple):
    """A module with one fault, or with a change that is none."""

    base: str
    mutation: str
    text: str


class Statement(NamedTuple):
    """One instruction that stands on a line of its own."""

    at: int
    indent: str
    guard: str
    mnemonic: str
    operands: tuple[str, ...]
    tail: str

    def line(self) -> str:
        """The line that says this."""
        operands = ", ".join(self.operands)
        return f"{self.indent}{self.guard}{self.mnemonic} {operands}".rstrip() + ";" + self.tail


_STATEMENT = re.compile(
    r"(?P<indent>\s*)(?P<guard>@\s*!?[%$\w]+\s+)?(?P<mnemonic>[a-z][\w.:]*)(?P<rest>[^;]*);(?P<tail>.*)"
)
_REGISTER = re.compile(r"%[a-zA-Z_$]+\d+")
_LABEL = re.compile(r"\s*([$\w]+):\s*(?://.*)?$")
_TYPES = "pred b8 u8 s8 b16 u16 s16 f16 bf16 b32 u32 s32 f32 f16x2 b64 u64 s64 f64 b128".split()
_TYPES_WORD = re.compile(r"[usbf](?:8|16|32|64|128)$|pred$|bf16(?:x2)?$|f16x2$")
_SPACES = "global shared local const param shared::cluster shared::cta".split()
_OPCODES = """
add sub mul mad min max div rem abs neg and or xor not shl shr popc clz brev bfe bfi selp setp set
slct mov cvt cvta ld st atom red fma rcp sqrt ex2 lg2 sin tanh prmt lop3 shf bar vote shfl redux
match activemask membar fence bra ret exit call ldmatrix mma cp prefetch
""".split()
_MODIFIERS = """
lo hi wide rn rz rm rp rni rzi approx full ftz sat cc sync aligned uni lt eq ne gt geu nan relaxed
acquire gpu sys cta volatile v2 v4 ca cg nc L1::evict_last L2::128B to relu idx bfly any all ballot
noftz and xor b32 f32 u64 pred x4 row col trans async bulk global shared local param
""".split()


def mutants(bases: dict[str, str], count: int, seed: int) -> Iterator[Mutant]:
    """`count` mutants of these modules (text by name), the same ones for the same seed.

    Fewer if a mutation fits hardly any of the modules.
    """
    rng = Random(seed)
    names, kinds = sorted(bases), sorted(MUTATIONS)
    for number in range(count):
        for _ in range(_TRIES):
            base, kind = rng.choice(names), kinds[number % len(kinds)]
            changed = MUTATIONS[kind](bases[base].split("\n"), rng)
            if changed is not None and "\n".join(changed) != bases[base]:
                yield Mutant(base, kind, "\n".join(changed))
                break


# Parts of a module ----------------------------------------------------------------------------
def statements(lines: Lines) -> list[Statement]:
    """The instructions that stand on one line each."""
    found = []
    for at, line in enumerate(lines):
        match = _STATEMENT.match(line)
        if match is not None and "{" not in line.partition(match["mnemonic"])[0]:
            code = match["rest"].strip()
            parts = tuple(split_operands(code)) if code else ()
            indent, guard = match["indent"], match["guard"] or ""
            found.append(Statement(at, indent, guard, match["mnemonic"], parts, match["tail"]))
    return found


def split_operands(text: str) -> Iterator[str]:
    """Split at the commas outside of brackets."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character in "[{(") - (character in "]})")
        if character == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()


def registers(lines: Lines) -> list[str]:
    """The registers that occur, each once, in order."""
    return list(dict.fromkeys(_REGISTER.findall("\n".join(lines))))


def labels(lines: Lines) -> list[int]:
    """The lines that define a label and do nothing else."""
    return [at for at, line in enumerate(lines) if _LABEL.match(line)]


def _prefix(register: str) -> str:
    return register.rstrip("0123456789")


def _put(lines: Lines, at: int, *new: str) -> Lines:
    return [*lines[:at], *new, *lines[at + 1 :]]


def _pick(
    lines: Lines, rng: Random, wanted: Callable[[Statement], bool] = lambda s: True
) -> Statement | None:
    found = [s for s in statements(lines) if wanted(s)]
    return rng.choice(found) if found else None


# How mutations are written --------------------------------------------------------------------
def mutation(function: Mutation) -> Mutation:
    """Register a mutation under the name of its function."""
    MUTATIONS[function.__name__.strip("_").replace("_", " ")] = function
    return function


def on_operand(
    wanted: Callable[[str], bool] = lambda o: True, first: int = 0, last: int | None = None
) -> Callable[[Callable[[str, Lines, Random], str | None]], Mutation]:
    """Make a mutation of a function that gives another operand, or several joined by commas."""

    def decorate(change: Callable[[str, Lines, Random], str | None]) -> Mutation:
        def mutate(lines: Lines, rng: Random) -> Lines | None:
            where = slice(first, last)
            picked = _pick(lines, rng, lambda s: any(map(wanted, s.operands[where])))
            if picked is None:
                return None
            places = [i for i in range(len(picked.operands))[where] if wanted(picked.operands[i])]
            place = rng.choice(places)
            new = change(picked.operands[place], lines, rng)
            if new is None:
                return None
            operands = (*picked.operands[:place], new, *picked.operands[place + 1 :])
            return _put(lines, picked.at, picked._replace(operands=operands).line())

        mutate.__name__ = change.__name__
        return mutation(mutate)

    return decorate


def on_modifiers(
    change: Callable[[list[str], Random], list[str] | None],
) -> Mutation:
    """Make a mutation of a function that gives other dotted parts of an instruction's name."""

    def mutate(lines: Lines, rng: Random) -> Lines | None:
        picked = _pick(lines, rng, lambda s: "." in s.mnemonic)
        if picked is None:
            return None
        new = change(picked.mnemonic.split("."), rng)
        if new is None:
            return None
        return _put(lines, picked.at, picked._replace(mnemonic=".".join(new)).line())

    mutate.__name__ = change.__name__
    return mutation(mutate)


def on_line(pattern: str) -> Callable[[Callable[[str, Random], str | None]], Mutation]:
    """Make a mutation of a function that gives another line; the line must hold the pattern."""

    def decorate(change: Callable[[str, Random], str | None]) -> Mutation:
        def mutate(lines: Lines, rng: Random) -> Lines | None:
            found = [at for at, line in enumerate(lines) if re.search(pattern, line)]
            if not found:
                return None
            at = rng.choice(found)
            new = change(lines[at], rng)
            return None if new is None else _put(lines, at, *new.split("\n"))

        mutate.__name__ = change.__name__
        return mutation(mutate)

    return decorate


# Operands -------------------------------------------------------------------------------------
@mutation
def drop_operand(lines: Lines, rng: Random) -> Lines | None:
    """Leave one operand out."""
    picked = _pick(lines, rng, lambda s: bool(s.operands))
    if picked is None:
        return None
    place = rng.randrange(len(picked.operands))
    operands = picked.operands[:place] + picked.operands[place + 1 :]
    return _put(lines, picked.at, picked._replace(operands=operands).line())


@mutation
def swap_operands(lines: Lines, rng: Random) -> Lines | None:
    """Exchange two operands."""
    picked = _pick(lines, rng, lambda s: len(s.operands) > 1)
    if picked is None:
        return None
    operands = list(picked.operands)
    one, other = rng.sample(range(len(operands)), 2)
    operands[one], operands[other] = operands[other], operands[one]
    return _put(lines, picked.at, picked._replace(operands=tuple(operands)).line())


@mutation
def extra_operand(lines: Lines, rng: Random) -> Lines | None:
    """Append a register or a number."""
    picked = _pick(lines, rng)
    if picked is None:
        return None
    more = rng.choice([*registers(lines)[:20], "0", "-1"])
    return _put(lines, picked.at, picked._replace(operands=(*picked.operands, more)).line())


@on_operand()
def duplicate_operand(operand: str, lines: Lines, rng: Random) -> str | None:
    """Write an operand twice."""
    return f"{operand}, {operand}"


def _has_register(operand: str) -> bool:
    return _REGISTER.search(operand) is not None


@on_operand(_has_register)
def undeclared_register(operand: str, lines: Lines, rng: Random) -> str | None:
    """Name a register that is past its range or of no range at all."""
    old = rng.choice(_REGISTER.findall(operand))
    new = rng.choice([f"{_prefix(old)}98765", "%undeclared", f"{_prefix(old)}x1", old + "a"])
    return operand.replace(old, new, 1)


@on_operand(_has_register)
def register_of_another_class(operand: str, lines: Lines, rng: Random) -> str | None:
    """Name a register of another type."""
    old = rng.choice(_REGISTER.findall(operand))
    others = [r for r in registers(lines) if _prefix(r) != _prefix(old)]
    return operand.replace(old, rng.choice(others), 1) if others else None


@on_operand(first=0, last=1)
def immediate_as_destination(operand: str, lines: Lines, rng: Random) -> str | None:
    """A number in the first place."""
    return rng.choice(["0", "1", "0f3F800000", "-1"])


@on_operand(first=1)
def literal_as_source(operand: str, lines: Lines, rng: Random) -> str | None:
    """A number for a source."""
    return rng.choice(["0", "7", "-3", "0f3F800000", "0d3FF0000000000000", "1.5", "0x10", "3U"])


@on_operand(lambda o: o.startswith("["))
def drop_brackets(operand: str, lines: Lines, rng: Random) -> str | None:
    """An address without its brackets."""
    return operand[1:].rstrip("]")


@on_operand(lambda o: o[:1] in "%$" and "|" not in o)
def add_brackets(operand: str, lines: Lines, rng: Random) -> str | None:
    """Brackets around a plain operand."""
    return f"[{operand}]"


@on_operand(lambda o: o.startswith("["))
def change_address(operand: str, lines: Lines, rng: Random) -> str | None:
    """Another thing inside the brackets."""
    inner = operand[1:].rstrip("]").split("+")[0]
    register = rng.choice(registers(lines) or ["%r1"])
    forms = (f"{inner}+{register}", f"{inner}-4", f"{inner}*4", f"{inner}+1.0", "%tid.x", "0",
             f"-{inner}", f"{inner}+4+4", register, f"{inner}+-8", f"{{{inner}}}")  # fmt: skip
    return f"[{rng.choice(forms)}]"


@on_operand(lambda o: o.startswith("{"))
def vector_length(operand: str, lines: Lines, rng: Random) -> str | None:
    """One element more or less."""
    elements = [e.strip() for e in operand.strip("{} ").split(",")]
    if rng.random() < 0.5 and len(elements) > 1:
        elements.pop(rng.randrange(len(elements)))
    else:
        elements.append(rng.choice(elements))
    return "{" + ", ".join(elements) + "}"


@on_operand(lambda o: o.startswith("{"))
def drop_vector_braces(operand: str, lines: Lines, rng: Random) -> str | None:
    """Vector elements without braces."""
    return operand.strip("{} ")


@on_operand(lambda o: o[:1] == "%")
def add_vector_braces(operand: str, lines: Lines, rng: Random) -> str | None:
    """A plain operand as a vector."""
    return rng.choice(["{%s}", "{%s, %s}"]).replace("%s", operand)


@on_operand(lambda o: o[:1] not in "-!~", first=1)
def operator_before_operand(operand: str, lines: Lines, rng: Random) -> str | None:
    """A sign or a negation before a source."""
    return rng.choice("-!~") + operand


@on_operand()
def sink(operand: str, lines: Lines, rng: Random) -> str | None:
    """`_` for an operand."""
    return "_"


@on_operand()
def special_register(operand: str, lines: Lines, rng: Random) -> str | None:
    """A special register for an operand."""
    return rng.choice(["%tid.x", "%tid", "%laneid", "%clock64", "%lanemask_lt", "%ntid.y"])


@on_operand()
def label_as_operand(operand: str, lines: Lines, rng: Random) -> str | None:
    """A label, or the name of a variable, a parameter or a function, for an operand."""
    names = [m[1] for line in lines if (m := _LABEL.match(line))]
    names += re.findall(r"\.(?:param|global|shared|entry|func)\b[^;({,)]*?([$\w]+)\s*[\[,(;\n)]",
                        "\n".join(lines))  # fmt: skip
    return rng.choice(names) if names else None


@on_operand(lambda o: o[:1] == "%" and "|" not in o)
def pair(operand: str, lines: Lines, rng: Random) -> str | None:
    """A second destination, or a pair for a source."""
    return f"{operand}|{rng.choice(registers(lines) or ['%p1'])}"


@on_operand(lambda o: o[:1] == "%" and "." not in o)
def select_part(operand: str, lines: Lines, rng: Random) -> str | None:
    """A component or a byte of a register."""
    return operand + rng.choice([".x", ".b0", ".h1", ".w"])


@on_operand(lambda o: re.fullmatch(r"-?\w+", o) is not None and o[:1] in "-0123456789")
def change_number(operand: str, lines: Lines, rng: Random) -> str | None:
    """Another number, perhaps out of range or badly written."""
    return rng.choice(
        ["-1", "255", "256", "65536", "0x1FFFFFFFF", "089", "0b12", "1e", "4294967296", "0f3F8",
         "0x", "18446744073709551616", "(1+2)*4", "1.0f", "42u", "5U"]
    )  # fmt: skip


# Names of instructions ------------------------------------------------------------------------
def _places(parts: list[str], wanted: Callable[[str], bool]) -> list[int]:
    return [i for i, part in enumerate(parts) if i and wanted(part)]


def _is_type(part: str) -> bool:
    return _TYPES_WORD.match(part) is not None


@on_modifiers
def change_type(parts: list[str], rng: Random) -> list[str] | None:
    """Another type."""
    places = _places(parts, _is_type)
    if not places:
        return None
    at = rng.choice(places)
    return [*parts[:at], rng.choice(_TYPES), *parts[at + 1 :]]


@on_modifiers
def change_signedness(parts: list[str], rng: Random) -> list[str] | None:
    """A type of the same size and another kind."""
    places = _places(parts, lambda p: re.fullmatch(r"[usbf](16|32|64)", p) is not None)
    if not places:
        return None
    at = rng.choice(places)
    return [*parts[:at], rng.choice("usbf") + parts[at][1:], *parts[at + 1 :]]


@on_modifiers
def drop_type(parts: list[str], rng: Random) -> list[str] | None:
    """Leave a type out."""
    places = _places(parts, _is_type)
    if not places:
        return None
    at = rng.choice(places)
    return parts[:at] + parts[at + 1 :]


@on_modifiers
def drop_modifier(parts: list[str], rng: Random) -> list[str] | None:
    """Leave a modifier that is no type out."""
    places = _places(parts, lambda p: not _is_type(p))
    if not places:
        return None
    at = rng.choice(places)
    return parts[:at] + parts[at + 1 :]


@on_modifiers
def duplicate_modifier(parts: list[str], rng: Random) -> list[str] | None:
    """Write a modifier twice."""
    at = rng.randrange(1, len(parts))
    return [*parts[:at], parts[at], *parts[at:]]


@on_modifiers
def swap_modifiers(parts: list[str], rng: Random) -> list[str] | None:
    """Exchange two modifiers."""
    if len(parts) < 3:
        return None
    one, other = rng.sample(range(1, len(parts)), 2)
    parts[one], parts[other] = parts[other], parts[one]
    return parts


@on_modifiers
def change_modifier(parts: list[str], rng: Random) -> list[str] | None:
    """Another modifier."""
    at = rng.randrange(1, len(parts))
    return [*parts[:at], rng.choice(_MODIFIERS), *parts[at + 1 :]]


@on_modifiers
def insert_modifier(parts: list[str], rng: Random) -> list[str] | None:
    """One modifier more."""
    at = rng.randrange(1, len(parts) + 1)
    return [*parts[:at], rng.choice(_MODIFIERS), *parts[at:]]


@on_modifiers
def misspell_modifier(parts: list[str], rng: Random) -> list[str] | None:
    """A letter of a modifier lost or doubled."""
    at = rng.randrange(1, len(parts))
    return [*parts[:at], _misspelt(parts[at], rng), *parts[at + 1 :]]


@on_modifiers
def change_space(parts: list[str], rng: Random) -> list[str] | None:
    """Another state space."""
    places = _places(parts, lambda p: p in _SPACES)
    if not places:
        return None
    at = rng.choice(places)
    return [*parts[:at], rng.choice(_SPACES), *parts[at + 1 :]]


@on_modifiers
def change_vector_modifier(parts: list[str], rng: Random) -> list[str] | None:
    """Another vector length."""
    places = _places(parts, lambda p: p in ("v2", "v4", "v8", "x1", "x2", "x4"))
    if not places:
        return None
    at = rng.choice(places)
    return [*parts[:at], rng.choice(["v2", "v4", "v8", "x1", "x2", "x4"]), *parts[at + 1 :]]


@on_modifiers
def change_opcode(parts: list[str], rng: Random) -> list[str] | None:
    """Another opcode with the same modifiers."""
    return [rng.choice(_OPCODES), *parts[1:]]


@on_modifiers
def misspell_opcode(parts: list[str], rng: Random) -> list[str] | None:
    """A letter of an opcode lost or doubled."""
    return [_misspelt(parts[0], rng), *parts[1:]]


@mutation
def steal_name(lines: Lines, rng: Random) -> Lines | None:
    """The name of one instruction for the operands of another."""
    one, other = _pick(lines, rng), _pick(lines, rng)
    if one is None or other is None:
        return None
    return _put(lines, one.at, one._replace(mnemonic=other.mnemonic).line())


def _misspelt(word: str, rng: Random) -> str:
    at = rng.randrange(len(word))
    return rng.choice([word[:at] + word[at + 1 :], word[:at] + word[at] + word[at:], word.upper()])


# Guards, labels, syntax -----------------------------------------------------------------------
@mutation
def change_guard(lines: Lines, rng: Random) -> Lines | None:
    """A guard where there was none, or another one."""
    picked = _pick(lines, rng)
    names = registers(lines)
    if picked is None or not names:
        return None
    guards = [rng.choice(names), f"!{rng.choice(names)}", "%undeclared", "1", "p", f"-{names[0]}"]
    return _put(lines, picked.at, picked._replace(guard=f"@{rng.choice(guards)} ").line())


@on_line(r"^\s*@")
def damage_guard(line: str, rng: Random) -> str | None:
    """A guard without its sign, or with one too many."""
    return line.replace("@", rng.choice(["", "@@", "!", "@!!", "%"]), 1)


@on_line(r"^\s*\.(reg|shared|local|param|pragma|loc)\b")
def guard_before_declaration(line: str, rng: Random) -> str | None:
    """A guard where none can stand."""
    return "@%p1 " + line.lstrip()


@on_line(r"\bbra\b|\bbrx\b|branchtargets")
def misspell_label(line: str, rng: Random) -> str | None:
    """A branch to a label that is none."""
    return re.sub(r"([$\w]+)(\s*;)", rng.choice([r"\1x\2", r"no_label\2", r"%r1\2"]), line)


@mutation
def duplicate_label(lines: Lines, rng: Random) -> Lines | None:
    """Define a label a second time."""
    found = labels(lines)
    if not found:
        return None
    at = rng.choice(found)
    later = [s.at for s in statements(lines) if s.at > at][:12]
    return [*lines[: later[-1]], lines[at], *lines[later[-1] :]] if later else None


@mutation
def drop_label(lines: Lines, rng: Random) -> Lines | None:
    """Leave a label out."""
    found = labels(lines)
    return _put(lines, rng.choice(found)) if found else None


@on_line(r":\s*(//.*)?$")
def damage_label(line: str, rng: Random) -> str | None:
    """A label without its colon, or with a semicolon."""
    return line.replace(":", rng.choice(["", "::", ";", ":;"]), 1)


@on_line(r";")
def drop_semicolon(line: str, rng: Random) -> str | None:
    """Leave a semicolon out."""
    return line.replace(";", "", 1)


@on_line(r";")
def replace_semicolon(line: str, rng: Random) -> str | None:
    """Something else for a semicolon."""
    return line.replace(";", rng.choice([";;", ",", ":", ".;", " }", "; {", ")"]), 1)


@on_line(r",.*;")
def damage_comma(line: str, rng: Random) -> str | None:
    """A comma lost, doubled or mistyped."""
    at = rng.choice([i for i, c in enumerate(line) if c == ","])
    return line[:at] + rng.choice(["", " ", ",,", ";", ".", "|"]) + line[at + 1 :]


@on_line(r"[{}]")
def drop_brace(line: str, rng: Random) -> str | None:
    """Leave a brace out."""
    at = rng.choice([i for i, c in enumerate(line) if c in "{}"])
    return line[:at] + line[at + 1 :]


@on_line(r"[()\[\]]")
def drop_parenthesis(line: str, rng: Random) -> str | None:
    """Leave a bracket out."""
    at = rng.choice([i for i, c in enumerate(line) if c in "()[]"])
    return line[:at] + line[at + 1 :]


@on_line(r"^\s*\S")
def stray_token(line: str, rng: Random) -> str | None:
    """A word or sign in front of a line."""
    words = ["foo", "}", "{", ";", "%r1", "42", "@", ".", ",", "(", "ret;", "mov", ".reg", "é",
             "//", "/*", '"', "0x", ".align 4"]  # fmt: skip
    return rng.choice(words) + " " + line


@on_line(r"\S\s+\S")
def drop_space(line: str, rng: Random) -> str | None:
    """Join two words."""
    gap = rng.choice(list(re.finditer(r"(?<=\S)\s+(?=\S)", line)))
    return line[: gap.start()] + line[gap.end() :]


@on_line(r"\S")
def drop_character(line: str, rng: Random) -> str | None:
    """One character lost."""
    at = rng.choice([i for i, c in enumerate(line) if not c.isspace()])
    return line[:at] + line[at + 1 :]


@on_line(r"\S")
def double_character(line: str, rng: Random) -> str | None:
    """One character typed twice."""
    at = rng.choice([i for i, c in enumerate(line) if not c.isspace()])
    return line[:at] + line[at] + line[at:]


@mutation
def cut_off(lines: Lines, rng: Random) -> Lines | None:
    """The end lost."""
    text = "\n".join(lines)
    return text[: rng.randrange(len(text) // 4, len(text))].split("\n")


@mutation
def move_line(lines: Lines, rng: Random) -> Lines | None:
    """A line somewhere else."""
    full = [at for at, line in enumerate(lines) if line.strip()]
    source, target = rng.choice(full), rng.choice(full)
    rest = _put(lines, source)
    return [*rest[:target], lines[source], *rest[target:]]


@on_line(r"\S")
def drop_line(line: str, rng: Random) -> str | None:
    """A line lost."""
    return ""


# Declarations ---------------------------------------------------------------------------------
@on_line(r"^\s*\.reg\b")
def drop_registers(line: str, rng: Random) -> str | None:
    """A register declaration lost."""
    return ""


@on_line(r"\.reg\b.*<\d+>")
def fewer_registers(line: str, rng: Random) -> str | None:
    """A shorter range of registers."""
    number = rng.choice(["1", "2", "3", "0"])
    return re.sub(r"<\d+>", f"<{number}>", line, count=1)


@on_line(r"^\s*\.reg\b")
def retype_registers(line: str, rng: Random) -> str | None:
    """Registers of another type."""
    return re.sub(r"(\.reg\s+)\.\w+", rf"\1.{rng.choice(_TYPES)}", line, count=1)


@on_line(r"^\s*\.(reg|shared|local|global|const|extern|visible|func|entry|param|file)\b")
def duplicate_declaration(line: str, rng: Random) -> str | None:
    """A declaration, or a function's head, written twice."""
    return f"{line}\n{line}"


@on_line(r"\.param\b")
def change_parameter(line: str, rng: Random) -> str | None:
    """A parameter of another type, extent or space."""
    old, new = rng.choice(
        [(r"\.[usbf]\d+\b", f".{rng.choice(_TYPES)}"), (r"\.param", ".reg"), (r"\.param", ""),
         (r"(\w+),?$", r"\1[0]"), (r"\.ptr", ""), (r"align \d+", "align 3")]
    )  # fmt: skip
    return re.sub(old, new, line, count=1)


@on_line(r"\.param\b.*\w")
def drop_parameter(line: str, rng: Random) -> str | None:
    """A parameter lost."""
    return re.sub(r"\.param[^,)]*,?", "", line, count=1)


@on_line(r"\.(shared|global|const|local)\b.*;")
def damage_variable(line: str, rng: Random) -> str | None:
    """A variable with another space, type, alignment, extent or initialiser."""
    old, new = rng.choice(
        [(r"\.(shared|global|const|local)", f".{rng.choice(_SPACES)}"),
         (r"\.[usbf]\d+\b", f".{rng.choice(_TYPES)}"), (r"align \d+", "align 3"),
         (r"\[\d*\]", "[-1]"), (r"\[\d*\]", "[]"), (r";", " = {1, 2};"), (r";", " = 1.5;"),
         (r"\[\d*\]", "[2]"), (r"\.align \d+", ""), (r"\.extern", "")]
    )  # fmt: skip
    return re.sub(old, new, line, count=1)


@on_line(r"\.(max|req|min)n?\w+|\.pragma|\.visible|\.weak|\.extern")
def damage_directive(line: str, rng: Random) -> str | None:
    """A directive of a function with another number or name, or a linking word changed."""
    old, new = rng.choice(
        [(r"(\d+)", "0"), (r"(\d+)", "99999"), (r"(\d+)", r"\1, 1, 1, 1"), (r"(\d+)", ""),
         (r"\.maxntid", ".reqntid"), (r"\.(\w)", r".x\1"), (r"\.visible", ".extern"),
         (r"\.visible", ".weak .visible"), (r"\.reqntid", ".maxnreg")]
    )  # fmt: skip
    return re.sub(old, new, line, count=1)


# Header ---------------------------------------------------------------------------------------
@on_line(r"^\s*\.version")
def lower_version(line: str, rng: Random) -> str | None:
    """An older PTX ISA."""
    versions = "4.0 4.3 5.0 6.0 6.3 6.5 7.0 7.1 7.4 7.8 8.0 8.1 8.3 8.6 8.7".split()
    return re.sub(r"\d+\.\d+", rng.choice(versions), line)


@on_line(r"^\s*\.target")
def lower_target(line: str, rng: Random) -> str | None:
    """An older architecture, or one without its suffix."""
    if re.search(r"sm_\d+[af]", line) and rng.random() < 0.5:
        return re.sub(r"(sm_\d+)[af]", r"\1", line)
    targets = "50 52 60 61 70 75 80 86 89 90".split()
    return re.sub(r"sm_\w+", f"sm_{rng.choice(targets)}", line)


@on_line(r"^\s*\.(version|target|address_size)")
def damage_header(line: str, rng: Random) -> str | None:
    """A head line lost, doubled or with a word wrong."""
    return rng.choice(
        ["", f"{line}\n{line}", re.sub(r"\d+\.\d+", "7", line), re.sub(r"\d+\.\d+", "7.99", line),
         re.sub(r"sm_\w+", "sm_81", line), re.sub(r"sm_\w+", "sm80", line), line + ";",
         re.sub(r"64", "48", line), re.sub(r"(sm_\w+)", r"\1, texmode_unified", line)]
    )  # fmt: skip


# Calls ----------------------------------------------------------------------------------------
@mutation
def damage_call(lines: Lines, rng: Random) -> Lines | None:
    """A call with an argument less, another callee or no result."""
    text = "\n".join(lines)
    calls = list(re.finditer(r"\bcall(?:\.uni)?\s[^;]*;", text))
    if not calls:
        return None
    call = rng.choice(calls)
    old, new = rng.choice(
        [(r"\(([^(),]+),", "("), (r"\(([^()]*)\),", r"", ), (r"\(([^()]+)\)", r"(\1, \1)"),
         (r"\(([^()]+)\)", "()"), (r",\s*[$\w]+", ", nobody"), (r"([$%\w]+)\s*;", r"\1, \1;"),
         (r"call\S*", "call.all"), (r"\(([^()]+)\)", r"\1")]
    )  # fmt: skip
    return (text[: call.start()] + re.sub(old, new, call[0], count=1) + text[call.end() :]).split(
        "\n"
    )
