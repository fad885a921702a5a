"""Suppression comments: `ptxlint: ignore[RULE, …] reason`, in PTX and in Python.

In Python a comment holds for the whole logical line it ends or stands in, and on a line of its
own for the next one; a finding is met on its own line and on every line it was inlined through.
In PTX a `//` comment holds for its line, and on a line of its own for the next statement.
What `ptxlint emulate` finds is held back by the same comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ptxlint.diagnostics import Place
from ptxlint.engine.pseudo import FAILURES
from ptxlint.engine.python_source import PythonSources
from ptxlint.engine.registry import Registry
from ptxlint.engine.selection import suggestion
from ptxlint.ir.module import Module
from ptxlint.source import SourceText

MARK = "ptxlint:"
Rules = Callable[[], Registry]
"""The rules that comments may name; called once there is a comment."""
_COMMENT = re.compile(r"\s*ptxlint:\s*(?P<rest>.*)", re.DOTALL)
_IGNORE = re.compile(r"ignore\s*\[(?P<rules>[^\]]*)\]\s*(?:[:,;–—-]+\s*)?(?P<reason>.*)", re.DOTALL)
_PTX_COMMENT = re.compile(r"//(?P<text>.*)")
_PYTHON_COMMENT = re.compile(r"#(?P<text>.*)")


class Suppression(NamedTuple):
    """One comment. `lines` are those it holds for; `fault` says why it does not hold, if so."""

    path: str
    line: int
    column: int
    rules: tuple[str, ...]
    reason: str
    lines: range
    python: bool
    fault: str = ""

    @property
    def place(self) -> Place:
        """Where the comment stands."""
        return Place(self.path, self.line, self.column)


class Suppressions:
    """All suppression comments that bear on one module, and which of them were of use."""

    __slots__ = ("_by_line", "comments", "used")

    def __init__(self, comments: list[Suppression]) -> None:
        self.comments = comments
        self.used: set[tuple[Suppression, str]] = set()
        """Pairs of a comment and the rule that it held back."""
        self._by_line: dict[tuple[str, int], list[Suppression]] = {}
        for comment in comments:
            if not comment.fault:
                for line in comment.lines:
                    self._by_line.setdefault((comment.path, line), []).append(comment)

    def hold_back(self, rule: str, place: Place) -> bool:
        """True if a comment suppresses this rule here; remembers that it was of use."""
        if not self._by_line:
            return False
        frames = (*place.chain, *((place.source,) if place.source else ()))
        spots = {(place.path, place.line), *((f.path, f.line) for f in frames)}
        held = False
        for spot in spots:
            for comment in self._by_line.get(spot, ()):
                if rule in comment.rules:
                    self.used.add((comment, rule))
                    held = True
        return held


def ptx_suppressions(source: SourceText, rules: Rules) -> list[Suppression]:
    """The suppression comments of a PTX text."""
    out: list[Suppression] = []
    target, ended = 0, False
    at = source.text.find(MARK)
    while at >= 0:
        line = source.position(at).line
        text = source.line(line)
        match = _PTX_COMMENT.search(text)
        if match and _COMMENT.match(match["text"]):
            alone = not text[: match.start()].strip()
            if alone and target <= line and not ended:
                # The comments of one group share their target, which is looked for once.
                target = _next_statement(source, line)
                ended = target == line
            own = target if alone and target > line else line
            lines = range(own, own + 1)
            column = match.start() + 1
            out.append(_read(match["text"], source.path, line, column, lines, False, rules()))
        end = source.text.find("\n", at)
        at = source.text.find(MARK, end) if end >= 0 else -1
    return out


def _next_statement(source: SourceText, line: int) -> int:
    """The next line that is neither blank nor a comment of its own."""
    last = source.position(len(source.text)).line
    for number in range(line + 1, last + 1):
        text = source.line(number).strip()
        if text and not text.startswith("//"):
            return number
    return line


class PythonSuppressions:
    """The suppression comments of the Python files of one run, each file read once."""

    __slots__ = ("_by_path", "_sources", "rules")

    def __init__(self, sources: PythonSources, rules: Rules) -> None:
        self._sources = sources
        self.rules = rules
        self._by_path: dict[str, list[Suppression]] = {}

    def of(self, module: Module) -> list[Suppression]:
        """Those of all readable files that a module names."""
        out: list[Suppression] = []
        for path in dict.fromkeys(
            self._sources.locate(entry.name, module.source.path) for entry in module.files.values()
        ):
            if path.endswith(".py"):
                out += self._of_file(path)
        return out

    def _of_file(self, path: str) -> list[Suppression]:
        if path not in self._by_path:
            text = self._sources.text(path)
            found = text is not None and MARK in text.text
            self._by_path[path] = _of_python(text, self.rules) if text and found else []
        return self._by_path[path]


def bearing_on(module: Module, python: PythonSuppressions) -> Suppressions:
    """The comments in a module's PTX and in the Python files that it names."""
    return Suppressions([*ptx_suppressions(module.source, python.rules), *python.of(module)])


def _of_python(source: SourceText, rules: Rules) -> list[Suppression]:
    comments = _comments_by_token(source)
    if comments is None:
        comments = _comments_by_line(source)
    return [
        _read(text, source.path, line, column, lines, True, rules())
        for text, line, column, lines in comments
        if _COMMENT.match(text)
    ]


_Comment = tuple[str, int, int, range]


def _comments_by_token(source: SourceText) -> list[_Comment] | None:
    """Comments with the logical lines they hold for; None if this is no valid Python."""
    import io
    import tokenize

    logical: list[range] = []
    comments: list[tuple[str, int, int]] = []
    start = 0
    quiet = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING)
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT:
                comments.append((token.string[1:], token.start[0], token.start[1] + 1))
            elif token.type == tokenize.NEWLINE:
                logical.append(range(start or token.start[0], token.start[0] + 1))
                start = 0
            elif token.type not in quiet and not start:
                start = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        return None
    return [(text, line, column, _logical(logical, line)) for text, line, column in comments]


def _logical(lines: list[range], at: int) -> range:
    """The logical line that holds this line, else the next one."""
    for candidate in lines:
        if at < candidate.stop:
            return candidate
    return range(at, at + 1)


def _comments_by_line(source: SourceText) -> list[_Comment]:
    """Comments of a text that is no valid Python, judged line by line."""
    out: list[_Comment] = []
    for number, text in enumerate(source.text.splitlines(), 1):
        match = _PYTHON_COMMENT.search(text) if MARK in text else None
        before = text[: match.start()] if match else ""
        if match and before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            target = number if before.strip() else number + 1
            column = match.start() + 1
            out.append((match["text"], number, column, range(target, target + 1)))
    return out


def _read(
    text: str,
    path: str,
    line: int,
    column: int,
    lines: range,
    python: bool,
    registry: Registry,
) -> Suppression:
    """A comment's rules and reason, or what is wrong with it."""
    comment = _COMMENT.match(text)
    match = _IGNORE.match(comment["rest"]) if comment else None
    if match is None:
        fault = "this comment is not understood, so it suppresses nothing"
        return Suppression(path, line, column, (), "", lines, python, fault)
    words = [word.strip() for word in match["rules"].split(",") if word.strip()]
    reason = match["reason"].strip()
    rules = tuple(_identifier(word, registry) for word in words)
    fault = _fault(words, rules, reason, registry)
    return Suppression(path, line, column, rules, reason, lines, python, fault)


def _identifier(word: str, registry: Registry) -> str:
    """That of a rule, or of what `ptxlint emulate` finds; "" if it is none."""
    known = registry.identifier(word)
    if known is not None:
        return known
    from ptxlint.engine.emulated import identifier

    return identifier(word)


def _fault(words: list[str], rules: tuple[str, ...], reason: str, registry: Registry) -> str:
    if not words:
        return "this suppression names no rule, so it does not hold"
    for word, rule in zip(words, rules, strict=True):
        if not rule:
            from ptxlint.engine.emulated import NAMES

            return f"no rule is called {word!r}{suggestion(word, registry, NAMES)}"
        if rule in FAILURES:
            return f"{rule} cannot be suppressed: something was not analysed"
    if not reason:
        listed = ", ".join(words)
        return f"the suppression of {listed} gives no reason, so it does not hold"
    return ""
