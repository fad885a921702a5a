"""What a rule is. One rule is one file in `rules/`, with its samples and its documentation.

A rule subclasses `Rule`, sets the class attributes and yields from `check`. Metadata that is
missing or malformed is an error when the class is created, not when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

if TYPE_CHECKING:
    from ptxlint.facts import Analysis, Facts
    from ptxlint.ir.function import Function
    from ptxlint.ir.instruction import Instr
    from ptxlint.launch.binding import Bound
    from ptxlint.obligations import Generalisation

FAMILIES = frozenset(
    "tail-mask guard accumulation rescale nonfinite precision overflow bounds launch-limit stride "
    "coverage rerun sync resources semantics".split()
)
CATEGORIES = frozenset(
    "resources masking bounds numerics synchronisation hazards performance".split()
)
LEVELS = frozenset({"ptx", "sass"})
_ID = re.compile(r"(RES1|MSK2|BND3|NUM4|SYN5|HAZ6|PRF7)\d\d|[A-Z]{2,5}\d{3}")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Sample(NamedTuple):
    """A piece of PTX, or of machine code, that documents and tests a rule.

    `code` is a whole module, or a kernel body (then a `.version 8.0`, `.target sm_80`,
    one-kernel module is put around it, with the parameters `in_ptr`, `out_ptr`, 64-bit pointers
    to global memory, and `n_elements`, 32 bits). A line that must be reported ends in `//~ RULE`.
    `metadata` stands for the .json beside a Triton kernel (`num_warps`, `shared`), `launch` for one
    launch of a launch file: `{"grid": 8, "arguments": {"in_ptr": "float32[1024]", …}}`, where all
    parameters are named as in the PTX.

    With `level="sass"` the code is that of one kernel for sm_90 as nvdisasm prints it, without
    addresses and semicolons: instructions, labels and lines of the source. `ptx` is then the PTX
    beside it, whole or a kernel's body.
    """

    title: str
    code: str
    metadata: dict[str, int] = {}  # noqa: RUF012
    launch: dict[str, Any] = {}  # noqa: RUF012
    level: str = "ptx"
    ptx: str = ""


TILE_START: Final = """
            .reg .pred %p<4>;
            .reg .b32 %r<10>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            shl.b32 %r3, %r2, 7;
            mov.u32 %r4, %tid.x;
            and.b32 %r4, %r4, 127;
            or.b32 %r5, %r3, %r4;
            setp.lt.s32 %p1, %r5, %r1;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd4, %rd1, %rd3;
            add.s64 %rd5, %rd2, %rd3;
"""
"""How the body of a sample may start: tiles of 128 elements. `%r5` is the index of a lane `%r4`'s
element, which is one of the n in `%r1` if `%p1`; `%rd4` and `%rd5` are its addresses, `%rd3` their
distance in bytes from the pointers `%rd1` and `%rd2`. `%p3`, `%r9` are the last registers."""


class Note(NamedTuple):
    """A further place of a hit: an instruction and what happens there."""

    message: str
    at: Instr


class Hit(NamedTuple):
    """What a rule reports about one instruction, or about the kernel when `at` is None.

    `severity` overrides the rule's own. `key` enters the fingerprint: choose what survives
    renumbered registers and moved lines; empty takes the message. `label` says in a few words
    what stands at the instruction itself; it is printed after the caret.
    """

    message: str
    at: Instr | None = None
    related: tuple[Note, ...] = ()
    breaks_when: str = ""
    help: str = ""
    severity: str = ""
    key: str = ""
    exact: bool = True
    label: str = ""
    launch: Bound | None = None
    """The launch under which this is so. The same hit (rule, place and key) under several launches
    is one finding: under the first, with the number of the others."""
    witness: dict[str, Any] | None = None
    """Where it is seen: `{"ctaid": [3, 0, 0], "tid": [97, 0, 0], "values": {"k_param_3": 7}}`."""


class Evidence(NamedTuple):
    """One part of what a verdict rests on, with a verdict of its own: the verdict on a masked load
    is the worst of its pairs of a reduction's leaf and a conjunct of the mask.

    `details` says more in words for programs, such as `{"guard": "n - col >= 1", "value": "0.0"}`.
    """

    status: str
    reason: str
    at: Instr | None = None
    details: dict[str, str] = {}  # noqa: RUF012


class Verdict(NamedTuple):
    """A rule's word on a property it checked: `proved`, `refuted` or `open`.

    `evidence` may be a generator: it is asked only when somebody reads it.
    """

    status: str
    reason: str
    at: Instr | None = None
    suggest: dict[str, list[int]] = {}  # noqa: RUF012
    assumes: tuple[str, ...] = ()
    evidence: Iterable[Evidence] = ()
    launch: Bound | None = None
    """The launch that it speaks of. Verdicts of one rule, place and status under several launches
    are one: the first, with the number of the others."""
    generalises: Iterable[Generalisation] = ()
    """For which other launches it is shown; may be a generator, as `evidence` may."""


def refuted(
    launch: Bound,
    message: str,
    at: Instr,
    key: str,
    label: str,
    witness: dict[str, Any] | None,
    right: Generalisation | None = None,
) -> Iterator[Hit | Verdict]:
    """What a rule says of an instruction that a thread of a launch shows to be wrong.

    `right` are smaller launches for which it is not.
    """
    when = f"this launch: grid {launch.grid}"
    if right is not None:
        tied = f", with {', '.join(right.premises)}" if right.premises else ""
        when = f"{right.name} is more than {right.high:,} (here {right.here:,}){tied}"
    yield Hit(
        message,
        at,
        breaks_when=when,
        key=key,
        label=label,
        launch=launch,
        witness=witness,
    )
    generalises = () if right is None else (right,)
    yield Verdict("refuted", message, at, launch=launch, generalises=generalises)


class Rule:
    """Base of all rules.

    `severity` error | warning | note; `confidence` high | medium | low; `category` and `family`
    from the two vocabularies; `levels` the languages it is for, of `ptx` and `sass` (machine
    code); `needs` the analyses it reads; `why` and `fix` are whole sentences
    for people; `bad` and `good` samples; `refs` URLs. `preview` rules run only when selected by
    name. `kernels_only` rules skip `.func`.
    """

    id: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[str]
    confidence: ClassVar[str]
    category: ClassVar[str]
    family: ClassVar[str]
    levels: ClassVar[tuple[str, ...]] = ("ptx",)
    needs: ClassVar[tuple[type[Analysis[Any]], ...]] = ()
    summary: ClassVar[str]
    why: ClassVar[str]
    fix: ClassVar[str]
    bad: ClassVar[tuple[Sample, ...]]
    good: ClassVar[tuple[Sample, ...]]
    refs: ClassVar[tuple[str, ...]] = ()
    preview: ClassVar[bool] = False
    kernels_only: ClassVar[bool] = True

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """Yield what is wrong in this function, and verdicts on what was checked."""
        raise NotImplementedError

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        faults = _faults(cls)
        if faults:
            raise TypeError(f"rule {cls.__module__}.{cls.__name__}: " + "; ".join(faults))


def _faults(cls: type[Rule]) -> list[str]:
    """Everything wrong with a rule's metadata."""
    required = "id name severity confidence category family summary why fix bad good".split()
    faults = [f"`{field}` is missing" for field in required if not hasattr(cls, field)]
    if faults:
        return faults
    if not _ID.fullmatch(cls.id):
        faults.append(f"id {cls.id!r} is not of the form ABC123")
    if not _NAME.fullmatch(cls.name):
        faults.append(f"name {cls.name!r} is not kebab-case")
    for field, allowed in (
        ("severity", {"error", "warning", "note"}),
        ("confidence", {"high", "medium", "low"}),
        ("category", CATEGORIES),
        ("family", FAMILIES),
    ):
        if getattr(cls, field) not in allowed:
            faults.append(f"{field} {getattr(cls, field)!r} is none of {sorted(allowed)}")
    if not cls.levels or not LEVELS.issuperset(cls.levels):
        faults.append(f"levels {cls.levels!r} are none of {sorted(LEVELS)}")
    if not cls.bad or not cls.good:
        faults.append("`bad` and `good` need at least one sample each")
    faults += [
        f"bad sample {sample.title!r} marks no line with //~ {cls.id}"
        for sample in cls.bad
        if f"//~ {cls.id}" not in sample.code
    ]
    return faults
