"""The reference parser: plain Lark over `grammar/ptx.lark`.

Its tables are shipped pre-built as JSON. They are used only if they were made from this very
grammar by this very Lark version; otherwise the grammar is compiled anew, which is slower and
gives the same parser.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NamedTuple, cast
from zlib import crc32

import lark
from lark import Lark, Token, Transformer
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ptxlint.frontends import grammars
from ptxlint.frontends.ptx.template import LONG_LIST, Payload, Statement, Template

MAX_DEPTH = 100
"""How deep operands may nest. What reads them recurses; no known program nests past ten."""
STARTS = ["module", "item", "statement", "linkage", "param", "directive"]
PRECEDENCE = {
    "?": 1, ":": 1, "||": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7,
    "<": 8, "<=": 8, ">": 8, ">=": 8, "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11,
}  # fmt: skip


class PtxSyntaxError(Exception):
    """The text does not follow the grammar. `offset` is where, relative to the text parsed."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


class Brace(NamedTuple):
    """An opening or closing brace of a block."""

    text: str
    offset: int


class SectionNode(NamedTuple):
    """A whole `.section`; offsets of its text between the braces."""

    name: str
    start: int
    end: int
    offset: int


class DwarfNode(NamedTuple):
    """An `@@DWARF` line."""

    text: str
    offset: int


class PrototypeNode(NamedTuple):
    """A `.callprototype`."""

    returns: tuple[Statement, ...]
    name: Statement | None
    params: tuple[Statement, ...]
    directives: tuple[Statement, ...]


class FunctionNode(NamedTuple):
    """A function header and its body, flattened; `body` is None for a declaration."""

    linkage: Statement
    returns: tuple[Statement, ...]
    name: Statement
    params: tuple[Statement, ...]
    directives: tuple[Statement, ...]
    body: list[Any] | None


class Interner:
    """Keeps one Template per distinct form."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Payload], Template] = {}

    def template(self, kind: str, payload: Payload) -> Template:
        """The one template of this form."""
        key = (kind, payload)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = Template(kind, payload)
        return found


TEMPLATES = Interner()


class _ToStatements(Transformer):  # type: ignore[type-arg]
    """Turns the parse into statements while it happens; no tree is built.

    Slots are collected in reduction order, which is text order, since every slot is its own
    rule (`atom`, `name`, `number`, `text`).
    """

    def __init__(self) -> None:
        super().__init__(visit_tokens=False)
        self._slots: list[str] = []
        self._offsets: list[int] = []
        self._nested = 0
        """Nesting operands of the current statement, at any depth."""

    def reset(self) -> None:
        """Forget slots of a parse that was broken off."""
        self._slots.clear()
        self._offsets.clear()
        self._nested = 0

    # Slots ------------------------------------------------------------------------------------
    def _slot(self, children: list[Any]) -> int:
        token = children[0]
        self._slots.append(str(token))
        self._offsets.append(token.start_pos)
        return len(self._slots) - 1

    name = number = text = _slot

    def atom(self, children: list[Any]) -> Payload:
        token = children[0]
        text = str(token)
        at = len(self._slots)
        self._offsets.append(token.start_pos)
        if token.type == "WORD" and "." in text:
            base, _, selector = text.partition(".")
            self._slots.append(base)
            return ("s", at, "." + selector)
        self._slots.append(text)
        return ("s", at)

    def _take(self, kind: str, payload: Payload, offset: int | None = None) -> Statement:
        slots, offsets = tuple(self._slots), tuple(self._offsets)
        self._slots.clear()
        self._offsets.clear()
        start = offset if offset is not None else (offsets[0] if offsets else 0)
        if self._nested > MAX_DEPTH:
            _refuse_deep(payload, start)
        self._nested = 0
        return Statement(TEMPLATES.template(kind, payload), slots, offsets, start)

    # Operands ---------------------------------------------------------------------------------
    def sink(self, children: list[Any]) -> Payload:
        return ("_",)

    def unary(self, children: list[Any]) -> Payload:
        self._nested += 1
        return ("u", str(children[0]), children[1])

    def vector(self, children: list[Any]) -> Payload:
        self._nested += 1
        count = len(children)
        if count >= LONG_LIST:
            first = children[0][1]
            numbers = all(s[0].isdigit() for s in self._slots[-count:])
            if numbers and all(c == ("s", first + at) for at, c in enumerate(children)):
                return ("r", first, count)
        return ("v", *children)

    def setting(self, children: list[Any]) -> Payload:
        return ("b", "=", *children)

    def address(self, children: list[Any]) -> Payload:
        self._nested += 1
        return ("a", *children)

    def unified(self, children: list[Any]) -> Payload:
        self._nested += 1
        return ("a", *children[:-1], ("l", ".unified"))

    def empty(self, children: list[Any]) -> Payload:
        return ("v",)

    def group(self, children: list[Any]) -> Payload:
        self._nested += 1
        return ("(", *(c for c in children if c is not None))

    def cast(self, children: list[Any]) -> Payload:
        self._nested += 1
        return ("t", str(children[0])[1:], children[1])

    def indexed(self, children: list[Any]) -> Payload:
        self._nested += 1
        return ("i", *children)

    def applied(self, children: list[Any]) -> Payload:
        self._nested += 1
        return ("f", *children)

    def data(self, children: list[Any]) -> Payload:
        return ("l", str(children[0]))

    def expression(self, children: list[Any]) -> Payload:
        self._nested += len(children) // 2
        return climb(children)

    # Statements -------------------------------------------------------------------------------
    def guard(self, children: list[Any]) -> tuple[str, int]:
        sign = children[1]
        if sign is not None and sign != "!":
            raise PtxSyntaxError(sign.start_pos, f"a guard is `@p` or `@!p`, not `@{sign}p`")
        return ("@!" if sign else "@", children[0].start_pos)

    def instruction(self, children: list[Any]) -> Statement:
        guard, word = children[0], children[1]
        mods = tuple(str(c)[1:] for c in children[2:] if isinstance(c, Token))
        patterns = tuple(c for c in children[2:] if c is not None and not isinstance(c, Token))
        sign, start = guard if guard is not None else ("", word.start_pos)
        return self._take("instruction", (sign, str(word), mods, patterns), start)

    def label(self, children: list[Any]) -> Statement:
        return self._take("label", ())

    def version(self, children: list[Any]) -> Statement:
        return self._take("version", ())

    def target(self, children: list[Any]) -> Statement:
        return self._take("target", ())

    def address_size(self, children: list[Any]) -> Statement:
        return self._take("address_size", ())

    def file(self, children: list[Any]) -> Statement:
        return self._take("file", ())

    def loc(self, children: list[Any]) -> Statement:
        # A `.debug_str+n` label is part of the form; a plain name is a slot.
        literal = next((c[1] for c in children[3:] if isinstance(c, tuple)), "")
        return self._take("loc", (literal,))

    def pragma(self, children: list[Any]) -> Statement:
        return self._take("pragma", ())

    def alias(self, children: list[Any]) -> Statement:
        return self._take("alias", ())

    def dwarf(self, children: list[Any]) -> DwarfNode:
        return DwarfNode(str(children[0]).rstrip(), children[0].start_pos)

    def linkage(self, children: list[Any]) -> Statement:
        return self._take("linkage", (tuple(children[:-1]), str(children[-1])[1:]))

    def function_name(self, children: list[Any]) -> Statement:
        return self._take("function_name", ())

    def params(self, children: list[Any]) -> tuple[Statement, ...]:
        return tuple(c for c in children if c is not None)

    def param(self, children: list[Any]) -> Statement:
        specs = tuple(("m", ".reg") if isinstance(c, Token) else c for c in children[:-1])
        return self._take("param", (specs, children[-1]))

    def anonymous(self, children: list[Any]) -> Payload:
        return (-1, -1, tuple(children[1:]), None)

    def directive(self, children: list[Any]) -> Statement:
        return self._take("directive", (str(children[0])[1:],))

    def spec(self, children: list[Any]) -> Payload:
        return ("m", str(children[0]))

    def align(self, children: list[Any]) -> Payload:
        return ("align", children[0])

    def attributes(self, children: list[Any]) -> Payload:
        return ("attributes", *children)

    def attribute(self, children: list[Any]) -> Payload:
        return (str(children[0])[1:], *(c for c in children[1:] if c is not None))

    def declarator(self, children: list[Any]) -> Payload:
        count = -1 if children[1] is None else children[1]
        return (children[0], count, tuple(children[2:-1]), children[-1])

    def extent(self, children: list[Any]) -> Payload:
        return (children[0],)

    def register_name(self, children: list[Any]) -> Payload:
        return (children[0], -1 if children[1] is None else children[1])

    def register(self, children: list[Any]) -> Statement:
        mods = tuple(str(c)[1:] for c in children[1:] if isinstance(c, Token))
        names = tuple(c for c in children if isinstance(c, tuple) and c[0] != "align")
        return self._take("register", (mods, names), children[0].start_pos)

    def variable(self, children: list[Any]) -> Statement:
        specs = tuple(c for c in children if isinstance(c[0], str))
        declarators = tuple(c for c in children if isinstance(c[0], int))
        return self._take("variable", (specs, declarators))

    def branch_targets(self, children: list[Any]) -> Statement:
        return self._take("targets", ("branchtargets",))

    def call_targets(self, children: list[Any]) -> Statement:
        return self._take("targets", ("calltargets",))

    def prototype(self, children: list[Any]) -> PrototypeNode:
        returns, name, params, *directives = children
        return PrototypeNode(
            returns or (),
            None if isinstance(name, Token) else name,
            params or (),
            tuple(d for d in directives if d is not None),
        )

    def opening(self, children: list[Any]) -> Brace:
        return Brace("{", children[0].start_pos)

    closing = opening

    def section_data(self, children: list[Any]) -> None:
        self.reset()

    def section(self, children: list[Any]) -> SectionNode:
        self.reset()
        opening = next(c for c in children if isinstance(c, Brace))
        return SectionNode(children[0][1], opening.offset + 1, children[-1].offset, opening.offset)

    def block(self, children: list[Any]) -> list[Any]:
        flat: list[Any] = [children[0]]
        for child in children[1:-1]:
            if isinstance(child, list):
                flat.extend(child)
            else:
                flat.append(child)
        flat.append(Brace("}", children[-1].offset))
        return flat

    def function(self, children: list[Any]) -> FunctionNode:
        linkage, returns, name, params, *rest = children
        body = rest.pop() if rest and isinstance(rest[-1], list) else None
        return FunctionNode(
            linkage, returns or (), name, params or (), tuple(r for r in rest if r), body
        )

    def module(self, children: list[Any]) -> list[Any]:
        return children

    def item(self, children: list[Any]) -> Any:
        return children[0]

    statement = item


def _refuse_deep(payload: Payload, offset: int) -> None:
    """Raise PtxSyntaxError if a payload nests deeper than MAX_DEPTH; no recursion here."""
    level: list[Any] = [payload]
    for _ in range(MAX_DEPTH + 4):
        level = [part for whole in level for part in whole if isinstance(part, tuple)]
        if not level:
            return
    raise PtxSyntaxError(offset, f"operands nest more than {MAX_DEPTH} deep")


def climb(parts: list[Any]) -> Payload:
    """Operator precedence over `term (op term)*`; no recursion, so depth does not matter."""
    values: list[Payload] = [parts[0]]
    operators: list[str] = []
    for at in range(1, len(parts), 2):
        operator = str(parts[at])
        _reduce_while(values, operators, operator)
        operators.append(operator)
        values.append(parts[at + 1])
    _reduce_while(values, operators, "")
    if len(values) != 1:
        raise PtxSyntaxError(0, "`?` without its `:` in a constant expression")
    return values[0]


def _reduce_while(values: list[Payload], operators: list[str], coming: str) -> None:
    """Apply stacked operators that bind at least as tightly as the coming one."""
    level = PRECEDENCE.get(coming, 0)
    while operators:
        top = operators[-1]
        if top == "?" and coming:
            return
        if top == ":":
            # `a ? b : c` groups to the right: wait while another `?` follows.
            if coming == "?":
                return
            if len(operators) < 2 or operators[-2] != "?":
                raise PtxSyntaxError(0, "`:` without its `?` in a constant expression")
            otherwise, then, condition = values.pop(), values.pop(), values.pop()
            del operators[-2:]
            values.append(("?", condition, then, otherwise))
            continue
        if top == "?" or PRECEDENCE[top] < level:
            return
        right, left = values.pop(), values.pop()
        operators.pop()
        values.append(("b", top, left, right))


# The parser itself ------------------------------------------------------------------------------


@cache
def grammar_text() -> str:
    """The text of `grammar/ptx.lark`."""
    return grammars.read("ptx.lark").decode().replace("\r\n", "\n")


def stamp() -> str:
    """What pre-built tables must have been made from: this grammar and this Lark version."""
    return f"{crc32(grammar_text().encode()):08x}-lark-{lark.__version__}"


class _Parser:
    """Lark with its transformer, from shipped tables when they fit."""

    def __init__(self) -> None:
        self.transformer = _ToStatements()
        self.lark = _from_tables(self.transformer) or _compile(self.transformer)

    def parse(self, text: str, start: str) -> Any:
        self.transformer.reset()
        try:
            return self.lark.parse(text, start=start)
        except UnexpectedInput as error:
            raise _explain(error, text) from None
        except PtxSyntaxError:
            raise
        except LarkError as error:
            original = getattr(error, "orig_exc", None)
            if isinstance(original, PtxSyntaxError):
                raise original from None
            raise PtxSyntaxError(0, str(error)) from None


def _options(transformer: _ToStatements) -> dict[str, Any]:
    return {
        "parser": "lalr",
        "lexer": "contextual",
        "start": STARTS,
        "maybe_placeholders": True,
        "transformer": transformer,
    }


def _compile(transformer: _ToStatements) -> Lark:
    return Lark(grammar_text(), **_options(transformer))


def _from_tables(transformer: _ToStatements) -> Lark | None:
    """The parser from `ptx.tables.json`; None if the file is missing, stale or damaged."""
    try:
        stored = json.loads(grammars.read("ptx.tables.json"))
        if stored["stamp"] != stamp():
            return None
        load = cast(Any, Lark)._load_from_dict
        return cast(
            Lark,
            load(_revive(stored["data"]), _revive(stored["memo"]), transformer=transformer),
        )
    except Exception:
        return None


def _revive(value: Any) -> Any:
    """JSON back to what Lark stored: decimal keys are integers again."""
    if isinstance(value, dict):
        return {(int(k) if k.isdigit() else k): _revive(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_revive(v) for v in value]
    return value


def build_tables() -> str:
    """The JSON text of the parser tables, for `ptxlint.frontends.ptx.prebuild`."""
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    plain = Lark(
        grammar_text(), parser="lalr", lexer="contextual", start=STARTS, maybe_placeholders=True
    )
    data, memo = cast(Any, plain).memo_serialize([TerminalDef, Rule])
    stored = {"stamp": stamp(), "data": data, "memo": memo}
    return json.dumps(stored, separators=(",", ":"), sort_keys=True) + "\n"


_parser: _Parser | None = None


def parse(text: str, start: str) -> Any:
    """Parse a text from one of `STARTS`.

    `module` gives a list of nodes, the others one node. Raises PtxSyntaxError.
    """
    global _parser
    if _parser is None:
        _parser = _Parser()
    return _parser.parse(text, start)


_EXPECTED = (
    ("SEMICOLON", "`;`"),
    ("COMMA", "`,`"),
    ("WORD", "a name"),
    ("NUMBER", "a number"),
    ("RSQB", "`]`"),
    ("RBRACE", "`}`"),
    ("RPAR", "`)`"),
    ("STRING", "a string"),
    ("COLON", "`:`"),
    ("MOD", "a `.word`"),
)


def _explain(error: UnexpectedInput, text: str) -> PtxSyntaxError:
    """A person's words for Lark's error."""
    offset = error.pos_in_stream
    at = len(text) if offset is None or offset < 0 else offset
    if text.startswith("/*", at):
        return PtxSyntaxError(at, "this comment is not closed; add `*/`")
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        if error.token.type == "$END":
            at = len(text.rstrip())
            what = "the statement ends too early"
        else:
            what = f"unexpected `{_clip(str(error.token))}`"
    elif isinstance(error, UnexpectedCharacters) and text.startswith('"', at):
        return PtxSyntaxError(at, 'this string is not closed; add `"`')
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
        what = f"unexpected {_character(text, at)}"
    else:
        expected, what = set(), "the statement ends too early"
    words = [word for terminal, word in _EXPECTED if terminal in expected][:4]
    if not words:
        return PtxSyntaxError(at, what)
    either = ", ".join(words[:-1]) + " or " if words[1:] else ""
    return PtxSyntaxError(at, f"{what}; expected {either}{words[-1]}")


def _clip(text: str) -> str:
    text = text.split("\n", 1)[0]
    return text if len(text) <= 40 else text[:37] + "..."


def _character(text: str, at: int) -> str:
    if at >= len(text):
        return "end of text"
    end = at
    while end < len(text) and end - at < 30 and (text[end].isalnum() or text[end] in "_$%."):
        end += 1
    word = text[at : max(end, at + 1)]
    if word.isascii() and word.isprintable():
        return f"`{word}`"
    return f"character U+{ord(word[0]):04X}"
