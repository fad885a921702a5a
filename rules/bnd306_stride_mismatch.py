"""BND306: an array that is reached with strides which are not its own, or not everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ptxlint.dataflow.access import (
    Access,
    AccessAnalysis,
    Accesses,
    core_of,
    lanes_of,
    reduced,
    same_rounds,
)
from ptxlint.dataflow.polynomial import Monomial, Polynomial
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes, Outcome
from ptxlint.launch.questions import place, thread_of, touched
from ptxlint.rulekit import TILE_START, Hit, Note, Rule, Sample, Verdict, refuted

if TYPE_CHECKING:
    from ptxlint.launch.binding import Region
    from ptxlint.launch.under import Judged

_MAX_FORMS: Final = 24
"""So many ways to reach one array are compared with each other."""
_HEAD = """
            .reg .b32 %r<9>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            mov.u32 %r3, %tid.x;
            and.b32 %r3, %r3, 127;
            shl.b32 %r4, %r2, 7;
            or.b32 %r4, %r4, %r3;
            mul.lo.s32 %r5, %r4, %r1;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd4, %rd1, %rd3;
            ld.global.b32 %r6, [%rd4];
"""
_COPY: Final = (
    TILE_START + "@%p1 ld.global.b32 %r6, [%rd4];{mark}\n@%p1 st.global.b32 [%rd5], %r6;\nret;"
)


def _launch(stride: int) -> dict[str, object]:
    view = {"kind": "tensor", "dtype": "float32", "shape": [8, 128], "strides": [stride, 1]}
    out = "float32[8, 128]"
    return {
        "grid": 8,
        "block": 128,
        "arguments": {"in_ptr": view, "out_ptr": out, "n_elements": 1024},
    }


class StrideMismatch(Rule):
    id = "BND306"
    name = "stride-mismatch"
    severity = "warning"
    confidence = "medium"
    category = "bounds"
    family = "stride"
    needs = (AccessAnalysis, LaunchAnalysis)
    summary = "An array is reached with a stride here and without it there, or not by its own."
    why = (
        "A kernel that takes a stride must use it at every access of that array. Where one pass "
        "multiplies an index by it and another does not, the result is right only for "
        "a stride of 1, that is for the contiguous tensors that tests use; where another "
        "multiplies it by another stride, only if both are equal. Indices are compared by value, "
        "all other parts of the two addresses must be the same, and a stride counts only if the "
        "other access has no use for it, so x[i, j] and x[j, i] are no mismatch. Under a launch "
        "tensors have strides. Where one has gaps (some columns of a wider one) or repeats itself "
        "(expanded), each access is proved to be to one of its elements, or refuted: a thread "
        "comes to what is none of them, and all threads together go exactly as far as they would "
        "if the elements lay without gaps, or by the strides of another tensor of that shape. A "
        "kernel that walks on by purpose, from one part of a packed tensor to the next, is open."
    )
    fix = (
        "Multiply the index by the stride everywhere; pass the strides that the tensor has, or a "
        "contiguous one."
    )
    refs = ("https://github.com/ModelTC/LightLLM/issues/1467",)
    bad = (
        Sample(
            "the second pass forgets the stride",
            _HEAD
            + """
            mul.wide.s32 %rd3, %r4, 4;
            add.s64 %rd4, %rd1, %rd3;
            ld.global.b32 %r7, [%rd4]; //~ BND306
            add.s32 %r7, %r7, %r6;
            st.global.b32 [%rd2], %r7;
            ret;
            """,
        ),
        Sample(
            "the second pass multiplies rows by their length",
            """
            .reg .b32 %r<9>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.b32 %r1, [n_elements];
            ld.param.b32 %r8, [out_ptr];
            mov.u32 %r2, %ctaid.x;
            mov.u32 %r3, %tid.x;
            and.b32 %r3, %r3, 127;
            mad.lo.s32 %r4, %r2, %r1, %r3;
            mul.wide.s32 %rd3, %r4, 4;
            add.s64 %rd4, %rd1, %rd3;
            ld.global.b32 %r6, [%rd4];
            mad.lo.s32 %r5, %r2, %r8, %r3;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd4, %rd1, %rd3;
            st.global.b32 [%rd4], %r6; //~ BND306
            ret;
            """,
        ),
        Sample(
            "rows 256 elements apart, taken for 128",
            _COPY.replace("{mark}", " //~ BND306"),
            launch=_launch(256),
        ),
    )
    good = (
        Sample("rows without gaps", _COPY.replace("{mark}", ""), launch=_launch(128)),
        Sample(
            "both passes use it",
            _HEAD
            + """
            ld.global.b32 %r7, [%rd4];
            add.s32 %r7, %r7, %r6;
            st.global.b32 [%rd2], %r7;
            ret;
            """,
        ),
        Sample(
            "a transposition",
            """
            .reg .b32 %r<9>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            mov.u32 %r3, %ctaid.y;
            mad.lo.s32 %r4, %r2, %r1, %r3;
            mul.wide.s32 %rd3, %r4, 4;
            add.s64 %rd4, %rd1, %rd3;
            ld.global.b32 %r6, [%rd4];
            mad.lo.s32 %r4, %r3, %r1, %r2;
            mul.wide.s32 %rd3, %r4, 4;
            add.s64 %rd4, %rd1, %rd3;
            st.global.b32 [%rd4], %r6;
            ret;
            """,
        ),
        Sample(
            "another array, contiguous",
            _HEAD
            + """
            mul.wide.s32 %rd3, %r4, 4;
            add.s64 %rd4, %rd2, %rd3;
            st.global.b32 [%rd4], %r6;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each array that is reached in two ways, or not by its own strides."""
        accesses = facts.get(AccessAnalysis)
        forms = _forms(accesses)
        for of_base in forms.values():
            hit = _mismatch(of_base)
            if hit is not None:
                yield hit
                yield Verdict("refuted", "one index has two strides", hit.at)
            elif any(form.scales for form in of_base):
                yield from _undisputed(of_base, accesses)
        for found in facts.get(LaunchAnalysis) if facts.launches else ():
            yield from _under(found)


def _under(found: LaunchOutcomes) -> Iterator[Hit | Verdict]:
    """What is to be said of the tensors of a launch that are parts of their storages."""
    from ptxlint.launch.views import is_part, keeps_to, view_of

    under, bound = found.under, found.bound
    for region in dict.fromkeys(bound.regions.values()):
        view = view_of(region.tensor)
        if not is_part(region, view):
            continue
        accesses = [o.judged for o in found.outcomes if o.judged.region == region]
        accesses = [judged for judged in accesses if not judged.never]
        if not accesses:
            continue
        at = accesses[0].access.instr
        if view is None:
            yield Verdict("open", f"the strides of {region.name} overlap", at, launch=bound)
        elif all(keeps_to(under, judged, view) for judged in accesses):
            said = f"each access to {region.name} is to one of its elements"
            yield Verdict("proved", said, at, launch=bound)
        else:
            yield from _walk(found, region, accesses)


def _walk(found: LaunchOutcomes, region: Region, accesses: list[Judged]) -> Iterator[Hit | Verdict]:
    """What threads do that are run, where accesses may not be to elements."""
    from ptxlint.launch.view_walk import walked
    from ptxlint.launch.views import ends_within, other_ends, view_of

    under, bound, tensor = found.under, found.bound, region.tensor
    view = view_of(tensor)
    assert view is not None
    went = walked(under, accesses, region, view)
    way = other_ends(region, bound.regions.values()).get(went.end)
    is_whole = way is not None and all(ends_within(under, j, went.end) for j in accesses)
    if went.judged is None or went.witness is None or not is_whole:
        instr = accesses[0].access.instr
        reason = f"that all accesses to {region.name} are to its elements is not known"
        yield Verdict("open", reason, instr, launch=bound)
        return
    shown, instr = Outcome(went.judged, went.witness), went.judged.access.instr
    shape, strides = (", ".join(map(str, part)) for part in (tensor.shape, tensor.strides))
    message = (
        f"{thread_of(shown)} {touched(shown)} {went.witness.offset:,} bytes from its first "
        f"element, where [{shape}] with strides [{strides}] has none: the kernel goes over it as "
        f"if it lay {way}"
    )
    key = f"elements of {region.name}"
    label = f"{touched(shown)} between its elements"
    yield from refuted(bound, message, instr, key, label, place(found, shown))


class Form(NamedTuple):
    """How an address is made: by stride, where its tile starts and its lanes, in bytes.

    `fixed` are further terms that are the same for all threads, which choose a part of the array.
    """

    access: Access
    cores: dict[Monomial, Polynomial]
    lanes: dict[Monomial, Polynomial]
    fixed: frozenset[tuple[Monomial, int]]

    @property
    def scales(self) -> frozenset[Monomial]:
        """The strides in use."""
        return frozenset(scale for scale in (*self.cores, *self.lanes) if scale)


def _undisputed(forms: list[Form], accesses: Accesses) -> Iterator[Verdict]:
    """The verdict on an array for which no mismatch was found; none if nothing compares."""
    first = forms[0].access
    places = {_place(form.access) for form in forms}
    if len(places) < 2:
        return
    missing = accesses.missing()
    if missing is not None:
        yield Verdict("open", missing[0], first.instr)
    elif len({form.scales for form in forms}) > 1:
        yield Verdict("open", f"{first.base} is reached with other strides elsewhere", first.instr)
    else:
        yield Verdict("proved", f"{first.base} is reached with the same strides", first.instr)


def _forms(accesses: Accesses) -> dict[str, list[Form]]:
    """The different forms of the addresses of each array, told apart by kind and place too."""
    found: dict[str, dict[object, Form]] = {}
    made: dict[Polynomial, tuple[Form, object]] = {}
    for access in accesses.in_global:
        if access.base and access.guard is not None:
            if access.form not in made:
                form = _form(access, accesses)
                parts = (frozenset(part.items()) for part in (form.cores, form.lanes))
                made[access.form] = form, (*parts, form.fixed)
            form, how = made[access.form]
            of_base = found.setdefault(access.base, {})
            key = (how, _place(access))
            if key not in of_base:
                of_base[key] = form._replace(access=access)
    return {base: list(forms.values()) for base, forms in found.items()}


def _place(access: Access) -> tuple[object, ...]:
    """What tells accesses of the source apart: a pipeline repeats one ahead of its loop."""
    loc = access.instr.loc
    where = () if loc is None else (loc.file, loc.line, loc.column)
    return access.kind, *where


def _form(access: Access, accesses: Accesses) -> Form:
    cores: dict[Monomial, Polynomial] = {}
    lanes: dict[Monomial, Polynomial] = {}
    for part in accesses.indices(access):
        start, spread = core_of(part.terms), lanes_of(part.terms)
        if start.terms:
            cores[part.scale] = same_rounds(start) * part.element
        if spread.terms:
            lanes[part.scale] = spread * part.element
    depends = access.offset.table.depends
    fixed = frozenset(
        (monomial, coefficient)
        for monomial, coefficient in access.form.terms.items()
        if monomial and monomial not in cores and monomial not in lanes and not depends[monomial]
    )
    return Form(access, cores, lanes, fixed)


def _mismatch(forms: list[Form]) -> Hit | None:
    """The first pair of accesses that differ in the stride of one index and in nothing else."""
    if len(forms) > _MAX_FORMS:
        return None
    for at, second in enumerate(forms):
        for first in forms[:at]:
            strides = _different_strides(first, second)
            if strides is not None:
                return _hit(first.access, second.access, *strides)
    return None


def _different_strides(first: Form, second: Form) -> tuple[Monomial, Monomial] | None:
    """The strides of the one index in the two addresses, () for none."""
    if first.fixed != second.fixed:
        return None
    here = _only(first, second)
    there = _only(second, first)
    if here is None or there is None or here[0] == there[0]:
        return None
    if here[1] != there[1] or not _same_lanes(here[2], there[2]):
        return None
    if not here[1].terms and not here[2].terms:
        return None
    if _uses(second.access, here[0]) or _uses(first.access, there[0]):
        return None
    return here[0], there[0]


def _only(form: Form, other: Form) -> tuple[Monomial, Polynomial, Polynomial] | None:
    """The one part that a form has and another has not: its scale, its start and its lanes.

    None if there is no such part, or more than one.
    """
    zero = form.access.offset * 0
    found = []
    for scale in {**form.cores, **form.lanes}:
        start = form.cores.get(scale, zero) - other.cores.get(scale, zero)
        spread = zero if scale in other.lanes else form.lanes.get(scale, zero)
        if (start.terms or spread.terms) and not _is_less(start):
            found.append((scale, start, spread))
    return found[0] if len(found) == 1 else None


def _is_less(start: Polynomial) -> bool:
    """True for what the other form has more of."""
    return bool(start.terms) and all(c < 0 for c in start.terms.values())


def _same_lanes(first: Polynomial, second: Polynomial) -> bool:
    """True for the same lanes up to a factor: a thread holds several elements where it can."""
    return reduced(first) == reduced(second)


def _uses(access: Access, scale: Monomial) -> bool:
    """True if a factor of the stride occurs anywhere in the access's offset."""
    return any(set(monomial) & set(scale) for monomial in access.offset.terms)


def _hit(first: Access, second: Access, stride: Monomial, other: Monomial) -> Hit:
    """The access with fewer factors is the one to look at; the second one if they have as many."""
    if len(stride) < len(other):
        first, second, stride, other = second, first, other, stride
    table = first.offset.table
    name, here = ("*".join(repr(table.atoms[n]) for n in m) for m in (stride, other))
    used = f"multiplied by `{here}`" if other else "used without it"
    return Hit(
        f"an index that is multiplied by `{name}` elsewhere is {used} here",
        second.instr,
        related=(Note(f"here it is multiplied by `{name}`", first.instr),),
        breaks_when=f"`{name}` is not `{here}`" if other else f"`{name}` is not 1",
        key=f"{second.kind} {second.base}",
    )
