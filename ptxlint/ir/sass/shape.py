"""Building the shape of a SASS instruction: its text's operands joined with the opcode's row.

Operands come as nodes, nested tuples over the slots of the text:

=========================  ========================================================
`("r", i, suffixes)`       the register in slot i, and the words behind it
`("z", name, suffixes)`    a register that is a constant, or a special one
`("n", i)`                 a number
`("l", i)`                 what a branch or a call names
`("w", text)`              a word
`("u", sign, node)`        `-`, `~`, `!`, `+` or `|` (absolute value)
`("a", prefix, sums)`      `prefix[sum][sum]`; a sum is a tuple of nodes
`("v", nodes)`             `{…}`
=========================  ========================================================
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ptxlint.ir.instruction import Pattern, Shape
from ptxlint.ir.sass import widths
from ptxlint.ir.sass.opcodes import Row, Token, lookup

Node = tuple[Any, ...]

_HINTS: Final = frozenset(("reuse",))
"""Words behind a register that change nothing of what is computed."""
_CONVERGENCE: Final = ("CONV", "DIV")
"""Branches with these words ask whether the warp has converged: they are conditional though no
predicate says so."""
_NEVER: Final = (("z", "PT"), ("z", "UPT"))
"""Behind a `!`, a condition that is never true."""
_WIDE_ADDRESS: Final = frozenset(("64", "U64"))
_PREDICATES: Final = ("P", "UP")


class Slot(NamedTuple):
    """What fills arguments of an instruction: so many registers from the one in this slot on
    (`skip` behind it), or the register of this name."""

    number: int
    width: int
    name: str = ""
    skip: int = 0


class Built(NamedTuple):
    """A shape, and the slots of the text that its arguments come from, in order."""

    shape: Shape
    slots: tuple[Slot, ...]


class _Arguments:
    """The arguments of a shape while they are numbered."""

    def __init__(self, opcode: str) -> None:
        self.opcode = opcode
        self.skipped = 0
        """Registers of a matrix descriptor that mean nothing."""
        self.slots: list[Slot] = []
        self.count = 0
        self.defs: list[int] = []
        self.uses: list[int] = []

    def take(self, slot: int, width: int, role: str, skip: int = 0) -> Pattern:
        """Arguments for so many registers; the pattern that they make."""
        first = self.count
        self.slots.append(Slot(slot, width, "", skip))
        self.count += width
        numbers = range(first, first + width)
        if role in ("d", "x"):
            self.defs += numbers
        if role in ("u", "x"):
            self.uses += numbers
        if width == 1:
            return ("s", first)
        return ("v", *(("s", n) for n in numbers))

    def state(self, name: str) -> None:
        """An argument for a condition that is in no register."""
        self.slots.append(Slot(-1, 1, name))
        self.count += 1

    def predicates(self, node: Node, masked: int, role: str) -> Pattern:
        """Arguments for some of all predicates."""
        letters = "UP" if node[1] == "UPR" else "P"
        parts = []
        for number in range(8):
            if masked >> number & 1 and number < 7:
                self.slots.append(Slot(-1, 1, f"{letters}{number}"))
                (self.defs if role == "d" else self.uses).append(self.count)
                parts.append(("s", self.count))
                self.count += 1
        return ("v", *parts)


def build(
    guard: str,
    mnemonic: str,
    nodes: tuple[Node, ...],
    kinds: tuple[str, ...],
    masked: int = 0x7F,
    is_local: bool = False,
) -> Built:
    """The shape of an instruction. `kinds` are those of its slots: the letters before a register's
    number (`R`, `UP`, …), else ""; slot 0 is the guard's, if there is one. `masked` are the
    predicates that an instruction takes which takes all (`P2R R0, PR, RZ, 0x7f`), a bit each.
    `is_local` is true if it names a label of its own function."""
    opcode, *modifiers = mnemonic.split(".")
    words = tuple(modifiers)
    row = lookup(opcode)
    is_texture = row.opcode.category == "texture"
    sizes = (*words, *_texture_words(opcode, nodes, masked)) if is_texture else words
    if row.opcode.is_call and is_local:
        # Nothing comes back from there: it is a branch that needs no convergence.
        row = row._replace(opcode=lookup("JMP").opcode._replace(name=opcode))
    arguments = _Arguments(opcode)
    if guard:
        arguments.take(0, 1, "u" if kinds[0] else "")
    elif row.opcode.terminator == "branch":
        guard, nodes = _condition(nodes, kinds, arguments)
        converging = next((word for word in words if word in _CONVERGENCE), "")
        if converging and not guard:
            guard = "@"
            arguments.state(converging)
    matched = _matched(row, nodes, kinds)
    # Four registers describe both factors of a product of a warpgroup: of one that is held in
    # registers the first two mean nothing.
    in_registers = any(token.width == "A" for token, _ in matched)
    descriptor = 4 if opcode.endswith("GMMA") else 2
    arguments.skipped = 2 if descriptor == 4 and in_registers else 0
    roles: list[str] = []
    patterns: list[Pattern] = []
    for token, node in matched:
        roles.append(_role(token, node))
        if token.role == "P":
            patterns.append(arguments.predicates(node, masked, "d" if node is nodes[0] else "u"))
        else:
            patterns.append(_pattern(node, token, sizes, descriptor, arguments))
    shape = Shape(
        mnemonic=mnemonic,
        opcode=opcode,
        modifiers=words,
        guard=guard,
        patterns=tuple(patterns),
        row=row.opcode,
        form=None,
        roles=tuple(roles),
        def_slots=tuple(arguments.defs),
        use_slots=tuple(arguments.uses),
        partial=not row.opcode.known,
        types=(),
        space=(row.memory.reads + row.memory.writes + ("",))[0],
    )
    shape.memory = row.memory
    return Built(shape, tuple(arguments.slots))


def _texture_words(opcode: str, nodes: tuple[Node, ...], masked: int) -> tuple[str, ...]:
    """What among its operands says how many registers a texture instruction takes: the space, and
    the components behind it, which are left out where it takes all."""
    words = tuple(node[1] for node in nodes if node[0] == "w")
    behind = next((at for at, node in enumerate(reversed(nodes)) if node[0] == "w"), 0)
    has_mask = behind == (3 if opcode == "TXQ" else 1)
    return (*words, f"0x{masked & 15:x}") if has_mask else words


def _condition(
    nodes: tuple[Node, ...], kinds: tuple[str, ...], arguments: _Arguments
) -> tuple[str, tuple[Node, ...]]:
    """The predicate that a branch has as an operand (`BRA.U !UP0, …`), as a guard; the others."""
    first = nodes[0] if nodes else ("w", "")
    inner = first[2] if first[0] == "u" else first
    if first[0] == "u" and inner[:2] in _NEVER:
        arguments.state(inner[1])
        return "@!", nodes[1:]
    if inner[0] != "r" or kinds[inner[1]] not in (*_PREDICATES, "UR"):
        return "", nodes
    arguments.take(inner[1], 1, "u")
    return "@!" if first[0] == "u" else "@", nodes[1:]


def _role(token: Token, node: Node) -> str:
    if token.role in "dpb":
        return "def"
    if token.role == "x":
        return "update"
    return "address" if node[0] == "a" else "label" if token.role == "l" else "use"


_REST: Final = Token("u", "1", True, True)


def _matched(row: Row, nodes: tuple[Node, ...], kinds: tuple[str, ...]) -> list[tuple[Token, Node]]:
    """Each operand with the token of the row that it is."""
    out: list[tuple[Token, Node]] = []
    tokens, at = row.tokens, 0
    for place, node in enumerate(nodes):
        left = len(nodes) - place
        while at < len(tokens):
            token = tokens[at]
            # What must follow is not taken by what may stand any number of times.
            needed = sum(not t.is_optional for t in tokens[at + 1 :])
            if _admits(token, node, kinds) and (not token.is_optional or left > needed):
                at += not token.is_repeated
                break
            if not token.is_optional:
                at += 1
                break
            at += 1
        else:
            token = _REST
        out.append((token, node))
    return out


def _admits(token: Token, node: Node, kinds: tuple[str, ...]) -> bool:
    """Whether an operand is what a token stands for."""
    role = token.role
    kind = _kind(node, kinds)
    if role == "p":
        return kind in _PREDICATES
    if role == "d":
        return kind in ("R", "UR")
    if role == "b":
        return kind == "B"
    if role == "a":
        return bool(node[0] == "a")
    if role == "l":
        return node[0] in ("l", "n")
    if token.is_optional and not token.is_repeated:
        return kind in ("R", "UR", "P", "UP") or bool(node[0] == "u")
    return True


def _kind(node: Node, kinds: tuple[str, ...]) -> str:
    """The letters of a register, or of a constant one (`RZ` is an `R`); "" for what is none."""
    if node[0] == "r":
        return kinds[node[1]]
    if node[0] == "z":
        return str({"RZ": "R", "URZ": "UR", "PT": "P", "UPT": "UP"}.get(node[1], ""))
    return ""


def _pattern(
    node: Node, token: Token, words: tuple[str, ...], descriptor: int, arguments: _Arguments
) -> Pattern:
    kind = node[0]
    role = {"d": "d", "p": "d", "b": "d", "x": "x"}.get(token.role, "u")
    if kind == "r":
        suffixes = tuple(s for s in node[2] if s not in _HINTS)
        width = widths.of(token.width, arguments.opcode, words, suffixes)
        return _selected(arguments.take(node[1], width, role), suffixes)
    if kind == "z":
        return _selected(("z", node[1]), tuple(s for s in node[2] if s not in _HINTS))
    if kind in "nl":
        return arguments.take(node[1], 1, "")
    if kind == "w":
        return ("l", node[1])
    if kind == "u":
        return ("u", node[1], _pattern(node[2], token, words, descriptor, arguments))
    if kind == "v":
        return ("v", *(_pattern(n, token, words, descriptor, arguments) for n in node[1]))
    return _address(node, token, words, descriptor, arguments)


def _selected(pattern: Pattern, suffixes: tuple[str, ...]) -> Pattern:
    for word in suffixes:
        is_plain = pattern[0] == "s" and len(pattern) == 2
        pattern = (*pattern, "." + word) if is_plain else ("t", "." + word, pattern)
    return pattern


def _address(
    node: Node, token: Token, words: tuple[str, ...], descriptor: int, arguments: _Arguments
) -> Pattern:
    """`desc[UR4][R2.64+0x8]` as an address whose base is in the last brackets."""
    _, prefix, sums = node
    parts = [_sum(terms, 2 if prefix == "desc" else 1, arguments) for terms in sums[:-1]]
    width = descriptor if prefix == "gdesc" else 1
    if not prefix and token.role == "a":
        width = widths.of(token.width, arguments.opcode, words, ())
    if prefix == "gdesc" and arguments.skipped:
        (register,) = sums[-1]
        skip = arguments.skipped
        parts.append(arguments.take(register[1], width - skip, "u", skip))
    else:
        parts.append(_sum(sums[-1], width, arguments))
    rest = [("l", prefix)] if prefix else []
    return ("a", parts[-1], *rest, *parts[:-1])


def _sum(terms: tuple[Node, ...], width: int, arguments: _Arguments) -> Pattern:
    out: Pattern | None = None
    for term in terms:
        inner = term[2] if term[0] == "u" else term
        suffixes = inner[2] if inner[0] == "r" else ()
        own = 2 if _WIDE_ADDRESS.intersection(suffixes) else width
        token = Token("u", str(own), False, False)
        pattern = _pattern(term, token, (), 1, arguments)
        out = pattern if out is None else ("b", "+", out, pattern)
    assert out is not None
    return out


__all__ = ["Built", "Node", "Slot", "build"]
