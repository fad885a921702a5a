"""MSK201: what masked-off lanes hold changes a reduction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlint.dataflow.padding import (
    ASSUMES,
    LoadVerdict,
    Padding,
    PaddingAnalysis,
    Pair,
)
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.rulekit import Evidence, Hit, Note, Rule, Sample, Verdict

if TYPE_CHECKING:
    from ptxlint.dataflow.index_text import IndexText
    from ptxlint.dataflow.tiles import Tile, Tiles

_CONTRACTED = "dot"
"""What a product of matrices is called in the source."""
_START = """
            .reg .pred %p<3>;
            .reg .b32 %r<40>;
            .reg .b64 %rd<4>;
            mov.u32 %r1, %tid.x;
            ld.param.u32 %r2, [n_elements];
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            and.b32 %r1, %r1, 31;
            setp.lt.s32 %p1, %r1, %r2;
            mul.wide.u32 %rd3, %r1, 4;
            add.s64 %rd1, %rd1, %rd3;
            add.s64 %rd2, %rd2, %rd3;
"""


def _tree(operator: str, source: int, free: int) -> str:
    """A butterfly over the lanes of a warp from register `source`; the last one is `free + 9`."""
    lines = []
    for step, lanes in enumerate((16, 8, 4, 2, 1)):
        target = free + 2 * step
        lines.append(f"            shfl.sync.bfly.b32 %r{target}, %r{source}, {lanes}, 31, -1;")
        lines.append(f"            {operator}.f32 %r{target + 1}, %r{source}, %r{target};")
        source = target + 1
    return "\n".join(lines) + "\n"


_SOFTMAX = (
    _START
    + """
            mov.b32 %r3, FILL;
            @%p1 ld.global.b32 %r3, [%rd1]; MARK
"""
    + _tree("max", 3, 4)
    + """
            sub.f32 %r14, %r3, %r13;
            mul.f32 %r15, %r14, 0f3FB8AA3B;
            ex2.approx.f32 %r16, %r15;
"""
    + _tree("add", 16, 17)
    + """
            div.full.f32 %r27, %r16, %r26;
            @%p1 st.global.b32 [%rd2], %r27;
            ret;
"""
)
_VARIANCE = (
    _START
    + """
            mov.b32 %r3, 0;
            @%p1 ld.global.b32 %r3, [%rd1]; MARK
"""
    + _tree("add", 3, 4)
    + """
            cvt.rn.f32.s32 %r14, %r2;
            div.full.f32 %r15, %r13, %r14;
            sub.f32 %r16, %r3, %r15;
            REMASK
            mul.f32 %r18, %r17, %r17;
"""
    + _tree("add", 18, 19)
    + """
            div.full.f32 %r29, %r28, %r14;
            st.global.b32 [%rd2], %r29;
            ret;
"""
)
_EXTREME = (
    _START
    + """
            mov.b32 %r3, FILL;
            @%p1 ld.global.b32 %r3, [%rd1]; MARK
            CHANGE
"""
    + _tree("EXTREME", 4, 5)
    + """
            st.global.b32 [%rd2], %r14;
            ret;
"""
)


def _of(code: str, **words: str) -> str:
    words.setdefault("MARK", "")
    for name, text in words.items():
        code = code.replace(name, text)
    return code


class FillNotNeutral(Rule):
    id = "MSK201"
    name = "fill-not-neutral"
    severity = "error"
    confidence = "high"
    category = "masking"
    family = "tail-mask"
    summary = "Lanes that a load masks off change the result of a reduction."
    why = (
        "Where its mask is false a load gives its fill (`other`), and what the kernel makes of the "
        "fill takes part in every reduction over the tile. It must be neutral there: 0 for a sum, "
        "-inf for a maximum, 1 for a product. A fill of 0 is right for a sum and wrong as soon as "
        "a maximum, an exponential or the difference from a mean comes first. The result is right "
        "when the size is a multiple of the tile, so that tests with round sizes pass."
    )
    fix = (
        "Choose the fill that is neutral for what follows: other=-float('inf') before a maximum or "
        "an exponential; or put the neutral value back right before the reduction with "
        "tl.where(mask, x, neutral)."
    )
    refs = ("https://triton-lang.org/main/python-api/generated/triton.language.load.html",)
    bad = (
        Sample("a softmax with fill 0", _of(_SOFTMAX, FILL="0", MARK="//~ MSK201")),
        Sample(
            "squared deviations of padding lanes are (0 - mean)^2",
            _of(_VARIANCE, REMASK="mov.b32 %r17, %r16;", MARK="//~ MSK201"),
        ),
        Sample(
            "a maximum with fill 0",
            _of(_EXTREME, FILL="0", CHANGE="mov.b32 %r4, %r3;", EXTREME="max", MARK="//~ MSK201"),
        ),
        Sample(
            "a minimum with fill -inf",
            _of(_EXTREME, FILL="0fFF800000", CHANGE="mov.b32 %r4, %r3;", EXTREME="min",
                MARK="//~ MSK201"),
        ),
        Sample(
            "a sum of x + 1 with fill 0",
            _of(_EXTREME, FILL="0", CHANGE="add.f32 %r4, %r3, 0f3F800000;", EXTREME="add",
                MARK="//~ MSK201"),
        ),
    )  # fmt: skip
    good = (
        Sample("a softmax with fill -inf", _of(_SOFTMAX, FILL="0fFF800000")),
        Sample(
            "squared deviations, masked again",
            _of(_VARIANCE, REMASK="selp.f32 %r17, %r16, 0f00000000, %p1;"),
        ),
        Sample(
            "a maximum of magnitudes with fill 0",
            _of(_EXTREME, FILL="0", CHANGE="abs.f32 %r4, %r3;", EXTREME="max"),
        ),
        Sample(
            "a sum of squares with fill 0",
            _of(_EXTREME, FILL="0", CHANGE="mul.f32 %r4, %r3, %r3;", EXTREME="add"),
        ),
        Sample(
            "a sum of exponentials with fill -inf",
            _of(_EXTREME, FILL="0fFF800000", CHANGE="ex2.approx.f32 %r4, %r3;", EXTREME="add"),
        ),
    )
    needs = (PaddingAnalysis,)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One verdict for each masked load that reaches a reduction; a hit for a refuted one."""
        padding = facts.get(PaddingAnalysis)
        if not padding.verdicts:
            return
        from ptxlint.dataflow.index_text import IndexText
        from ptxlint.dataflow.tiles import Tiles

        tiles = Tiles(conjunct for site in padding.sites for conjunct in site.guard)
        text = IndexText(padding.ssa)
        for verdict in padding.verdicts:
            pair = verdict.worst
            proved = verdict.status == "proved"
            yield Verdict(
                verdict.status,
                verdict.reason,
                verdict.at,
                {} if proved else _suggest(verdict, tiles),
                ASSUMES if proved else (),
                (_evidence(padding, text, each) for each in verdict.pairs),
            )
            if verdict.status == "refuted" and pair is not None:
                guard = facts.words.guard(verdict.at)
                yield _hit(padding, verdict, tiles.of(pair.conjunct), guard)


def _evidence(padding: Padding, text: IndexText, pair: Pair) -> Evidence:
    """One pair of a leaf and a conjunct, in words."""
    details = {"guard": text.conjunct(pair.conjunct)}
    route = padding.route(pair) if pair.status != "proved" else ""
    if route:
        details["through"] = route
    if pair.value is not None:
        details["value"] = str(pair.value)
    at = pair.at or pair.site.instr if pair.reduction is None else pair.reduction.at
    return Evidence(pair.status, pair.reason, at, details)


def _hit(padding: Padding, verdict: LoadVerdict, tile: Tile | None, guard: str) -> Hit:
    wrong: dict[str, Pair] = {}
    for pair in verdict.pairs:
        contracted = pair.reduction is None and pair.status == "refuted"
        if contracted or (pair.status != "proved" and pair.reduction is not None):
            route = _CONTRACTED if contracted else padding.route(pair)
            if route not in wrong or pair.status == "refuted":
                wrong[route] = pair
    ordered = sorted(wrong.items(), key=lambda item: _position(item[1]))
    named = " and ".join(f"`{route}`" for route, _ in ordered)
    notes = tuple(_note(pair) for _, pair in ordered if pair.status == "refuted")
    return Hit(
        f"padding lanes hold {verdict.fill} when they reach {named}",
        verdict.at,
        notes,
        breaks_when=_breaks_when(tile),
        help=_help(ordered),
        key=f"fill {verdict.fill} reaches {named}",
        label=f"fill {verdict.fill}" + (f", {guard}" if guard else ""),
    )


def _breaks_when(tile: Tile | None) -> str:
    if tile is None:
        return "the size is not a multiple of the tile"
    name, size, step = tile
    # A round number, as people choose sizes.
    unit = 10 ** (len(str(size - 1)) - 1)
    example = (size - 1) // unit * unit if step == 1 else size - step
    lanes = size - example
    leak = "1 lane leaks" if lanes == 1 else f"{lanes} lanes leak"
    return f"{name} is not a multiple of {size} ({name} = {example}: {leak})"


def _position(pair: Pair) -> int:
    return _place(pair).index


def _place(pair: Pair) -> Instr:
    """What combines lanes: the reduction, or the product of matrices."""
    if pair.reduction is not None:
        return pair.reduction.at
    return pair.at or pair.site.instr


def _note(pair: Pair) -> Note:
    value = pair.reason.removeprefix("padding lanes hold ").partition(" when")[0]
    if pair.reduction is None:
        return Note(f"here each element of padding is {value}, and so is the sum", _place(pair))
    verb = {"add": "adds", "mul": "multiplies by"}.get(pair.reduction.operator, "puts in")
    text = f"here each padding lane {verb} {value}"
    if pair.value is None or pair.value.point is None:
        text += " (where the sums and maxima before it are about 1)"
    return Note(text, pair.reduction.at)


def _help(wrong: list[tuple[str, Pair]]) -> str:
    operators = {p.reduction.operator for _, p in wrong if p.reduction is not None}
    routes = " ".join(route for route, _ in wrong)
    if "min" in operators:
        return 'other=float("inf")'
    if "max" in operators or "exp" in routes:
        return 'other=-float("inf")'
    if _CONTRACTED in [route for route, _ in wrong]:
        return "other=0.0"
    neutral = "1" if "mul" in operators else "0"
    return f"mask again right before the reduction: tl.where(mask, x, {neutral})"


def _suggest(verdict: LoadVerdict, tiles: Tiles) -> dict[str, list[int]]:
    """Sizes worth trying, around the tiles of the guards that are not proved to do no harm."""
    found = {tiles.of(p.conjunct) for p in verdict.pairs if p.status != "proved"}
    sizes: dict[str, set[tuple[int, int]]] = {}
    for tile in found:
        if tile is not None:
            sizes.setdefault(tile.parameter, set()).add((tile.size, tile.step))
    return {
        name: sorted({size + by for size, step in around for by in (-step, 0, step)})
        for name, around in sorted(sizes.items())
    }
