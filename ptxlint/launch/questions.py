"""The accesses of a launch, sorted by what one rule asks of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ptxlint.launch.analysis import LaunchOutcomes, Outcome
    from ptxlint.launches import Tensor
    from ptxlint.obligations import Generalisation

OVERFLOW = "overflow"
ABOVE = "above"
BELOW = "below"
MISALIGNED = "misaligned"


class Answer(NamedTuple):
    """What is to be said of accesses that are alike: `refuted` and `open` ones by the first of
    `count`, all proved ones together. `never` of them take place in no thread."""

    status: str
    first: Outcome
    accesses: int
    never: int = 0


def answers(found: LaunchOutcomes, kind: str) -> Iterator[Answer]:
    """The refuted accesses, then the open ones, then all that are proved."""
    groups: dict[tuple[str, object], list[Outcome]] = {}
    for outcome in found.outcomes:
        status = _status(outcome, kind)
        if status:
            groups.setdefault((status, _alike(found, outcome, status)), []).append(outcome)
    for wanted in ("refuted", "open", "proved"):
        for (status, _), members in groups.items():
            if status == wanted:
                first = next((o for o in members if o.witness is not None), members[0])
                never = sum(bool(o.judged.never) for o in members)
                yield Answer(status, first, len(members), never)


def carried(found: LaunchOutcomes, kind: str) -> Iterator[Generalisation]:
    """For which other launches what is proved is proved, too; nothing where some access is wrong,
    since which one it is changes with the sizes."""
    if not any(_status(outcome, kind) == "refuted" or outcome.shown for outcome in found.outcomes):
        proved = (o for o in found.outcomes if _status(o, kind) == "proved")
        yield from found.reach.proved(kind, {o.judged.access.instr.index for o in proved})


def right_below(found: LaunchOutcomes, answer: Answer, kind: str) -> Generalisation | None:
    """For which smaller launches neither what is refuted nor what is like it goes wrong."""
    return found.reach.below(kind, _alike_to(found, answer, kind), is_wrong=True)


def shown_below(found: LaunchOutcomes, answer: Answer, kind: str) -> Iterator[Generalisation]:
    """For which smaller launches what is open is proved, and all that is like it."""
    smaller = found.reach.below(kind, _alike_to(found, answer, kind), is_wrong=False)
    if smaller is not None:
        yield smaller


def _alike_to(found: LaunchOutcomes, answer: Answer, kind: str) -> set[int]:
    """The instructions whose accesses have to do with an answer: all for a number that wraps, else
    those that do the same to the same tensor."""
    own = answer.first.judged.access
    return {
        access.instr.index
        for access in (outcome.judged.access for outcome in found.outcomes)
        if kind == OVERFLOW or (access.base, access.kind) == (own.base, own.kind)
    }


def settled(found: LaunchOutcomes, instrs: Collection[int]) -> str:
    """The word on all accesses of some instructions, given by their index: refuted if one of them
    goes wrong, proved if all stay inside."""
    outcomes = [o for o in found.outcomes if o.judged.access.instr.index in instrs]
    if any(o.witness is not None or o.shown for o in outcomes):
        return "refuted"
    if all(o.judged.never or o.judged.is_inside for o in outcomes):
        return "proved"
    return "open"


def _status(outcome: Outcome, kind: str) -> str:
    """The word on one access; "" where another question is the one to ask."""
    judged, witness, shown = outcome
    if witness is not None and witness.kind == kind:
        return "refuted"
    if shown:
        return ""
    if kind == OVERFLOW:
        return "open" if judged.wraps else "proved"
    if judged.never:
        return "proved" if judged.is_settled else "open" if kind == ABOVE else ""
    if kind == ABOVE:
        return "proved" if judged.above and judged.is_settled else "open"
    if judged.region is None and not judged.ran:
        # That it is not known where the access goes is said once.
        return ""
    if kind == BELOW and not judged.is_settled:
        return ""
    if kind == BELOW:
        return "proved" if judged.below else "open"
    return "proved" if judged.aligned else "open"


def _alike(found: LaunchOutcomes, outcome: Outcome, status: str) -> object:
    """What accesses have in common that one answer is given for."""
    if status == "proved":
        return None
    judged, access = outcome.judged, outcome.judged.access
    wraps = tuple(wrap.instr for wrap in judged.wraps[:1])
    if status == "refuted" and outcome.witness is not None:
        wrap = outcome.witness.wrap
        if wrap is None:
            return access.base, access.kind, access.form
        # The elements of a tile are one number in the source.
        loc = found.under.facts.function.instrs[wrap.instr].loc
        if loc is None or loc.in_asm:
            return wrap.instr
        places = tuple((part.file, part.line, part.column) for part in loc.chain())
        return places, wrap.bits, wrap.signed
    return access.base, access.kind, wraps, judged.reason


def place(found: LaunchOutcomes, outcome: Outcome) -> dict[str, Any] | None:
    """The witness as plain data, with the numbers that the launch passes."""
    witness, bound = outcome.witness, found.bound
    if witness is None:
        return None
    element = _element(outcome)
    return {
        "ctaid": list(witness.thread.ctaid),
        "tid": list(witness.thread.tid),
        "offset": witness.offset,
        "element": None if element is None else list(element),
        "value": witness.value if witness.wrap is not None else None,
        "values": {
            bound.names.get(name, name): number
            for (name, offset), number in bound.values.items()
            if not offset and (name, offset) not in bound.floats
        },
    }


def element_at(tensor: Tensor, offset: int) -> tuple[int, ...] | None:
    """The index of the element that so many bytes from the first one belong to.

    An element beyond the end has an index beyond the extent of the axis with the largest stride;
    None where the strides do not tell elements apart.
    """
    from ptxlint.launches import DTYPE_BYTES

    size = DTYPE_BYTES.get(tensor.dtype, 0)
    if not size or not tensor.shape:
        return None
    left = offset // size
    index = [0] * len(tensor.shape)
    axes = [at for at, extent in enumerate(tensor.shape) if extent != 1]
    # A tensor of one element has one axis left to count beyond it.
    axes = axes or [0]
    for at in sorted(axes, key=lambda at: -tensor.strides[at]):
        if tensor.strides[at] <= 0:
            return None
        index[at], left = divmod(left, tensor.strides[at])
    outermost = max(axes, key=lambda at: tensor.strides[at])
    is_told = not left and all(0 <= index[at] < tensor.shape[at] for at in axes if at != outermost)
    return tuple(index) if is_told else None


def _element(outcome: Outcome) -> tuple[int, ...] | None:
    """The first element outside that a witness accesses, or the first one that it does."""
    witness, region = outcome.witness, outcome.judged.region
    if witness is None or region is None:
        return None
    offset = witness.offset
    if witness.kind == ABOVE:
        offset = max(offset, region.high)
    return element_at(region.tensor, offset)


def element_of(outcome: Outcome) -> str:
    """The element that a witness comes to, in words: ` at element [3, 128] of [3, 100]`."""
    element, region = _element(outcome), outcome.judged.region
    if element is None or region is None:
        return ""
    index, shape = (", ".join(map(str, numbers)) for numbers in (element, region.tensor.shape))
    return f" at element [{index}] of [{shape}]"


def touched(outcome: Outcome) -> str:
    """What an access does, and to what: `reads x`."""
    access, region = outcome.judged.access, outcome.judged.region
    verb = {"load": "reads", "store": "writes", "atomic": "updates"}.get(access.kind, "copies from")
    return f"{verb} {region.name if region is not None else 'memory'}"


def thread_of(outcome: Outcome) -> str:
    """The thread of a witness in words."""
    witness = outcome.witness
    if witness is None:
        return ""
    ctaid, tid = (", ".join(map(str, part)) for part in witness.thread)
    return f"program ({ctaid}), thread ({tid})"


__all__ = [
    "ABOVE", "BELOW", "MISALIGNED", "OVERFLOW", "Answer", "answers", "carried", "element_at",
    "element_of", "place", "right_below", "settled", "shown_below", "thread_of", "touched",
]  # fmt: skip
