"""From statements to the IR: scopes, names, functions, locations.

Both parsers feed this one builder, so that they cannot differ in anything but how they split the
text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

from ptxlint.frontends.ptx.template import Statement, Template
from ptxlint.ir.function import (
    Function,
    Pragma,
    Prototype,
    RegisterDeclaration,
    ScopeClose,
    ScopeOpen,
    TargetList,
    Variable,
)
from ptxlint.ir.instruction import Instr
from ptxlint.ir.literal import parse_literal
from ptxlint.ir.module import Alias, DwarfLine, FileEntry, GlobalDeclaration, Module, Section
from ptxlint.ir.operand import (
    Atom,
    Immediate,
    Label,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
)
from ptxlint.ir.pattern import fold, instantiate
from ptxlint.ir.shape import build_shape
from ptxlint.ir.types import FUNDAMENTAL
from ptxlint.source import Loc, Problem, SourceText

MAX_COUNTED: Final = 65_536
"""Most variables that one `name<n>` is expanded to."""
MAX_PROBLEMS: Final = 200
"""Past this many faults a text is given up: it is no PTX, and more lines help nobody."""
MAX_DIGITS: Final = 20
"""Digits of a number in a register's name or in a version; 64 bits need no more."""

_SPECIAL: Final = re.compile(
    r"%(?:tid|ntid|laneid|warpid|nwarpid|ctaid|nctaid|smid|nsmid|gridid|is_explicit_cluster"
    r"|clusterid|nclusterid|cluster_ctaid|cluster_nctaid|cluster_ctarank|cluster_nctarank"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|pm[0-7](?:_64)?|envreg[0-9]{1,2}"
    r"|globaltimer|globaltimer_lo|globaltimer_hi|reserved_smem_offset_\w+|total_smem_size"
    r"|aggr_smem_size|dynamic_smem_size|current_graph_exec)"
)
_RANGED: Final = re.compile(r"(.*?[^0-9]|)(0|[1-9][0-9]*)")
_LINKAGE: Final = frozenset({".visible", ".extern", ".weak", ".common"})
_SPACES: Final = {".global", ".const", ".shared", ".local", ".param", ".tex", ".reg", ".sreg"}
_ABSENT: Final = object()


class _Environment(dict[str, Atom]):
    """Names visible at the current point of a function; literals are kept here too.

    `ranges` are the register ranges of the function's outermost block as long as no inner block
    has any: the quick way to a register that is met for the first time.
    """

    __slots__ = ("builder", "ranges", "registers")

    def __init__(self, builder: ModuleBuilder) -> None:
        super().__init__()
        self.builder = builder
        self.ranges: dict[str, tuple[int, str, int]] = {}
        self.registers: list[Register] = []

    def __missing__(self, name: str) -> Atom:
        prefix = name.rstrip("0123456789")
        entry = self.ranges.get(prefix)
        if entry is not None:
            digits = name[len(prefix) :]
            plain = digits and (digits[0] != "0" or digits == "0")
            if plain and len(digits) <= MAX_DIGITS and int(digits) < entry[0]:
                registers = self.registers
                register = self[name] = Register(
                    name, entry[1], len(registers), 0, self.builder.offset, entry[2]
                )
                registers.append(register)
                return register
        return self.builder.resolve(name)


class _Scope:
    """One `{}` block: what it hides, its register ranges and its labels."""

    __slots__ = ("declared", "hidden", "number", "offset", "pending", "ranges")

    def __init__(self, number: int, offset: int) -> None:
        self.number = number
        self.offset = offset
        self.hidden: list[tuple[str, object]] = []
        self.ranges: dict[str, tuple[int, str, int]] = {}
        self.declared: set[str] = set()
        self.pending: dict[str, list[Label]] = {}


class ModuleBuilder:
    """Receives statements in text order and builds the module."""

    def __init__(self, source: SourceText) -> None:
        self.module = Module(source)
        self.text = source.text
        self.function: Function | None = None
        self._symbols: dict[str, Symbol] = {}
        self._ahead = len(source.text) // 16
        """How many registers may still be made before they are met; bounds memory by the text."""
        self._literals: dict[str, Immediate] = {}
        self._environment = _Environment(self)
        self._lookup = self._environment.__getitem__
        self._scopes: list[_Scope] = []
        self._aliases: set[str] = set()
        """Register names written with leading zeros."""
        self._ranged: list[_Scope] = []
        """Those of `_scopes` that declare register ranges."""
        self._scope_count = 0
        self._loc: Loc | None = None
        self._locs: dict[tuple[int, int, int], Loc] = {}
        self.offset = 0
        """Where the statement starts that is being taken in."""
        self._asm_bounds = _inline_asm_bounds(source.text)
        self._functions: dict[str, Function] = {}
        self._waiting_label: Label | None = None

    # Faults -----------------------------------------------------------------------------------
    @property
    def full(self) -> bool:
        """True once so many faults were met that going on is of no use."""
        return len(self.module.problems) >= MAX_PROBLEMS

    def problem(self, offset: int, message: str, hint: str = "", code: str = "syntax") -> None:
        """Record a fault of the input."""
        if not self.full:
            self.module.problems.append(Problem(offset, message, hint, code))

    def _find(self, name: str) -> int:
        """Where the name stands in the statement that is being built."""
        pattern = r"(?<![A-Za-z0-9_$%])" + re.escape(name) + r"(?![A-Za-z0-9_$])"
        match = re.compile(pattern).search(
            self.text, self.offset, self.offset + 100_000 + len(name)
        )
        return match.start() if match else self.offset

    # Names ------------------------------------------------------------------------------------
    def resolve(self, name: str) -> Atom:
        """What a name means here, when the environment does not hold it yet."""
        prefix = name.rstrip("0123456789")
        digits = name[len(prefix) :]
        if digits and prefix:
            for scope in reversed(self._ranged):
                entry = scope.ranges.get(prefix)
                if entry is not None and _number(digits) < entry[0]:
                    if digits[0] == "0" and digits != "0":
                        return self._leading_zeros(name, prefix + str(int(digits)))
                    return self._add_register(name, entry[1], entry[2], scope)
        return self._resolve_other(name)

    def _leading_zeros(self, name: str, canonical: str) -> Atom:
        """`%r03` is `%r3` where `%r<n>` is declared (measured with ptxas)."""
        atom = self._environment[canonical]
        self._aliases.add(name)
        self._bind(name, atom, self._scopes[-1])
        return atom

    def _resolve_other(self, name: str) -> Atom:
        """A literal, a symbol, a special register, or a label that comes later."""
        first = name[0]
        if first.isdigit() or first == ".":
            literal = self._literals.get(name)
            if literal is None:
                literal = self._literals[name] = parse_literal(name)
            self._environment[name] = literal
            return literal
        register = self._ranged_with_digits(name)
        if register is not None:
            return register
        symbol = self._symbols.get(name)
        if symbol is not None:
            return symbol
        if name == "WARP_SZ" or (first == "%" and _SPECIAL.fullmatch(name)):
            special = self._environment[name] = SpecialRegister(name)
            return special
        return self._pending_label(name)

    def _ranged_with_digits(self, name: str) -> Register | None:
        """`.reg .b32 x1<4>` declares x10 … x13: a prefix may end in digits."""
        for cut in range(len(name) - 1, max(0, len(name) - 1 - MAX_DIGITS), -1):
            if not name[cut].isdigit():
                return None
            prefix, digits = name[:cut], name[cut:]
            if len(digits) > 1 and digits[0] == "0":
                continue
            for scope in reversed(self._ranged):
                entry = scope.ranges.get(prefix)
                if entry is not None and _number(digits) < entry[0]:
                    return self._add_register(name, entry[1], entry[2], scope)
        return None

    def _add_register(self, name: str, type_name: str, vector: int, scope: _Scope) -> Register:
        registers = self._environment.registers
        register = Register(name, type_name, len(registers), scope.number, self.offset, vector)
        registers.append(register)
        if len(self._scopes) == 1:
            self._environment[name] = register
        else:
            self._bind(name, register, scope)
        return register

    def _bind(self, name: str, atom: Atom, scope: _Scope) -> None:
        """Make a name visible; what it hides in an outer block comes back when this one ends."""
        environment = self._environment
        if len(self._scopes) > 1:
            scope.hidden.append((name, environment.get(name, _ABSENT)))
        environment[name] = atom

    def _pending_label(self, name: str) -> Label:
        """A name not declared so far: a label that comes later, or nothing at all."""
        scope = self._scopes[-1]
        label = Label(name, self.offset, scope.number, -1)
        scope.pending.setdefault(name, []).append(label)
        self._bind(name, label, scope)
        return label

    # Instructions (the hot path) --------------------------------------------------------------
    def instruction(self, template: Template, slots: list[str], offset: int) -> None:
        """Append an instruction; `slots` hold the guard's name first if there is a guard."""
        function = self.function
        if function is None:
            self.problem(offset, "an instruction outside any function", code="structure")
            return
        self.offset = offset
        args = tuple(map(self._lookup, slots))
        kinds = tuple(map(type, args))
        shape = template.shapes.get(kinds)
        if shape is None:
            guard, mnemonic, extra, patterns = template.payload
            shape = template.shapes[kinds] = build_shape(guard, mnemonic, extra, patterns, kinds)
        instrs = function.instrs
        instr = Instr(shape, args, len(instrs), offset, self._loc)
        instrs.append(instr)
        function.items.append(instr)

    # Statements -------------------------------------------------------------------------------
    def statement(self, statement: Statement) -> None:
        """Take in a statement of any other kind (or an instruction)."""
        self.offset = statement.offset
        template = statement.template
        if template.kind == "instruction":
            self.instruction(template, list(statement.slots), statement.offset)
            return
        getattr(self, "_on_" + template.kind)(statement, template.payload)

    def label(self, name: str, offset: int) -> None:
        """Define a label at this point."""
        function = self.function
        if function is None:
            return
        scope = self._scopes[-1]
        if name in scope.declared:
            self.problem(
                offset,
                f"`{name}` is defined twice in this block",
                code="duplicate",
                hint="rename one of the two",
            )
            return
        scope.declared.add(name)
        target = len(function.instrs)
        label = Label(name, offset, scope.number, target)
        for waiting in scope.pending.pop(name, ()):
            waiting.target = target
            waiting.scope = scope.number
        self._bind(name, label, scope)
        function.labels.append(label)
        function.items.append(label)
        self._waiting_label = label

    def open_scope(self, offset: int) -> None:
        """`{` inside a body."""
        self._scope_count += 1
        self._scopes.append(_Scope(self._scope_count, offset))
        if self.function is not None:
            self.function.items.append(ScopeOpen(self._scope_count, offset))

    def close_scope(self, offset: int) -> None:
        """`}` inside a body: names of the block are forgotten, open labels move outwards."""
        scope = self._leave()
        if self.function is not None:
            self.function.items.append(ScopeClose(scope.number, offset))
        if not self._scopes:
            return
        outer, pending = self._scopes[-1], scope.pending
        if len(pending) > len(outer.pending):
            # The smaller into the larger: else deep nesting would move each name at every level.
            outer.pending, pending = pending, outer.pending
        for name, labels in pending.items():
            outer.pending.setdefault(name, []).extend(labels)

    def _leave(self) -> _Scope:
        scope = self._scopes.pop()
        environment = self._environment
        if scope.ranges:
            self._ranged.pop()
            if self._scopes and all(s.number == 0 for s in self._ranged):
                environment.ranges = self._scopes[0].ranges
        for name, old in reversed(scope.hidden):
            if old is _ABSENT:
                environment.pop(name, None)
            else:
                environment[name] = old  # type: ignore[assignment]
        return scope

    def loc(
        self,
        file: int,
        line: int,
        column: int,
        offset: int,
        function_name: str = "",
        function_offset: int = 0,
        inlined: tuple[int, int, int] | None = None,
    ) -> None:
        """A `.loc`. Inside inline assembly it is recorded but does not move the location: there
        the producer counts lines of the assembly text, not of the program (measured)."""
        parent = None
        if inlined is not None:
            parent = self._locs.get(inlined) or Loc(*inlined, offset)
        loc = Loc(file, line, column, offset, function_name, function_offset, parent)
        if self.function is None:
            self.module.items.append(loc)
            return
        self.function.items.append(loc)
        if self._asm_bounds and self._in_inline_asm(offset):
            loc.in_asm = True
        else:
            self._loc = loc
            self._locs[file, line, column] = loc

    def _in_inline_asm(self, offset: int) -> bool:
        return bisect_right(self._asm_bounds, offset) % 2 == 1

    def _integer(self, slot: str, statement: Statement) -> int:
        """The value of a number that must be an integer; 0 if it is not."""
        literal = parse_literal(slot)
        if literal.kind == "int":
            return literal.value
        self.problem(statement.offset, f"`{slot}` stands where an integer must", code="type")
        return 0

    def _on_label(self, statement: Statement, payload: Any) -> None:
        self.label(statement.slots[0], statement.offset)

    def _on_loc(self, statement: Statement, payload: Any) -> None:
        slots = statement.slots
        file, line, column = (self._integer(s, statement) for s in slots[:3])
        if len(slots) == 3:
            self.loc(file, line, column, statement.offset)
            return
        literal = payload[0]
        middle = slots[3:-3]
        name = literal or middle[0]
        plus = middle[0 if literal else 1 :]
        a, b, c = (self._integer(s, statement) for s in slots[-3:])
        shift = self._integer(plus[0], statement) if plus else 0
        self.loc(file, line, column, statement.offset, name, shift, (a, b, c))

    def _on_version(self, statement: Statement, payload: Any) -> None:
        major, _, minor = statement.slots[0].partition(".")
        if not (major.isdigit() and minor.isdigit() and len(major + minor) <= MAX_DIGITS):
            self.problem(
                statement.offset, f"`{statement.slots[0]}` is no PTX version", code="version"
            )
            return
        self.module.version = (int(major), int(minor))

    def _on_target(self, statement: Statement, payload: Any) -> None:
        if not self.module.targets:
            self.module.targets = statement.slots

    def _on_address_size(self, statement: Statement, payload: Any) -> None:
        self.module.address_size = self._integer(statement.slots[0], statement)

    def _on_file(self, statement: Statement, payload: Any) -> None:
        slots = statement.slots
        extra = [self._integer(s, statement) for s in slots[2:]]
        index = self._integer(slots[0], statement)
        entry = FileEntry(
            index,
            slots[1][1:-1],
            extra[0] if extra else None,
            extra[1] if extra else None,
            statement.offset,
        )
        self.module.files[index] = entry
        self.module.items.append(entry)

    def _on_pragma(self, statement: Statement, payload: Any) -> None:
        pragma = Pragma(tuple(s[1:-1] for s in statement.slots), statement.offset)
        if self.function is None:
            self.module.items.append(pragma)
        else:
            self.function.items.append(pragma)

    def _on_alias(self, statement: Statement, payload: Any) -> None:
        name, target = statement.slots
        self.module.items.append(Alias(name, target, statement.offset))
        self._symbols[name] = Symbol(name, "function")

    def _on_targets(self, statement: Statement, payload: Any) -> None:
        label = self._take_waiting_label()
        function = self.function
        if label is None or function is None:
            self.problem(statement.offset, f"`.{payload[0]}` needs a label in front", code="label")
            return
        entry = TargetList(label.name, payload[0], statement.slots, label.offset)
        function.targets[label.name] = entry
        function.items.append(entry)
        self._name_list(label.name, "targets")
        if payload[0] == "branchtargets":
            for slot in statement.slots:
                self._environment[slot]

    def _name_list(self, name: str, kind: str) -> None:
        """A label that named a target list or prototype is a symbol, not a place in the code."""
        self._bind(name, Symbol(name, kind), self._scopes[-1])

    def _take_waiting_label(self) -> Label | None:
        """The label just defined, withdrawn from the code: it names what follows it."""
        label, function = self._waiting_label, self.function
        self._waiting_label = None
        if label is None or function is None or not function.items:
            return None
        if function.items[-1] is not label:
            return None
        function.items.pop()
        function.labels.remove(label)
        return label

    def prototype(self, node: Any) -> None:
        """A `.callprototype`; its name is the label in front."""
        label = self._take_waiting_label()
        function = self.function
        if label is None or function is None:
            return
        function.items.append(
            Prototype(
                label.name,
                tuple(self._variable_of_param(p) for p in node.returns),
                tuple(self._variable_of_param(p) for p in node.params),
                tuple((d.template.payload[0], d.slots) for d in node.directives),
                label.offset,
            )
        )
        self._name_list(label.name, "prototype")

    def section(self, name: str, start: int, end: int, offset: int) -> None:
        """A `.section`; its text stays where it is."""
        self.module.items.append(Section(name, start, end, offset))

    def dwarf(self, text: str, offset: int) -> None:
        """An `@@DWARF` line."""
        self.module.items.append(DwarfLine(text, offset))

    # Declarations -----------------------------------------------------------------------------
    def _on_register(self, statement: Statement, payload: Any) -> None:
        mods, names = payload
        vector, kind = _register_type(mods)
        if kind is None:
            spelled = " ".join("." + m for m in mods)
            self.problem(
                statement.offset,
                f"`{spelled}` is no register type",
                code="type",
                hint="a register is .pred, .b8 to .b128, .u or .s, .f16, .f16x2, .f32 or .f64",
            )
            kind = "b32"
        function = self.function
        if function is None:
            self.problem(statement.offset, "`.reg` outside any function", code="structure")
            return
        scope = self._scopes[-1]
        written: list[tuple[str, int]] = []
        for name_slot, count_slot in names:
            name = statement.slots[name_slot]
            offset = statement.offsets[name_slot] if statement.offsets else statement.offset
            count = 0 if count_slot < 0 else self._integer(statement.slots[count_slot], statement)
            written.append((name, count))
            self._declare_register(
                name, count if count_slot >= 0 else None, kind, vector, scope, offset
            )
        function.items.append(RegisterDeclaration(kind, vector, tuple(written), statement.offset))

    def _declare_register(
        self, name: str, count: int | None, kind: str, vector: int, scope: _Scope, offset: int
    ) -> None:
        key = name if count is None else f"{name}<"
        if key in scope.declared or (count is None and self._in_range(name, scope)):
            self.problem(
                offset,
                f"register `{name}` is declared twice in this block",
                code="duplicate",
                hint="rename one of the two",
            )
            return
        scope.declared.add(key)
        if count is not None:
            if not scope.ranges:
                self._ranged.append(scope)
            scope.ranges[name] = (count, kind, vector)
            if scope.number:
                self._environment.ranges = {}
            elif count <= self._ahead:
                self._make_registers(name, count, kind, vector, offset)
            self._forget_outer(name, count, scope)
            return
        function = self.function
        assert function is not None
        register = Register(name, kind, len(function.registers), scope.number, offset, vector)
        function.registers.append(register)
        self._bind(name, register, scope)

    def _make_registers(self, prefix: str, count: int, kind: str, vector: int, offset: int) -> None:
        """All registers of a range at once, which is quicker than one by one."""
        self._ahead -= count
        registers = self._environment.registers
        first = len(registers)
        made = [
            Register(f"{prefix}{at}", kind, first + at, 0, offset, vector) for at in range(count)
        ]
        registers += made
        self._environment.update(zip([r.name for r in made], made, strict=True))

    def _in_range(self, name: str, scope: _Scope) -> bool:
        match = _RANGED.fullmatch(name)
        if match is None:
            return False
        entry = scope.ranges.get(match[1])
        return entry is not None and _number(match[2]) < entry[0]

    def _forget_outer(self, prefix: str, count: int, scope: _Scope) -> None:
        """An inner range hides names of outer scopes that were resolved before."""
        if len(self._scopes) < 2:
            return
        environment = self._environment
        if count < len(environment):
            names = [f"{prefix}{at}" for at in range(count)]
            names += [n for n in self._aliases if _is_in_range(n, prefix, count)]
        else:
            names = [n for n in environment if _is_in_range(n, prefix, count)]
        for name in names:
            atom = environment.get(name)
            if isinstance(atom, Register) and atom.scope != scope.number:
                scope.hidden.append((name, atom))
                del environment[name]

    def _on_variable(self, statement: Statement, payload: Any) -> None:
        specs, declarators = payload
        made = [v for d in declarators for v in self._variables(statement, specs, d)]
        if self.function is None:
            self.module.items.append(GlobalDeclaration(tuple(made), statement.offset))
        for variable in made:
            self._declare_variable(variable)

    def _declare_variable(self, variable: Variable) -> None:
        name = variable.name
        symbol = Symbol(name, "param" if variable.space == "param" else "variable")
        function = self.function
        if function is None:
            old = self.module.variables.get(name)
            if old is not None and not {"extern", "common", "weak"} & {
                *old.linkage,
                *variable.linkage,
            }:
                self.problem(variable.offset, f"`{name}` is declared twice", code="duplicate")
            self.module.variables[name] = variable
            self._symbols[name] = symbol
            return
        scope = self._scopes[-1]
        if name in scope.declared:
            self.problem(
                variable.offset, f"`{name}` is declared twice in this block", code="duplicate"
            )
        scope.declared.add(name)
        function.variables.append(variable)
        function.items.append(variable)
        self._bind(name, symbol, scope)

    def _variables(self, statement: Statement, specs: Any, declarator: Any) -> Iterator[Variable]:
        """The variables of one declarator: `name<n>` stands for name0 to name(n-1)."""
        variable = self._variable(statement, specs, declarator)
        if declarator[1] < 0:
            yield variable
            return
        count = self._integer(statement.slots[declarator[1]], statement)
        for at in range(min(count, MAX_COUNTED)):
            yield variable._replace(name=f"{variable.name}{at}")

    def _variable(self, statement: Statement, specs: Any, declarator: Any) -> Variable:
        name_slot, _, extents, initializer = declarator
        slots = statement.slots
        name = slots[name_slot] if name_slot >= 0 else "_"
        offsets = statement.offsets
        offset = offsets[name_slot] if offsets and name_slot >= 0 else statement.offset
        space, kind, vector, align = "", "", 1, 0
        linkage: list[str] = []
        attributes: list[str] = []
        for spec in specs:
            if spec[0] == "align":
                align = self._integer(slots[spec[1]], statement)
            elif spec[0] == "attributes":
                attributes += [_attribute(a, self._atoms(slots)) for a in spec[1:]]
            elif spec[1] in _LINKAGE:
                linkage.append(spec[1][1:])
            elif spec[1] in _SPACES and not space:
                space = spec[1][1:]
            elif spec[1] in (".v2", ".v4", ".v8"):
                vector = int(spec[1][2:])
            elif not kind and spec[1] not in _SPACES and spec[1] not in (".ptr", ".surf"):
                kind = spec[1][1:]
            else:
                attributes.append(spec[1][1:])
        atoms = self._atoms(slots)
        dims = tuple(None if e[0] is None else fold(instantiate(e[0], atoms)) for e in extents)
        value = None if initializer is None else _initializer(initializer, atoms)
        if space != "reg" and not kind:
            self.problem(offset, f"`{name}` is declared without a type", code="type")
        return Variable(
            name,
            space,
            kind or "b8",
            dims,
            align,
            vector,
            tuple(linkage),
            tuple(attributes),
            value,
            offset,
        )

    def _atoms(self, slots: tuple[str, ...]) -> tuple[Atom, ...]:
        """Slot values of a declaration: literals and symbols only."""
        return tuple(
            parse_literal(s)
            if s[0].isdigit() or (s[0] == "." and s[1:2].isdigit())
            else self._symbols.get(s) or Symbol(s, "unknown")
            for s in slots
        )

    def _variable_of_param(self, statement: Statement) -> Variable:
        specs, declarator = statement.template.payload
        return self._variable(statement, specs, declarator)

    # Functions --------------------------------------------------------------------------------
    def begin_function(
        self,
        linkage: Statement,
        returns: tuple[Statement, ...],
        name: str,
        offset: int,
        params: tuple[Statement, ...],
        directives: tuple[Statement, ...],
    ) -> None:
        """A function header; `body` or `end_function` follows."""
        specs, kind = linkage.template.payload
        atoms = self._atoms(linkage.slots)
        links = tuple(
            s[1][1:] if s[0] == "m" else _attribute(s[1], atoms) for s in specs if s[0] != "align"
        )
        for spec in specs:
            word = spec[1] if spec[0] == "m" else f".{spec[0]}"
            if spec[0] != "attributes" and word not in _LINKAGE:
                place = self.text.rfind(word, 0, offset)
                self.problem(
                    place if place >= 0 else offset,
                    f"`{word}` is no linkage of a function",
                    "it is .visible, .extern, .weak or none",
                    "structure",
                )
        header: dict[str, tuple[int | str, ...]] = {}
        pragmas: list[str] = []
        for directive in directives:
            if directive.template.kind == "pragma":
                pragmas += [s[1:-1] for s in directive.slots]
            else:
                header[directive.template.payload[0]] = tuple(
                    self._integer(s, directive) if s[0].isdigit() else s for s in directive.slots
                )
        function = Function(
            name,
            kind,
            links,
            tuple(self._variable_of_param(p) for p in params),
            tuple(self._variable_of_param(p) for p in returns),
            header,
            tuple(pragmas),
            offset,
        )
        self._symbols[name] = Symbol(name, "function")
        self.module.items.append(function)
        self.module.functions.append(function)
        self.function = function
        self._environment.registers = function.registers
        self._loc = None
        self._locs = {}
        self._waiting_label = None

    def open_body(self, offset: int) -> None:
        """The `{` that starts a body."""
        function = self.function
        assert function is not None
        known = self._functions.get(function.name)
        if known is not None:
            self.problem(
                function.offset,
                f"`{function.name}` is defined twice",
                code="duplicate",
                hint="rename one of the two",
            )
        self._functions[function.name] = function
        function.is_declaration = False
        self._environment.clear()
        self._scope_count = 0
        scope = _Scope(0, offset)
        self._scopes = [scope]
        self._environment.ranges = scope.ranges
        self._ranged = []
        self._aliases.clear()
        for variable in (*function.returns, *function.params):
            if variable.name == "_":
                continue
            if variable.name in scope.declared:
                self.problem(
                    variable.offset,
                    f"parameter `{variable.name}` is declared twice",
                    code="duplicate",
                )
                continue
            scope.declared.add(variable.name)
            if variable.space == "reg":
                self._add_register(variable.name, variable.type, variable.vector, scope)
            else:
                self._bind(variable.name, Symbol(variable.name, "param"), scope)

    def end_function(self, offset: int) -> None:
        """The end of a body, or the `;` of a declaration."""
        function = self.function
        assert function is not None
        function.end_offset = offset
        while len(self._scopes) > 1:
            self.close_scope(offset)
        if self._scopes:
            scope = self._leave()
            for labels in sorted(scope.pending.values(), key=_first_offset):
                if self.full:
                    break
                self._undeclared(labels[0].name, labels)
        self._scopes = []
        self.function = None
        self._loc = None

    def finish(self) -> None:
        """The end of the text: problems in text order. The builder is of no use afterwards.

        Its reference cycle is cut, so that a module goes as soon as nobody holds it.
        """
        if self.full:
            self.module.problems.append(
                Problem(
                    max(problem.offset for problem in self.module.problems),
                    f"more than {MAX_PROBLEMS} faults; the rest of the text was not read",
                    "is this PTX? correct the first faults and check again",
                    "structure",
                )
            )
        del self._environment.builder
        self._environment.clear()
        self.module.problems.sort(key=lambda problem: problem.offset)

    def _undeclared(self, name: str, labels: list[Label]) -> None:
        """A name that nothing declares: as a label or as anything else."""
        function = self.function
        assert function is not None
        self.offset = offset = _first_offset(labels)
        place = self._find(name)
        jumps = self.text.startswith(("bra", "@", "brx"), offset)
        hidden = any(label.name == name for label in function.labels)
        if hidden:
            self.problem(
                place,
                f"label `{name}` stands in a block that cannot be jumped into",
                code="label",
                hint="a branch may leave a `{}` block, not enter one",
            )
        elif jumps and not name.startswith("%"):
            self.problem(place, f"label `{name}` is not defined in `{function.name}`", code="label")
        else:
            self.problem(
                place,
                f"`{name}` is not declared",
                code="undeclared",
                hint="declare it (a register with `.reg`) before its use",
            )


def _number(digits: str) -> int:
    """The number in a register's name, leading zeros allowed; past every range if it is absurd."""
    return int(digits) if len(digits) <= MAX_DIGITS else 1 << 64


def _first_offset(labels: list[Label]) -> int:
    return min(label.offset for label in labels)


def _is_in_range(name: str, prefix: str, count: int) -> bool:
    """True if `.reg … prefix<count>` declares this name."""
    digits = name[len(prefix) :]
    return name.startswith(prefix) and digits.isdigit() and _number(digits) < count


def _register_type(mods: tuple[str, ...]) -> tuple[int, str | None]:
    """Vector length and type of a `.reg`; None for a type that no register can have."""
    vector = 1
    rest = list(mods)
    if rest and rest[0] in ("v2", "v4", "v8"):
        vector = int(rest.pop(0)[1:])
    if len(rest) == 1 and (
        rest[0] in FUNDAMENTAL or rest[0] in ("bf16", "bf16x2", "tf32", "f32x2")
    ):
        return vector, rest[0]
    return vector, None


def _attribute(attribute: Any, atoms: tuple[Atom, ...]) -> str:
    """`.managed` or `.unified(19, 95)` as a word."""
    name, *values = attribute
    if not values:
        return f"attribute:{name}"
    return f"attribute:{name}({', '.join(str(fold(instantiate(v, atoms))) for v in values)})"


def _initializer(pattern: Any, atoms: tuple[Atom, ...]) -> Operand:
    return instantiate(pattern, atoms)


def _inline_asm_bounds(text: str) -> list[int]:
    """Offsets at which inline assembly begins and ends, in turn."""
    bounds: list[int] = []
    at = text.find("// begin inline asm")
    while at >= 0:
        end = text.find("// end inline asm", at)
        if end < 0:
            break
        bounds += (at, end)
        at = text.find("// begin inline asm", end)
    return bounds
