"""What a compiled kernel takes of an SM: registers, stack, spills, shared memory, barriers.

Each number says where it comes from: an assembler and a linker know them, a count of PTX is an
estimate.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

LOG: Final = "assembler log"
"""`ptxas -v`, run by us or by the user."""
CUBIN: Final = "cubin"
"""Attributes of the ELF file."""
SASS: Final = "SASS"
"""Counted in the machine code."""
METADATA: Final = "metadata"
"""What the compiler wrote beside the kernel."""
ESTIMATE: Final = "estimate"
"""Counted in PTX, before the assembler."""


_WORDS: Final = {METADATA: "Triton's metadata", ESTIMATE: "an estimate"}


class Amount(NamedTuple):
    """A number, its source, one of those above, and which one: `ptxas 12.9 run here`,
    `cubin softmax.cubin`; "" where there is but one."""

    value: int
    source: str
    where: str = ""

    @property
    def said(self) -> str:
        """Where the number comes from, in words."""
        return self.where or _WORDS.get(self.source, self.source)

    @property
    def is_exact(self) -> bool:
        """True if it is what the kernel will have when it runs."""
        return self.source != ESTIMATE


class Resources(NamedTuple):
    """What one kernel takes; None is unknown.

    `registers` are those of a thread, the others bytes a thread (`stack` of the kernel's own frame,
    `cumulative_stack` with its callees; spills as they are executed once, in program text), bytes
    a CTA (`shared` static, `dynamic_shared` as the compiler says) and barriers a CTA.
    """

    arch: str
    registers: Amount | None = None
    stack: Amount | None = None
    cumulative_stack: Amount | None = None
    spill_stores: Amount | None = None
    spill_loads: Amount | None = None
    shared: Amount | None = None
    dynamic_shared: Amount | None = None
    barriers: Amount | None = None
    constant: Amount | None = None
    threads: int | None = None
    """Threads of a CTA, where the kernel fixes them."""

    def as_data(self) -> dict[str, dict[str, Any]]:
        """What is known, by name: the value, the kind of its source, and the source in words."""
        return {
            name: {"value": amount.value, "source": amount.source, "said": amount.said}
            for name, amount in zip(self._fields, self, strict=True)
            if isinstance(amount, Amount)
        }

    def completed(self, other: Resources) -> Resources:
        """This, and of the other what is not known here."""
        missing: dict[str, Any] = {
            name: theirs
            for name, mine, theirs in zip(self._fields, self, other, strict=True)
            if mine is None
        }
        return self._replace(**missing)

    def found(self, where: str) -> Resources:
        """This, with a name for where the numbers come from that have none."""
        named: dict[str, Any] = {
            name: amount._replace(where=where)
            for name, amount in zip(self._fields, self, strict=True)
            if isinstance(amount, Amount) and not amount.where
        }
        return self._replace(**named)


__all__ = ["CUBIN", "ESTIMATE", "LOG", "METADATA", "SASS", "Amount", "Resources"]
