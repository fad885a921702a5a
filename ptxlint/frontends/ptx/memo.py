"""The memo parser: a regex scanner splits statements, Lark sees each statement shape once.

A statement is cut into its slots (names, numbers, strings) and the rest; the rest is the key of a
process-wide table of templates. On a miss, Lark parses that one statement, and the result becomes
a template, provided that Lark's slots are exactly the scanner's (else the form is parsed by Lark
each time). Common templates come with the package, so that most files never load Lark at all.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from ptxlint.frontends import grammars
from ptxlint.frontends.ptx.builder import MAX_PROBLEMS, ModuleBuilder
from ptxlint.frontends.ptx.template import (
    GAP,
    LONG_LIST,
    NAME,
    NUMBER,
    SLOT,
    STRING,
    WORD,
    Statement,
    Template,
    freeze,
)

if TYPE_CHECKING:
    from ptxlint.frontends.ptx.reference import PtxSyntaxError

MAX_RETRIES: Final = 20
"""How often text that ends nowhere is read again in the hope of a statement further down."""

_REST: Final = r'[^;{}"/@]*+(?:\{[^{};"/@]*+\}[^;{}"/@]*+)*+'

_COUNT: Final = r"(0|[1-9][0-9]{0,8}+)"
_BODY: Final = re.compile(
    rf"""{GAP}(?:
      ({WORD})(?![ \t\r\n]*+:)({_REST});(?P<instruction>)
    | @[ \t\r\n]*+(!?)[ \t\r\n]*+({NAME})[ \t\r\n]++({WORD})({_REST});(?P<guarded>)
    | \.loc[ \t]++{_COUNT}[ \t]++{_COUNT}[ \t]++{_COUNT}
      (?:,[ \t]*+function_name[ \t]++({NAME})[ \t]*+(?:\+[ \t]*+{_COUNT})?[ \t]*+
         ,[ \t]*+inlined_at[ \t]++{_COUNT}[ \t]++{_COUNT}[ \t]++{_COUNT})?
      (?=[ \t]*+(?:\r?\n|//))(?P<loc>)
    | ({NAME})[ \t]*+:(?!:)(?P<label>)
    | ([{{}}])(?P<brace>)
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_GAP: Final = re.compile(GAP, re.VERBOSE | re.DOTALL)
_WHOLE: Final = re.compile(
    rf'(?:[^;{{}}"/]|//[^\n]*+|/\*.*?\*/|/|{STRING}|\{{(?:[^{{}};"/]|//[^\n]*+|/\*.*?\*/|/|{STRING}'
    r"|\{[^{};]*\})*+\})*+;",
    re.DOTALL,
)
"""A statement up to its semicolon, comments, strings and two levels of braces inside."""
_KIND: Final = dict.fromkeys("0123456789.", "0") | {'"': '"'} | dict.fromkeys("%$_", "a")
_KIND.update(dict.fromkeys("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "a"))
"""The kind of a slot by its first character: number, string or name. A declaration allows but
one of them at most places, so that the kinds belong to its shape."""
_BLANKS: Final = re.compile(r"[ \t\r\n\f\v]+")
"""White space of PTX; `str.split` would take more for it."""
_COMMENT: Final = re.compile(rf"{STRING[:-1]}(?:\"|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
"""A string or a comment; one that is not closed goes to the end, else each quote would start a
vain search for the next."""
_HEAD: Final = re.compile(r"\.[A-Za-z_][A-Za-z0-9_]*")
_DIGITS: Final = r"[0-9][A-Za-z0-9_$.]*+"
_SPACED: Final = {
    ".version": re.compile(rf"\.version{GAP}[0-9.]++", re.VERBOSE),
    ".target": re.compile(rf"\.target{GAP}{WORD}(?:{GAP},{GAP}{WORD})*+", re.VERBOSE),
    ".address_size": re.compile(rf"\.address_size{GAP}{_DIGITS}", re.VERBOSE),
    ".file": re.compile(rf"\.file(?:{GAP}(?:{_DIGITS}|,|{STRING}))++", re.VERBOSE | re.DOTALL),
    ".loc": re.compile(
        rf"\.loc(?:{GAP}(?:{_DIGITS}|[,+]|function_name{GAP}\.?{WORD}|inlined_at\b))++",
        re.VERBOSE,
    ),
}
"""Directives that end without a semicolon: how far they can reach, white space and comments
anywhere. What stands in between is judged by the grammar."""
_VALUE: Final = (
    rf"-?(?:[0-9]++|{WORD}|\.[A-Za-z_][A-Za-z0-9_]*+)(?![A-Za-z0-9_$.])"
    rf"(?:[ \t]*+[-+][ \t]*+(?:[0-9]++|{NAME})(?![A-Za-z0-9_$.]))?"
)
_SECTION: Final = re.compile(
    rf"\.section{GAP}(\.[A-Za-z_][A-Za-z0-9_]*+){GAP}(\{{)"
    rf"(?:{GAP}(?:\.b(?:8|16|32|64)[ \t]++{_VALUE}(?:{GAP},[ \t]*+{_VALUE})*+|{NAME}[ \t]*+:))*+"
    rf"{GAP}(\}})",
    re.VERBOSE | re.DOTALL,
)
"""A section whose contents are plainly right; any other goes through the grammar."""
_SECTION_LOOSE: Final = re.compile(
    r'(?:[^{}"/]|//[^\n]*+|/\*.*?\*/|/|"[^"]*")*+\{'
    r'(?:[^{}"/]|//[^\n]*+|/\*.*?\*/|/|"[^"]*")*+\}',
    re.DOTALL,
)
_LINKAGE: Final = re.compile(
    rf"(?:\.attribute{GAP}\([^;{{}}]*?\){GAP}(?!\()"
    rf"|\.(?!(?:entry|func)\b)[A-Za-z_][A-Za-z0-9_]*+(?:::[A-Za-z0-9_]++)*+{GAP}(?:{_DIGITS}{GAP})?"
    r")*+\.(?:entry|func)\b",
    re.VERBOSE | re.ASCII,
)
_LIST: Final = re.compile(r'\((?:[^()"/;{}]|//[^\n]*+|/\*.*?\*/|\([^()]*+\))*+\)', re.DOTALL)
_NAMED: Final = re.compile(rf"({NAME})", re.VERBOSE)
_DIRECTIVE: Final = re.compile(
    rf"\.pragma(?:{GAP}(?:{STRING}|,))++{GAP};"
    rf"|\.[A-Za-z_][A-Za-z0-9_]*+(?:{GAP}(?:{_DIGITS}|{NAME}|,))*+",
    re.VERBOSE | re.DOTALL,
)
_NEXT: Final = re.compile(
    r"\.(?:visible|extern|weak|common|entry|func|global|const|shared|local|param|tex|sreg"
    r"|file|section|loc|version|target|address_size|alias)(?![A-Za-z0-9_:])|@@|\Z"
)
"""What may follow a declaration that lacks its semicolon."""
_NUMBER: Final = re.compile(NUMBER)
_DWARF: Final = re.compile(r"@@[^\n]*")


class _Memo:
    """The process-wide table: statement shape to template, None for forms not to be memoised."""

    def __init__(self) -> None:
        self.table: dict[str, Template | None] = {}
        self.stored: dict[str, list[Any]] | None = None

    def find(self, key: str) -> Template | None:
        """A template that was shipped with the package, turned into an object on first use."""
        if self.stored is None:
            self.stored = _shipped()
        entry = self.stored.get(key)
        if entry is None:
            return None
        template = self.table[key] = Template(entry[0], freeze(entry[1]))
        return template


_memo = _Memo()


def grammar_stamp() -> str:
    """Checksum of the grammar that templates must have been made with."""
    return f"{crc32(grammars.read('ptx.lark').replace(bytes((13, 10)), bytes((10,)))):08x}"


def _shipped() -> dict[str, list[Any]]:
    """Templates from `ptx.templates.json`; none if it is missing, stale or damaged."""
    try:
        stored = json.loads(grammars.read("ptx.templates.json"))
        if stored["stamp"] != grammar_stamp():
            return {}
        templates: dict[str, list[Any]] = stored["templates"]
        return templates
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def known_templates() -> dict[str, Template]:
    """All templates met so far in this process, by key."""
    return {key: found for key, found in _memo.table.items() if found is not None}


def reset_memo(shipped: bool = True) -> None:
    """Forget all templates; `shipped=False` also ignores those that come with the package."""
    _memo.table.clear()
    _memo.stored = None if shipped else {}


class Scanner:
    """Splits a text into statements and feeds the builder.

    With `memo=False` every statement goes through Lark: the reference path for texts that Lark
    cannot parse whole because something in them is wrong.
    """

    def __init__(self, builder: ModuleBuilder, memo: bool = True) -> None:
        self.builder = builder
        self.text = builder.text
        self.memo = memo
        self._fault_end = -1
        self._faults_to_end = 0
        """How many faults in a row lay in text with the same end."""
        self._endless = 0
        """How many statements had no end."""

    def run(self) -> None:
        """Scan the whole text."""
        at, size = 0, len(self.text)
        while at < size and not self.builder.full:
            at = self._top_level(_skip(self.text, at))

    # Module level -----------------------------------------------------------------------------
    def _top_level(self, at: int) -> int:
        """One statement at module level; returns where the next may start."""
        text, builder = self.text, self.builder
        if at >= len(text):
            return at
        char = text[at]
        if char == ".":
            head = _HEAD.match(text, at)
            word = head[0] if head else "."
            if word in _SPACED:
                return self._spaced(word, at)
            if word == ".section":
                return self._section(at)
            match = _LINKAGE.match(text, at)
            if match is not None:
                return self._function(match.start(), match.end())
            return self._statement(at, "item")
        if char == "@" and text.startswith("@@", at):
            line = _DWARF.match(text, at)
            assert line is not None
            builder.dwarf(line[0].rstrip(), at)
            return line.end()
        if char == "}":
            builder.problem(at, "`}` closes nothing", "remove it", "structure")
            return at + 1
        if char == "{":
            builder.problem(at, "`{` opens a block outside any function", "", "structure")
            return self._body(at + 1)
        label = re.compile(rf"({NAME})[ \t]*+:(?!:)").match(text, at)
        if label is not None:
            return label.end()
        return self._statement(at, "item")

    def _spaced(self, word: str, at: int) -> int:
        match = _SPACED[word].match(self.text, at)
        if match is None:
            return self._fault(at, self._line_end(at), "item")
        self._parse(at, match.end(), "item")
        return match.end()

    def _section(self, at: int) -> int:
        match = _SECTION.match(self.text, at)
        if match is not None and self.memo:
            self.builder.section(match[1], match.end(2), match.start(3), match.start(2))
            return match.end()
        loose = _SECTION_LOOSE.match(self.text, at)
        if loose is None:
            self.builder.problem(at, "this section is not closed", "add `}`", "structure")
            return len(self.text)
        self._parse(at, loose.end(), "item")
        return loose.end()

    def _function(self, at: int, end: int) -> int:
        """A function from its linkage on; returns the offset behind it."""
        text = self.text
        linkage = self._one(at, end, "linkage")
        here = _skip(text, end)
        returns: tuple[Statement, ...] = ()
        if text.startswith("(", here):
            here, returns = self._params(here)
        named = _NAMED.match(text, here)
        if named is None or linkage is None:
            if linkage is not None:
                self.builder.problem(here, "expected the function's name")
            return self._skip_function(here)
        name_at = here
        here = _skip(text, named.end())
        params: tuple[Statement, ...] = ()
        if text.startswith("(", here):
            here, params = self._params(here)
        directives: list[Statement] = []
        while text.startswith(".", here) and not _NEXT.match(text, here):
            match = _DIRECTIVE.match(text, here)
            if match is None:
                break
            found = self._one(here, match.end(), "directive")
            if found is not None:
                directives.append(found)
            here = _skip(text, match.end())
        self.builder.begin_function(linkage, returns, named[1], name_at, params, tuple(directives))
        if text.startswith(";", here):
            after = _skip(text, here + 1)
            if not text.startswith("{", after):
                self.builder.end_function(here)
                return here + 1
            self.builder.problem(here, "this `;` cuts the header off from its body", "remove it")
            here = after
        if _NEXT.match(text, here):
            self.builder.end_function(here)
            return here
        if not text.startswith("{", here):
            # Nothing is left of a blank that PTX does not know, such as U+00A0.
            words = text[here : here + 12].split() or [f"U+{ord(text[here : here + 1] or ' '):04X}"]
            what = "end of text" if here >= len(text) else f"`{words[0]}`"
            self.builder.problem(
                here, f"unexpected {what} in a function header; expected `{{` or `;`"
            )
            self.builder.end_function(here)
            return self._skip_function(here)
        self.builder.open_body(here)
        return self._body(here + 1)

    def _skip_function(self, at: int) -> int:
        """After a broken header: to the `;` or into the body, whichever comes first."""
        semicolon, brace = self.text.find(";", at), self.text.find("{", at)
        if brace >= 0 and (semicolon < 0 or brace < semicolon):
            return self._body(brace + 1)
        return len(self.text) if semicolon < 0 else semicolon + 1

    def _params(self, at: int) -> tuple[int, tuple[Statement, ...]]:
        """A parenthesised parameter list; returns the offset behind it."""
        text = self.text
        match = _LIST.match(text, at)
        if match is None:
            self.builder.problem(at, "this parameter list is not closed", "add `)`", "structure")
            line_end = self._line_end(at)
            return line_end, ()
        found: list[Statement] = []
        inner, close = at + 1, match.end() - 1
        for start, stop in _split_commas(text, inner, close):
            if self.builder.full:
                break
            statement = self._one(start, stop, "param")
            if statement is not None:
                found.append(statement)
        return _skip(text, match.end()), tuple(found)

    # Bodies -----------------------------------------------------------------------------------
    def _body(self, at: int) -> int:
        """The statements of a body up to its closing brace; returns the offset behind it."""
        text, builder = self.text, self.builder
        match_at, split, table = _BODY.match, SLOT.split, _memo.table
        instruction, memo = builder.instruction, self.memo
        depth = 1
        problems = builder.module.problems
        while len(problems) < MAX_PROBLEMS:
            match = match_at(text, at)
            kind = match.lastgroup if match is not None else None
            if match is None:
                at = self._body_other(_skip(text, at))
            elif kind == "instruction" or kind == "guarded":
                if kind == "instruction":
                    word, rest = match.group(1, 2)
                    slots = split(rest)
                    key = word + "\0".join(slots[::2])
                    slots = slots[1::2]
                    start = match.start(1)
                else:
                    bang, guard, word, rest = match.group(4, 5, 6, 7)
                    slots = split(rest)
                    key = f"@{bang}{word}" + "\0".join(slots[::2])
                    slots = [guard, *slots[1::2]]
                    start = text.rindex("@", at, match.start(5))
                at = match.end()
                template = table.get(key)
                if template is None or not memo:
                    template = self._learn(key, start, at) if memo else None
                    if template is None:
                        at = self._parse(start, at, "statement") or at
                        continue
                instruction(template, slots, start)
            elif kind == "loc":
                self._loc(match)
                at = match.end()
            elif kind == "label":
                builder.label(match[18], match.start(18))
                at = match.end()
            elif kind == "brace":
                at = match.end()
                if match[20] == "{":
                    depth += 1
                    builder.open_scope(at - 1)
                    continue
                depth -= 1
                if depth == 0:
                    return self._close(at)
                builder.close_scope(at - 1)
            else:
                break
        return self._unclosed(at)

    def _close(self, at: int) -> int:
        if self.builder.function is not None:
            self.builder.end_function(at - 1)
        return at

    def _unclosed(self, at: int) -> int:
        builder = self.builder
        if builder.function is not None:
            name = builder.function.name
            if not builder.full:
                builder.problem(
                    len(self.text.rstrip()),
                    f"the body of `{name}` is not closed",
                    "add `}`",
                    "structure",
                )
            builder.end_function(len(self.text))
        return len(self.text)

    def _loc(self, match: re.Match[str]) -> None:
        file, line, column, name, plus, a, b, c = match.group(9, 10, 11, 12, 13, 14, 15, 16)
        if name is None:
            self.builder.loc(int(file), int(line), int(column), match.start(9))
            return
        self.builder.loc(
            int(file),
            int(line),
            int(column),
            match.start(9),
            name,
            int(plus) if plus else 0,
            (int(a), int(b), int(c)),
        )

    def _body_other(self, at: int) -> int:
        """A statement of a body that the main pattern does not cover."""
        text = self.text
        if text.startswith(".", at):
            head = _HEAD.match(text, at)
            word = head[0] if head else "."
            if word in _SPACED:
                return self._spaced(word, at)
            if word == ".section":
                return self._section(at)
        label = re.compile(rf"({NAME}){GAP}:(?!:)", re.VERBOSE | re.DOTALL).match(text, at)
        if label is not None:
            self.builder.label(label[1], at)
            return label.end()
        return self._statement(at, "statement")

    # One statement through the memo -----------------------------------------------------------
    def _statement(self, at: int, start: str) -> int:
        """A statement that ends in `;`; returns the offset behind it, or behind the fault."""
        limit = len(self.text) if self._endless < MAX_RETRIES else at + 100_000
        match = _WHOLE.match(self.text, at, limit)
        if match is None:
            self._endless += 1
            return self._fault(at, self._resume(at), start)
        resume = self._parse(at, match.end(), start)
        return resume if resume is not None else match.end()

    def _resume(self, at: int) -> int:
        """Where a statement without a proper end may be given up: its line, or a brace."""
        end = self._line_end(at)
        for offset in range(at + 1, min(end, at + 10_000)):
            if self.text[offset] in "{};":
                return offset + (self.text[offset] == ";")
        return end

    def _parse(self, at: int, end: int, start: str) -> int | None:
        """Parse text[at:end] and hand it on; an offset to resume at if it is faulty."""
        statement = self._one(at, end, start)
        if statement is not None:
            self.builder.statement(statement)
        return self._resume_at

    def _one(self, at: int, end: int, start: str) -> Statement | None:
        """The statement in text[at:end]; None if it is faulty or no plain statement."""
        self._resume_at: int | None = None
        run: list[str] = []
        piece = _without_comments(self.text[at:end])
        if not self.memo or piece.startswith((".callprototype", ".section")):
            return self._through_lark(piece, at, start)
        guard, word, rest_at = _opcode_of(piece) if start == "statement" else ("", "", 0)
        if len(piece) > LONG_STATEMENT:
            piece, run = _shorten(piece)
        parts = SLOT.split(piece[rest_at:] if rest_at else piece)
        sign = ("@!" if guard[1] == "!" else "@") if guard else ""
        kinds = "".join([_KIND[slot[0]] for slot in parts[1::2]])
        skeleton = _BLANKS.sub(" ", "\0".join(parts[::2])).strip(" ")
        key = f"{start[0]}{kinds}|{sign}{word} {skeleton}"
        template = _memo.table.get(key) or _memo.find(key)
        if template is None:
            statement = self._through_lark(piece, at, start, key)
            return statement and _stretch(statement, run)
        ends = list(accumulate(map(len, parts), initial=at + rest_at))
        slots, offsets = tuple(parts[1::2]), tuple(ends[1::2])
        if guard:
            slots = (guard.lstrip("@!"), *slots)
            offsets = (at, *offsets)
        first = (
            at if template.kind in ("instruction", "register") else offsets[0] if offsets else at
        )
        return _stretch(Statement(template, slots, offsets, first), run)

    def _learn(self, key: str, at: int, end: int) -> Template | None:
        """The template of an instruction met for the first time; None to let Lark do it."""
        shipped = _memo.find(key)
        if shipped is not None:
            return shipped
        if key in _memo.table:
            return None
        from ptxlint.frontends.ptx import reference

        piece = self.text[at:end]
        try:
            parsed: Statement = reference.parse(piece, "statement")
        except reference.PtxSyntaxError:
            return None
        guard, _, rest_at = _opcode_of(piece)
        fits = parsed.template.kind == "instruction" and _fits(parsed, piece, guard, rest_at)
        _memo.table[key] = parsed.template if fits else None
        return parsed.template if fits else None

    def _through_lark(
        self, piece: str, at: int, start: str, key: str | None = None
    ) -> Statement | None:
        from ptxlint.frontends.ptx import reference

        try:
            node = reference.parse(piece, start)
        except reference.PtxSyntaxError as fault:
            self._report(at, at + len(piece), fault)
            return None
        if not isinstance(node, Statement):
            emit(self.builder, node, at)
            return None
        offsets = tuple(o + at for o in node.offsets)
        statement = node._replace(offsets=offsets, offset=node.offset + at)
        if key is not None:
            guard, _, rest_at = _opcode_of(piece) if start == "statement" else ("", "", 0)
            if _fits(node, piece, guard, rest_at):
                _memo.table[key] = node.template
        return statement

    # Faults -----------------------------------------------------------------------------------
    def _fault(self, at: int, end: int, start: str) -> int:
        """Report what is wrong with text[at:end], which is no statement."""
        from ptxlint.frontends.ptx import reference

        piece = _without_comments(self.text[at : max(end, at + 1)])[:20_000]
        try:
            reference.parse(piece, start)
        except reference.PtxSyntaxError as fault:
            self._report(at, at + len(piece), fault)
            return max(self._resume_at or 0, end, at + 1)
        self.builder.problem(at, "this statement has no end", "add `;`")
        return max(end, at + 1)

    def _report(self, at: int, end: int, fault: PtxSyntaxError) -> None:
        """Record a syntax fault; decide where to go on: at the faulty line if it starts one."""
        place = at + fault.offset
        self.builder.problem(min(place, len(self.text)), fault.message)
        self._faults_to_end = self._faults_to_end + 1 if end == self._fault_end else 1
        self._fault_end = end
        before = self.text[at:place]
        starts_line = "\n" in before and not before.rpartition("\n")[2].strip()
        if starts_line and place < end and self._faults_to_end < MAX_RETRIES:
            self._resume_at = place
        else:
            self._resume_at = end

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end


def emit(builder: ModuleBuilder, node: Any, shift: int = 0) -> None:
    """Hand a node of the reference parser to the builder, offsets moved by `shift`."""
    from ptxlint.frontends.ptx import reference

    if isinstance(node, Statement):
        offsets = tuple(o + shift for o in node.offsets)
        builder.statement(node._replace(offsets=offsets, offset=node.offset + shift))
    elif isinstance(node, reference.SectionNode):
        builder.section(node.name, node.start + shift, node.end + shift, node.offset + shift)
    elif isinstance(node, reference.DwarfNode):
        builder.dwarf(node.text, node.offset + shift)
    elif isinstance(node, reference.PrototypeNode):
        builder.prototype(node)
    elif isinstance(node, reference.FunctionNode):
        _emit_function(builder, node)


def _emit_function(builder: ModuleBuilder, node: Any) -> None:
    name: Statement = node.name
    builder.begin_function(
        node.linkage, node.returns, name.slots[0], name.offset, node.params, node.directives
    )
    if node.body is None:
        builder.end_function(name.offset)
        return
    builder.open_body(node.body[0].offset)
    depth = 0
    for part in node.body:
        if builder.full:
            builder.end_function(len(builder.text))
            return
        if not hasattr(part, "text") or isinstance(part, Statement):
            emit(builder, part)
        elif part.text == "{":
            depth += 1
            if depth > 1:
                builder.open_scope(part.offset)
        elif depth == 1:
            builder.end_function(part.offset)
        else:
            depth -= 1
            builder.close_scope(part.offset)


def _skip(text: str, at: int) -> int:
    """The offset of the next character that is neither white space nor comment."""
    match = _GAP.match(text, at)
    assert match is not None
    return match.end()


def _without_comments(piece: str) -> str:
    """The text with every comment blanked out, so that offsets stay."""
    if "/" not in piece and "#" not in piece:
        return piece
    return _COMMENT.sub(_blank, piece)


def _blank(match: re.Match[str]) -> str:
    """A comment as blanks; a string, and a comment that is not closed, as it is."""
    text = match[0]
    closed = text.startswith("//") or (len(text) > 3 and text.endswith("*/"))
    return re.sub(r"[^\n]", " ", text) if closed and text[0] != '"' else text


_OPCODE: Final = re.compile(rf"(@[ \t\r\n]*+!?[ \t\r\n]*+{NAME}[ \t\r\n]++)?({WORD})", re.VERBOSE)


def _opcode_of(piece: str) -> tuple[str, str, int]:
    """Guard (sign and name), opcode and where the operands start; empty for a directive."""
    match = _OPCODE.match(piece)
    if match is None:
        return "", "", 0
    return "".join((match[1] or "").split()), match[2], match.end()


LONG_STATEMENT: Final = 4_000
"""Past this many characters a statement is searched for a long list of numbers."""
_LONG_TAIL: Final = re.compile(
    r"\{\s*+((?:[0-9][0-9A-Za-z.]*+\s*+,\s*+)++[0-9][0-9A-Za-z.]*+)\s*+\}\s*+;\Z"
)


def _shorten(piece: str) -> tuple[str, list[str]]:
    """A table of numbers cut to its first entries, and what was cut off.

    A statement that ends in a plain list differs from its shortened form in nothing but the
    length of the list: `_stretch` puts the rest back. So a table of a million bytes costs Lark
    nothing.
    """
    match = _LONG_TAIL.search(piece)
    if match is None:
        return piece, []
    numbers = match[1].split(",")
    if len(numbers) <= LONG_LIST or not all(map(_NUMBER.fullmatch, map(str.strip, numbers))):
        return piece, []
    kept = ",".join(numbers[:LONG_LIST])
    return f"{piece[: match.start(1)]}{kept}}};", [n.strip() for n in numbers[LONG_LIST:]]


def _stretch(statement: Statement, run: list[str]) -> Statement:
    """The statement with the numbers that `_shorten` cut off."""
    if not run:
        return statement
    template = statement.template
    specs, declarators = template.payload
    *others, (name, count, extents, initializer) = declarators
    longer = ("r", initializer[1], initializer[2] + len(run))
    payload = (specs, (*others, (name, count, extents, longer)))
    return statement._replace(
        template=Template(template.kind, payload), slots=(*statement.slots, *run)
    )


_NESTING: Final = re.compile(r"[(),\[\]{}]")


def _fits(statement: Statement, piece: str, guard: str, rest_at: int) -> bool:
    """True if Lark's slots of this statement are the scanner's, place by place and text by text."""
    first = 1 if guard else 0
    theirs = zip(statement.offsets[first:], statement.slots[first:], strict=True)
    return list(theirs) == [(m.start(), m[0]) for m in SLOT.finditer(piece, rest_at)]


def _split_commas(text: str, at: int, end: int) -> list[tuple[int, int]]:
    """Bounds of the comma-separated parts of text[at:end]; parentheses and brackets nest."""
    piece = _without_comments(text[at:end])
    parts, depth, start = [], 0, 0
    for match in _NESTING.finditer(piece):
        char = match[0]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0:
            parts.append((start, match.start()))
            start = match.end()
    parts.append((start, len(piece)))
    bounds = []
    for first, last in parts:
        inner = piece[first:last]
        lead = len(inner) - len(inner.lstrip())
        if inner.strip():
            bounds.append((at + first + lead, at + first + len(inner.rstrip())))
        elif len(parts) > 1:
            bounds.append((at + first, at + last))
    return bounds
