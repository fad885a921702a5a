"""Rebuilds of a kernel that mean something else, one thing changed in each, and rebuilds that mean
the same.

Each mutation takes the text and a source of random numbers, and gives another text; None where
there is nothing of its kind in the kernel.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

Mutation = Callable[[str, Random], str | None]
_STATEMENT = re.compile(
    r"^[ \t]*(?:@!?%\w+[ \t]+)?[a-z][a-z0-9]*(?:[.:][\w:]+)*"
    r"(?:[ \t]+[^;{}/\n]*(?:\{[^;{}\n]*\}[^;{}/\n]*)*)?;",
    re.MULTILINE,
)
_PARTS = re.compile(r"([ \t]*)((?:@!?%\w+[ \t]+)?)([\w.:]+)([ \t]*)(.*);", re.DOTALL)
_REGISTER = re.compile(r"%[a-z]+\d+(?!\w)")
_NUMBER = re.compile(
    r"(?<![\w.%$])(?:0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|-?\d+|0x[0-9a-fA-F]+)(?![\w.])"
)
_LABEL = re.compile(r"^(\$?\w+):", re.MULTILINE)


class Statement(NamedTuple):
    """One instruction of a text, between two offsets."""

    start: int
    end: int
    indent: str
    guard: str
    mnemonic: str
    gap: str
    operands: str

    @property
    def opcode(self) -> str:
        """The word before the first dot."""
        return self.mnemonic.split(".")[0]

    def text(self) -> str:
        """The statement as it stands."""
        return f"{self.indent}{self.guard}{self.mnemonic}{self.gap}{self.operands};"


def statements(text: str) -> list[Statement]:
    """The instructions of a text that stand on lines of their own."""
    body = text.index("{", text.index(".entry"))
    out = []
    for found in _STATEMENT.finditer(text, body):
        parts = _PARTS.fullmatch(found.group())
        if parts is not None:
            out.append(Statement(found.start(), found.end(), *parts.groups()))
    return out


def split(operands: str) -> list[str]:
    """Operands at their commas, those in brackets and braces kept."""
    return [part for part in re.split(r",\s*(?![^\[{(]*[\]})])", operands) if part]


def _replaced(text: str, statement: Statement, by: str) -> str:
    return text[: statement.start] + by + text[statement.end :]


def _chosen(
    text: str, random: Random, change: Callable[[Statement, Random], Statement | None]
) -> str | None:
    """The text with one statement changed, drawn from those that can be."""
    candidates = statements(text)
    random.shuffle(candidates)
    for statement in candidates:
        changed = change(statement, random)
        if changed is not None and changed != statement:
            return _replaced(text, statement, changed.text())
    return None


ORDERED = frozenset(
    "sub div rem shl shr setp selp slct prmt bfe bfi fma mad copysign set cvt mma shfl "
    "atom red sad lop3 dp4a shf".split()
)
"""Operations whose sources may not change places."""


def _swap_sources(statement: Statement, random: Random) -> Statement | None:
    parts = split(statement.operands)
    if statement.opcode not in ORDERED or len(parts) < 3:
        return None
    at = len(parts) - 2
    if statement.opcode in ("fma", "mad", "mma") and len(parts) >= 4:
        at = 2
    if parts[at] == parts[at + 1]:
        return None
    parts[at], parts[at + 1] = parts[at + 1], parts[at]
    return statement._replace(operands=", ".join(parts))


def swap_sources(text: str, random: Random) -> str | None:
    """`sub a, b, c` with b and c exchanged, and the like."""
    return _chosen(text, random, _swap_sources)


def _negate(statement: Statement, random: Random) -> Statement | None:
    guard = statement.guard
    if not guard:
        return None
    turned = guard.replace("@!", "@") if "!" in guard else guard.replace("@", "@!")
    return statement._replace(guard=turned)


def negate_guard(text: str, random: Random) -> str | None:
    """`@%p` becomes `@!%p`."""
    return _chosen(text, random, _negate)


def drop_guard(text: str, random: Random) -> str | None:
    """What was done under a predicate is done always."""
    return _chosen(text, random, lambda s, r: s._replace(guard="") if s.guard else None)


WORDS: dict[str, tuple[str, ...]] = {
    "compared": ("lt", "le", "gt", "ge", "eq", "ne"),
    "rounding": ("rn", "rz", "rm", "rp"),
    "signed": ("s32", "u32"),
    "wide_sign": ("s64", "u64"),
    "narrow": ("s16", "u16"),
    "float": ("f32", "f64"),
    "half": ("f16", "bf16"),
    "halves": ("f16x2", "bf16x2"),
    "width": ("b32", "b64"),
    "scope": ("cta", "gpu", "sys"),
    "order": ("relaxed", "acquire", "release", "acq_rel"),
    "copy_cache": ("cg", "ca"),
    "layout": ("row", "col"),
    "part": ("lo", "hi"),
    "hop": ("bfly", "down", "up", "idx"),
    "space": ("shared", "global"),
    "vector": ("v2", "v4"),
    "sum": ("add", "min", "max", "and", "or", "xor"),
}
"""Modifiers of which one must not pass for another."""


def _other_word(name: str) -> Mutation:
    family = WORDS[name]

    def change(statement: Statement, random: Random) -> Statement | None:
        words = statement.mnemonic.split(".")
        at = [i for i, word in enumerate(words) if i and word in family]
        if not at:
            return None
        chosen = random.choice(at)
        words[chosen] = random.choice([w for w in family if w != words[chosen]])
        return statement._replace(mnemonic=".".join(words))

    return lambda text, random: _chosen(text, random, change)


OPTIONAL = frozenset(
    "ftz approx full sat nc volatile wide noinc trans aligned relu L1::evict_last L1::evict_first "
    "NaN satfinite".split()
)


def _drop_modifier(statement: Statement, random: Random) -> Statement | None:
    words = statement.mnemonic.split(".")
    at = [i for i, word in enumerate(words) if word in OPTIONAL]
    if not at:
        return None
    del words[random.choice(at)]
    return statement._replace(mnemonic=".".join(words))


def drop_modifier(text: str, random: Random) -> str | None:
    """Without `.ftz`, `.nc`, `.volatile` and the like."""
    return _chosen(text, random, _drop_modifier)


def _cache_word(statement: Statement, random: Random) -> Statement | None:
    if not statement.mnemonic.startswith(("ld.global", "st.global")):
        return None
    if {"nc", "volatile", "L1::evict_last"} & set(statement.mnemonic.split(".")):
        return None
    is_load = statement.opcode == "ld"
    word = random.choice(
        ("nc", "volatile", "cv", "L1::evict_last") if is_load else ("volatile", "wt", "cs")
    )
    return statement._replace(mnemonic=statement.mnemonic.replace(".global", f".global.{word}", 1))


def cache_word(text: str, random: Random) -> str | None:
    """A load with `.nc`, an access with `.volatile` or another cache operator."""
    return _chosen(text, random, _cache_word)


OTHER_OPCODES = {
    "add": "sub", "sub": "add", "min": "max", "max": "min", "and": "or", "or": "xor", "xor": "and",
    "shl": "shr", "shr": "shl", "ex2": "lg2", "lg2": "ex2", "rcp": "rsqrt", "sqrt": "rcp",
    "neg": "abs", "abs": "neg", "mul": "add", "ld": "ldu", "red": "atom",
}  # fmt: skip


def _other_opcode(statement: Statement, random: Random) -> Statement | None:
    other = OTHER_OPCODES.get(statement.opcode)
    if other is None:
        return None
    return statement._replace(mnemonic=other + statement.mnemonic[len(statement.opcode) :])


def other_opcode(text: str, random: Random) -> str | None:
    """`add` for `sub`, `min` for `max`."""
    return _chosen(text, random, _other_opcode)


def _step(number: str) -> str:
    """The next number: 1 ulp or one more."""
    if number[:2] in ("0f", "0F"):
        return f"0f{(int(number[2:], 16) + 1) & 0xFFFFFFFF:08X}"
    if number[:2] in ("0d", "0D"):
        return f"0d{(int(number[2:], 16) + 1) & (1 << 64) - 1:016X}"
    return str(int(number, 0) + 1)


def _nudge(statement: Statement, random: Random) -> Statement | None:
    found = list(_NUMBER.finditer(statement.operands))
    if not found or statement.opcode in ("bra", "call"):
        return None
    at = random.choice(found)
    before, after = statement.operands[: at.start()], statement.operands[at.end() :]
    return statement._replace(operands=before + _step(at.group()) + after)


def nudge_constant(text: str, random: Random) -> str | None:
    """A constant, an offset, a loop's bound: one more, or 1 ulp."""
    return _chosen(text, random, _nudge)


def _offset(statement: Statement, random: Random) -> Statement | None:
    found = re.search(r"\[(%\w+)\]", statement.operands)
    if found is None:
        return None
    moved = statement.operands.replace(found.group(), f"[{found[1]}+4]", 1)
    return statement._replace(operands=moved)


def add_offset(text: str, random: Random) -> str | None:
    """`[%r1]` becomes `[%r1+4]`."""
    return _chosen(text, random, _offset)


def _rewire(registers: dict[str, list[str]]) -> Callable[[Statement, Random], Statement | None]:
    def change(statement: Statement, random: Random) -> Statement | None:
        found = list(_REGISTER.finditer(statement.operands))
        if not found:
            return None
        at = random.choice(found)
        kind = at.group().rstrip("0123456789")
        others = [name for name in registers[kind] if name != at.group()]
        if not others:
            return None
        before, after = statement.operands[: at.start()], statement.operands[at.end() :]
        return statement._replace(operands=before + random.choice(others) + after)

    return change


def rewire(text: str, random: Random) -> str | None:
    """One use or definition names another register."""
    registers: dict[str, list[str]] = {}
    for statement in statements(text):
        for name in _REGISTER.findall(statement.operands):
            of_kind = registers.setdefault(name.rstrip("0123456789"), [])
            if name not in of_kind:
                of_kind.append(name)
    return _chosen(text, random, _rewire(registers))


def _other_component(statement: Statement, random: Random) -> Statement | None:
    found = re.search(r"%(n?tid|n?ctaid|clusterid)\.([xyz])", statement.operands)
    if found is None:
        return None
    name = random.choice([n for n in ("tid", "ctaid", "ntid") if n != found[1]])
    other = random.choice((f"%{name}.{found[2]}", f"%{found[1]}.{'yzx'['xyz'.index(found[2])]}"))
    return statement._replace(operands=statement.operands.replace(found.group(), other, 1))


def other_component(text: str, random: Random) -> str | None:
    """`%tid.y` or `%ctaid.x` for `%tid.x`."""
    return _chosen(text, random, _other_component)


def _turn_vector(statement: Statement, random: Random) -> Statement | None:
    found = re.search(r"\{([^{}]*)\}", statement.operands)
    if found is None:
        return None
    parts = [part.strip() for part in found[1].split(",")]
    if len(parts) < 2 or parts[0] == parts[1]:
        return None
    parts[0], parts[1] = parts[1], parts[0]
    turned = statement.operands.replace(found.group(), "{" + ", ".join(parts) + "}", 1)
    return statement._replace(operands=turned)


def turn_vector(text: str, random: Random) -> str | None:
    """`{a, b}` becomes `{b, a}`."""
    return _chosen(text, random, _turn_vector)


def delete(text: str, random: Random) -> str | None:
    """One instruction less."""
    found = statements(text)
    return _replaced(text, random.choice(found), "") if found else None


def repeat(text: str, random: Random) -> str | None:
    """One instruction twice."""
    found = [s for s in statements(text) if s.opcode not in ("ret", "exit", "bra", "trap", "call")]
    if not found:
        return None
    chosen = random.choice(found)
    return _replaced(text, chosen, f"{chosen.text()}\n{chosen.text()}")


def dead_code(text: str, random: Random) -> str | None:
    """An instruction that nobody reads the result of."""
    found = [s for s in statements(text) if _REGISTER.search(s.operands)]
    if not found:
        return None
    chosen = random.choice(found)
    return _replaced(text, chosen, f"\tmov.b32 %never, 7;\n{chosen.text()}").replace(
        "{\n", "{\n.reg .b32 %never;\n", 1
    )


_MEMORY = ("ld", "st", "atom", "red", "cp", "ldmatrix", "stmatrix")


def _exchanged(text: str, first: Statement, second: Statement) -> str:
    between = text[first.end : second.start]
    return text[: first.start] + second.text() + between + first.text() + text[second.end :]


def move_barrier(text: str, random: Random) -> str | None:
    """A barrier before the access that it stood behind, or the other way round."""
    found = statements(text)
    pairs = [
        (a, b)
        for a, b in itertools.pairwise(found)
        if (a.opcode in ("bar", "barrier")) != (b.opcode in ("bar", "barrier"))
    ]
    return _exchanged(text, *random.choice(pairs)) if pairs else None


def reorder_stores(text: str, random: Random) -> str | None:
    """Two stores of different places in the other order."""
    found = [s for s in statements(text) if s.opcode == "st"]
    pairs = [(a, b) for a, b in itertools.pairwise(found) if a.text().strip() != b.text().strip()]
    return _exchanged(text, *random.choice(pairs)) if pairs else None


def reorder(text: str, random: Random) -> str | None:
    """Two neighbours in the other order."""
    found = statements(text)
    pairs = [(a, b) for a, b in itertools.pairwise(found) if a.text().strip() != b.text().strip()]
    return _exchanged(text, *random.choice(pairs)) if pairs else None


def other_target(text: str, random: Random) -> str | None:
    """A branch leads elsewhere."""
    labels = [
        name for name in _LABEL.findall(text) if re.search(rf"\bbra\S*\s+{re.escape(name)};", text)
    ]

    def change(statement: Statement, random: Random) -> Statement | None:
        others = [name for name in labels if name != statement.operands.strip()]
        if statement.opcode != "bra" or not others:
            return None
        return statement._replace(operands=random.choice(others))

    return _chosen(text, random, change)


def move_label(text: str, random: Random) -> str | None:
    """A label that is branched to stands one instruction later."""
    found = statements(text)
    for name in random.sample(labels := _LABEL.findall(text), len(labels)):
        if not re.search(rf"\bbra\S*\s+{re.escape(name)};", text):
            continue
        start = text.index(f"\n{name}:") + 1
        behind = next((s for s in found if s.start > start), None)
        if behind is None:
            continue
        end = start + len(name) + 1
        return text[:start] + text[end : behind.end] + f"\n{name}:" + text[behind.end :]
    return None


# What is declared ---------------------------------------------------------------------------------
def _declared(pattern: str, by: Callable[[re.Match[str]], str]) -> Mutation:
    def mutate(text: str, random: Random) -> str | None:
        found = list(re.finditer(pattern, text, re.MULTILINE))
        if not found:
            return None
        at = random.choice(found)
        return text[: at.start()] + by(at) + text[at.end() :]

    return mutate


_ARRAY = re.compile(
    r"^[ \t]*(?:\.(?:visible|extern)[ \t]+)?\.(?:shared|local|const|global)\b[^;{=]*?([\w$]+)"
    r"\[(\d*)\](?:[ \t]*=[ \t]*\{([^}]*)\})?;",
    re.MULTILINE,
)


def _array(change: Callable[[re.Match[str]], str]) -> Mutation:
    """Changes the declaration of an array that instructions name."""

    def mutate(text: str, random: Random) -> str | None:
        used = {name for s in statements(text) for name in re.findall(r"[\w$]+", s.operands)}
        found = [m for m in _ARRAY.finditer(text) if m[1] in used]
        if not found:
            return None
        at = random.choice(found)
        return text[: at.start()] + change(at) + text[at.end() :]

    return mutate


def _larger(found: re.Match[str]) -> str:
    return found.group().replace(f"[{found[2]}]", f"[{int(found[2] or 0) + 16}]", 1)


def _aligned(found: re.Match[str]) -> str:
    return re.sub(r"\.align (\d+)", lambda m: f".align {2 * int(m[1])}", found.group(), count=1)


def _otherwise_filled(found: re.Match[str]) -> str:
    if not found[3] or not found[3][0].isdigit():
        return found.group()
    return re.sub(r"= \{(\d+)", lambda m: f"= {{{(int(m[1]) + 1) % 256}", found.group(), count=1)


MATTERS: dict[str, Mutation] = {
    "swap_sources": swap_sources,
    "negate_guard": negate_guard,
    "drop_guard": drop_guard,
    **{f"word_{name}": _other_word(name) for name in WORDS},
    "drop_modifier": drop_modifier,
    "cache_word": cache_word,
    "other_opcode": other_opcode,
    "nudge_constant": nudge_constant,
    "add_offset": add_offset,
    "rewire": rewire,
    "other_component": other_component,
    "turn_vector": turn_vector,
    "delete": delete,
    "repeat": repeat,
    "dead_code": dead_code,
    "move_barrier": move_barrier,
    "reorder_stores": reorder_stores,
    "reorder": reorder,
    "other_target": other_target,
    "move_label": move_label,
    "threads": _declared(r"^(\.(?:req|max)ntid) (\d+)", lambda m: f"{m[1]} {2 * int(m[2])}"),
    "parameter_type": _declared(
        r"\.param \.u(32|64)", lambda m: f".param .u{64 if m[1] == '32' else 32}"
    ),
    "parameter_alignment": _declared(
        r"\.ptr \.global \.align (\d+)", lambda m: f".ptr .global .align {2 * int(m[1])}"
    ),
    "array_size": _array(_larger),
    "array_alignment": _array(_aligned),
    "array_value": _array(_otherwise_filled),
    "callee": _declared(
        r"(\.func(?:[^;{]|\{[^}]*\})*?\)\s*\{(?:(?!\.entry|^\}).|\n)*?\bret;)",
        lambda m: m[1].replace("ret;", "bar.sync 0;\n\tret;"),
    ),
}
"""Mutations that mean something else, dead code and order included."""


# What means the same ------------------------------------------------------------------------------
def renumbered(text: str, random: Random) -> str:
    """Registers of each kind under other numbers."""
    counts: dict[str, int] = {}
    for name in _REGISTER.findall(text):
        kind = name.rstrip("0123456789")
        counts[kind] = max(counts.get(kind, 0), int(name[len(kind) :]) + 1)
    for kind, number in re.findall(r"(%[a-z]+)<(\d+)>", text):
        counts[kind] = max(counts.get(kind, 0), int(number))
    orders = {kind: random.sample(range(n), n) for kind, n in counts.items()}

    def other(found: re.Match[str]) -> str:
        kind = found.group().rstrip("0123456789")
        return f"{kind}{orders[kind][int(found.group()[len(kind) :])]}"

    return _REGISTER.sub(other, text)


def relabelled(text: str, random: Random) -> str:
    """Labels under other names."""
    for at, name in enumerate(dict.fromkeys(_LABEL.findall(text))):
        text = re.sub(
            rf"(?<![\w$]){re.escape(name)}(?![\w$])", f"$other_{random.randrange(99)}_{at}", text
        )
    return text


def redeclared(text: str, random: Random) -> str:
    """Registers declared in another order, one declaration more than is needed."""
    lines = text.split("\n")
    at = [i for i, line in enumerate(lines) if line.strip().startswith(".reg ")]
    if not at or at[-1] - at[0] >= len(at):
        return text.replace("{\n", "{\n\t.reg .b64 %unused<3>;\n", 1)
    lines[at[0] : at[-1] + 1] = random.sample(lines[at[0] : at[-1] + 1], len(at))
    lines.insert(at[0], "\t.reg .b64 %unused<3>;")
    return "\n".join(lines)


def moved(text: str, random: Random) -> str:
    """Other lines of the source, another file; every third place left out."""
    by = random.randrange(1, 99)
    text = re.sub(r"(\.loc\s+\d+ )(\d+)", lambda m: f"{m[1]}{int(m[2]) + by}", text)
    text = re.sub(r"(\.file\s+\d+ )\"[^\"]*\"", r'\1"elsewhere/other.py"', text)
    drawn = Random(by)
    return re.sub(
        r"^\s*\.loc[^\n]*\n",
        lambda m: m.group() if drawn.random() < 0.7 else "",
        text,
        flags=re.MULTILINE,
    )


def commented(text: str, random: Random) -> str:
    """Other words of the producer, comments between instructions, CRLF."""
    text = re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)
    text = f"// Built by another compiler {random.random()}\n{text}"
    return text.replace(";\n", f"; // {random.randrange(9)}\n").replace("\n", "\r\n")


def without_debugging(text: str, random: Random) -> str:
    """No line of the source and no section of debugging information."""
    text = re.sub(r"^\s*\.(?:loc|file)\b[^\n]*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\.section\s+\.debug\w*\s*\{[^}]*\}", "", text)


def renamed(text: str, random: Random) -> str:
    """Kernel, parameters and arrays under other names."""
    kernel = re.search(r"\.entry (\w+)\(", text)
    if kernel is not None:
        text = re.sub(rf"\b{kernel[1]}(?=\b|_param)", f"other{random.randrange(9)}", text)
    return re.sub(r"\bglobal_smem\b", "arena", text)


def written_otherwise(text: str, random: Random) -> str:
    """Numbers in hexadecimal where they were decimal; blanks."""
    return re.sub(r"(?<=, )(\d+)(?=;)", lambda m: f"0x{int(m[1]):x}", text).replace(", ", " ,  ")


def scoped(text: str, random: Random) -> str:
    """The body in one more pair of braces."""
    start = text.index("{", text.index(".entry")) + 1
    depth, at = 1, start
    for found in re.finditer(r'"[^"\n]*"|//[^\n]*|[{}]', text[start:]):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if depth == 0:
            at = start + found.start()
            break
    return f"{text[:start]}\n{{{text[start:at]}}}\n{text[at:]}"


SAME: dict[str, Callable[[str, Random], str]] = {
    "renumbered": renumbered,
    "relabelled": relabelled,
    "redeclared": redeclared,
    "moved": moved,
    "commented": commented,
    "without_debugging": without_debugging,
    "renamed": renamed,
    "written_otherwise": written_otherwise,
    "scoped": scoped,
}
"""Rebuilds that do the same."""


class Mutant(NamedTuple):
    """A rebuild, and what was done."""

    name: str
    text: str


def mutants(text: str, random: Random, each: int = 1) -> Iterator[Mutant]:
    """Rebuilds of a kernel that mean something else: so many of each kind of mutation."""
    for name, mutate in MATTERS.items():
        met = {text}
        for _ in range(each):
            found = mutate(text, random)
            if found is not None and found not in met:
                met.add(found)
                yield Mutant(name, found)


def rebuilds(text: str, random: Random) -> Iterator[Mutant]:
    """Rebuilds that mean the same, one of each kind, and all at once."""
    every = text
    for name, mutate in SAME.items():
        yield Mutant(name, mutate(text, random))
        if name not in ("commented", "without_debugging"):
            every = mutate(every, random)
    yield Mutant("every", every)


__all__ = ["MATTERS", "SAME", "Mutant", "mutants", "rebuilds", "statements"]
